"""Figures of a report that an assertion can name, each with its unit and the way it is read.

A figure is read for a subject: the whole run, or a queue with all leaf queues below it. Means, maxima, counts
and shares of several leaf queues are combined; percentiles of several leaf queues cannot be combined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum

import attrs

from yunikorn.errors import UsageError
from yunikorn.text import suggest
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.group_counts import GroupReport
from yunikorn_lab.simulation.report import QueueReport
from yunikorn_lab.simulation.statistics import Summary


class FigureUnit(Enum):
    """Unit of a figure, with the notation of its values."""

    TIME = "a time such as 60s or 1h30m"
    SHARE = "a share such as 80% or 0.8"
    NUMBER = "a number such as 0 or 2.5"


@attrs.frozen
class Subject:
    """Part of a report that a figure is read for."""

    result: FullReport
    name: str
    """Text for messages: `the run`, or the path of the queue."""
    partition: str
    """Name of the partition; empty for the only partition, or for all of them."""
    is_queue: bool
    """False for the whole run."""
    groups: Sequence[GroupReport]
    """Leaf queues with their applications."""
    queues: Sequence[QueueReport]
    """The same leaf queues with their tasks, without those in which no task started."""

    @property
    def applications(self) -> int:
        """Number of applications that were accepted."""
        if self.is_queue:
            return sum(group.applications for group in self.groups)
        counts = self.result.report.applications
        return counts.submitted - counts.rejected

    @property
    def never_started(self) -> int:
        """Number of accepted applications of which no task has ever started."""
        wait = self.result.figures.wait
        started = sum(group.wait.count for group in self.groups if group.wait)
        return self.applications - (started if self.is_queue else wait.count if wait else 0)

    def shares(self, what: str = "") -> dict[str, float]:
        """Return the use of each resource type; raises `UsageError` if a partition must be named."""
        if self.is_queue:
            names = {name for queue in self.queues for name in queue.utilisation}
            return {
                name: math.fsum(queue.utilisation.get(name, 0) for queue in self.queues) for name in names
            }
        return self.of_partition(self.result.report.utilisation, what)

    def of_partition(self, values: dict[str, dict[str, float]], what: str) -> dict[str, float]:
        """Return the values of the subject's partition; raises `UsageError` if there are several."""
        if self.partition or len(values) == 1:
            return values.get(self.partition or next(iter(values)), {})
        names = ", ".join(f"{name}:root.{what}" for name in values)
        raise UsageError(f"{what} exists for each partition; name one: {names or 'there is none'}")


Read = Callable[[Subject], float | None]


@attrs.frozen
class AssertedFigure:
    """A figure with its unit; `read` returns None if the subject has no such value."""

    unit: FigureUnit
    read: Read
    of_queues: bool = True
    """False for a figure that a queue does not have."""
    of_partitions: bool = False
    """True for a figure that is measured for each partition as a whole."""
    is_wait: bool = False
    """True for a wait, which applications that never started do not have yet."""


# -- distributions ------------------------------------------------------------------------------------------

STATISTICS = {
    "mean": "mean",
    "p50": "median",
    "median": "median",
    "p95": "p95",
    "max": "max",
    "count": "count",
}
NEVER = math.inf


def _summaries(what: str, subject: Subject) -> list[Summary]:
    figures, report = subject.result.figures, subject.result.report
    found: list[Summary | None]
    if what == "task_wait":
        found = [queue.task_wait for queue in subject.queues] if subject.is_queue else [report.task_wait]
    elif subject.is_queue:
        found = [getattr(group, what) for group in subject.groups]
    else:
        found = [getattr(figures, what)]
    return [summary for summary in found if summary is not None]


def _statistic(what: str, statistic: str) -> Read:
    def read(subject: Subject) -> float | None:
        found = _summaries(what, subject)
        count = sum(summary.count for summary in found)
        if statistic == "count":
            return count
        if not found:
            return None
        if len(found) == 1:
            value: float = getattr(found[0], statistic)
            return value
        if statistic == "max":
            return max(summary.max for summary in found)
        if statistic == "mean":
            return math.fsum(summary.mean * summary.count for summary in found) / count
        names = ", ".join(sorted(group.name for group in subject.groups))
        raise UsageError(
            f"{what}.p50 and {what}.p95 of {subject.name} are not known: the report has the percentiles of "
            f"its leaf queues ({names}); use mean or max, or name a leaf queue"
        )

    return read


def _distributions() -> dict[str, AssertedFigure]:
    found = {}
    for what in ("wait", "whole_wait", "task_wait", "slowdown"):
        for name, statistic in STATISTICS.items():
            unit = FigureUnit.NUMBER if what == "slowdown" or statistic == "count" else FigureUnit.TIME
            is_wait = unit is FigureUnit.TIME and what != "task_wait"
            found[f"{what}.{name}"] = AssertedFigure(unit, _statistic(what, statistic), is_wait=is_wait)
    return found


# -- counts and times ---------------------------------------------------------------------------------------


def _preempted(subject: Subject) -> int:
    if subject.is_queue:
        return sum(queue.preempted for queue in subject.queues)
    return subject.result.report.preemptions


