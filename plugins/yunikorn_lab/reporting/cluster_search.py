"""Search for the smallest cluster that meets targets.

The search halves or doubles the number of nodes until it has a size that does not meet the targets below one
that does, and then halves the distance. A larger cluster usually serves a workload better, but not always:
another order of decisions may make one application wait longer. Sizes next to the result are therefore tested
as well. Only a test of every size would find the smallest one for certain.

Files of a search for the smallest cluster: `size.json`, `size.csv`, and a folder for each run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from yunikorn_lab.reporting.csv_files import Columns, CsvFile
from yunikorn_lab.reporting.provenance import Provenance
from yunikorn_lab.reporting.report_assertions import Assertion, AssertionResult
from yunikorn_lab.simulation.out_folder import OutFolder


@attrs.frozen
class Trial:
    """Result of one size."""

    nodes: int
    verdicts: tuple[AssertionResult, ...]
    """Verdicts on the targets; with several seeds the worst one on each."""
    by_seed: dict[int, tuple[AssertionResult, ...]] = attrs.Factory(dict)
    """Verdicts of all seeds; empty for a workload that was not drawn."""

    @classmethod
    def of_seeds(cls, nodes: int, by_seed: dict[int, tuple[AssertionResult, ...]]) -> Trial:
        """Return the result of a size that was tested with at least one seed."""
        worst = tuple(min(each, key=_goodness) for each in zip(*by_seed.values(), strict=True))
        return cls(nodes, worst, by_seed)

    def seeds_met(self, target: int) -> int:
        """Return the number of seeds that meet a target, given by its position."""
        return sum(1 for verdicts in self.by_seed.values() if verdicts[target].holds)

    @property
    def is_met(self) -> bool:
        """True if all targets are met."""
        return all(verdict.holds for verdict in self.verdicts)


@attrs.frozen
class SizeSearch:
    """Result of a search."""

    trials: tuple[Trial, ...]
    """All tested sizes, in ascending order."""
    outcome: str
    """`found`, `none` (no tested size meets the targets) or `interrupted`."""

    @property
    def smallest(self) -> int | None:
        """Smallest tested size that meets the targets; None if there is none."""
        return min((trial.nodes for trial in self.trials if trial.is_met), default=None)

    @property
    def exceptions(self) -> list[int]:
        """Tested sizes above the smallest one that do not meet the targets."""
        smallest = self.smallest
        return [
            trial.nodes
            for trial in self.trials
            if smallest is not None and trial.nodes > smallest and not trial.is_met
        ]


def _goodness(verdict: AssertionResult) -> tuple[bool, bool, float]:
    """Return a key by which the worst of several verdicts on one target is first."""
    value = verdict.value
    if value is None or verdict.assertion.operator in ("==", "!="):
        return verdict.holds, value is not None, 0.0
    return verdict.holds, True, -value if verdict.assertion.is_upper else value


class SearchInterrupted(Exception):
    """The end of a search by the user."""


def search(
    measure: Callable[[int], Trial], start: int, lowest: int, highest: int, neighbours: int
) -> SizeSearch:
    """Search the sizes from `lowest` to `highest`, first `start`; `measure` tests one size.

    `neighbours` is the number of sizes that are tested on each side of the result. A `measure` that raises
    `SearchInterrupted` ends the search with what is known.
    """
    sizes = _Sizes(measure, lowest, highest)
    try:
        found = _bracket(sizes, min(max(start, lowest), highest))
        if found is not None:
            _test_neighbours(sizes, _bisect(sizes, *found), neighbours)
    except SearchInterrupted:
        return SizeSearch(sizes.listed(), "interrupted")
    return SizeSearch(sizes.listed(), "none" if found is None else "found")


class _Sizes:
    """Tested sizes; each is tested once."""

    def __init__(self, measure: Callable[[int], Trial], lowest: int, highest: int) -> None:
        self.lowest = lowest
        self.highest = highest
        self._measure = measure
        self._trials: dict[int, Trial] = {}

    def meets(self, nodes: int) -> bool:
        """Return True if the size meets the targets."""
        if nodes not in self._trials:
            self._trials[nodes] = self._measure(nodes)
        return self._trials[nodes].is_met

    def listed(self) -> tuple[Trial, ...]:
        """Return the trials in ascending order of size."""
        return tuple(trial for _, trial in sorted(self._trials.items()))


def _bracket(sizes: _Sizes, start: int) -> tuple[int, int] | None:
    """Return a size that does not meet the targets and a larger one that does; None if none does."""
    if sizes.meets(start):
        high = start
        while high > sizes.lowest:
            low = max(high // 2, sizes.lowest)
            if not sizes.meets(low):
                return low, high
            high = low
        return sizes.lowest - 1, sizes.lowest
    low = start
    while low < sizes.highest:
        high = min(low * 2, sizes.highest)
        if sizes.meets(high):
            return low, high
        low = high
    return None


def _bisect(sizes: _Sizes, low: int, high: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        if sizes.meets(middle):
            high = middle
        else:
            low = middle
    return high


def _test_neighbours(sizes: _Sizes, found: int, neighbours: int) -> None:
    """Test the sizes next to `found`, and next to each smaller one that meets the targets as well."""
    nodes = found - 1
    while nodes >= max(found - neighbours, sizes.lowest):
        if sizes.meets(nodes):
            found = nodes
        nodes -= 1
    for nodes in range(found + 1, min(found + neighbours, sizes.highest) + 1):
        sizes.meets(nodes)


def describe(found: SizeSearch, highest: int) -> Sequence[str]:
    """Return the sentences that summarise a search up to `highest` nodes."""
    smallest = found.smallest
    if smallest is None:
        if found.outcome == "none":
            return [f"No tested size up to {highest} nodes meets the targets."]
        return ["No tested size meets the targets so far."]
    best = "The smallest tested cluster that meets the targets has"
    lines = [f"{best} {smallest} {'node' if smallest == 1 else 'nodes'}."]
    if found.outcome == "interrupted":
        lines.append("The search was interrupted; a smaller one may meet them as well.")
    if found.exceptions:
        sizes = ", ".join(map(str, found.exceptions))
        lines.append(
            f"Larger clusters that do not meet them: {sizes}. More nodes are not always better here."
        )
    return lines


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
