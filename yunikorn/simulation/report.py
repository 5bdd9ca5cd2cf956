"""Report of a simulation, the common source of the printed tables, the JSON output and the files.

A report contains no properties of the machine: equal input gives an identical report, byte for byte.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.simulation.config_events import ReloadReport
from yunikorn.simulation.counters import Counters, QueueFigures, RefusalReason
from yunikorn.simulation.explain_requests import ExplainAnswer
from yunikorn.simulation.limit_waits import LimitReport
from yunikorn.simulation.rm_state import PREEMPTED, GangReport, LostWork, OversizedTasks, partition_name
from yunikorn.simulation.statistics import Summary, Usage, seconds, used_share
from yunikorn.simulation.workload import Workload

if TYPE_CHECKING:
    from yunikorn.simulation.event_queue import EventQueue
    from yunikorn.simulation.rm_state import Running, Submitted
    from yunikorn.simulation.simulated_rm import SimulatedRM


@attrs.frozen
class ApplicationCounts:
    """Numbers of applications; `submitted` is the sum of finished, failed, rejected, running and waiting."""

    submitted: int
    finished: int
    failed: int
    rejected: int
    running: int
    """Applications with at least one running task at the end."""
    waiting: int
    """Applications without running tasks at the end."""
    not_submitted: int
    """Applications whose submission time is after the end of the simulation."""


@attrs.frozen
class TaskCounts:
    """Numbers of tasks; `asked` is the sum of ended, failed, dropped, refused, running and waiting."""

    asked: int
    ended: int
    timed_out: int
    """Ended tasks that the core terminated because their execution timeout expired."""
    failed: int
    """Tasks that were preempted and are not restarted."""
    dropped: int
    """Tasks of rejected and failed applications."""
    refused: int
    running: int
    waiting: int
    restarted: int
    """Number of times a task lost its allocation and was asked for again."""
    too_large: int
    """Tasks larger than any node of their partition; accepted ones are also counted as waiting."""


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
    """Tasks that lost their allocation before their end, by reason, with the time they had run."""
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
    input: dict[str, int]
    """Counts of skipped or replaced values of the input."""
    remarks: list[str]
    waiting: list[RefusalReason] = attrs.Factory(list)
    """Reasons why tasks wait at the end, with the number of tasks and the first application per reason."""
    explanations: list[ExplainAnswer] = attrs.Factory(list)
    """Answers to the explain requests, in the order of the questions."""
    plugin_faults: list[str] = attrs.Factory(list)
    """Failures of plugins during scheduling."""

    def to_json(self) -> str:
        """Return the report as JSON text with a final newline."""
        return json.dumps(attrs.asdict(self), indent=2, ensure_ascii=False) + "\n"


def make_report(
    workload: Workload,
    oversized: OversizedTasks,
    counters: Counters,
    manager: SimulatedRM,
    event_queue: EventQueue[Any],
    held: LimitReport,
    now: int,
    outcome: str,
) -> Report:
    """Make the report at time `now`; tasks that still run count as usage up to `now`."""
    stopped = now
    if outcome == "complete" and counters.last_end is not None and not manager.running:
        stopped = counters.last_end
    _count_what_runs(counters, manager.running.values(), stopped)
    everything = QueueFigures()
    for figures in counters.queues.values():
        everything.application_waits.merge(figures.application_waits)
        everything.task_waits.merge(figures.task_waits)
    capacities = _capacities(counters, stopped)
    return Report(
        workload=workload.name,
        format=workload.format,
        origin=workload.origin,
        outcome=outcome,
        applications=_count_applications(counters, manager.live, event_queue.still_to_arrive),
        rejections=counters.rejections.ranked(),
        tasks=_count_tasks(counters, manager, oversized),
        refusals=counters.refusals.ranked(),
        application_wait=everything.application_waits.summary(),
        task_wait=everything.task_waits.summary(),
        preemptions=counters.lost_work.tasks(PREEMPTED),
        preempted_placeholders=counters.lost_work.preempted_places,
        lost_work=counters.lost_work.listed(),
        gangs=counters.gangs.report(),
        limit_waits=held,
        times=_times(counters, stopped),
        decisions=counters.decisions,
        allocations=counters.allocations,
        releases=counters.releases,
        nodes=counters.nodes,
        node_troubles=list(counters.node_troubles),
        reloads=[reloaded.listed() for reloaded in counters.reloads],
        utilisation=_utilisation(counters, capacities),
        queues=_queue_reports(counters, capacities),
        input=dict(sorted(workload.counts.items())),
        remarks=[*workload.remarks, *filter(None, [oversized.remark()])],
    )


def _count_what_runs(counters: Counters, running: Any, stopped: int) -> None:
    task: Running
    for task in running:
        amount = task.allocation.resource_per_alloc
        counters.queue(task).usage.add(amount, max(stopped - task.started, 0))


def _count_applications(counters: Counters, live: dict[str, Submitted], to_come: int) -> ApplicationCounts:
    running = sum(1 for record in live.values() if record.running)
    return ApplicationCounts(
        submitted=counters.submitted,
        finished=counters.finished,
        failed=counters.failed,
        rejected=counters.rejected,
        running=running,
        waiting=len(live) - running,
        not_submitted=to_come,
    )


def _count_tasks(counters: Counters, manager: SimulatedRM, oversized: OversizedTasks) -> TaskCounts:
    return TaskCounts(
        asked=counters.tasks_asked,
        ended=counters.tasks_ended,
        timed_out=counters.tasks_timed_out,
        failed=counters.tasks_failed,
        dropped=counters.tasks_dropped,
        refused=counters.tasks_refused,
        running=len(manager.running),
        waiting=sum(record.waiting for record in manager.live.values()),
        restarted=counters.restarts,
        too_large=oversized.tasks,
    )


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
    totals = {name: Usage() for name in capacities}
    for (partition, _), figures in counters.queues.items():
        totals.setdefault(partition, Usage()).add(figures.usage.spent, 1)
    return {name: used_share(usage.spent, capacities.get(name, {})) for name, usage in sorted(totals.items())}


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
            utilisation=used_share(figures.usage.spent, capacities.get(partition, {})),
        )
        for (partition, queue), figures in sorted(counters.queues.items())
    ]
