"""CSV files of a run: a header line and rows, with times in seconds and amounts in each type's base unit.

Amounts are as in decisions.jsonl: vcore in thousandths, memory in bytes. An empty cell stands for a missing
value.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from itertools import pairwise
from typing import IO

import attrs

from yunikorn.reporting.history import History, QueueHistory
from yunikorn.reporting.observations import ApplicationRow
from yunikorn.reporting.queue_observation import QuotaStep
from yunikorn.simulation.out_folder import OutFolder
from yunikorn.simulation.recorder import Recorder
from yunikorn.simulation.rm_state import Running, partition_name
from yunikorn.simulation.statistics import seconds

APPLICATIONS = "applications.csv"
TASKS = "tasks.csv"
UTILISATION = "utilisation.csv"
QUEUES = "queues.csv"

TASK_COLUMNS = (
    "application",
    "task",
    "allocation",
    "partition",
    "queue",
    "node",
    "asked",
    "started",
    "ended",
    "wait",
    "ran",
    "reason",
)
UTILISATION_COLUMNS = (
    "start",
    "end",
    "partition",
    "resource",
    "capacity",
    "used",
    "share",
    "unusable",
    "waiting_tasks",
    "running_tasks",
)
QUEUE_COLUMNS = (
    "start",
    "end",
    "partition",
    "queue",
    "resource",
    "used",
    "wanted",
    "guaranteed",
    "max",
    "of_guarantee",
    "waiting_tasks",
    "running_tasks",
)

Cell = str | int | float | None


class CsvFile:
    """A CSV file with a header."""

    def __init__(self, file: IO[str], columns: Iterable[str]) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._writer.writerow(columns)

    def write(self, *cells: Cell) -> None:
        """Write a row."""
        self._writer.writerow([_number(cell) if isinstance(cell, float) else cell for cell in cells])


def _number(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


class ApplicationsFile(Recorder):
    """applications.csv: a row for each application, in the order of their ends."""

    def __init__(self, folder: OutFolder) -> None:
        self._folder = folder

    def begin(self) -> None:
        """Open the file."""
        names = [field.name for field in attrs.fields(ApplicationRow)]
        self._file = CsvFile(self._folder.open(APPLICATIONS), names)

    def add(self, row: ApplicationRow) -> None:
        """Write the row of an application."""
        self._file.write(*attrs.astuple(row))


class TasksFile(Recorder):
    """tasks.csv: a row for each execution of a task, in the order of their ends."""

    def __init__(self, folder: OutFolder) -> None:
        self._folder = folder
        self._running: dict[Running, None] = {}

    def begin(self) -> None:
        """Open the file."""
        self._file = CsvFile(self._folder.open(TASKS), TASK_COLUMNS)

    def started(self, moment: int, task: Running) -> None:
        """Remember a running task; its row is written at its end."""
        self._running[task] = None

    def left(self, moment: int, task: Running, reason: str) -> None:
        """Write the row of a task that ended."""
        del self._running[task]
        self._add(task, moment, reason)

    def close(self) -> None:
        """Write rows without an end for tasks that still run at the end of the simulation."""
        for task in self._running:
            self._add(task, None, "")
        self._running.clear()

    def _add(self, task: Running, ended: int | None, reason: str) -> None:
        allocation = task.allocation
        self._file.write(
            allocation.application_id,
            allocation.allocation_key,
            allocation.uuid,
            partition_name(allocation.partition_name),
            allocation.queue_name,
            allocation.node_id,
            seconds(task.ask.asked),
            seconds(task.started),
            None if ended is None else seconds(ended),
            seconds(task.started - task.ask.asked),
            None if ended is None else seconds(ended - task.started),
            reason,
        )


def write_utilisation(file: IO[str], history: History) -> None:
    """Write utilisation.csv: means over each interval, by partition and resource type."""
    table = CsvFile(file, UTILISATION_COLUMNS)
    for index, (start, end) in enumerate(pairwise(history.edges)):
        for each in history.partitions:
            for name, capacity in each.capacity.items():
                had, used = capacity[index], each.used[name][index] if name in each.used else 0.0
                table.write(
                    start,
                    end,
                    each.partition,
                    name,
                    had,
                    used,
                    used / had if had else None,
                    each.unusable[name][index] if name in each.unusable else 0.0,
                    each.waiting[index],
                    each.running[index],
                )


def write_queues(file: IO[str], history: History) -> None:
    """Write queues.csv: means over each interval, by queue and resource type.

    Guarantee and maximum are those at the end of the interval. Values of a parent queue include its children.
    """
    table = CsvFile(file, QUEUE_COLUMNS)
    quotas = [_quotas(queue, history.edges[1:]) for queue in history.queues]
    names = [sorted({*queue.used, *queue.wanted, *_named(queue)}) for queue in history.queues]
    for index, (start, end) in enumerate(pairwise(history.edges)):
        for number, each in enumerate(history.queues):
            quota = quotas[number][index]
            for name in names[number]:
                used = each.used[name][index] if name in each.used else 0.0
                guaranteed = quota.guaranteed.get(name)
                table.write(
                    start,
                    end,
                    each.partition,
                    each.queue,
                    name,
                    used,
                    each.wanted[name][index] if name in each.wanted else 0.0,
                    guaranteed,
                    quota.max.get(name),
                    used / guaranteed if guaranteed else None,
                    each.waiting[index],
                    each.running[index],
                )


def _named(queue: QueueHistory) -> set[str]:
    return {name for step in queue.quotas for name in (*step.guaranteed, *step.max)}


def _quotas(queue: QueueHistory, ends: list[float]) -> list[QuotaStep]:
    """Return the quota at the end of each interval."""
    found, current = [], 0
    for end in ends:
        while current + 1 < len(queue.quotas) and queue.quotas[current + 1].time < end:
            current += 1
        found.append(queue.quotas[current])
    return found
