"""Counters of a running simulation, in total and per queue."""

from __future__ import annotations

import re

import attrs

from yunikorn.resources import Tally, grow
from yunikorn_lab.simulation.rm_state import (
    PREEMPTIONS,
    SUSPENDED,
    GangFigures,
    LostWorkTotals,
    Running,
    Submitted,
    partition_name,
)
from yunikorn_lab.simulation.statistics import Capacity, Waits
from yunikorn_lab.simulation.workload import Reloaded

MAX_REASONS = 100
"""Maximum number of distinct reasons; all further reasons are counted together."""

PREFIX = re.compile(r"\Afailed to place application \S+: application rejected: ")
"""Beginning of the core's reasons that says no more than the table of rejections."""
OTHER_REASONS = "further reasons"


@attrs.define(eq=False)
class QueueCounters:
    """Counters of one leaf queue of one partition."""

    applications: int = 0
    """Applications whose first task started in this queue."""
    finished: int = 0
    tasks: int = 0
    ended: int = 0
    preempted: int = 0
    application_waits: Waits = attrs.Factory(Waits)
    task_waits: Waits = attrs.Factory(Waits)
    usage: Tally = attrs.Factory(dict)
    """Integral of the usage over time: amounts times nanoseconds."""


@attrs.define
class RefusalReason:
    """A reason for refusals, its count, and the id of the first application concerned."""

    reason: str
    count: int
    example: str


class RefusalReasons:
    """Counted reasons for refusals; texts that differ only in the application's id are one reason."""

    def __init__(self) -> None:
        self._found: dict[str, RefusalReason] = {}

    def add(self, text: str, application: str, count: int = 1) -> None:
        """Count the reason `text`, given for `application`, `count` times."""
        reason = " ".join(_without_name(text, application).split())
        reason = PREFIX.sub("", reason)
        if reason not in self._found and len(self._found) >= MAX_REASONS:
            reason = OTHER_REASONS
        known = self._found.setdefault(reason, RefusalReason(reason, 0, application))
        known.count += count

    def ranked(self) -> list[RefusalReason]:
        """Return the reasons, the most frequent first, and equal ones in order of occurrence."""
        return sorted(self._found.values(), key=lambda reason: -reason.count)


def _without_name(text: str, name: str) -> str:
    # Ids of one or two characters could match parts of unrelated words.
    if len(name) < 3:
        return text
    return re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "<application>", text)


@attrs.define
class ApplicationCounts:
    """Numbers of applications; `submitted` is the sum of finished, failed, rejected, running and waiting."""

    submitted: int = 0
    finished: int = 0
    failed: int = 0
    rejected: int = 0
    running: int = 0
    """Applications with at least one running task at the end."""
    waiting: int = 0
    """Applications without running tasks at the end."""
    not_submitted: int = 0
    """Applications that were not due at the end of the simulation, or whose predecessors had not ended."""
    too_large: int = 0
    """Gangs, and jobs of traces, that ask for more than the whole cluster has."""


@attrs.define
class TaskCounts:
    """Numbers of tasks; `asked` is the sum of ended, failed, dropped, refused, running and waiting."""

    asked: int = 0
    ended: int = 0
    timed_out: int = 0
    """Ended tasks that the core terminated because their execution timeout expired."""
    failed: int = 0
    """Tasks that were preempted and are not restarted."""
    dropped: int = 0
    """Tasks that never ended because their application was rejected or failed."""
    refused: int = 0
    running: int = 0
    waiting: int = 0
    restarted: int = 0
    """Number of times a task lost its allocation and was asked for again."""
    too_large: int = 0
    """Tasks larger than any node of their partition; accepted ones are also counted as waiting."""


@attrs.define(eq=False)
class Counters:
    """Counters of one simulation; the counts of what runs and waits are set at its end."""

    applications: ApplicationCounts = attrs.Factory(ApplicationCounts)
    tasks: TaskCounts = attrs.Factory(TaskCounts)
    rejections: RefusalReasons = attrs.Factory(RefusalReasons)
    failures: RefusalReasons = attrs.Factory(RefusalReasons)
    """Reasons why applications failed."""
    refusals: RefusalReasons = attrs.Factory(RefusalReasons)
    lost_work: LostWorkTotals = attrs.Factory(LostWorkTotals)
    startups: Waits = attrs.Factory(Waits)
    """Start-up times of started tasks, without tasks that begin at once."""
    gangs: GangFigures = attrs.Factory(GangFigures)
    decisions: int = 0
    allocations: int = 0
    releases: int = 0
    first_submission: int | None = None
    last_end: int | None = None
    queues: dict[tuple[str, str], QueueCounters] = attrs.Factory(dict)
    """Figures by partition and path of the leaf queue."""
    capacities: dict[str, Capacity] = attrs.Factory(dict)
    """Capacities by partition."""
    nodes: int = 0
    node_troubles: list[str] = attrs.Factory(list)
    reloads: list[Reloaded] = attrs.Factory(list)

    def arrived(self, record: Submitted, moment: int) -> None:
        """Count the submission of an application with all its tasks."""
        self.applications.submitted += 1
        self.tasks.asked += record.unfinished
        if record.plan.gang:
            self.gangs.submitted += 1
        if self.first_submission is None:
            self.first_submission = moment

    def placed(self, task: Running, moment: int) -> None:
        """Count the start of a task."""
        figures = self.queue(task)
        owner = task.owner
        if owner.first_start is None:
            owner.first_start = moment
            owner.queue = task.allocation.queue_name
            figures.applications += 1
            figures.application_waits.add(moment - owner.plan.submit)
        figures.tasks += 1
        figures.task_waits.add(moment - task.ask.asked)
        if task.startup:
            self.startups.add(task.startup)
        self.allocations += 1

    def left(self, task: Running, moment: int, lost: str = "") -> None:
        """Count the end of a task, or the loss of its work if `lost` gives a reason."""
        figures = self.queue(task)
        grow(figures.usage, task.allocation.resource_per_alloc, moment - max(task.started, 0))
        self.releases += 1
        if lost:
            self.lost_work.add(lost, 0 if lost == SUSPENDED else task.ran(moment))
            figures.preempted += lost in PREEMPTIONS
        else:
            figures.ended += 1
            self.tasks.ended += 1
            self.last_end = moment

    def done(self, record: Submitted) -> None:
        """Count an application as finished: its tasks have ended, except those that were refused."""
        self.applications.finished += 1
        self.queues[partition_name(record.plan.partition), record.queue].finished += 1

    def turned_away(self, record: Submitted, reason: str) -> None:
        """Count the rejection of an application."""
        self.applications.rejected += 1
        self.tasks.dropped += record.unfinished
        self.rejections.add(reason, record.plan.id)

    def broke(self, record: Submitted, reason: str) -> None:
        """Count the failure of an application; its running tasks are dropped when the core releases them."""
        self.applications.failed += 1
        self.failures.add(reason, record.plan.id)
        self.tasks.dropped += record.waiting

    def refused(self, record: Submitted, tasks: int, reason: str) -> None:
        """Count refused tasks of an application."""
        self.tasks.refused += tasks
        self.refusals.add(reason, record.plan.id, tasks)

    def queue(self, task: Running) -> QueueCounters:
        """Return the figures of the queue that `task` runs in."""
        key = (partition_name(task.owner.plan.partition), task.allocation.queue_name)
        figures = self.queues.get(key)
        if figures is None:
            figures = self.queues[key] = QueueCounters()
        return figures

    def capacity(self, partition: str) -> Capacity:
        """Return the capacity of a partition."""
        return self.capacities.setdefault(partition_name(partition), Capacity())
