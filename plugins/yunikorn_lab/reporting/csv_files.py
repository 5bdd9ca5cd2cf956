"""CSV files of a run: a header line and rows, with times in seconds and amounts in each type's base unit.

Amounts are as in decisions.jsonl: vcore in thousandths, memory in bytes. An empty cell stands for a missing
value.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import IO, Any, Generic, NamedTuple, TypeVar

import attrs

from yunikorn_lab.reporting.idle_capacity import CAUSES
from yunikorn_lab.reporting.observations import ApplicationRow
from yunikorn_lab.reporting.run_history import (
    PartitionHistory,
    QueueHistory,
    QuotaStep,
    RunHistory,
    UserHistory,
)
from yunikorn_lab.reporting.topology_rooms import slice_loss
from yunikorn_lab.simulation.out_folder import OutFolder
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import Running, partition_name
from yunikorn_lab.simulation.statistics import seconds

APPLICATIONS = "applications.csv"
TASKS = "tasks.csv"
UTILISATION = "utilisation.csv"
QUEUES = "queues.csv"
IDLE = "idle.csv"
USERS = "users.csv"
TOPOLOGY = "topology.csv"

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

    def mean(self, amounts: Mapping[str, list[float]]) -> float:
        """Return the mean of the resource type."""
        return amounts[self.resource][self.index] if self.resource in amounts else 0.0


def _write(
    file: IO[str],
    columns: Columns[_IntervalRow[H]],
    history: RunHistory,
    rows: Sequence[tuple[H, Iterable[str]]],
) -> None:
    """Write a row for each interval, and in it for each resource type of each partition, queue or user."""
    table = CsvFile(file, columns)
    for index, (start, end) in enumerate(pairwise(history.edges)):
        for of, resources in rows:
            for resource in resources:
                table.write(_IntervalRow(start, end, index, of, resource))


def _share(part: float, whole: float | None) -> float | None:
    return part / whole if whole else None


_INTERVAL: Columns[_IntervalRow[Any]] = {"start": lambda row: row.start, "end": lambda row: row.end}
_TASK_COUNTS: Columns[_IntervalRow[Any]] = {
    "waiting_tasks": lambda row: row.of.waiting[row.index],
    "running_tasks": lambda row: row.of.running[row.index],
}
_UTILISATION: Columns[_IntervalRow[PartitionHistory]] = {
    **_INTERVAL,
    "partition": lambda row: row.of.partition,
    "resource": lambda row: row.resource,
    "capacity": lambda row: row.mean(row.of.capacity),
    "used": lambda row: row.mean(row.of.used),
    "share": lambda row: _share(row.mean(row.of.used), row.mean(row.of.capacity)),
    "unusable": lambda row: row.mean(row.of.unusable),
    **_TASK_COUNTS,
}


def write_utilisation(file: IO[str], history: RunHistory) -> None:
    """Write utilisation.csv: means over each interval, by partition and resource type."""
    _write(file, _UTILISATION, history, [(each, each.capacity) for each in history.partitions])


def _of_cause(cause: str, row: _IntervalRow[PartitionHistory]) -> float:
    return row.mean(row.of.idle.get(cause, {}))


_IDLE: Columns[_IntervalRow[PartitionHistory]] = {
    **_INTERVAL,
    "partition": lambda row: row.of.partition,
    "resource": lambda row: row.resource,
    "idle": lambda row: sum(map(row.mean, row.of.idle.values())),
    **{cause: partial(_of_cause, cause) for cause in CAUSES},
}


def write_idle(file: IO[str], history: RunHistory) -> None:
    """Write idle.csv: mean capacity that stood idle while work waited, by partition, type and cause."""
    _write(file, _IDLE, history, [(each, each.capacity) for each in history.partitions])


def _quota(row: _IntervalRow[QueueHistory]) -> QuotaStep:
    """Return the quota at the end of the interval."""
    steps = row.of.quotas
    return next((step for step in reversed(steps) if step.time < row.end), steps[0])


_QUEUES: Columns[_IntervalRow[QueueHistory]] = {
    **_INTERVAL,
    "partition": lambda row: row.of.partition,
    "queue": lambda row: row.of.queue,
    "resource": lambda row: row.resource,
    "used": lambda row: row.mean(row.of.used),
    "wanted": lambda row: row.mean(row.of.wanted),
    "guaranteed": lambda row: _quota(row).guaranteed.get(row.resource),
    "max": lambda row: _quota(row).max.get(row.resource),
    "of_guarantee": lambda row: _share(row.mean(row.of.used), _quota(row).guaranteed.get(row.resource)),
    **_TASK_COUNTS,
}


def write_queues(file: IO[str], history: RunHistory) -> None:
    """Write queues.csv: means over each interval, by queue and resource type.

    Guarantee and maximum are those at the end of the interval. Values of a parent queue include its children.
    """
    _write(file, _QUEUES, history, [(each, _types(each)) for each in history.queues])


def _types(queue: QueueHistory) -> list[str]:
    limited = {name for step in queue.quotas for name in (*step.guaranteed, *step.max)}
    return sorted({*queue.used, *queue.wanted, *limited})


OTHERS = "others"

_USERS: Columns[_IntervalRow[UserHistory]] = {
    **_INTERVAL,
    "user": lambda row: row.of.user or OTHERS,
    "users": lambda row: row.of.users,
    "since": lambda row: row.of.since,
    "resource": lambda row: row.resource,
    "used": lambda row: row.mean(row.of.used),
    "wanted": lambda row: row.mean(row.of.wanted),
    **_TASK_COUNTS,
}


def write_users(file: IO[str], history: RunHistory) -> None:
    """Write users.csv: means over each interval, by user and resource type; the last user is all others."""
    names = sorted({name for each in history.users for name in (*each.used, *each.wanted)})
    _write(file, _USERS, history, [(each, names) for each in history.users])


_TOPOLOGY = ("start", "end", "partition", "level", "size", "fitting", "loss")


def write_topology(file: IO[str], history: RunHistory) -> None:
    """Write topology.csv: mean numbers of gangs that fit in each interval, by level and size of the gangs."""
    table = CsvFile[Sequence[Cell]](file, {name: itemgetter(at) for at, name in enumerate(_TOPOLOGY)})
    for index, (start, end) in enumerate(pairwise(history.edges)):
        for of in history.topology:
            fitting = of.fitting[index]
            loss = slice_loss(fitting, of.size, of.room[index])
            table.write((start, end, of.partition, of.level, of.size, fitting, loss))
