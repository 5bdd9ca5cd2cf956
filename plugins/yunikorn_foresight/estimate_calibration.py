"""Quality of start estimates: a workload is simulated, and each estimate is compared with the truth.

Each application that does not start at once is estimated at its submission, by replays from that moment, with
what is known then: run times of what has ended, and estimates for the rest. Beside them are two simple
predictors: the mean of the last ten waits, and the work ahead divided by the machine.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.clock import SECOND
from yunikorn_foresight.arrivals_to_come import LONGEST_PAST, PastArrivals
from yunikorn_foresight.drawn_run_times import KnownSpreads
from yunikorn_foresight.forked_work import Children, begin
from yunikorn_foresight.interval_calibration import Ensemble, IntervalCalibration, Quantiles
from yunikorn_foresight.replays import ReplayPlan, learn_spreads
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.workload import FOREVER, Workload, WorkloadApplication

if TYPE_CHECKING:
    from yunikorn.framework.registry import Registry
    from yunikorn.interface.scheduler import Scheduler
    from yunikorn_lab.simulation.rm_state import Running, Submitted

HORIZON = 14 * 24 * 3600 * SECOND
"""Time (ns) after which a replay ends."""
LAST_WAITS = 10
MINUTE = 60.0


@attrs.define
class Estimated:
    """One application with its estimates and the truth; times in seconds."""

    id: str
    submitted: float
    wait: float = math.inf
    """Time until its first task started; infinite if it never did."""
    replays: list[float] | None = None
    """FirstStarts in replays; None if it started at once, or was not chosen."""
    last_waits: float = 0.0
    """Mean of the last ten waits."""
    work_ahead: float = 0.0
    """Work ahead divided by the machine."""
    given: Quantiles | None = None


class FirstStarts(Recorder):
    """First starts of all applications, to choose those that are estimated."""

    def __init__(self) -> None:
        self.waits: dict[str, float] = {}
        self.order: list[str] = []

    def submitted(self, moment: int, record: Submitted) -> None:
        """Note a submission."""
        self.order.append(record.plan.id)

    def started(self, moment: int, task: Running) -> None:
        """Note the first start."""
        plan = task.owner.plan
        self.waits.setdefault(plan.id, (moment - plan.submit) / SECOND)


class EstimatingRecorder(Recorder):
    """Observer of a simulation that has the waiting applications estimated when they arrive."""

    def __init__(
        self, chosen: frozenset[str], replays: int, seed: int, jobs: int, done: Callable[[int], None]
    ) -> None:
        """Estimate the chosen applications by so many replays, in so many processes; `done` is called."""
        self.found: dict[str, Estimated] = {}
        self._chosen, self._replays, self._seed = chosen, replays, seed
        self._children = Children(jobs, self._take)
        self._done = done
        self._core: Scheduler | None = None
        self._new: list[Submitted] = []
        self._past: dict[str, tuple[WorkloadApplication, bool]] = {}
        self._last: deque[float] = deque(maxlen=LAST_WAITS)
        self._taken = 0

    def meet(self, core: Scheduler) -> None:
        """Know the core."""
        self._core = core

    def submitted(self, moment: int, record: Submitted) -> None:
        """Note a submission, with what is known by then."""
        self.found[record.plan.id] = Estimated(record.plan.id, moment / SECOND)
        self._new.append(record)
        plan = attrs.evolve(record.plan, submit=moment)
        self._past[plan.id] = (plan, False)

    def started(self, moment: int, task: Running) -> None:
        """Note a first start."""
        one = self.found[task.owner.plan.id]
        if math.isinf(one.wait):
            one.wait = moment / SECOND - one.submitted
            self._last.append(one.wait)

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """Know the run times of an application from now on."""
        if outcome == "finished":
            self._past[record.plan.id] = (self._past[record.plan.id][0], True)
        else:
            del self._past[record.plan.id]

    def idle(self, moment: int) -> None:
        """Estimate what has arrived and not started."""
        waiting = [one.plan.id for one in self._new if one.first_start is None]
        self._new.clear()
        for name in waiting:
            one = self.found[name]
            one.last_waits = sum(self._last) / len(self._last) if self._last else 0.0
        wanted = frozenset(waiting) & self._chosen
        if wanted and self._core is not None:
            ahead = work_ahead(self._core)
            for name in wanted:
                self.found[name].work_ahead = ahead
            self._children.begin(wanted, lambda: self._estimate(wanted, moment))

    def close(self) -> None:
        """Wait for all estimates."""
        self._children.wait()

    def _estimate(self, wanted: frozenset[str], moment: int) -> list[dict[str, Any]]:
        """Replay from this moment, in a child of its own for each replay."""
        core = self._core
        assert core is not None
        spreads = KnownSpreads()
        learn_spreads(core, spreads)
        plan = ReplayPlan(
            wanted, spreads, PastArrivals(self._arrivals(moment)), HORIZON, self._replays, self._seed
        )
        return [begin(partial(plan.run, core, number)).result() for number in range(self._replays)]

    def _arrivals(self, moment: int) -> list[WorkloadApplication]:
        found = []
        for plan, is_known in self._past.values():
            if plan.submit >= moment - LONGEST_PAST:
                tasks = plan.tasks
                if not is_known:
                    tasks = tuple(attrs.evolve(group, runtime=FOREVER) for group in tasks)
                found.append(attrs.evolve(plan, submit=plan.submit - moment, tasks=tasks))
        return found

    def _take(self, wanted: Any, replays: Any) -> None:
        for name in wanted:
            times = [replay["times"][name][0] for replay in replays]
            self.found[name].replays = [math.inf if time is None else time for time in times]
        self._taken += len(wanted)
        self._done(self._taken)


def work_ahead(core: Scheduler) -> float:
    """Return the time (s) in which the machine would do all that runs and waits, by the estimators."""
    longest = 0.0
    for _, at in core.all_partitions():
        work: dict[str, float] = {}
        now = at.partition.clock.now()
        for app in at.partition.applications.values():
            tasks: list[tuple[Any, int, int]] = [
                (one, 1, max(now - one.placed, 0)) for one in app.allocations.values()
            ]
            tasks += [(ask, ask.pending, 0) for ask in app.asks.values() if ask.pending]
            for task, count, age in tasks:
                known = at.policies.run_times.of(task, age / SECOND)
                left = 0.0 if known is None else known.median - age / SECOND
                for name, amount in task.resource.items():
                    work[name] = work.get(name, 0.0) + amount * count * left
        capacity: dict[str, int] = {}
        for node in at.partition.nodes.values():
            for name, amount in node.capacity.items():
                capacity[name] = capacity.get(name, 0) + amount
        longest = max(
            [longest, *(done / capacity[name] for name, done in work.items() if capacity.get(name))]
        )
    return longest


def calibrate(
    config: str,
    workload: Workload,
    registry: Registry,
    *,
    replays: int,
    most: int,
    seed: int,
    jobs: int,
    done: Callable[[int, int], None] = lambda taken, total: None,
) -> list[Estimated]:
    """Return the applications of a workload with estimates and truths, in order of submission.

    Up to `most` of those that wait are estimated, evenly spread, and all that start at once.
    """
    waits = FirstStarts()
    simulate(config, workload, registry, recorder=waits)
    waiting = [name for name in waits.order if waits.waits.get(name, math.inf) > 0]
    step = max(len(waiting) / most, 1.0)
    chosen = frozenset(waiting[int(number * step)] for number in range(min(most, len(waiting))))
    recorder = EstimatingRecorder(chosen, replays, seed, jobs, lambda taken: done(taken, len(chosen)))
    simulate(config, workload, registry, recorder=recorder, meet=recorder.meet)
    recorder.close()
    found = [one for one in recorder.found.values() if one.wait == 0 or one.replays is not None]
    give_quantiles(found)
    return found


def give_quantiles(found: Sequence[Estimated]) -> None:
    """Give each application the quantiles that the scores known at its submission lead to."""
    calibration = IntervalCalibration()
    pending: list[tuple[float, int]] = []
    for number, one in enumerate(found):
        while pending and pending[0][0] <= one.submitted:
            _score(calibration, found[heapq.heappop(pending)[1]])
        if one.replays is None:
            one.given = Quantiles(0.0, 0.0, 0.0)
            continue
        one.given = calibration.quantiles(Ensemble.of(one.replays))
        if math.isfinite(one.wait):
            heapq.heappush(pending, (one.submitted + one.wait, number))


def _score(calibration: IntervalCalibration, one: Estimated) -> None:
    if one.replays is not None and one.given is not None:
        calibration.score(Ensemble.of(one.replays), one.given, one.wait)
