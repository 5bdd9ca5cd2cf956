"""Replays: a scheduler goes on in copies of the process, until the applications asked for are placed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.clock import SECOND, stopwatch
from yunikorn_foresight.arrivals_to_come import first_id
from yunikorn_foresight.drawn_run_times import DrawnRunTimes, KnownSpreads, LimitRunTimes
from yunikorn_lab.simulation.continuation import continued
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.workload import FOREVER, Workload, WorkloadApplication

if TYPE_CHECKING:
    from yunikorn.interface.scheduler import Scheduler
    from yunikorn_foresight.arrivals_to_come import PastArrivals
    from yunikorn_lab.simulation.adopted_application import RunTimeSource
    from yunikorn_lab.simulation.engine import Progress
    from yunikorn_lab.simulation.rm_state import Running, Submitted

LIMITS = -1
"""Number of the replay in which everything runs to its limit, and nothing else arrives."""


@attrs.frozen
class Replayed:
    """Result of a replay."""

    times: dict[str, tuple[float | None, float | None]]
    """First start and placement of the last task (s) by application; None if it was not reached."""
    is_cut: bool
    """True if it ended before the horizon, because its time was over."""
    took: int
    """Real time (ns)."""


@attrs.frozen
class ReplayPlan:
    """Settings of replays from one moment."""

    wanted: frozenset[str]
    """Ids of the applications whose starts are asked for."""
    spreads: KnownSpreads
    arrivals: PastArrivals
    horizon: int
    """Time (ns) after which a replay ends."""
    replays: int
    """Number of replays that are made from that moment, to spread what is drawn over them."""
    seed: int = 0
    is_late: Callable[[], bool] = bool
    """Function that returns True when no time is left."""

    def run(self, scheduler: Scheduler, number: int) -> dict[str, Any]:
        """Let a scheduler go on, which is used up; return a `Replayed` as plain data.

        `number` is that of the replay, or `LIMITS`.
        """
        began, is_cut = stopwatch(), False
        starts = Starts(self.wanted)
        run_times: RunTimeSource = DrawnRunTimes(self.spreads, self.seed, max(number, 0), self.replays)
        coming = self.arrivals.again(self.seed, max(number, 0), self.replays, self.horizon)
        if number == LIMITS:
            run_times, coming = LimitRunTimes(self.spreads), attrs.evolve(coming, past=())
        known = whole_run_times(coming.past, scheduler, run_times)
        workload = Workload("replay", "replay", [], attrs.evolve(coming, finished=partial(_completed, known)))
        with suppress(AllStartedError):
            report = continued(
                scheduler,
                run_times,
                workload=workload,
                until=self.horizon,
                recorder=starts,
                watch=self._watch,
                brief=True,
                are_new=True,
            )
            is_cut = report.outcome == "interrupted"
        return attrs.asdict(
            Replayed(
                {name: (starts.first.get(name), starts.whole.get(name)) for name in self.wanted},
                is_cut,
                stopwatch() - began,
            )
        )

    def _watch(self, progress: Progress) -> bool:
        return not self.is_late()


class AllStartedError(Exception):
    """Everything that was asked for is placed, so that the rest of a replay does not matter."""


class Starts(Recorder):
    """Times (s) at which applications start, and at which all their tasks are placed."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._waiting = set(wanted)
        self.first: dict[str, float] = {}
        self.whole: dict[str, float] = {}

    def started(self, moment: int, task: Running) -> None:
        """Note the start of a task."""
        name = task.owner.plan.id
        if name in self._waiting:
            self.first.setdefault(name, min(moment, task.started) / SECOND)
            if not task.owner.waiting:
                self.whole[name] = moment / SECOND
                self._waiting.discard(name)

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """Wait no longer for an application that is over."""
        self._waiting.discard(record.plan.id)

    def idle(self, moment: int) -> None:
        """End the replay if nothing is waited for."""
        if not self._waiting:
            raise AllStartedError


def whole_run_times(
    past: Sequence[WorkloadApplication], scheduler: Scheduler, run_times: RunTimeSource
) -> dict[str, int]:
    """Return the run times (ns) of past applications that have not ended, as the replay draws them."""
    return {one.id: _whole_run_time(one.id, scheduler, run_times) for one in past if not _is_known(one)}


def _is_known(one: WorkloadApplication) -> bool:
    return all(group.runtime < FOREVER for group in one.tasks)


def _completed(known: dict[str, int], one: WorkloadApplication) -> WorkloadApplication:
    if _is_known(one):
        return one
    runtime = known[first_id(one)]
    return attrs.evolve(one, tasks=tuple(attrs.evolve(group, runtime=runtime) for group in one.tasks))


def _whole_run_time(name: str, scheduler: Scheduler, run_times: RunTimeSource) -> int:
    for _, at in scheduler.all_partitions():
        app = at.partition.applications.get(name)
        if app is None:
            continue
        for one in app.allocations.values():
            if not one.placeholder:
                age = max(at.partition.clock.now() - one.placed, 0)
                left = run_times.left(at, one, age)
                return FOREVER if left >= FOREVER else age + left
        for ask in app.asks.values():
            if ask.pending:
                return run_times.left(at, ask, 0)
    return FOREVER


def learn_spreads(scheduler: Scheduler, spreads: KnownSpreads) -> None:
    """Ask about all tasks once, so that replays in copies of the process need not ask again."""
    for _, at in scheduler.all_partitions():
        now = at.partition.clock.now()
        for app in at.partition.applications.values():
            for one in app.allocations.values():
                if not one.placeholder:
                    spreads.of(at, one, max(now - one.placed, 0))
            for ask in app.asks.values():
                if ask.pending:
                    spreads.of(at, ask, 0)
