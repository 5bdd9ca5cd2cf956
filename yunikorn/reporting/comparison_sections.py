"""Tables of a comparison as rows of text, with a few variants side by side."""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.reporting.comparison import Comparison, FigureRow
from yunikorn.reporting.sections import Section

BESIDE = 5
"""Maximum number of variants per table, including the first, which is in every table."""


def comparison_sections(comparison: Comparison, beside: int = BESIDE) -> Iterator[Section]:
    """Yield a table for each section of figures; many variants are split into several tables."""
    last = len(comparison.variants)
    step = beside - 1
    groups = [[0, *range(start, min(start + step, last))] for start in range(1, last, step)]
    names: dict[str, list[FigureRow]] = {}
    for row in comparison.rows:
        names.setdefault(row.section, []).append(row)
    for group in groups:
        for section, rows in names.items():
            columns = [section, *(comparison.variants[number].name for number in group)]
            cells = [[row.name, *(row.text(number) for number in group)] for row in rows]
            yield Section(section, columns, cells)


def whole_table(comparison: Comparison, beside: int = BESIDE) -> Iterator[Section]:
    """Yield one table per group of variants, with the sections below each other."""
    found: dict[tuple[str, ...], list[list[str]]] = {}
    for section in comparison_sections(comparison, beside):
        names = tuple(section.columns[1:])
        rows = found.setdefault(names, [])
        rows.append([section.title.upper(), *[""] * len(names)])
        rows += [[f"  {row[0]}", *row[1:]] for row in section.rows]
    title, note = _title(comparison), _note(comparison)
    yield from (Section(title, ["", *names], rows, note) for names, rows in found.items())


def _title(comparison: Comparison) -> str:
    runs = f", {len(comparison.seeds)} seeds each" if comparison.seeds else ""
    return f"{len(comparison.variants)} variants of {comparison.workload}{runs}"


def _note(comparison: Comparison) -> str:
    first = comparison.variants[0].name
    if len(comparison.seeds) > 1:
        return (
            f"▲ ▼: larger or smaller than under {first}, if the difference is significant "
            "(95 %, paired by seed); ±: half of the 95 % confidence interval"
        )
    return f"▲ ▼: larger or smaller than under {first}"