def _ended(subject: Subject) -> int:
    if subject.is_queue:
        return sum(queue.ended for queue in subject.queues)
    return subject.result.report.tasks.ended


def _finished(subject: Subject) -> int:
    if subject.is_queue:
        return sum(group.finished for group in subject.groups)
    return subject.result.report.applications.finished


def _unplaced(subject: Subject) -> int:
    tasks = subject.result.report.tasks
    return tasks.waiting + tasks.refused + tasks.dropped


def _counts() -> dict[str, AssertedFigure]:
    def of_run(read: Read, unit: FigureUnit = FigureUnit.NUMBER) -> AssertedFigure:
        return AssertedFigure(unit, read, of_queues=False)

    return {
        "applications": AssertedFigure(FigureUnit.NUMBER, lambda subject: subject.applications),
        "finished": AssertedFigure(FigureUnit.NUMBER, _finished),
        "never_started": AssertedFigure(FigureUnit.NUMBER, lambda subject: subject.never_started),
        "preempted": AssertedFigure(FigureUnit.NUMBER, _preempted),
        "tasks_ended": AssertedFigure(FigureUnit.NUMBER, _ended),
        "rejected": of_run(lambda subject: subject.result.report.applications.rejected),
        "failed": of_run(lambda subject: subject.result.report.applications.failed),
        "running": of_run(lambda subject: subject.result.report.applications.running),
        "waiting": of_run(lambda subject: subject.result.report.applications.waiting),
        "tasks_waiting": of_run(lambda subject: subject.result.report.tasks.waiting),
        "tasks_running": of_run(lambda subject: subject.result.report.tasks.running),
        "tasks_refused": of_run(lambda subject: subject.result.report.tasks.refused),
        "tasks_failed": of_run(lambda subject: subject.result.report.tasks.failed),
        "tasks_restarted": of_run(lambda subject: subject.result.report.tasks.restarted),
        "unplaced": of_run(_unplaced),
        "makespan": of_run(lambda subject: subject.result.report.times.makespan, FigureUnit.TIME),
        "lost_work": of_run(
            lambda subject: math.fsum(lost.seconds for lost in subject.result.report.lost_work),
            FigureUnit.TIME,
        ),
    }


# -- shares -------------------------------------------------------------------------------------------------


def _use(subject: Subject) -> float | None:
    return max(subject.shares("use").values(), default=None if not subject.is_queue else 0.0)


def _of_type(head: str, name: str) -> Read:
    def read(subject: Subject) -> float | None:
        if head == "use":
            found: dict[str, float | None] = {**subject.shares(f"use.{name}")}
        elif head == "guarantee":
            found = _guarantees(subject)
        else:
            by_partition = {
                partition: {kind: each.of_capacity for kind, each in kinds.items()}
                for partition, kinds in subject.result.figures.fragmentation.items()
            }
            found = {**subject.of_partition(by_partition, f"unusable.{name}")}
        known = {kind for kinds in subject.result.report.utilisation.values() for kind in kinds}
        if name not in found and name not in known:
            raise UsageError(
                f"unknown resource type '{name}' in {head}.{name}{suggest(name, known)}; "
                f"known: {', '.join(sorted(known)) or 'none'}"
            )
        return found.get(name, 0.0 if head == "use" and subject.is_queue else None)

    return read


def _guarantees(subject: Subject) -> dict[str, float | None]:
    if len(subject.groups) > 1:
        names = ", ".join(sorted(group.name for group in subject.groups))
        raise UsageError(f"guarantees are measured for leaf queues; name one: {names}")
    return {kind: found.kept for group in subject.groups for kind, found in group.guarantees.items()}


def _targets_met(subject: Subject) -> float | None:
    """Return the part of the decided applications that met the wait target of `--slo`; None without one."""
    found = {target.queue: target.share_met for target in subject.result.figures.slo}
    return found.get(subject.name if subject.is_queue else "root")


def _fairness() -> dict[str, AssertedFigure]:
    def index(name: str) -> Read:
        return lambda subject: getattr(subject.result.figures.fairness, name)

    names = ("slowdown_of_queues", "slowdown_of_users", "use_of_queues", "use_of_users")
    return {
        f"fairness.{name}": AssertedFigure(FigureUnit.NUMBER, index(name), of_queues=False) for name in names
    }


FIGURES = {
    **_distributions(),
    **_counts(),
    "use": AssertedFigure(FigureUnit.SHARE, _use, of_partitions=True),
    "slo": AssertedFigure(FigureUnit.SHARE, _targets_met),
    **_fairness(),
}

BY_TYPE = {"use": True, "guarantee": True, "unusable": False}
"""Figures with a resource type after their name, such as `use.vcore`; True for those of queues."""


def find_figure(name: str) -> AssertedFigure | None:
    """Return the figure with this name, or None."""
    head, _, kind = name.partition(".")
    if head in BY_TYPE and kind:
        read, of_queues = _of_type(head, kind), BY_TYPE[head]
        return AssertedFigure(FigureUnit.SHARE, read, of_queues, of_partitions=head != "guarantee")
    return FIGURES.get(name)


def figure_names() -> list[str]:
    """Return the names of all figures; `TYPE` stands for a resource type."""
    return [*FIGURES, *(f"{head}.TYPE" for head in BY_TYPE)]
