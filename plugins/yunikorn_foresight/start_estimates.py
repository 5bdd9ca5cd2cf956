"""Start times of waiting applications: quantiles over replays of the scheduler, and the latest by limits."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.clock import SECOND, stopwatch
from yunikorn.errors import UsageError
from yunikorn.resources import Resource
from yunikorn.text import number_of, suggest
from yunikorn_foresight.arrivals_to_come import FEWEST, PastArrivals
from yunikorn_foresight.drawn_run_times import KnownSpreads
from yunikorn_foresight.forked_work import Children
from yunikorn_foresight.interval_calibration import Ensemble, IntervalCalibration, Quantiles
from yunikorn_foresight.replays import LIMITS, Replayed, ReplayPlan, learn_spreads
from yunikorn_lab.simulation.adopted_application import spelled
from yunikorn_lab.simulation.workload import FOREVER, WorkloadApplication, WorkloadTaskGroup
from yunikorn_snapshots.process_parts import partitions_of, sessions_of

if TYPE_CHECKING:
    from yunikorn.interface.scheduler import Scheduler
    from yunikorn.model.application import Application

HOUR = 3600 * SECOND


@attrs.frozen
class EstimateOptions:
    """Settings of estimates."""

    replays: int = 20
    horizon: int = 7 * 24 * HOUR
    """Time (ns) from now on in which a start counts; later ones are *later than that*."""
    budget: int = 30 * SECOND
    """Real time (ns) for all replays: fewer are made where there is not enough, and a start that one did not
    reach counts as later."""
    jobs: int = 2
    """Number of processes."""
    seed: int = 1
    assumed: int = FOREVER
    """Run time (ns) of tasks that no estimator knows."""


@attrs.frozen
class StartEstimate:
    """Start of an application; times in seconds from the moment of the estimate."""

    rm: str
    partition: str
    application: str
    queue: str
    user: str
    waiting: int
    """Number of tasks that wait."""
    first: Quantiles
    """Start of its first task; in the past if one runs."""
    whole: Quantiles
    """Placement of the last of its tasks."""
    latest: float | None
    """Start of its first task if all tasks run to their limits; None if that is beyond the horizon, or if
    tasks without a limit are in the way."""


@attrs.frozen
class StartEstimates:
    """Estimates for all applications that were asked about, in order of submission."""

    moment: int
    """Time (ns) of the scheduler's clock."""
    horizon: float
    """Time (s) beyond which quantiles are infinite."""
    replays: int
    """Number of replays that were made."""
    applications: list[StartEstimate]
    notes: list[str]
    """Sentences about what is not known."""


def start_estimates(
    scheduler: Scheduler,
    names: Collection[str] = (),
    options: EstimateOptions | None = None,
    calibration: IntervalCalibration | None = None,
) -> StartEstimates:
    """Return when applications start that wait, all of them or those with the given names.

    The scheduler, at rest and on a `ManualClock`, stays as it is: each replay goes on in a copy of the
    process, which has to be able to fork. `calibration` has the scores of earlier estimates. Raises
    `UsageError` with all names that do not wait, and `ForesightError` if no replay can be made.
    """
    options = options or EstimateOptions()
    waiting = _chosen(list(_waiting(scheduler)), names)
    spreads = KnownSpreads(options.assumed)
    learn_spreads(scheduler, spreads)
    arrivals = past_arrivals(scheduler)
    wanted = frozenset(app.id for _, _, app in waiting)
    plan = ReplayPlan(wanted, spreads, arrivals, options.horizon, options.replays, options.seed)
    found = _replayed(plan, scheduler, options) if waiting else {}
    latest = found.pop(LIMITS, None)
    results = list(found.values())
    calibration = calibration or IntervalCalibration()
    return StartEstimates(
        scheduler.clock.now(),
        options.horizon / SECOND,
        len(results),
        [_estimate(*one, results, latest, calibration) for one in waiting],
        list(_notes(spreads, arrivals, options, results)),
    )


def _replayed(plan: ReplayPlan, scheduler: Scheduler, options: EstimateOptions) -> dict[int, Replayed]:
    """Return the results of as many replays as there is time for, one at least, and that of `LIMITS`."""
    end = stopwatch() + options.budget
    plan = attrs.evolve(plan, is_late=lambda: stopwatch() > end)
    found: dict[int, Replayed] = {}

    def take(number: int, result: Any) -> None:
        found[number] = Replayed(**result)

    children = Children(options.jobs, take)
    for number in [0, LIMITS, *range(1, options.replays)]:
        longest = max((one.took for one in found.values()), default=0)
        if number > 0 and stopwatch() + longest > end:
            break
        children.begin(number, partial(plan.run, scheduler, number))
    children.wait()
    return found


