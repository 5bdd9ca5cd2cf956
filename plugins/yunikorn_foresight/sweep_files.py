"""Files and tables of a sweep: runs and points as CSV or Parquet, the result as JSON, and a picture."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from yunikorn.text import number_of
from yunikorn_commands.extras import importing_extra
from yunikorn_foresight.sweep_points import UNCHANGED
from yunikorn_foresight.sweep_result import Objective, SweepResult, SweptPoint
from yunikorn_foresight.sweep_runs import JOURNAL
from yunikorn_lab.reporting.metrics import Dispersion
from yunikorn_lab.reporting.tables import Table
from yunikorn_lab.simulation.out_folder import OutFolder

CSV, PARQUET = "csv", "parquet"
FORMATS = (CSV, PARQUET)
JSON = "sweep.json"
FRONT = "front.png"
SHOWN = 20
"""Number of points in the table of a terminal."""
_RESULTS = {JSON, FRONT, JOURNAL, *(f"{name}.{form}" for name in ("runs", "points") for form in FORMATS)}


def sweep_folder(path: Path, *, force: bool = False) -> OutFolder:
    """Return the folder for the results of a sweep; `force` is as for `OutFolder`."""
    outdated = _RESULTS - {JOURNAL}
    return OutFolder(path, "sweep", force=force, outdated=outdated, is_ours=_RESULTS.__contains__)


def write_sweep(folder: OutFolder, result: SweepResult, form: str, picture: bytes | None) -> None:
    """Write all files; raises `MissingExtra` where Parquet needs it."""
    folder.open(JSON).write(result.to_json())
    write_rows(folder, "runs", list(_run_rows(result)), form)
    write_rows(folder, "points", list(_point_rows(result)), form)
    if picture is not None:
        folder.part(FRONT).write_bytes(picture)


def write_rows(folder: OutFolder, name: str, rows: Sequence[Mapping[str, Any]], form: str) -> None:
    """Write rows, whose values are numbers or texts, with all columns that one of them has."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    if form == CSV:
        writer = csv.DictWriter(folder.open(f"{name}.{CSV}"), columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    with importing_extra("parquet", "for --rows parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    pq.write_table(
        pa.Table.from_pylist([{**dict.fromkeys(columns), **row} for row in rows]),
        folder.part(f"{name}.{PARQUET}"),
    )


def _run_rows(result: SweepResult) -> Iterator[dict[str, Any]]:
    """Yield a row for each run; a wait that never ends is infinite."""
    for one in result.points:
        for (workload, seed), figures in one.runs.items():
            yield {
                "point": one.point.number,
                **_settings(one),
                "workload": result.workloads[workload],
                "seed": seed,
                **figures,
            }


def _point_rows(result: SweepResult) -> Iterator[dict[str, Any]]:
    """Yield a row for each point: means, half widths of their confidence intervals, and the front."""
    front = {one.point.number for one in result.front}
    for one in result.points:
        row: dict[str, Any] = {"point": one.point.number, **_settings(one), "runs": len(one.runs)}
        for name in dict.fromkeys(name for figures in one.runs.values() for name in figures):
            found = one.mean(name)
            row[name] = None if found is None else found.mean
            row[f"{name}.half"] = None if found is None else found.half
        yield {**row, "on_front": one.point.number in front, "dropped": one.is_dropped}


def _settings(one: SweptPoint) -> dict[str, str]:
    return {setting.label: setting.value for setting in one.point.settings}


def points_table(result: SweepResult) -> Table:
    """Return the best points with their objectives, and that of the unchanged configuration."""
    ranked = result.ranked
    first = result.points[0]
    front = {one.point.number for one in result.front}
    several = len(result.objectives) > 1
    shown = ranked[:SHOWN]
    if first in ranked and first not in shown:
        shown.append(first)
    rows = [
        [
            one.point.name,
            *(
                text
                for objective in result.objectives
                for text in (spelled(one.mean(objective.name), objective), _change(one, first, objective))
            ),
            *(["front" if one.point.number in front else ""] if several else []),
        ]
        for one in shown
    ]
    columns = [
        "point",
        *(text for objective in result.objectives for text in (objective.name, "difference")),
        *(["Pareto"] if several else []),
    ]
    return Table(
        "Points, the best first", columns, rows, note=_note(result, len(ranked), len(shown)), min_width=20
    )


def _note(result: SweepResult, ranked: int, shown: int) -> str:
    draws = max((len(one.runs) for one in result.points), default=0)
    said = [
        f"Means of {number_of(draws, 'run')}; ±: half of the 95 % confidence interval. Differences from the "
        f"{UNCHANGED} configuration are paired by draw."
    ]
    if ranked > shown:
        said.append(f"{shown} of {ranked} points.")
    dropped = sum(one.is_dropped for one in result.points)
    if dropped:
        said.append(f"{number_of(dropped, 'point')} dropped after fewer runs.")
    return " ".join(said)


def spelled(found: Dispersion | None, objective: Objective) -> str:
    """Return mean and confidence interval as text."""
    if found is None:
        return "none"
    spell = objective.figure.spell
    half = "" if not found.half else f" ± {spell(_rounded(found.half))}"
    return spell(_rounded(found.mean)) + half


def _change(one: SweptPoint, first: SweptPoint, objective: Objective) -> str:
    if one is first:
        return ""
    found = one.against(first, objective.name)
    if found is None:
        return ""
    sign = "-" if found.mean < 0 else "+" if found.mean else ""
    half = "" if not found.half else f" ± {objective.figure.spell(_rounded(found.half))}"
    return f"{sign}{objective.figure.spell(_rounded(abs(found.mean)))}{half}"


def _rounded(value: float) -> float:
    """Return a value with four significant digits."""
    return value if math.isinf(value) or not value else float(f"{value:.4g}")
