"""CSV files of a run: a header line and rows, with times in seconds and amounts in each type's base unit.

Amounts are as in decisions.jsonl: vcore in thousandths, memory in bytes. An empty cell stands for a missing
value.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import IO, Generic, NamedTuple, TypeVar

import attrs

from yunikorn.reporting.history import History, PartitionHistory, QueueHistory, QuotaStep, UserHistory
from yunikorn.reporting.idle_capacity import CAUSES
from yunikorn.reporting.observations import ApplicationRow
from yunikorn.simulation.out_folder import OutFolder
from yunikorn.simulation.recorder import Recorder
from yunikorn.simulation.rm_state import Running, partition_name
from yunikorn.simulation.statistics import seconds

APPLICATIONS = "applications.csv"
TASKS = "tasks.csv"
UTILISATION = "utilisation.csv"
QUEUES = "queues.csv"
IDLE = "idle.csv"
USERS = "users.csv"

T = TypeVar("T")
Cell = str | int | float | None
Columns = Mapping[str, Callable[[T], Cell]]
"""Columns by title, with functions that return the cell of a row."""


class CsvFile(Generic[T]):
    """A CSV file with a header, and a row per value of type `T`."""

    def __init__(self, file: IO[str], columns: Columns[T]) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._writer.writerow(columns)
        self._columns = list(columns.values())

    def write(self, of: T) -> None:
        """Write a row."""
        cells = [read(of) for read in self._columns]
        self._writer.writerow([_number(cell) if isinstance(cell, float) else cell for cell in cells])


def _number(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


class ApplicationsFile(Recorder):
    """applications.csv: a row for each application, in the order of their ends."""

    def __init__(self, folder: OutFolder) -> None:
        self._folder = folder

    def begin(self) -> None:
        """Open the file."""
        columns = {field.name: attrgetter(field.name) for field in attrs.fields(ApplicationRow)}
        self._file = CsvFile[ApplicationRow](self._folder.open(APPLICATIONS), columns)

    def add(self, row: ApplicationRow) -> None:
        """Write the row of an application."""
        self._file.write(row)


class _TaskRow(NamedTuple):
    """An execution of a task; `ended` is None for a task that runs at the end of the simulation."""

    task: Running
    ended: int | None
    reason: str


_TASKS: Columns[_TaskRow] = {
    "application": lambda row: row.task.allocation.application_id,
    "task": lambda row: row.task.allocation.allocation_key,
    "allocation": lambda row: row.task.allocation.uuid,
    "partition": lambda row: partition_name(row.task.allocation.partition_name),
    "queue": lambda row: row.task.allocation.queue_name,
    "node": lambda row: row.task.allocation.node_id,
    "asked": lambda row: seconds(row.task.ask.asked),
    "started": lambda row: seconds(row.task.started),
    "ended": lambda row: None if row.ended is None else seconds(row.ended),
    "wait": lambda row: seconds(row.task.started - row.task.ask.asked),
    "startup": lambda row: seconds(row.task.startup),
    "ran": lambda row: None if row.ended is None else seconds(row.task.ran(row.ended)),
    "reason": lambda row: row.reason,
}


class TasksFile(Recorder):
    """tasks.csv: a row for each execution of a task, in the order of their ends."""

    def __init__(self, folder: OutFolder) -> None:
        self._folder = folder
        self._running: dict[Running, None] = {}

    def begin(self) -> None:
        """Open the file."""
        self._file = CsvFile(self._folder.open(TASKS), _TASKS)

    def started(self, moment: int, task: Running) -> None:
        """Remember a running task; its row is written at its end."""
        self._running[task] = None

    def left(self, moment: int, task: Running, reason: str) -> None:
        """Write the row of a task that ended."""
        del self._running[task]
        self._file.write(_TaskRow(task, moment, reason))

    def close(self) -> None:
        """Write rows without an end for tasks that still run at the end of the simulation."""
        for task in self._running:
            self._file.write(_TaskRow(task, None, ""))
        self._running.clear()


H = TypeVar("H", PartitionHistory, QueueHistory, UserHistory)


@attrs.frozen
class _IntervalRow(Generic[H]):
    """A resource type of a partition, a queue or a user in one interval."""

    start: float
    end: float
    index: int
    """Number of the interval."""
    of: H
    resource: str
    quota: QuotaStep | None = None

    def mean(self, amounts: dict[str, list[float]]) -> float:
        """Return the mean of the resource type."""
        return amounts[self.resource][self.index] if self.resource in amounts else 0.0

    def guaranteed(self) -> int | None:
        """Return the guarantee of the resource type."""
        return self.quota.guaranteed.get(self.resource) if self.quota else None


def _share(part: float, whole: float | None) -> float | None:
    return part / whole if whole else None


def _of_cause(cause: str, row: _Idle) -> float:
    return row[4].get(cause, 0.0)


_UTILISATION: Columns[_IntervalRow[PartitionHistory]] = {
    "start": lambda row: row.start,
    "end": lambda row: row.end,
    "partition": lambda row: row.of.partition,
    "resource": lambda row: row.resource,
    "capacity": lambda row: row.mean(row.of.capacity),
    "used": lambda row: row.mean(row.of.used),
    "share": lambda row: _share(row.mean(row.of.used), row.mean(row.of.capacity)),
    "unusable": lambda row: row.mean(row.of.unusable),
    "waiting_tasks": lambda row: row.of.waiting[row.index],
    "running_tasks": lambda row: row.of.running[row.index],
}


def write_utilisation(file: IO[str], history: History) -> None:
    """Write utilisation.csv: means over each interval, by partition and resource type."""
    table = CsvFile(file, _UTILISATION)
    for index, (start, end) in enumerate(pairwise(history.edges)):
        for each in history.partitions:
            for name in each.capacity:
                table.write(_IntervalRow(start, end, index, each, name))


_Idle = tuple[float, float, PartitionHistory, str, dict[str, float]]
"""Start and end of an interval, partition, resource type, and its idle amounts by cause."""

_IDLE: Columns[_Idle] = {
    "start": lambda row: row[0],
    "end": lambda row: row[1],
    "partition": lambda row: row[2].partition,
    "resource": lambda row: row[3],
    "idle": lambda row: sum(row[4].values()),
    **{cause: partial(_of_cause, cause) for cause in CAUSES},
}


def write_idle(file: IO[str], history: History) -> None:
    """Write idle.csv: mean capacity that stood idle while work waited, by partition, type and cause."""
    table = CsvFile(file, _IDLE)
    for index, (start, end) in enumerate(pairwise(history.edges)):
        for each in history.partitions:
            for name in each.capacity:
                amounts = {
                    cause: series[name][index] for cause, series in each.idle.items() if name in series
                }
                table.write((start, end, each, name, amounts))


_QUEUES: Columns[_IntervalRow[QueueHistory]] = {
    "start": lambda row: row.start,
    "end": lambda row: row.end,
    "partition": lambda row: row.of.partition,
    "queue": lambda row: row.of.queue,
    "resource": lambda row: row.resource,
    "used": lambda row: row.mean(row.of.used),
    "wanted": lambda row: row.mean(row.of.wanted),
    "guaranteed": lambda row: row.guaranteed(),
    "max": lambda row: row.quota.max.get(row.resource) if row.quota else None,
    "of_guarantee": lambda row: _share(row.mean(row.of.used), row.guaranteed()),
    "waiting_tasks": lambda row: row.of.waiting[row.index],
    "running_tasks": lambda row: row.of.running[row.index],
}


def write_queues(file: IO[str], history: History) -> None:
    """Write queues.csv: means over each interval, by queue and resource type.

    Guarantee and maximum are those at the end of the interval. Values of a parent queue include its children.
    """
    table = CsvFile(file, _QUEUES)
    quotas = [list(_quotas(queue, history.edges[1:])) for queue in history.queues]
    names = [sorted({*queue.used, *queue.wanted, *_limited(queue)}) for queue in history.queues]
    for index, (start, end) in enumerate(pairwise(history.edges)):
        for number, each in enumerate(history.queues):
            for name in names[number]:
                table.write(_IntervalRow(start, end, index, each, name, quotas[number][index]))


def _limited(queue: QueueHistory) -> set[str]:
    return {name for step in queue.quotas for name in (*step.guaranteed, *step.max)}


def _quotas(queue: QueueHistory, ends: list[float]) -> Iterator[QuotaStep]:
    """Yield the quota at the end of each interval."""
    current = 0
    for end in ends:
        while current + 1 < len(queue.quotas) and queue.quotas[current + 1].time < end:
            current += 1
        yield queue.quotas[current]


OTHERS = "others"

_USERS: Columns[_IntervalRow[UserHistory]] = {
    "start": lambda row: row.start,
    "end": lambda row: row.end,
    "user": lambda row: row.of.user or OTHERS,
    "users": lambda row: row.of.users,
    "since": lambda row: row.of.since,
    "resource": lambda row: row.resource,
    "used": lambda row: row.mean(row.of.used),
    "wanted": lambda row: row.mean(row.of.wanted),
    "waiting_tasks": lambda row: row.of.waiting[row.index],
    "running_tasks": lambda row: row.of.running[row.index],
}


def write_users(file: IO[str], history: History) -> None:
    """Write users.csv: means over each interval, by user and resource type; the last user is all others."""
    table = CsvFile(file, _USERS)
    names = sorted({name for each in history.users for name in (*each.used, *each.wanted)})
    for index, (start, end) in enumerate(pairwise(history.edges)):
        for each in history.users:
            for name in names:
                table.write(_IntervalRow(start, end, index, each, name))
