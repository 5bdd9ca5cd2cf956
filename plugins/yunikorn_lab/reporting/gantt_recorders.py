"""Recorders of Gantt charts: tasks and placeholders on nodes, and times of applications."""

from __future__ import annotations

import heapq

import attrs

from yunikorn.interface.messages import Allocation
from yunikorn.resources import INT64_MAX, Tally, grow
from yunikorn_lab.reporting.gantt import (
    MOST_BARS,
    MOST_ROWS,
    NODES,
    PLACEHOLDER,
    RUNNING,
    TASK,
    WAITING,
    GanttBar,
    GanttRecorder,
    GanttRequest,
    Row,
)
from yunikorn_lab.simulation.rm_state import Running, Submitted, partition_name
from yunikorn_lab.simulation.workload import NodeEvent, NodeEventKind


def gantt_recorder(request: GanttRequest) -> GanttRecorder:
    """Return the recorder of a chart."""
    return NodeBars(request) if request.of == NODES else ApplicationBars(request)


class NodeBars(GanttRecorder):
    """Recorder of a chart of nodes: a bar for each task and each placeholder."""

    ORDER = "those registered first"

    def __init__(self, request: GanttRequest) -> None:
        super().__init__(request)
        self._nodes: dict[Row, None] = {}
        """Registered nodes, in order of registration."""
        self._is_open = False
        """True from the begin of the window on."""
        self._rows: dict[Row, None] = {}
        self._left_out: set[Row] = set()
        self._users: dict[Row, str] = {}
        """Users of the applications that have not ended, by partition and id."""
        self._present: dict[str, GanttBar] = {}
        """Bars that have not ended, by uuid of the allocation."""
        self._bars: list[GanttBar] = []

    def node_changed(self, event: NodeEvent) -> None:
        """Note a node that came or left."""
        self._reach(event.at)
        row = partition_name(event.node.partition), event.node.name
        if event.change is NodeEventKind.ADD:
            self._nodes[row] = None
            if self._is_open and self._is_before_stop(event.at):
                self._select(row)
        elif event.change is NodeEventKind.REMOVE:
            self._nodes.pop(row, None)

    def _reach(self, moment: int) -> None:
        """Select among the registered nodes when the window begins."""
        if not self._is_open and moment >= self._request.start:
            self._is_open = True
            for row in self._nodes:
                self._select(row)

    def _select(self, row: Row) -> None:
        if row in self._rows or not self._request.selects(row[1]):
            return
        if len(self._rows) < MOST_ROWS:
            self._rows[row] = None
        else:
            self._left_out.add(row)  # a node may leave and come again, and counts once

    def submitted(self, moment: int, record: Submitted) -> None:
        """Note the user of an application."""
        self._users[partition_name(record.plan.partition), record.plan.id] = record.plan.user

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """Forget the user of an application."""
        self._users.pop((partition_name(record.plan.partition), record.plan.id), None)

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Begin a bar."""
        self._reach(moment)
        if not self._is_before_stop(moment):
            return
        partition = partition_name(allocation.partition_name)
        self._present[allocation.uuid] = GanttBar(
            row=(partition, allocation.node_id),
            kind=PLACEHOLDER if allocation.placeholder else TASK,
            start=moment,
            end=None,
            application=allocation.application_id,
            queue=allocation.queue_name,
            user=self._users.get((partition, allocation.application_id), ""),
            task=allocation.task_group_name or allocation.allocation_key,
            amounts=allocation.resource_per_alloc,
        )

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """End a bar."""
        self._reach(moment)
        bar = self._present.pop(allocation.uuid, None)
        if bar is not None:
            self._add(attrs.evolve(bar, end=moment, ended=reason))

    def _add(self, bar: GanttBar) -> None:
        if bar.row not in self._rows or not self._is_shown(bar):
            return
        if len(self._bars) < MOST_BARS:
            self._bars.append(bar)
        else:
            self._more_bars += 1

    def _close(self, last: int) -> tuple[list[Row], list[GanttBar]]:
        self._reach(last)
        for bar in self._present.values():
            self._add(bar)
        self._more_rows = len(self._left_out)
        return list(self._rows), self._bars


@attrs.define(eq=False)
class _Course:
    """Times of an application: its tasks run, or all of them wait."""

    number: int
    """Place in the order of submission."""
    since: int
    """Begin of the current bar (ns)."""
    tasks: int = 0
    amounts: Tally = attrs.Factory(dict)
    most: int = 0
    largest: Tally = attrs.Factory(dict)
    paused: int | None = None
    """Time at which the last task left; None if tasks run, or none has run yet."""
    reason: str = ""
    """Reason for which the last task left."""
    outcome: str = ""
    bars: list[GanttBar] = attrs.Factory(list)


class ApplicationBars(GanttRecorder):
    """Recorder of a chart of applications: bars while tasks run, and while none does."""

    ORDER = "those that waited longest in this time"

    def __init__(self, request: GanttRequest) -> None:
        super().__init__(request)
        self._courses: dict[Submitted, _Course] = {}
        self._shown: list[tuple[int, int, int, Row, list[GanttBar]]] = []
        """Heap of the applications that waited longest: times waited and run (ns), negative number, row."""
        self._submitted = 0
        self._last = INT64_MAX
        """End of the run (ns), known at the end."""

    def submitted(self, moment: int, record: Submitted) -> None:
        """Begin a wait."""
        self._submitted += 1
        self._courses[record] = _Course(self._submitted, moment)

    def started(self, moment: int, task: Running) -> None:
        """Begin a bar, or add a task to it."""
        record, course = task.owner, self._courses[task.owner]
        if course.paused is not None and (course.paused < moment or course.reason != "ended"):
            self._ran(record, course, course.paused, course.reason)
            course.since, course.most, course.largest = course.paused, 0, {}
        if not course.most:
            self._waited(record, course, course.since, moment, "started")
            course.since = moment
        course.paused = None
        course.tasks += 1
        grow(course.amounts, task.allocation.resource_per_alloc, 1)
        course.most = max(course.most, course.tasks)
        for name, amount in course.amounts.items():
            course.largest[name] = max(course.largest.get(name, 0), amount)

    def left(self, moment: int, task: Running, reason: str) -> None:
        """Remove a task from a bar."""
        course = self._courses[task.owner]
        course.tasks -= 1
        grow(course.amounts, task.allocation.resource_per_alloc, -1)
        if not course.tasks:
            course.paused, course.reason = moment, reason
            if course.outcome:
                self._end(moment, task.owner, course.outcome)

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """End the last bar; that of a failed application ends with its last task."""
        course = self._courses[record]
        course.outcome = outcome
        if not course.tasks:
            self._end(moment, record, outcome)

    def _end(self, moment: int, record: Submitted, outcome: str) -> None:
        self._finish(record, self._courses.pop(record), moment, outcome)

    def _finish(self, record: Submitted, course: _Course, end: int | None, outcome: str) -> None:
        """Add the last bars of an application; `end` is None at the end of the run."""
        if not course.most:
            self._waited(record, course, course.since, end, outcome)
        elif course.paused is None or course.paused == end:
            self._ran(record, course, end, outcome)
        else:
            self._ran(record, course, course.paused, course.reason)
            self._waited(record, course, course.paused, end, outcome)
        if course.bars and self._request.selects(record.plan.id):
            waited, ran = (self._length(course.bars, kind) for kind in (WAITING, RUNNING))
            heapq.heappush(self._shown, (waited, ran, -course.number, _row(record), course.bars))
        if len(self._shown) > MOST_ROWS:
            heapq.heappop(self._shown)
            self._more_rows += 1

    def _length(self, bars: list[GanttBar], kind: str) -> int:
        """Return the time of the bars of one kind in the window."""
        start, stop = self._request.start, self._request.stop
        stop = self._last if stop is None else min(stop, self._last)
        return sum(
            (stop if bar.end is None else min(bar.end, stop)) - max(bar.start, start)
            for bar in bars
            if bar.kind == kind
        )

    def _ran(self, record: Submitted, course: _Course, end: int | None, ended: str) -> None:
        bar = _bar(record, RUNNING, course.since, end, course.most, {**course.largest}, ended)
        if self._is_shown(bar):
            course.bars.append(bar)

    def _waited(self, record: Submitted, course: _Course, start: int, end: int | None, ended: str) -> None:
        bar = _bar(record, WAITING, start, end, record.plan.size, {}, ended)
        if self._is_shown(bar):
            course.bars.append(bar)

    def _close(self, last: int) -> tuple[list[Row], list[GanttBar]]:
        self._last = last
        for record, course in self._courses.items():
            self._finish(record, course, None, "")
        shown = sorted(self._shown, key=lambda one: -one[2])
        bars = [bar for *_, own in shown for bar in own]
        bars.sort(key=lambda bar: last if bar.end is None else bar.end)
        self._more_bars = max(len(bars) - MOST_BARS, 0)
        return [row for *_, row, _ in shown], bars[:MOST_BARS]


def _row(record: Submitted) -> Row:
    return partition_name(record.plan.partition), record.plan.id


def _bar(
    record: Submitted, kind: str, start: int, end: int | None, tasks: int, amounts: Tally, ended: str
) -> GanttBar:
    plan, queue = record.plan, record.queue or record.plan.queue
    return GanttBar(_row(record), kind, start, end, plan.id, queue, plan.user, "", tasks, amounts, ended)
