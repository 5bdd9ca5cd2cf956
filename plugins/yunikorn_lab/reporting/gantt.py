"""Gantt charts: bars of nodes or applications in a window of a run, and gantt.csv.

The charts are collected while the simulation runs. Memory grows with what runs at one time, with the rows
and with the bars of the window, but not with the workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from typing import IO

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.errors import UsageError, printable
from yunikorn.text import suggest
from yunikorn_lab.reporting.csv_files import Cell, Columns, CsvFile
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.statistics import seconds
from yunikorn_lab.simulation.workload import Workload

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
