"""Comparison of variants of one workload: runs, figures that differ, and the first diverging decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import IO, Any

import attrs

from yunikorn.reporting.csv_files import Columns, CsvFile
from yunikorn.reporting.decision_log import (
    Divergence,
    DivergenceReport,
    describe,
    find_divergence,
    unpack,
)
from yunikorn.reporting.divergence_reasons import DivergenceReason, find_reasons
from yunikorn.reporting.figures import measures
from yunikorn.reporting.formats import Format
from yunikorn.reporting.input_places import InputPlaces
from yunikorn.reporting.metrics import Dispersion, differ, dispersion
from yunikorn.reporting.provenance import Difference, Provenance
from yunikorn.reporting.runs import NothingFinished, Order, Played, Source, finished, play_all
from yunikorn.reporting.setting_curves import (
    CURVE_COLUMNS,
    SettingCurve,
    curve_json,
    curve_rows,
    find_curves,
)
from yunikorn.reporting.variant_results import Variant
from yunikorn.reporting.variants import VariantPlan
from yunikorn.simulation.workload import RESTART


@attrs.frozen
class Drawn:
    """A workload to simulate under every variant, and its seed if the workload is drawn."""

    source: Source
    seed: int | None = None


def compare(
    plans: Sequence[VariantPlan],
    workloads: Sequence[Drawn],
    executor: Executor,
    *,
    until: int | None = None,
    preempted: str = RESTART,
    targets: Mapping[str, int] | None = None,
    folder: Path | None = None,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
    provenance: Callable[[VariantPlan], Provenance] | None = None,
    place: Callable[[VariantPlan], InputPlaces] | None = None,
    with_reasons: bool = True,
) -> Comparison:
    """Simulate every plan with every workload; raises `RunFailed`.

    `targets` are wait targets (ns) by queue. Divergences are reported for the first workload. `folder`
    receives the files of each run in a separate subfolder, `force` is as for `OutFolder`. After `is_stopped`
    returns True, the comparison has the variants and seeds that were finished. With a `provenance`, finished
    runs in `folder` with an equal one are not repeated. `place` returns the places of a variant's inputs.
    `with_reasons` repeats runs for the reasons of their divergences.
    """
    provenances = [None if provenance is None else provenance(plan) for plan in plans]
    orders = [
        Order(
            plan.name,
            plan.config,
            drawn.source,
            drawn.seed,
            until,
            preempted,
            _folder(folder, plan, number, drawn),
            home=plan.home,
            provenance=_seeded(provenances[number - 1], drawn),
            targets=tuple((targets or {}).items()),
            force=force,
            places=None if place is None else place(plan),
        )
        for drawn in workloads
        for number, plan in enumerate(plans, 1)
    ]
    taken_over = [finished(order) for order in orders]
    missing = [order for order, run in zip(orders, taken_over, strict=True) if run is None]
    run_now = iter(play_all(missing, executor, on_progress, is_stopped))
    played = [next(run_now) if run is None else run for run in taken_over]
    groups = [played[number :: len(plans)] for number in range(len(plans))]
    kept, seeds = _finished(groups)
    variants = [
        Variant(
            plans[number].name,
            [run for at in seeds if (run := groups[number][at].result) is not None],
            plans[number].settings,
            str(plans[number].home / plans[number].file),
        )
        for number in kept
    ]
    unfinished = sum(1 for run in played if run.result is None)
    return Comparison(
        workload=variants[0].results[0].report.workload,
        seeds=[seed for at in seeds if (seed := workloads[at].seed) is not None],
        variants=variants,
        rows=make_rows(variants),
        divergence_reports=[]
        if unfinished
        else _divergences(
            [group[0] for group in groups], orders[: len(plans)], executor if with_reasons else None
        ),
        curves=find_curves(variants),
        unfinished=unfinished,
        taken_over=len(orders) - len(missing),
    )


def _seeded(provenance: Provenance | None, drawn: Drawn) -> Provenance | None:
    if provenance is None or drawn.seed is None:
        return provenance
    return attrs.evolve(provenance, seed=drawn.seed)


def _finished(groups: list[list[Played]]) -> tuple[list[int], list[int]]:
    """Return the numbers of the variants, and those of the seeds that were finished under all of them.

    Without a common seed, the variants with the fewest finished runs are left out.
    """
    done = {
        number: {at for at, run in enumerate(group) if run.result is not None}
        for number, group in enumerate(groups)
    }
    done = {number: seeds for number, seeds in done.items() if seeds}
    if not done:
        raise NothingFinished("interrupted before the end of the first run")
    while not (common := set.intersection(*done.values())):
        del done[min(done, key=lambda number: len(done[number]))]
    return list(done), sorted(common)


def _folder(folder: Path | None, plan: VariantPlan, number: int, drawn: Drawn) -> Path | None:
    if folder is None:
        return None
    own = folder / plan.folder(number)
    return own if drawn.seed is None else own / f"seed-{drawn.seed}"


def _divergences(
    played: list[Played], orders: list[Order], executor: Executor | None
) -> list[DivergenceReport]:
    first = played[0]
    found = [find_divergence(first.decisions, other.decisions) for other in played[1:]]
    reasons = [DivergenceReason()] * len(found)
    if executor is not None:
        reasons = find_reasons(orders[1:], found, executor, first=orders[0])
    return [
        describe(
            first.name,
            other.name,
            divergence,
            _decisions(first, divergence),
            reason.answer,
            reason.text,
            is_of_first=reason.is_of_first,
        )
        for other, divergence, reason in zip(played[1:], found, reasons, strict=True)
    ]


def _decisions(first: Played, divergence: Divergence | None) -> int:
    return sum(1 for _ in unpack(first.decisions)) if divergence is None else divergence.equal


CSV = "compare.csv"
CURVE_CSV = "curve.csv"
JSON = "compare.json"


@attrs.frozen
class Cell:
    """A figure of one variant over all seeds; `value` is None if the variant has no such figure."""

    value: Dispersion | None
    differs: bool
    """True if the figure differs significantly from that of the first variant."""


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
    differences: list[tuple[str, list[Difference]]] = attrs.Factory(list)
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
        )
        for number, numbers in enumerate(values)
    ]
