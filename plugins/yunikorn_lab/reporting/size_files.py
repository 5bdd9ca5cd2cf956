"""Files of a search for the smallest cluster: `size.json`, `size.csv`, and a folder for each run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from yunikorn_lab.reporting.cluster_search import SizeSearch, Trial
from yunikorn_lab.reporting.csv_files import Columns, CsvFile
from yunikorn_lab.reporting.provenance import Provenance
from yunikorn_lab.reporting.report_assertions import Assertion, AssertionResult
from yunikorn_lab.simulation.out_folder import OutFolder

JSON = "size.json"
CSV = "size.csv"
_RUNS = re.compile(r"nodes-[0-9]+\Z")


@attrs.frozen
class SizeResult:
    """Result of a search, with what it is a result of."""

    search: SizeSearch
    targets: Sequence[Assertion]
    nodes: int
    """Number of nodes of the workload."""
    seeds: Sequence[int]
    """Seeds of `--seeds`; empty without the option."""
    provenance: Provenance

    def to_json(self) -> str:
        """Return JSON text with a final newline."""
        whole = {
            "targets": [target.text for target in self.targets],
            "nodes": self.nodes,
            "seeds": list(self.seeds),
            "outcome": self.search.outcome,
            "smallest": self.search.smallest,
            "exceptions": self.search.exceptions,
            "sizes": list(map(_size, self.search.trials)),
            "provenance": attrs.asdict(self.provenance),
        }
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _size(trial: Trial) -> dict[str, Any]:
    return {
        "nodes": trial.nodes,
        "met": trial.is_met,
        "targets": list(map(_verdict, trial.verdicts)),
        "seeds": [
            {
                "seed": seed,
                "met": all(verdict.holds for verdict in verdicts),
                "targets": list(map(_verdict, verdicts)),
            }
            for seed, verdicts in trial.by_seed.items()
        ],
    }


def _verdict(verdict: AssertionResult) -> dict[str, Any]:
    return {
        "target": verdict.assertion.text,
        "value": verdict.value,
        "met": verdict.holds,
        "reason": verdict.reason,
    }


_COLUMNS: Columns[tuple[int, int | None, AssertionResult]] = {
    "nodes": lambda row: row[0],
    "seed": lambda row: row[1],
    "target": lambda row: row[2].assertion.text,
    "value": lambda row: row[2].value,
    "met": lambda row: int(row[2].holds),
}


def _rows(trial: Trial) -> Iterator[tuple[int, int | None, AssertionResult]]:
    if not trial.by_seed:
        yield from ((trial.nodes, None, verdict) for verdict in trial.verdicts)
    for seed, verdicts in trial.by_seed.items():
        yield from ((trial.nodes, seed, verdict) for verdict in verdicts)


def size_folder(path: Path, *, force: bool = False) -> OutFolder:
    """Return the folder for the results of a search; `force` is as for `OutFolder`."""
    return OutFolder(
        path,
        "size",
        force=force,
        last=JSON,
        is_ours=lambda name: name in (JSON, CSV) or _RUNS.match(name) is not None,
    )


def run_folder(path: Path, nodes: int, seed: int | None) -> Path:
    """Return the folder of one run; each seed has its own."""
    own = path / f"nodes-{nodes}"
    return own if seed is None else own / f"seed-{seed}"


def write_size(folder: OutFolder, result: SizeResult) -> None:
    """Write size.json and size.csv."""
    folder.open(JSON).write(result.to_json())
    table = CsvFile(folder.open(CSV), _COLUMNS)
    for trial in result.search.trials:
        for row in _rows(trial):
            table.write(row)


def untested_sizes(folder: Path, search: SizeSearch) -> list[str]:
    """Return a remark on folders of sizes that this search has not tested."""
    tested = {f"nodes-{trial.nodes}" for trial in search.trials}
    found = [
        path.name for path in folder.glob("nodes-*") if _RUNS.match(path.name) and path.name not in tested
    ]
    if not found:
        return []
    names = ", ".join(sorted(found, key=lambda name: int(name.rpartition("-")[2])))
    are = "is" if len(found) == 1 else "are"
    return [f"{folder}: {names} {are} from an earlier search and not removed"]
