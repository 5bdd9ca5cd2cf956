"""Simulation with the full report: the plain report, and the figures and time series of an observer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn.reporting.calibration import Calibration, CalibrationCurves
from yunikorn.reporting.core_view import CoreView
from yunikorn.reporting.group_counts import NAMES, GroupCounts, GroupReport
from yunikorn.reporting.idle_capacity import IdleReport
from yunikorn.reporting.metrics import jain_index
from yunikorn.reporting.observations import ApplicationRow, Fragmentation
from yunikorn.reporting.observer import Observer
from yunikorn.reporting.provenance import Provenance
from yunikorn.reporting.time_series import History, NodeHistory, PartitionHistory, QueueHistory
from yunikorn.reporting.wait_targets import WaitTarget
from yunikorn.simulation.engine import Progress
from yunikorn.simulation.explain_requests import ExplainRequest
from yunikorn.simulation.limit_waits import LimitWaits
from yunikorn.simulation.recorder import Recorder, Recorders
from yunikorn.simulation.report import Report
from yunikorn.simulation.run import simulate
from yunikorn.simulation.statistics import Summary, seconds, used_share
from yunikorn.simulation.workload import RESTART, Workload

CURVE = 400
"""Maximum number of points of a distribution curve."""


@attrs.frozen
class Fairness:
    """Jain's index of the mean bounded slowdowns, and of the usages, of queues and of users.

    The slowdown considers queues and users with finished applications, the usage those with submitted
    applications. The index is None if there are none.
    """

    slowdown_of_queues: float | None
    slowdown_of_users: float | None
    use_of_queues: float | None
    use_of_users: float | None


@attrs.frozen
class Figures:
    """Figures that the full report adds to the plain report."""

    wait: Summary | None
    """Seconds from submission to the start of the first task, over all applications."""
    whole_wait: Summary | None
    """Seconds from submission to the start of the last task, over all applications."""
    slowdown: Summary | None
    """Bounded slowdown of the finished applications."""
    fairness: Fairness
    fragmentation: dict[str, dict[str, Fragmentation]]
    """Fragmentation by partition and resource type."""
    idle: dict[str, dict[str, IdleReport]]
    """Capacity that stood idle while work waited, by partition and resource type."""
    queues: list[GroupReport]
    """Leaf queues that had an application at any time."""
    users: list[GroupReport]
    sizes: list[GroupReport]
    """Size classes with applications, in ascending order of size."""
    use_at_end: dict[str, dict[str, float]] = attrs.Factory(dict)
    """Used part of the capacity at the end of the simulation, by partition and resource type."""
    slo: list[WaitTarget] = attrs.Factory(list)
    """Applications that met or missed the wait targets of `--slo`, by queue."""
    calibration: Calibration | None = None
    """Simulated and recorded waits; None if the workload has no recorded waits."""


@attrs.frozen
class Curves:
    """Distributions for plots: numbers in ascending order."""

    waits: dict[str, list[float]]
    """Seconds from submission to the start of the last task, by queue."""
    slowdowns: dict[str, list[float]]
    all_waits: list[float]
    """Waits over all queues."""
    all_slowdowns: list[float]
    calibration: CalibrationCurves | None = None
    """Recorded and simulated waits of the same applications; None without recorded ones."""


def _curves(observer: Observer) -> Curves:
    several = len({partition for partition, _ in observer.by_queue}) > 1
    named = {
        (f"{partition}: {path}" if several else path): group
        for (partition, path), group in sorted(observer.by_queue.items())
    }
    return Curves(
        waits={name: group.whole_waits.curve(CURVE) for name, group in named.items()},
        slowdowns={name: group.slowdowns.curve(CURVE) for name, group in named.items()},
        all_waits=observer.everything.whole_waits.curve(CURVE),
        all_slowdowns=observer.everything.slowdowns.curve(CURVE),
        calibration=observer.calibration.curves(CURVE),
    )


def _figures(observer: Observer) -> Figures:
    capacities = observer.cluster.capacities()
    guarantees = {
        (partition, path): observation.guarantees() for partition, path, observation in observer.queues
    }
    queues = [
        group.report(path, capacities, partition, guarantees.get((partition, path)))
        for (partition, path), group in sorted(observer.by_queue.items())
    ]
    users = [group.report(name, capacities) for name, group in sorted(observer.by_user.items())]
    sizes = [observer.by_size[name].report(name, capacities) for name in NAMES if name in observer.by_size]
    return Figures(
        wait=observer.everything.waits.summary(),
        whole_wait=observer.everything.whole_waits.summary(),
        slowdown=observer.everything.slowdowns.summary(),
        fairness=Fairness(
            slowdown_of_queues=jain_index(_slowdowns(observer.by_queue.values())),
            slowdown_of_users=jain_index(_slowdowns(observer.by_user.values())),
            use_of_queues=jain_index(queue.use for queue in queues),
            use_of_users=jain_index(user.use for user in users),
        ),
        fragmentation={
            name: observation.fragmentation()
            for name, observation in sorted(observer.cluster.partitions.items())
        },
        idle={
            name: observation.idle.report(capacities[name])
            for name, observation in sorted(observer.cluster.partitions.items())
        },
        queues=queues,
        users=users,
        sizes=sizes,
        use_at_end={
            name: used_share(observation.allocated, observation.capacity)
            for name, observation in sorted(observer.cluster.partitions.items())
        },
        slo=observer.targets.report(),
        calibration=observer.calibration.report(),
    )


def _slowdowns(groups: Iterable[GroupCounts]) -> list[float]:
    return [mean for group in groups if (mean := group.slowdowns.mean()) is not None]


def _history(observer: Observer) -> History:
    timeline = observer.timeline
    start = timeline.start or 0
    end = max(observer.last, start)
    lengths = timeline.lengths(end)
    rows = observer.cluster.rows
    return History(
        start=seconds(start),
        width=seconds(timeline.width),
        end=seconds(end),
        partitions=[
            PartitionHistory(
                partition=name,
                capacity=observation.had.means(lengths),
                used=observation.used.means(lengths),
                unusable=observation.unusable.means(lengths),
                idle=observation.idle.means(lengths),
                waiting=observation.waiting_tasks.means(lengths),
                running=observation.running_tasks.means(lengths),
            )
            for name, observation in sorted(observer.cluster.partitions.items())
        ],
        queues=[
            QueueHistory(
                partition=partition,
                queue=path,
                is_leaf=observation.is_leaf,
                used=observation.used.means(lengths),
                wanted=observation.wanted.means(lengths),
                waiting=observation.waiting_tasks.means(lengths),
                running=observation.running_tasks.means(lengths),
                quotas=observation.steps,
            )
            for partition, path, observation in observer.queues
        ],
        nodes=NodeHistory(rows.nodes, rows.per_row, rows.shares(len(lengths))),
    )


@attrs.frozen
class FullReport:
    """Complete results of a simulation."""

    report: Report
    figures: Figures
    """Figures that the full report adds to the plain report."""
    history: History
    curves: Curves
    provenance: Provenance | None = None
    """Inputs and options of the run; None if the caller has not named them."""

    def to_json(self) -> str:
        """Return the plain report, the `figures` and the `provenance` as JSON text with a final newline."""
        provenance = None if self.provenance is None else attrs.asdict(self.provenance)
        whole = {
            **attrs.asdict(self.report),
            "figures": attrs.asdict(self.figures),
            "provenance": provenance,
        }
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def study(
    config: str,
    workload: Workload,
    registry: Registry,
    *,
    until: int | None = None,
    recorder: Recorder | None = None,
    rows: Callable[[ApplicationRow], None] | None = None,
    watch: Callable[[Progress], bool] | None = None,
    preempted: str = RESTART,
    questions: Sequence[ExplainRequest] = (),
    targets: Mapping[str, int] | None = None,
) -> FullReport:
    """Simulate and observe a workload; options and errors are those of `simulate`.

    `rows` receives the row of each application at its end, and the rows of unfinished applications at the end
    of the simulation. `targets` are wait targets (ns) by queue.
    """
    view = CoreView()
    limits = LimitWaits(view.application)
    observer = Observer(view, limits, rows, targets)
    report = simulate(
        config,
        workload,
        registry,
        until=until,
        recorder=Recorders(recorder, observer) if recorder is not None else observer,
        watch=watch,
        preempted=preempted,
        questions=questions,
        meet=view.meet,
        limits=limits,
    )
    observer.close(round(report.times.stopped * SECOND))
    return FullReport(report, _figures(observer), _history(observer), _curves(observer))
