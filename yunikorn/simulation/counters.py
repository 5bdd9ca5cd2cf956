"""What a simulation counts while it runs, in total and per queue."""

from __future__ import annotations

import re

import attrs

from yunikorn.simulation.lost_work import PREEMPTED, GangFigures, LostWorkTotals
from yunikorn.simulation.oversized import partition_name
from yunikorn.simulation.reloads import Reloaded
from yunikorn.simulation.rm_state import Running, Submitted
from yunikorn.simulation.statistics import Capacity, Usage, Waits

MAX_REASONS = 100
"""So many different reasons are kept apart; further ones are counted together."""

OTHER_REASONS = "further reasons"


@attrs.define(eq=False)
class QueueFigures:
    """What happened in one leaf queue of one partition."""

    applications: int = 0
    """Applications that got their first place here."""
    finished: int = 0
    tasks: int = 0
    ended: int = 0
    preempted: int = 0
    application_waits: Waits = attrs.Factory(Waits)
    task_waits: Waits = attrs.Factory(Waits)
    usage: Usage = attrs.Factory(Usage)


@attrs.define
class RefusalReason:
    """Why something was refused: how often, and the first application it happened to."""

    reason: str
    count: int
    example: str


class RefusalReasons:
    """Reasons for refusals, counted; the application's own id in a text does not make a new reason."""

    def __init__(self) -> None:
        self._found: dict[str, RefusalReason] = {}

    def add(self, text: str, application: str, count: int = 1) -> None:
        """`count` more for the reason `text`, given for `application`."""
        reason = " ".join(_without_name(text, application).split())
        if reason not in self._found and len(self._found) >= MAX_REASONS:
            reason = OTHER_REASONS
        known = self._found.setdefault(reason, RefusalReason(reason, 0, application))
        known.count += count

    def ranked(self) -> list[RefusalReason]:
        """The most frequent first; equal ones in the order in which they came up."""
        return sorted(self._found.values(), key=lambda reason: -reason.count)


def _without_name(text: str, name: str) -> str:
    # A name as short as a word of English would tear the text apart.
    if len(name) < 3:
        return text
    return re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "<application>", text)


@attrs.define(eq=False)
class Counters:
    """The counts of one simulation."""

    submitted: int = 0
    finished: int = 0
    failed: int = 0
    rejected: int = 0
    rejections: RefusalReasons = attrs.Factory(RefusalReasons)
    tasks_asked: int = 0
    tasks_ended: int = 0
    tasks_dropped: int = 0
    """Tasks that never ended because their application was rejected or failed."""
    tasks_refused: int = 0
    refusals: RefusalReasons = attrs.Factory(RefusalReasons)
    tasks_failed: int = 0
    """Tasks that were preempted and do not start again."""
    tasks_timed_out: int = 0
    """Of those that ended, the ones that the core ended because their time was over."""
    restarts: int = 0
    lost_work: LostWorkTotals = attrs.Factory(LostWorkTotals)
    gangs: GangFigures = attrs.Factory(GangFigures)
    decisions: int = 0
    allocations: int = 0
    releases: int = 0
    first_submission: int | None = None
    last_end: int | None = None
    queues: dict[tuple[str, str], QueueFigures] = attrs.Factory(dict)
    """By partition and path of the leaf queue."""
    capacities: dict[str, Capacity] = attrs.Factory(dict)
    """By partition."""
    nodes: int = 0
    node_troubles: list[str] = attrs.Factory(list)
    reloads: list[Reloaded] = attrs.Factory(list)

    def arrived(self, record: Submitted, moment: int) -> None:
        """An application was submitted with all its tasks."""
        self.submitted += 1
        self.tasks_asked += record.unfinished
        if record.plan.gang:
            self.gangs.submitted += 1
        if self.first_submission is None:
            self.first_submission = moment

    def placed(self, task: Running, moment: int) -> None:
        """A task got its place."""
        figures = self.queue(task)
        owner = task.owner
        if owner.first_start is None:
            owner.first_start = moment
            owner.queue = task.allocation.queue_name
            figures.applications += 1
            figures.application_waits.add(moment - owner.plan.submit)
        figures.tasks += 1
        figures.task_waits.add(moment - task.ask.asked)
        self.allocations += 1

    def left(self, task: Running, moment: int, lost: str = "") -> None:
        """A task gave its place back: because it ended, or because of `lost`, and its work with it."""
        figures = self.queue(task)
        figures.usage.add(task.allocation.resource_per_alloc, moment - task.started)
        self.releases += 1
        if lost:
            self.lost_work.add(lost, moment - task.started)
            figures.preempted += lost == PREEMPTED
        else:
            figures.ended += 1
            self.tasks_ended += 1
            self.last_end = moment

    def done(self, record: Submitted) -> None:
        """An application's tasks have all ended (or were refused, but not all of them)."""
        self.finished += 1
        self.queues[partition_name(record.plan.partition), record.queue].finished += 1

    def turned_away(self, record: Submitted, reason: str) -> None:
        """An application was rejected."""
        self.rejected += 1
        self.tasks_dropped += record.unfinished
        self.rejections.add(reason, record.plan.id)

    def broke(self, record: Submitted) -> None:
        """The core let an application fail; what still runs of it is dropped when it is taken away."""
        self.failed += 1
        self.tasks_dropped += record.waiting

    def refused(self, record: Submitted, tasks: int, reason: str) -> None:
        """Some tasks of an application were refused."""
        self.tasks_refused += tasks
        self.refusals.add(reason, record.plan.id, tasks)

    def queue(self, task: Running) -> QueueFigures:
        """The figures of the queue that `task` runs in."""
        key = (partition_name(task.owner.plan.partition), task.allocation.queue_name)
        figures = self.queues.get(key)
        if figures is None:
            figures = self.queues[key] = QueueFigures()
        return figures

    def capacity(self, partition: str) -> Capacity:
        """The capacity of a partition."""
        return self.capacities.setdefault(partition_name(partition), Capacity())
