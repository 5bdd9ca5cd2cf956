"""Result of a comparison: figures of all variants, those that differ, curves, and first divergences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, Any

import attrs

from yunikorn_lab.reporting.csv_files import Columns, CsvFile
from yunikorn_lab.reporting.decision_log import DivergenceReport
from yunikorn_lab.reporting.figures import measures
from yunikorn_lab.reporting.metrics import Dispersion, differ, difference, dispersion
from yunikorn_lab.reporting.provenance import ProvenanceDifference
from yunikorn_lab.reporting.setting_curves import CURVE_COLUMNS, SettingCurve, curve_json, curve_rows
from yunikorn_lab.reporting.tables import Format
from yunikorn_lab.reporting.variants import Variant

CSV = "compare.csv"
CURVE_CSV = "curve.csv"
JSON = "compare.json"


@attrs.frozen
class Cell:
    """A figure of one variant over all seeds; `value` is None if the variant has no such figure."""

    value: Dispersion | None
    differs: bool
    """True if the figure differs significantly from that of the first variant."""
    difference: Dispersion | None = None
    """Difference from the figure of the first variant, paired by seed."""


@attrs.frozen
class FigureRow:
    """A figure of all variants."""

    section: str
    name: str
    cells: list[Cell]
    format: Format = attrs.field(eq=False)

    @property
    def differs(self) -> bool:
        """True if any variant differs from the first."""
        return any(cell.differs for cell in self.cells)

    @property
    def is_equal(self) -> bool:
        """True if all variants have the same value, without regard to significance."""
        return all(cell.value == self.cells[0].value for cell in self.cells)

    def text(self, number: int) -> str:
        """Return the cell text of one variant: mean, confidence interval, change from the first variant."""
        cell = self.cells[number]
        if cell.value is None:
            return self.format(None)
        text = self.format(cell.value.mean)
        if cell.value.half:
            text += f" ± {self.format(cell.value.half)}"
        return f"{text} {self.mark(number)}" if cell.differs else text

    def mark(self, number: int) -> str:
        """Return the relative difference to the first variant, such as `▲ 12 %` or `▼ 3 %`."""
        first, value = self.cells[0].value, self.cells[number].value
        if first is None or value is None or not first.mean:
            return "▲" if value is not None and value.mean > 0 else "◆"
        change = value.mean / first.mean - 1
        size = f"{abs(change):.0%}" if abs(change) >= 0.095 else f"{abs(change):.1%}"
        if abs(change) < 0.0005:
            size = "< 0.1%"
        if abs(change) >= 10:
            size = f"{value.mean / first.mean:,.0f}x"
        return f"{'▲' if change > 0 else '▼'} {size}"


_COLUMNS: Columns[tuple[FigureRow, Variant, Cell]] = {
    "section": lambda found: found[0].section,
    "figure": lambda found: found[0].name,
    "variant": lambda found: found[1].name,
    "value": lambda found: found[2].value.mean if found[2].value else None,
    "half_width_of_95_percent_interval": lambda found: found[2].value.half if found[2].value else None,
    "differs": lambda found: int(found[2].differs),
}


@attrs.frozen
class Comparison:
    """Results of several variants of one workload."""

    workload: str
    seeds: list[int]
    """Seeds of the runs; empty if nothing was drawn."""
    variants: list[Variant]
    rows: list[FigureRow]
    divergence_reports: list[DivergenceReport]
    """Divergences of all variants but the first."""
    curves: list[SettingCurve] = attrs.Factory(list)
    """Figures over settings that are numbers."""
    unfinished: int = 0
    """Number of runs that had not ended when the comparison was interrupted."""
    taken_over: int = 0
    """Number of runs of an earlier call that were not repeated."""
    differences: list[tuple[str, list[ProvenanceDifference]]] = attrs.Factory(list)
    """Differences in provenance from the first variant, by variant; only for finished folders."""

    def to_json(self) -> str:
        """Return JSON text of the table and the reports of all runs, with a final newline."""
        rows: list[dict[str, Any]] = [
            {
                "section": row.section,
                "name": row.name,
                "values": [None if cell.value is None else cell.value.mean for cell in row.cells],
                "halves": [None if cell.value is None else cell.value.half for cell in row.cells],
                "differs": [cell.differs for cell in row.cells],
            }
            for row in self.rows
        ]
        whole = {
            "workload": self.workload,
            "seeds": self.seeds,
            "unfinished": self.unfinished,
            "variants": [variant.name for variant in self.variants],
            "rows": rows,
            "curves": list(map(curve_json, self.curves)),
            "differences": {name: list(map(attrs.asdict, found)) for name, found in self.differences},
            "divergences": [attrs.asdict(divergence_report) for divergence_report in self.divergence_reports],
            "reports": [
                [json.loads(result.to_json()) for result in variant.results] for variant in self.variants
            ],
        }
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"

    def write_csv(self, file: IO[str]) -> None:
        """Write compare.csv, with a row for each figure and variant."""
        table = CsvFile(file, _COLUMNS)
        for row in self.rows:
            for variant, cell in zip(self.variants, row.cells, strict=True):
                table.write((row, variant, cell))

    def write_curves(self, file: IO[str]) -> None:
        """Write curve.csv, with a row for each value of each figure of each curve."""
        table = CsvFile(file, CURVE_COLUMNS)
        for row in curve_rows(self.curves):
            table.write(row)


def make_rows(variants: Sequence[Variant]) -> list[FigureRow]:
    """Make the rows for at least one variant; all variants have results for the same seeds, in order."""
    found: dict[tuple[str, str], list[list[float | None]]] = {}
    formats: dict[tuple[str, str], Format] = {}
    asked_for: set[tuple[str, str]] = set()
    for number, variant in enumerate(variants):
        for seed, result in enumerate(variant.results):
            for measure in measures(result):
                key = (measure.section, measure.name)
                formats.setdefault(key, measure.format)
                if measure.is_asked_for:
                    asked_for.add(key)
                table = found.setdefault(key, [[None] * len(one.results) for one in variants])
                table[number][seed] = measure.value
    return [
        FigureRow(section, name, _cells(values), formats[section, name])
        for (section, name), values in _together(found)
        if (section, name) in asked_for or any(value for numbers in values for value in numbers)
    ]


def _together(
    found: dict[tuple[str, str], list[list[float | None]]],
) -> list[tuple[tuple[str, str], list[list[float | None]]]]:
    """Group rows by section, including rows that only later variants have."""
    sections = list(dict.fromkeys(section for section, _ in found))
    return sorted(found.items(), key=lambda item: sections.index(item[0][0]))


def _cells(values: list[list[float | None]]) -> list[Cell]:
    first = values[0]
    return [
        Cell(
            dispersion([value for value in numbers if value is not None]),
            number > 0 and differ(first, numbers),
            difference(first, numbers),
        )
        for number, numbers in enumerate(values)
    ]
