"""Verdict on a comparison: what each variant changes, compared with the first variant.

Only figures that differ significantly count, as they are marked in the table.
"""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.reporting.comparison_result import Comparison, FigureRow
from yunikorn.reporting.comparison_tables import unfinished_runs
from yunikorn.reporting.figures import MEAN_WAIT
from yunikorn.reporting.tables import duration

NOTABLE = 1.0
"""Minimum difference of mean waits and makespans, in seconds, that is worth a sentence."""
APART = 0.05
"""The same, as a part of the larger value."""


def judge_comparison(comparison: Comparison) -> list[str]:
    """Return the sentences: one for each variant that differs, and one for all others."""
    sentences = list(_completeness(comparison))
    first, *variants = [variant.name for variant in comparison.variants]
    others = {name for name, found in comparison.differences if any(one.is_workload for one in found)}
    equal = []
    for number, name in enumerate(variants, 1):
        parts = [*_waits(comparison, number), *_makespan(comparison, number)]
        if name in others:
            sentences.append(f"{name} has another workload or other nodes than {first}: figures say little.")
        elif parts:
            sentences.append(f"{name}, compared with {first}: {'; '.join(parts)}.")
        else:
            equal.append(name)
    if equal:
        sentences.append(f"No notable difference in waits and makespan from {first}: {', '.join(equal)}.")
    return sentences


def _completeness(comparison: Comparison) -> Iterator[str]:
    if comparison.unfinished:
        yield f"{unfinished_runs(comparison)}: the figures are those of the others."
    cut = [
        one.name
        for one in comparison.variants
        if any(run.report.outcome != "complete" for run in one.results)
    ]
    if cut:
        yield f"Not simulated to the end: {', '.join(cut)}. Waits of unfinished work are not counted."


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
    least = max(NOTABLE, APART * max(cell.value.mean, first.mean))
    return difference if abs(difference) >= least else 0.0


def _change(row: FigureRow, number: int) -> str:
    first, value = row.cells[0].value, row.cells[number].value
    assert first is not None
    assert value is not None
    return f"wait {duration(value.mean)} instead of {duration(first.mean)} on average"
