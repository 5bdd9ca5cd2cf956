"""Runs of a sweep: simulations reduced to figures, by any executor, and the journal of finished ones."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import attrs

from yunikorn.errors import UsageError, YunikornError
from yunikorn.framework.installed import chosen_plugins
from yunikorn.framework.plugin_code import NO_CODE, CodeSource
from yunikorn.framework.registry import Registry
from yunikorn_lab.reporting.full_report import study
from yunikorn_lab.reporting.provenance import Provenance
from yunikorn_lab.reporting.report_assertions import parse_figure, value_of
from yunikorn_lab.reporting.runs import INTERRUPTED, RunFailed, Source
from yunikorn_lab.simulation.workload import RESTART, Workload

JOURNAL = "runs.jsonl"
"""Name of the file with the finished runs."""
ALWAYS = (
    "wait.mean",
    "wait.p95",
    "whole_wait.mean",
    "slowdown.mean",
    "makespan",
    "finished",
    "rejected",
    "failed",
    "waiting",
    "lost_work",
)
"""Figures of every run, beside those that are asked for."""


@attrs.frozen
class SweepOrder:
    """A simulation to run; a value that can be sent to any process with the same files."""

    point: int
    workload: int
    """Number of the workload."""
    config: str = attrs.field(repr=False)
    seed: int | None
    figures: tuple[str, ...]
    key: str
    """Digest of everything that decides the result."""
    until: int | None = None
    preempted: str = RESTART
    code: CodeSource = NO_CODE
    queues: frozenset[tuple[str, str]] = frozenset()
    """Partitions and paths of configured queues."""
    targets: tuple[tuple[str, int], ...] = ()
    """Queues and their wait targets (ns)."""


@attrs.frozen
class SweepRun:
    """The outcome of an order: figures by name (None without a value), or an error."""

    figures: Mapping[str, float | None]
    error: str = ""


def order_key(provenance: Provenance, until: int | None, preempted: str) -> str:
    """Return the digest of everything that decides the result of a run."""
    told = json.dumps([attrs.asdict(provenance), until, preempted], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def measure(order: SweepOrder, source: Any) -> SweepRun:
    """Simulate an order in this process, and return its figures; `source` is that of its workload."""
    try:
        registry = Registry.load(only=chosen_plugins(os.environ)).permitting(order.code)
        result = study(
            order.config,
            _read(source if order.seed is None else attrs.evolve(source, seed=order.seed)),
            registry,
            until=order.until,
            preempted=order.preempted,
            targets=dict(order.targets),
        )
        figures = {name: value_of(parse_figure(name), result, order.queues) for name in order.figures}
    except YunikornError as error:
        return SweepRun({}, str(error))
    return SweepRun(figures)


@lru_cache(maxsize=2)
def _read(source: Source) -> Workload:
    """Return a workload, which many runs of a process share."""
    return source.read()


class RunJournal:
    """Finished runs by key, kept in a file with one line each; without a path only in memory.

    A line that was cut off or changed is not used, so that its run is repeated.
    """

    def __init__(self, path: Path | None) -> None:
        self.taken_over = 0
        """Number of runs of an earlier call that were not repeated."""
        self._runs: dict[str, dict[str, float | None]] = {}
        self._own: set[str] = set()
        self._file: IO[str] | None = None
        if path is not None:
            for line in _lines(path):
                entry = _entry(line)
                if entry is not None:
                    self._runs.setdefault(entry[0], {}).update(entry[1])
            self._file = path.open("a", encoding="utf-8")
            if self._file.tell():
                self._file.write("\n")  # ends a line that was cut off

    def find(self, key: str, figures: Collection[str]) -> SweepRun | None:
        """Return the finished run with this key, if it has all of these figures."""
        known = self._runs.get(key)
        if known is None or not known.keys() >= set(figures):
            return None
        if key not in self._own:
            self.taken_over += 1
            self._own.add(key)
        return SweepRun(known)

    def add(self, order: SweepOrder, run: SweepRun) -> None:
        """Keep a finished run."""
        self._runs.setdefault(order.key, {}).update(run.figures)
        self._own.add(order.key)
        if self._file is not None:
            self._file.write(json.dumps({"key": order.key, "figures": _plain(run.figures)}) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from file
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


def _plain(figures: Mapping[str, float | None]) -> dict[str, float | str | None]:
    return {name: "never" if value == math.inf else value for name, value in figures.items()}


def _entry(line: str) -> tuple[str, dict[str, float | None]] | None:
    try:
        entry: Any = json.loads(line)
        figures = {
            str(name): math.inf if value == "never" else None if value is None else float(value)
            for name, value in entry["figures"].items()
        }
        return str(entry["key"]), figures
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def run_all(
    orders: Sequence[SweepOrder],
    sources: Sequence[Any],
    executor: Executor,
    journal: RunJournal,
    on_progress: Callable[[int, int], None] | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> dict[SweepOrder, SweepRun]:
    """Run all orders that the journal does not have; raises `RunFailed` that lists all failed runs.

    An error of the executor is raised at once; finished runs are in the journal.

    `sources` are those of the workloads, or what stands for them in calls of the executor.
    After `is_stopped` returns True, the result has the finished runs only.
    """
    found: dict[SweepOrder, SweepRun] = {}
    futures: dict[Future[SweepRun], SweepOrder] = {}
    for order in orders:
        known = journal.find(order.key, order.figures)
        if known is not None:
            found[order] = known
        elif not is_stopped():
            futures[executor.submit(measure, order, sources[order.workload])] = order
    failed: dict[str, None] = {}
    for done, future in enumerate(as_completed(futures), len(found) + 1):
        order = futures[future]
        try:
            run = future.result()
        except (BrokenExecutor, CancelledError, YunikornError):
            if not is_stopped():
                raise
            continue
        if not run.error:
            journal.add(order, run)
            found[order] = run
        elif not (run.error == INTERRUPTED and is_stopped()):
            failed[f"point {order.point}: {run.error}"] = None
        if on_progress is not None:
            on_progress(done, len(orders))
    if failed:
        raise RunFailed("\n".join(failed))
    return found
