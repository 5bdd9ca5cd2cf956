"""Tables and verdict of a comparison as text, for the terminal and for the page.

The verdict says what each variant changes, compared with the first variant. Only figures that differ
significantly count, as they are marked in the table.
"""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn_lab.reporting.comparison_result import Comparison, FigureRow
from yunikorn_lab.reporting.figures import MEAN_WAIT
from yunikorn_lab.reporting.setting_curves import curve_tables
from yunikorn_lab.reporting.tables import Table, duration

CHANCE = 0.05
"""Probability that a figure without a true difference is marked."""
MOST_CURVES = 8
"""Maximum number of curves with a plot and a table; curve.csv has all of them."""
ON_TERMINAL = 2
"""Maximum number of curves on a terminal."""
BESIDE = 5
"""Maximum number of variants per table, including the first, which is in every table."""


def difference_lines(comparison: Comparison) -> Iterator[str]:
    """Yield what differs in the provenance of each variant from that of the first, as lines."""
    first = comparison.variants[0].name
    for name, found in comparison.differences:
        if not found:
            yield f"{first} and {name} have equal inputs."
            continue
        yield f"The inputs of {first} and {name} differ:"
        for one in found:
            yield from (f"  {one.what}", f"    {first}: {one.one}", f"    {name}: {one.other}")


def difference_tables(comparison: Comparison) -> Iterator[Table]:
    """Yield a table of what differs in the provenance of each variant from that of the first."""
    first = comparison.variants[0].name
    for name, found in comparison.differences:
        rows = [[one.what, one.one, one.other] for one in found]
        note = "" if rows else f"{first} and {name} have equal inputs"
        yield Table(f"What differs between the inputs of {first} and {name}", ["", first, name], rows, note)


def whole_table(
    comparison: Comparison, beside: int = BESIDE, *, all_figures: bool = False
) -> Iterator[Table]:
    """Yield a table with all sections below each other; many variants are split into several tables.

    Figures that are equal under all variants are left out and counted in the note, unless there are no
    others or `all_figures` asks for them.
    """
    equal = [] if all_figures else equal_rows(comparison)
    sections: dict[str, list[FigureRow]] = {}
    for row in comparison.rows:
        if row not in equal:
            sections.setdefault(row.section, []).append(row)
    last = len(comparison.variants)
    for start in range(1, max(last, 2), beside - 1):
        group = [0, *range(start, min(start + beside - 1, last))]
        cells: list[list[str]] = []
        for section, rows in sections.items():
            cells.append([section, *[""] * len(group)])
            cells += [[f"  {row.name}", *(row.text(number) for number in group)] for row in rows]
        names = [comparison.variants[number].name for number in group]
        yield Table(
            comparison_title(comparison), ["", *names], cells, _note(comparison, len(equal)), has_parts=True
        )


def equal_rows(comparison: Comparison) -> list[FigureRow]:
    """Return the figures that are equal under several variants; none if all figures are."""
    found = [row for row in comparison.rows if row.is_equal]
    return found if len(comparison.variants) > 1 and len(found) < len(comparison.rows) else []


def comparison_title(comparison: Comparison) -> str:
    """Return the number of variants and seeds, the workload, and if runs are missing."""
    count = len(comparison.seeds)
    runs = f", {count} {'seed' if count == 1 else 'seeds'} each" if count else ""
    variants = "1 variant" if len(comparison.variants) == 1 else f"{len(comparison.variants)} variants"
    missing = f" (incomplete: {unfinished_runs(comparison)})" if comparison.unfinished else ""
    return f"{variants} of {comparison.workload}{runs}{missing}"


def unfinished_runs(comparison: Comparison) -> str:
    """Return how many runs were not finished, as text."""
    count = comparison.unfinished
    return f"{count} {'run was' if count == 1 else 'runs were'} not finished"


def _note(comparison: Comparison, equal: int) -> str:
    figures = "1 figure is" if equal == 1 else f"{equal} figures are"
    more = f"{figures} equal under all variants, and not shown (--all-figures)" if equal else ""
    return "; ".join(filter(None, [_note_on_marks(comparison), more]))


def _note_on_marks(comparison: Comparison) -> str:
    first = comparison.variants[0].name
    if len(comparison.seeds) > 1:
        return (
            f"▲ ▼: larger or smaller than under {first}, if the difference is significant "
            f"(95 %, paired by seed); ±: half of the 95 % confidence interval. {chance(comparison)}"
        )
    return f"▲ ▼: larger or smaller than under {first}"


def chance(comparison: Comparison) -> str:
    """Return how many differences are marked, and how many chance alone would mark."""
    compared = [
        cell
        for row in comparison.rows
        for cell in row.cells[1:]
        if cell.value is not None and row.cells[0].value is not None
    ]
    marked = sum(1 for cell in compared if cell.differs)
    expected = f"{CHANCE * len(compared):.1f}".removesuffix(".0")
    return (
        f"{marked} of {len(compared)} compared figures are marked; chance alone would mark about {expected} "
        "if nothing differed"
    )


def few_curve_tables(comparison: Comparison) -> Iterator[Table]:
    """Yield the tables of the curves for a terminal, unless there are many."""
    if len(comparison.curves) <= ON_TERMINAL:
        for curve in comparison.curves:
            yield from curve_tables(curve)


