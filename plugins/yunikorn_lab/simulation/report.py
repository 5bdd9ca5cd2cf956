"""Report of a simulation, the common source of the printed tables, the JSON output and the files.

A report contains no properties of the machine: equal input gives an identical report, byte for byte.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import attrs

from yunikorn.resources import Tally, grow
from yunikorn_lab.simulation.counters import (
    ApplicationCounts,
    Counters,
    QueueCounters,
    RefusalReason,
    TaskCounts,
)
from yunikorn_lab.simulation.dependencies import DependencyReport
from yunikorn_lab.simulation.explain_requests import ExplainAnswer
from yunikorn_lab.simulation.limit_waits import LimitReport
from yunikorn_lab.simulation.rm_state import PREEMPTIONS, GangReport, LostWork, partition_name
from yunikorn_lab.simulation.statistics import Summary, seconds, used_share
from yunikorn_lab.simulation.survey import OfferedLoad, Survey
from yunikorn_lab.simulation.workload import ReloadReport, Workload
from yunikorn_lab.simulation.yardstick import easy_waits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yunikorn_lab.simulation.simulated_rm import SimulatedRM


@attrs.frozen
class Times:
    """Points and spans of simulated time, in seconds."""

    first_submission: float | None
    last_end: float | None
    makespan: float | None
    """Time from the first submission to the end of the last task."""
    stopped: float
    """End of the simulation; utilisation is measured from the first submission to this point."""


@attrs.frozen
class QueueReport:
    """Figures of a leaf queue; `utilisation` is its part of the partition's capacity per resource type."""

    partition: str
    queue: str
    applications: int
    finished: int
    tasks: int
    ended: int
    preempted: int
    application_wait: Summary | None
    task_wait: Summary | None
    utilisation: dict[str, float]


@attrs.frozen
class Report:
    """Result of a simulation."""

    workload: str
    format: str
    origin: float
    """Time in the input (seconds) that corresponds to 0 in the simulation."""
    outcome: str
    """`complete`, `until` (ended by `--until`) or `interrupted`."""
    applications: ApplicationCounts
    rejections: list[RefusalReason]
    failures: list[RefusalReason]
    """Reasons why applications failed, the most frequent first."""
    tasks: TaskCounts
    refusals: list[RefusalReason]
    application_wait: Summary | None
    """Wait from submission to the start of the first task."""
    task_wait: Summary | None
    """Wait from the ask to the start of the task."""
    preemptions: int
    """Number of preempted tasks, without placeholders."""
    preempted_placeholders: int
    lost_work: list[LostWork]
    """Tasks that lost their allocation before their end, by reason, with the run time that was lost."""
    gangs: GangReport | None
    """None if there were no gangs."""
    limit_waits: LimitReport
    times: Times
    decisions: int
    allocations: int
    releases: int
    nodes: int
    """Number of nodes that registered."""
    node_troubles: list[str]
    reloads: list[ReloadReport]
    """Configurations that were loaded or refused during the simulation."""
    utilisation: dict[str, dict[str, float]]
    """Allocated part of the capacity, by partition and resource type."""
    queues: list[QueueReport]
    offered_load: OfferedLoad
    """Work that arrives, relative to the work that the cluster can do."""
    dependencies: DependencyReport | None
    """None if no application has a predecessor."""
    input: dict[str, int]
    """Counts of skipped or replaced values of the input."""
    remarks: list[str]
    began: float | None = None
    """Unix time (seconds) that corresponds to 0 in the simulation; None if the input has no dates."""
    waiting: list[RefusalReason] = attrs.Factory(list)
    """Reasons why tasks wait at the end, with the number of tasks and the first application per reason."""
    explanations: list[ExplainAnswer] = attrs.Factory(list)
    """Answers to the explain requests, in the order of the questions."""
    startup: Summary | None = None
    """Start-up times of started tasks, without tasks that begin at once."""
    easy_wait: Summary | None = None
    """Waits that EASY backfilling would give; None if nothing waits, or if the workload is not rigid."""
    plugin_faults: list[str] = attrs.Factory(list)
    """Failures of plugins during scheduling."""

    def to_json(self) -> str:
        """Return the report as JSON text with a final newline."""
        return json.dumps(attrs.asdict(self), indent=2, ensure_ascii=False) + "\n"


