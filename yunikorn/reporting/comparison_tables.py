"""Tables of a comparison as rows of text, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.reporting.comparison_result import Comparison, FigureRow
from yunikorn.reporting.setting_curves import curve_tables
from yunikorn.reporting.tables import Table

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


def whole_table(comparison: Comparison, beside: int = BESIDE) -> Iterator[Table]:
    """Yield a table with all sections below each other; many variants are split into several tables."""
    sections: dict[str, list[FigureRow]] = {}
    for row in comparison.rows:
        sections.setdefault(row.section, []).append(row)
    last = len(comparison.variants)
    for start in range(1, max(last, 2), beside - 1):
        group = [0, *range(start, min(start + beside - 1, last))]
        cells: list[list[str]] = []
        for section, rows in sections.items():
            cells.append([section, *[""] * len(group)])
            cells += [[f"  {row.name}", *(row.text(number) for number in group)] for row in rows]
        names = [comparison.variants[number].name for number in group]
        yield Table(comparison_title(comparison), ["", *names], cells, _note(comparison), has_parts=True)


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


def _note(comparison: Comparison) -> str:
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