def _estimate(
    rm: str,
    partition: str,
    app: Application,
    results: list[Replayed],
    latest: Replayed | None,
    calibration: IntervalCalibration,
) -> StartEstimate:
    return StartEstimate(
        rm,
        partition,
        app.id,
        app.queue_name if app.queue is None else app.queue.path,
        app.user,
        sum(ask.pending for ask in app.asks.values()),
        _quantiles([one.times[app.id][0] for one in results], calibration),
        _quantiles([one.times[app.id][1] for one in results], calibration),
        None if latest is None else latest.times[app.id][0],
    )


def _quantiles(times: list[float | None], calibration: IntervalCalibration) -> Quantiles:
    known = [math.inf if time is None else time for time in times]
    if max(known) <= 0:
        # It starts at once, whatever is drawn, or has started.
        return Quantiles(known[0], known[0], known[0])
    return calibration.quantiles(Ensemble.of(known))


def _waiting(scheduler: Scheduler) -> Iterator[tuple[str, str, Application]]:
    for session, name, at in partitions_of(scheduler):
        for app in at.partition.applications.values():
            if app.has_unplaced:
                yield session.rm_id, name, app


def _chosen(
    waiting: list[tuple[str, str, Application]], names: Collection[str]
) -> list[tuple[str, str, Application]]:
    known = {app.id for _, _, app in waiting}
    problems = [
        f"no application {name!r} waits for room{suggest(name, known)}" for name in names if name not in known
    ]
    if problems:
        raise UsageError("\n".join(problems))
    return [one for one in waiting if not names or one[2].id in names]


def _notes(
    spreads: KnownSpreads, arrivals: PastArrivals, options: EstimateOptions, results: list[Replayed]
) -> Iterator[str]:
    cut = sum(one.is_cut for one in results)
    if cut:
        yield (
            f"{cut} of {number_of(len(results), 'replay')} ended early, because the time for them was over:"
            " what they had not placed counts as later than the horizon: give more by --within"
        )
    if spreads.unknown:
        taken = "are taken never to end" if options.assumed >= FOREVER else "run for the assumed time"
        yield (
            f"no estimator knows the run times of {spreads.unknown:,} requests and tasks, which {taken}:"
            " name estimators in the configuration, or give --assume-runtime"
        )
    if len(arrivals.applications) < FEWEST:
        yield "too few past arrivals are known: the estimates are for the case that nothing else arrives"


# -- arrivals --------------------------------------------------------------------------------------------


def past_arrivals(scheduler: Scheduler) -> PastArrivals:
    """Return what the first resource manager has submitted, as far as its scheduler still knows it.

    Of an application that has ended, the highest use, the number of its tasks, and the time from start to end
    are known.
    """
    session = next(iter(sessions_of(scheduler).by_rm.values()), None)
    found: list[WorkloadApplication] = []
    for name, at in {} if session is None else session.partitions.by_name.items():
        apps = [*at.partition.ended.values(), *at.partition.applications.values()]
        found += [made for app in apps if (made := _arrival(name, app, scheduler.clock.now())) is not None]
    return PastArrivals(sorted(found, key=lambda one: one.submit))


def _arrival(partition: str, app: Application, now: int) -> WorkloadApplication | None:
    groups = [
        _group(ask.key, ask.resource, ask.pending + ask.live, FOREVER) for ask in app.asks.values()
    ] or [
        _group(one.key, one.resource, 1, FOREVER) for one in app.allocations.values() if not one.placeholder
    ]
    if app.finished and app.lifetime is not None:
        began = next(
            (one.time for one in app.state_log if one.state in ("Starting", "Running")), app.finished
        )
        count = max(app.lifetime.ended, 1)
        size = Resource({name: -(-amount // count) for name, amount in app.lifetime.peak.items()})
        groups = [_group("all", size, count, app.finished - began)]
    if not groups:
        return None
    return WorkloadApplication(
        app.id,
        min(app.submitted - now, 0),
        tuple(groups),
        app.queue_name if app.queue is None else app.queue.path,
        app.user,
        app.groups,
        spelled(partition),
        dict(app.tags) if app.gang_style == "Atomic" else {},
        "Atomic" if app.gang_style == "Atomic" else "",
    )


def _group(name: str, resource: Resource, count: int, runtime: int) -> WorkloadTaskGroup:
    return WorkloadTaskGroup(name, max(count, 1), resource, runtime)
