"""Simulation with the full report: the plain report, and the figures and time series of an observer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn_lab.reporting.core_view import CoreView
from yunikorn_lab.reporting.group_counts import NAMES, GroupCounts, GroupReport
from yunikorn_lab.reporting.metrics import jain_index
from yunikorn_lab.reporting.observations import RUNNING, WAITING, ApplicationRow
from yunikorn_lab.reporting.observer import Observer
from yunikorn_lab.reporting.provenance import Provenance
from yunikorn_lab.reporting.run_figures import Curves, Fairness, Figures
from yunikorn_lab.reporting.run_history import (
    NodeHistory,
    PartitionHistory,
    QueueHistory,
    RunHistory,
    UserHistory,
)
from yunikorn_lab.reporting.tables import queue_label
from yunikorn_lab.reporting.verdict import judge
from yunikorn_lab.simulation.engine import Progress
from yunikorn_lab.simulation.explain_requests import ExplainRequest
from yunikorn_lab.simulation.limit_waits import LimitWaits
from yunikorn_lab.simulation.recorder import Recorder, Recorders
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.statistics import seconds, used_share
from yunikorn_lab.simulation.survey import survey
from yunikorn_lab.simulation.workload import RESTART, Workload

if TYPE_CHECKING:
    from attrs import AttrsInstance

TOP_USERS = 8
"""Maximum number of users with series of their own in the results."""
CURVE = 400
"""Maximum number of points of a distribution curve."""


def _curves(observer: Observer) -> Curves:
    several = len(observer.cluster.partitions) > 1
    named = {
        queue_label(partition, path, several=several): group
        for (partition, path), group in sorted(observer.by_queue.items())
    }
    return Curves(
        waits={name: group.whole_waits.curve(CURVE) for name, group in named.items()},
        slowdowns={name: group.slowdowns.curve(CURVE) for name, group in named.items()},
        all_waits=observer.everything.whole_waits.curve(CURVE),
        all_slowdowns=observer.everything.slowdowns.curve(CURVE),
        calibration=observer.calibration.curves(CURVE),
    )


def _queues(observer: Observer, capacities: Mapping[str, Mapping[str, int]]) -> list[GroupReport]:
    observed = {(partition, path): observation for partition, path, observation in observer.queues}
    found = []
    for (partition, path), group in sorted(observer.by_queue.items()):
        queue = observed[partition, path]
        capacity = observer.cluster.partition(partition).capacity
        found.append(
            attrs.evolve(
                group.report(path, capacities, partition),
                guarantees=queue.guarantees(),
                use_at_end=used_share(queue.allocated, capacity),
            )
        )
    return found


def _figures(observer: Observer) -> Figures:
    capacities = observer.cluster.capacities()
    queues = _queues(observer, capacities)
    users = [group.report(name, capacities) for name, group in sorted(observer.by_user.items())]
    sizes = [observer.by_size[name].report(name, capacities) for name in NAMES if name in observer.by_size]
    partitions = sorted(observer.cluster.partitions.items())
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
        fragmentation={name: found.fragmentation() for name, found in partitions},
        idle={name: found.idle.report(capacities[name]) for name, found in partitions},
        queues=queues,
        users=users,
        sizes=sizes,
        use_at_end={name: used_share(found.allocated, found.capacity) for name, found in partitions},
        slo=observer.targets.report(),
        topology={
            name: topology.report(capacities[name], observer.last)
            for name, topology in sorted(observer.topologies.items())
        },
        calibration=observer.calibration.report(),
    )


def _slowdowns(groups: Iterable[GroupCounts]) -> list[float]:
    return [mean for group in groups if (mean := group.slowdowns.mean()) is not None]


def _user_histories(observer: Observer, figures: Figures, lengths: list[int]) -> list[UserHistory]:
    if len(observer.users) < 2:
        return []
    ranked = sorted(figures.users, key=lambda user: (-user.use, user.name))
    return observer.users.histories([user.name for user in ranked], TOP_USERS, lengths)


def _history(observer: Observer, figures: Figures, origin: float | None) -> RunHistory:
    timeline = observer.timeline
    start = timeline.start or 0
    end = max(observer.last, start)
    lengths = timeline.lengths(end)
    rows = observer.cluster.rows
    return RunHistory(
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
                waiting=observation.tasks.means_of(WAITING, lengths),
                running=observation.tasks.means_of(RUNNING, lengths),
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
                waiting=observation.tasks.means_of(WAITING, lengths),
                running=observation.tasks.means_of(RUNNING, lengths),
                quotas=observation.steps,
            )
            for partition, path, observation in observer.queues
        ],
        nodes=NodeHistory(rows.nodes, rows.per_row, rows.names, rows.shares(len(lengths))),
        origin=origin,
        users=_user_histories(observer, figures, lengths),
        topology=[
            series
            for name, topology in sorted(observer.topologies.items())
            for series in topology.histories(name, lengths)
        ],
    )


@attrs.frozen
class FullReport:
    """Complete results of a simulation."""

    report: Report
    figures: Figures
    """Figures that the full report adds to the plain report."""
    history: RunHistory
    curves: Curves
    provenance: Provenance | None = None
    """Inputs and options of the run; None if the caller has not named them."""
    verdict: list[str] = attrs.Factory(list)
    """Sentences that say what stands out, the most important first."""

    def to_json(self) -> str:
        """Return verdict, plain report, `figures` and `provenance` as JSON text with a final newline."""
        provenance = None if self.provenance is None else attrs.asdict(self.provenance)
        whole = {
            "verdict": self.verdict,
            **attrs.asdict(self.report),
            "figures": plain(self.figures),
            "provenance": provenance,
        }
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def plain(of: AttrsInstance) -> dict[str, Any]:
    """Return a part of a report as plain values, without a topology if there is none."""
    return attrs.asdict(of, filter=lambda field, value: field.name != "topology" or bool(value))


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
    continuing: Callable[..., Report] | None = None,
) -> FullReport:
    """Simulate and observe a workload; options and errors are those of `simulate`.

    With `continuing`, which is `continued` with a scheduler, that scheduler goes on instead.

    `rows` receives the row of each application at its end, and the rows of unfinished applications at the end
    of the simulation. `targets` are wait targets (ns) by queue.
    """
    view = CoreView()
    limits = LimitWaits(view.application)
    observer = Observer(view, limits, rows, targets, survey(workload).topology_gangs, workload.recorded)
    run = continuing or partial(simulate, config, registry=registry)
    report = run(
        workload=workload,
        until=until,
        recorder=Recorders(recorder, observer) if recorder is not None else observer,
        watch=watch,
        preempted=preempted,
        questions=questions,
        meet=view.meet,
        limits=limits,
    )
    observer.close(round(report.times.stopped * SECOND))
    figures = _figures(observer)
    history = _history(observer, figures, report.began)
    verdict = judge(report, figures, history)
    return FullReport(report, figures, history, _curves(observer), verdict=verdict)
