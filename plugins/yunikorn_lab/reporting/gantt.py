"""Gantt charts: bars of nodes or applications in a window of a run, and gantt.csv.

The charts are collected while the simulation runs. Memory grows with what runs at one time, with the rows
and with the bars of the window, but not with the workload.

Recorders of Gantt charts: tasks and placeholders on nodes, and times of applications.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from typing import IO

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.errors import UsageError, printable
from yunikorn.interface.messages import Allocation
from yunikorn.resources import INT64_MAX, Tally, grow
from yunikorn.text import suggest
from yunikorn_lab.reporting.csv_files import Cell, Columns, CsvFile
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import Running, Submitted, partition_name
from yunikorn_lab.simulation.statistics import seconds
from yunikorn_lab.simulation.workload import NodeEvent, NodeEventKind, Workload

NODES, APPLICATIONS = "nodes", "applications"
KINDS = (NODES, APPLICATIONS)
"""Objects that rows of a chart stand for."""
MOST_ROWS = 60
"""Maximum number of rows: more of them cannot be read on one page."""
MOST_BARS = 20_000
MOST_COMPARED = 5_000
"""Maximum number of names that a misspelled one is compared with."""

TASK, PLACEHOLDER, RUNNING, WAITING = "task", "placeholder", "running", "waiting"
REGULAR = ("", "ended", "finished", "started", "replaced")
"""Ends of bars that need no mark."""

Row = tuple[str, str]
"""Partition, and name of the node or application."""


@attrs.frozen
class GanttRequest:
    """Selection of a chart."""

    of: str
    """One of `KINDS`."""
    start: int = 0
    """Begin of the window (ns)."""
    stop: int | None = None
    """End of the window (ns); None for the end of the run."""
    names: tuple[str, ...] = ()
    """Names or patterns such as `gpu-*` of the rows; empty for the first rows."""

    def check(self, workload: Workload) -> None:
        """Raise `UsageError` that lists all names without a node or application in the workload."""
        unknown = set(self.names)
        for name in self._all(workload) if unknown else ():
            unknown -= {one for one in unknown if _matches(name, one)}
            if not unknown:
                return
        if unknown:
            raise UsageError("\n".join(self._problems(workload, unknown)))

    def _problems(self, workload: Workload, unknown: set[str]) -> Iterator[str]:
        for name in dict.fromkeys(self.names):
            if name in unknown:
                hint = suggest(name, islice(self._all(workload), MOST_COMPARED))
                yield printable(f"--gantt-row {name}: the workload has no such {self.of[:-1]}{hint}")

    def _all(self, workload: Workload) -> Iterator[str]:
        if self.of == NODES:
            yield from (node.name for node in workload.all_nodes())
        else:
            yield from (application.id for application in workload.applications)

    def selects(self, name: str) -> bool:
        """Return True if a row with this name is asked for."""
        return not self.names or any(_matches(name, one) for one in self.names)


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


@attrs.frozen
class GanttBar:
    """A time in which a task ran, a placeholder held room, or an application ran or waited."""

    row: Row
    kind: str
    """`task` or `placeholder` in a chart of nodes, `running` or `waiting` in one of applications."""
    start: int
    end: int | None
    """Time in nanoseconds; None if the bar had not ended at the end of the run."""
    application: str
    queue: str
    user: str
    task: str = ""
    """Name of the task group; empty in a chart of applications."""
    tasks: int = 1
    """Number of tasks; in a chart of applications the most that ran, or waited, at one time."""
    amounts: Mapping[str, int] = attrs.Factory(dict)
    """Amounts of the tasks; in a chart of applications the largest amounts at one time."""
    ended: str = ""
    """Reason of the end, or outcome of the application; empty if the bar had not ended."""


@attrs.frozen
class GanttChart:
    """A finished chart."""

    request: GanttRequest
    start: int
    stop: int
    """End of the window, or of the run if that was earlier (ns)."""
    rows: list[Row]
    bars: list[GanttBar]
    """Bars in the order of their starts."""
    notes: list[str]
    """Rows and bars that the chart does not show, and how to choose them."""
    origin: float | None = None
    """Unix time (s) of 0 of simulated time; None without dates."""

    @property
    def has_several_partitions(self) -> bool:
        """True if rows need the name of their partition."""
        return len({partition for partition, _ in self.rows}) > 1

    def label(self, row: Row) -> str:
        """Return the name of a row."""
        return f"{row[0]}: {row[1]}" if self.has_several_partitions else row[1]


class GanttRecorder(Recorder):
    """Base of the recorders of a chart."""

    ORDER = ""
    """Description of the shown rows if there are more than `MOST_ROWS`."""

    def __init__(self, request: GanttRequest) -> None:
        self._request = request
        self._more_rows = 0
        """Number of rows that are left out."""
        self._more_bars = 0

    def chart(self, stopped: float, origin: float | None = None) -> GanttChart:
        """Return the chart after the end of the run (seconds); `origin` is the Unix time of its start."""
        request, last = self._request, round(stopped * SECOND)
        rows, bars = self._close(last)
        stop = max(last if request.stop is None else min(request.stop, last), request.start)
        bars = sorted(bars, key=lambda bar: (bar.start, bar.row, bar.task))
        notes = [*self._notes(len(rows), len(bars), stopped)]
        return GanttChart(request, request.start, stop, rows, bars, notes, origin)

    def _close(self, last: int) -> tuple[list[Row], list[GanttBar]]:
        """Return rows and bars at the end of the run (ns)."""
        raise NotImplementedError

    def _is_before_stop(self, moment: int) -> bool:
        return self._request.stop is None or moment < self._request.stop

    def _is_shown(self, bar: GanttBar) -> bool:
        """Return True if the bar is in the window, and long enough or important enough to be seen."""
        if not self._is_before_stop(bar.start) or (bar.end is not None and bar.end < self._request.start):
            return False
        return bar.start != bar.end or bar.ended not in REGULAR

    def _notes(self, rows: int, bars: int, stopped: float) -> Iterable[str]:
        of = self._request.of
        if self._request.start > stopped * SECOND:
            end = spell_duration(round(stopped * SECOND))
            yield f"gantt: the run ended at {end}, before --from: nothing is shown"
        elif not rows:
            yield f"gantt: there were no {of} in this time"
        if self._more_rows:
            yield (
                f"gantt: {rows} of {rows + self._more_rows} {of} are shown, {self.ORDER}; choose with "
                "--gantt-row NAME (several times, or a pattern such as 'a*')"
            )
        if self._more_bars:
            yield (
                f"gantt: {bars} of {bars + self._more_bars} bars are shown, those that ended first; choose a "
                "shorter time with --from and --to, or fewer rows with --gantt-row"
            )


TABLE = "gantt.csv"
PICTURE = "gantt.png"

_PARTITION: Columns[GanttBar] = {"partition": lambda bar: bar.row[0]}
_NODE: Columns[GanttBar] = {"node": lambda bar: bar.row[1]}
_COLUMNS: Columns[GanttBar] = {
    "start": lambda bar: seconds(bar.start),
    "end": lambda bar: None if bar.end is None else seconds(bar.end),
    "kind": lambda bar: bar.kind,
    "application": lambda bar: bar.application,
    "task": lambda bar: bar.task,
    "queue": lambda bar: bar.queue,
    "user": lambda bar: bar.user,
    "tasks": lambda bar: bar.tasks,
    "ended": lambda bar: bar.ended,
}


def _amount(name: str, bar: GanttBar) -> Cell:
    return bar.amounts.get(name)


def write_table(file: IO[str], chart: GanttChart) -> None:
    """Write gantt.csv: a row for each bar, with whole bars also if only a part is in the window."""
    types = sorted({name for bar in chart.bars for name in bar.amounts})
    place = {**_PARTITION, **_NODE} if chart.request.of == NODES else _PARTITION
    amounts = {f"amount_{name}": partial(_amount, name) for name in types}
    table = CsvFile[GanttBar](file, {**place, **_COLUMNS, **amounts})
    for bar in chart.bars:
        table.write(bar)


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
