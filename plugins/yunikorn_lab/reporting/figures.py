"""Figures of a report: each has one definition, with its names, its format and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.group_counts import GroupReport
from yunikorn_lab.reporting.idle_capacity import IdleReport
from yunikorn_lab.reporting.observations import Fragmentation
from yunikorn_lab.reporting.queue_observation import Guarantee
from yunikorn_lab.reporting.tables import Format, Number, count, duration, index, percent, ratio
from yunikorn_lab.reporting.topology_rooms import GangPlaces, SliceRoom
from yunikorn_lab.simulation.report import QueueReport, Report
from yunikorn_lab.simulation.statistics import Summary

T = TypeVar("T")

# -- definitions ------------------------------------------------------------------------------------------


@attrs.frozen
class Figure(Generic[T]):
    """A figure: a column of a table, a row of a comparison, or both."""

    column: str
    """Title of the column; empty for a figure that is only compared."""
    read: Callable[[T], float | None]
    """Returns the value; None if there is none."""
    format: Format
    compared: str = ""
    """Name in a comparison, in which `{}` stands for the resource type; empty if only shown in a table."""


@attrs.frozen
class Measure:
    """A figure of one run in a comparison; `value` is None if the run has no such figure."""

    section: str
    """Heading of the figure."""
    name: str
    value: float | None
    format: Format
    is_asked_for: bool = False
    """True for a figure that is compared even if it is 0 in all runs."""


def columns(figures: Iterable[Figure[T]]) -> list[str]:
    """Return the titles of the columns."""
    return [figure.column for figure in figures if figure.column]


def cells(figures: Iterable[Figure[T]], of: T) -> list[Number]:
    """Return the texts of a row."""
    return [Number(figure.format, figure.read(of)) for figure in figures if figure.column]


def _compared(section: str, figures: Iterable[Figure[T]], of: T, kind: str = "") -> Iterator[Measure]:
    for figure in figures:
        if figure.compared:
            yield Measure(section, figure.compared.format(kind), figure.read(of), figure.format)


def mean(found: Summary | None) -> float | None:
    """Return the mean; None without a summary."""
    return found.mean if found else None


def p95(found: Summary | None) -> float | None:
    """Return the 95th percentile; None without a summary."""
    return found.p95 if found else None


def longest(found: Summary | None) -> float | None:
    """Return the maximum; None without a summary."""
    return found.max if found else None


STATISTICS = ("measured", "mean", "median", "95 %", "longest")
"""Titles of the columns of `statistics`."""

MEAN_WAIT = "wait, all tasks, mean"
"""Name of the mean wait in a comparison, of all applications and of a group."""

GROUP: Sequence[Figure[GroupReport]] = (
    Figure("apps", lambda group: group.applications, count),
    Figure("done", lambda group: group.finished, count, "finished"),
    Figure("first task", lambda group: mean(group.wait), duration, "wait, first task, mean"),
    Figure("all tasks", lambda group: mean(group.whole_wait), duration, MEAN_WAIT),
    Figure("longest", lambda group: longest(group.whole_wait), duration, "wait, all tasks, longest"),
    Figure("slowdown", lambda group: mean(group.slowdown), ratio, "bounded slowdown, mean"),
    Figure("95 %", lambda group: p95(group.slowdown), ratio),
    Figure("use", lambda group: group.use, percent, "use"),
)
"""Figures of a queue, a user or a size class in the full report."""

QUEUE_WAITS: Sequence[Figure[GroupReport]] = GROUP[:-1]
"""Figures of the waits of a queue, whose use is listed by resource type."""

QUEUE_TASKS: Sequence[Figure[QueueReport]] = (
    Figure("tasks", lambda queue: queue.tasks, count),
    Figure("ended", lambda queue: queue.ended, count),
    Figure("preempted", lambda queue: queue.preempted, count),
    Figure("wait of tasks", lambda queue: mean(queue.task_wait), duration),
)
"""Figures of the tasks of a queue."""

GUARANTEE: Sequence[Figure[Guarantee]] = (
    Figure("use of guarantee", lambda found: found.used, percent),
    Figure("guarantee met", lambda found: found.kept, percent, "guarantee of {} met"),
)

FRAGMENTATION: Sequence[Figure[Fragmentation]] = (
    Figure("of free", lambda found: found.of_free, percent),
    Figure("of capacity", lambda found: found.of_capacity, percent, "free but unusable: {}"),
    Figure("of free at the end", lambda found: found.at_end, percent),
    Figure(
        "of capacity at the end", lambda found: found.at_end_of_capacity, percent, "the same at the end: {}"
    ),
)

IDLE: Sequence[Figure[IdleReport]] = (
    Figure("in all", lambda found: found.of_capacity, percent, "idle while work waits: {}"),
)

SLICES: Sequence[Figure[SliceRoom]] = (
    Figure("gangs that fit", lambda room: room.fitting, ratio, "{} that fit"),
    Figure("at the end", lambda room: room.fitting_at_end, count),
    Figure("lost to them", lambda room: room.loss, percent, "lost to {}"),
    Figure("at the end", lambda room: room.loss_at_end, percent),
)
"""Room of the domains of a level for gangs of one size."""

GANG_PLACES: Sequence[Figure[GangPlaces]] = (
    Figure("gangs", lambda gangs: gangs.gangs, count),
    Figure("placed", lambda gangs: gangs.placed, count, "gangs of {}: placed"),
    Figure("median wait", lambda gangs: gangs.median_wait, duration, "gangs of {}: wait, median"),
    Figure("99 %", lambda gangs: gangs.p99_wait, duration, "gangs of {}: wait, 99 %"),
)
"""Gangs of similar sizes that ask for domains."""

_TOTALS: Sequence[Figure[Report]] = (
    Figure("", lambda report: report.applications.finished, count, "applications finished"),
    Figure("", lambda report: report.applications.failed, count, "applications failed"),
    Figure("", lambda report: report.applications.rejected, count, "applications rejected"),
    Figure(
        "",
        lambda report: report.applications.running + report.applications.waiting,
        count,
        "applications unfinished",
    ),
    Figure("", lambda report: report.tasks.ended, count, "tasks ended"),
    Figure("", lambda report: report.tasks.running, count, "tasks running at the end"),
    Figure("", lambda report: report.tasks.waiting, count, "tasks waiting at the end"),
    Figure("", lambda report: report.times.makespan, duration, "makespan"),
)

_LOSSES: Sequence[Figure[Report]] = (
    Figure("", lambda report: report.preemptions, count, "tasks preempted"),
    Figure("", lambda report: sum(loss.seconds for loss in report.lost_work), duration, "lost work"),
)


def statistics(found: Summary | None, format: Format) -> list[Number]:
    """Return the texts of number, mean, median, 95th percentile and maximum."""
    values = (found.mean, found.median, found.p95, found.max) if found else (None,) * 4
    return [Number(count, found.count if found else 0), *(Number(format, value) for value in values)]


# -- comparisons ------------------------------------------------------------------------------------------


def measures(result: FullReport) -> Iterator[Measure]:
    """Yield all compared figures of a run, in the order of the table."""
    yield from _totals(result)
    yield from _waits(result)
    yield from _topology(result)
    for target in result.figures.slo:
        name = f"{target.queue} within {spell_duration(round(target.target * SECOND))}"
        yield Measure("met wait targets", name, target.share_met, percent, is_asked_for=True)
    several = len(result.figures.fragmentation) > 1
    for queue in result.figures.queues:
        section = f"{queue.partition}: {queue.name}" if several else queue.name
        yield from _compared(section, GROUP, queue)
        for name, kept in queue.guarantees.items():
            yield from _compared(section, GUARANTEE, kept, name)


def _totals(result: FullReport) -> Iterator[Measure]:
    report, section = result.report, "totals"
    yield from _compared(section, _TOTALS, report)
    several = len(report.utilisation) > 1
    for partition, shares in report.utilisation.items():
        for name, share in shares.items():
            yield Measure(section, f"use of {f'{partition}: {name}' if several else name}", share, percent)
    for partition, types in result.figures.fragmentation.items():
        for name, found in types.items():
            what = f"{partition}: {name}" if several else name
            yield from _compared(section, FRAGMENTATION, found, what)
    for partition, idle in result.figures.idle.items():
        for name, stood in idle.items():
            yield from _compared(section, IDLE, stood, f"{partition}: {name}" if several else name)
    yield from _compared(section, _LOSSES, report)


def _topology(result: FullReport) -> Iterator[Measure]:
    several = len(result.report.utilisation) > 1
    for partition, found in result.figures.topology.items():
        section = f"{partition}: topology" if several else "topology"
        for room in found.slices:
            yield from _compared(section, SLICES, room, f"gangs of {room.size} in a {room.level}")
        for gangs in found.gangs:
            yield from _compared(section, GANG_PLACES, gangs, gangs.members)
            for level, share in gangs.in_one.items():
                yield Measure(section, f"gangs of {gangs.members}: in one {level}", share, percent)
                used = gangs.spread[level]
                yield Measure(section, f"gangs of {gangs.members}: {level}s used, of the fewest", used, ratio)


def _waits(result: FullReport) -> Iterator[Measure]:
    figures, section = result.figures, "applications"
    yield from _statistics(section, "wait, first task", figures.wait, duration, STATISTICS[1:])
    yield from _statistics(section, "wait, all tasks", figures.whole_wait, duration, STATISTICS[1:])
    yield from _statistics(section, "bounded slowdown", figures.slowdown, ratio, STATISTICS[1:4])
    yield from _statistics(section, "wait of tasks", result.report.task_wait, duration, STATISTICS[1:2])
    fairness, section = figures.fairness, "fairness (Jain's index)"
    yield Measure(section, "of slowdown, over queues", fairness.slowdown_of_queues, index)
    yield Measure(section, "of slowdown, over users", fairness.slowdown_of_users, index)
    yield Measure(section, "of use, over queues", fairness.use_of_queues, index)
    yield Measure(section, "of use, over users", fairness.use_of_users, index)


def _statistics(
    section: str, what: str, found: Summary | None, format: Format, names: Sequence[str]
) -> Iterator[Measure]:
    values = (found.mean, found.median, found.p95, found.max) if found else (None,) * 4
    for name, value in zip(names, values, strict=False):
        yield Measure(section, f"{what}, {name}", value, format)