def make_report(
    workload: Workload,
    surveyed: Survey,
    counters: Counters,
    managers: Sequence[SimulatedRM],
    limit_report: LimitReport,
    now: int,
    outcome: str,
    *,
    has_yardstick: bool,
) -> Report:
    """Make the report at time `now`; tasks that still run count as usage up to `now`."""
    stopped = now
    tasks = [task for manager in managers for task in manager.running.values()]
    live = [record for manager in managers for record in manager.live.values()]
    if outcome == "complete" and counters.last_end is not None and not tasks:
        stopped = counters.last_end
    for task in tasks:
        amount = task.allocation.resource_per_alloc
        grow(counters.queue(task).usage, amount, max(stopped - max(task.started, 0), 0))
    everything = QueueCounters()
    for figures in counters.queues.values():
        everything.application_waits.merge(figures.application_waits)
        everything.task_waits.merge(figures.task_waits)
    application_wait = everything.application_waits.summary()
    capacities = _capacities(counters, stopped)
    running = sum(1 for record in live if record.running)
    event_queue = managers[0].event_queue
    dependencies = event_queue.dependencies.report(surveyed.applications_with_predecessors)
    return Report(
        workload=workload.name,
        format=workload.format,
        origin=workload.origin,
        began=workload.began,
        outcome=outcome,
        applications=attrs.evolve(
            counters.applications,
            running=running,
            waiting=len(live) - running,
            not_submitted=event_queue.still_to_arrive,
            too_large=surveyed.oversized.applications_beyond_cluster,
        ),
        rejections=counters.rejections.ranked(),
        failures=counters.failures.ranked(),
        tasks=attrs.evolve(
            counters.tasks,
            running=len(tasks),
            waiting=sum(record.waiting for record in live),
            too_large=surveyed.oversized.tasks,
        ),
        refusals=counters.refusals.ranked(),
        application_wait=application_wait,
        task_wait=everything.task_waits.summary(),
        preemptions=counters.lost_work.tasks(*PREEMPTIONS),
        preempted_placeholders=counters.lost_work.preempted_places,
        lost_work=counters.lost_work.listed(),
        gangs=counters.gangs.report(),
        limit_waits=limit_report,
        times=_times(counters, stopped),
        decisions=counters.decisions,
        allocations=counters.allocations,
        releases=counters.releases,
        nodes=counters.nodes,
        node_troubles=list(counters.node_troubles),
        reloads=[reloaded.listed() for reloaded in counters.reloads],
        utilisation=_utilisation(counters, capacities),
        queues=_queue_reports(counters, capacities),
        offered_load=surveyed.offered_load,
        dependencies=dependencies,
        startup=counters.startups.summary(),
        easy_wait=easy_waits(workload)
        if has_yardstick and outcome == "complete" and application_wait and application_wait.max
        else None,
        input=dict(sorted(workload.counts.items())),
        remarks=[*workload.remarks, *surveyed.remarks, *_remarks(dependencies)],
    )


def _remarks(dependencies: DependencyReport | None) -> list[str]:
    if dependencies is None:
        return []
    return list(filter(None, [dependencies.remark_on_failures(), dependencies.remark()]))


def _times(counters: Counters, stopped: int) -> Times:
    first, last = counters.first_submission, counters.last_end
    return Times(
        first_submission=None if first is None else seconds(first),
        last_end=None if last is None else seconds(last),
        makespan=None if first is None or last is None else seconds(last - first),
        stopped=seconds(stopped),
    )


def _capacities(counters: Counters, stopped: int) -> dict[str, dict[str, int]]:
    start = counters.first_submission or 0
    return {name: capacity.between(start, stopped) for name, capacity in counters.capacities.items()}


def _utilisation(counters: Counters, capacities: dict[str, dict[str, int]]) -> dict[str, dict[str, float]]:
    totals: dict[str, Tally] = {name: {} for name in capacities}
    for (partition, _), figures in counters.queues.items():
        grow(totals.setdefault(partition, {}), figures.usage)
    return {name: used_share(used, capacities.get(name, {})) for name, used in sorted(totals.items())}


def _queue_reports(counters: Counters, capacities: dict[str, dict[str, int]]) -> list[QueueReport]:
    return [
        QueueReport(
            partition=partition_name(partition),
            queue=queue,
            applications=figures.applications,
            finished=figures.finished,
            tasks=figures.tasks,
            ended=figures.ended,
            preempted=figures.preempted,
            application_wait=figures.application_waits.summary(),
            task_wait=figures.task_waits.summary(),
            utilisation=used_share(figures.usage, capacities.get(partition, {})),
        )
        for (partition, queue), figures in sorted(counters.queues.items())
    ]