NOTABLE = 1.0
"""Minimum difference of mean waits and makespans, in seconds, that is worth a sentence."""
APART = 0.05
"""The same, as a part of the larger value."""

SAME_WORK = "Compare runs of one workload on the same nodes."
AGAIN = "The same call with --out again runs only those that are missing."
CUT = "Without --until, or with a later one, they are."


def judge_comparison(comparison: Comparison) -> list[str]:
    """Return the sentences: one for each variant that differs, and one for all others."""
    sentences = list(_completeness(comparison))
    first, *variants = [variant.name for variant in comparison.variants]
    others = {name for name, found in comparison.differences if any(one.is_workload for one in found)}
    equal = []
    for number, name in enumerate(variants, 1):
        parts = [*_waits(comparison, number), *_makespan(comparison, number)]
        if name in others:
            sentences.append(
                f"{name} has another workload or other nodes than {first}: figures say little. {SAME_WORK}"
            )
        elif parts:
            sentences.append(f"{name}, compared with {first}: {'; '.join(parts)}.")
        else:
            equal.append(name)
    if equal:
        sentences.append(_nothing_notable(comparison, equal))
    return sentences


def _nothing_notable(comparison: Comparison, names: list[str]) -> str:
    """Return a sentence on variants without a significant difference, which may have one all the same."""
    first, count = comparison.variants[0].name, len(comparison.seeds)
    numbers = [number for number, one in enumerate(comparison.variants) if one.name in names]
    if count and not all(_are_equal(comparison, number) for number in numbers):
        seeds = "One seed is" if count == 1 else f"{count} seeds are"
        return (
            f"{seeds} too few to tell whether waits and makespan differ from {first}: {', '.join(names)}. "
            "Run more with --seeds."
        )
    return f"No notable difference in waits and makespan from {first}: {', '.join(names)}."


def _are_equal(comparison: Comparison, number: int) -> bool:
    """Return True if the confidence intervals leave no room for a notable difference."""
    for section, name in (("applications", MEAN_WAIT), ("totals", "makespan")):
        row = _row(comparison, section, name)
        found = row.cells[number].difference if row is not None else None
        if row is None or found is None:
            continue
        if found.half is None or abs(found.mean) + found.half >= _least(row, number):
            return False
    return True


def _completeness(comparison: Comparison) -> Iterator[str]:
    if comparison.unfinished:
        yield f"{unfinished_runs(comparison)}: the figures are those of the others. {AGAIN}"
    cut = [
        one.name
        for one in comparison.variants
        if any(run.report.outcome != "complete" for run in one.results)
    ]
    if cut:
        names = ", ".join(cut)
        yield f"Not simulated to the end: {names}. Waits of unfinished work are not counted. {CUT}"


def _waits(comparison: Comparison, number: int) -> Iterator[str]:
    overall = _row(comparison, "applications", MEAN_WAIT)
    if overall is not None and _difference(overall, number):
        yield f"applications {_change(overall, number)}"
    leaves = {queue.name for one in comparison.variants for queue in one.results[0].figures.queues}
    rows = [
        row
        for row in comparison.rows
        if row.name == MEAN_WAIT and row.section.rpartition(": ")[2] in leaves and _difference(row, number)
    ]
    if not rows or len(leaves) < 2:
        return
    gaining = min(rows, key=lambda row: _difference(row, number))
    losing = max(rows, key=lambda row: _difference(row, number))
    if _difference(gaining, number) < 0:
        yield f"{gaining.section} gains most: its applications {_change(gaining, number)}"
    if _difference(losing, number) > 0:
        yield f"{losing.section} loses most: its applications {_change(losing, number)}"


def _makespan(comparison: Comparison, number: int) -> Iterator[str]:
    row = _row(comparison, "totals", "makespan")
    difference = _difference(row, number) if row is not None else 0.0
    if row is not None and difference:
        value = row.cells[number].value
        later = "later" if difference > 0 else "sooner"
        ends = f", after {duration(value.mean)}" if value else ""
        yield f"the work is done {duration(abs(difference))} {later}{ends}"


def _row(comparison: Comparison, section: str, name: str) -> FigureRow | None:
    return next((row for row in comparison.rows if (row.section, row.name) == (section, name)), None)


def _difference(row: FigureRow, number: int) -> float:
    """Return the difference to the first variant in seconds; 0 if it is not significant or not notable."""
    first, cell = row.cells[0].value, row.cells[number]
    if first is None or cell.value is None or not cell.differs:
        return 0.0
    difference = cell.value.mean - first.mean
    return difference if abs(difference) >= _least(row, number) else 0.0


def _least(row: FigureRow, number: int) -> float:
    """Return the smallest notable difference (seconds) of a figure from that of the first variant."""
    means = [cell.value.mean for cell in (row.cells[0], row.cells[number]) if cell.value is not None]
    return max(NOTABLE, APART * max(means, default=0.0))


def _change(row: FigureRow, number: int) -> str:
    first, value = row.cells[0].value, row.cells[number].value
    assert first is not None
    assert value is not None
    return f"wait {duration(value.mean)} instead of {duration(first.mean)} on average"
