"""Figures that a comparison compares, with their names and formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from yunikorn.reporting.format import index, percent, ratio, spell_time
from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.group_counts import GroupReport
from yunikorn.reporting.sample import Summary

Spell = Callable[[float | None], str]


@attrs.frozen
class Measure:
    """A figure of one run; `value` is None if the run has no such figure."""

    section: str
    """Heading of the figure."""
    name: str
    value: float | None
    spell: Spell


def count(number: float | None) -> str:
    """Format a whole number, or a mean of whole numbers."""
    if number is None:
        return "-"
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"


def measures(result: FullReport) -> Iterator[Measure]:
    """Yield all compared figures of a run, in the order of the table."""
    yield from _totals(result)
    yield from _waits(result)
    for queue in result.figures.queues:
        yield from _queue(queue, several=len(result.figures.fragmentation) > 1)


def _totals(result: FullReport) -> Iterator[Measure]:
    report, section = result.report, "totals"
    apps, tasks = report.applications, report.tasks
    yield Measure(section, "applications finished", apps.finished, count)
    for name, number in (("failed", apps.failed), ("rejected", apps.rejected)):
        yield Measure(section, f"applications {name}", number, count)
    yield Measure(section, "applications unfinished", apps.running + apps.waiting, count)
    yield Measure(section, "tasks ended", tasks.ended, count)
    yield Measure(section, "tasks running at the end", tasks.running, count)
    yield Measure(section, "tasks waiting at the end", tasks.waiting, count)
    yield Measure(section, "makespan", report.times.makespan, spell_time)
    several = len(report.utilisation) > 1
    for partition, shares in report.utilisation.items():
        for name, share in shares.items():
            what = f"{partition}: {name}" if several else name
            yield Measure(section, f"use of {what}", share, percent)
    for partition, types in result.figures.fragmentation.items():
        for name, found in types.items():
            what = f"{partition}: {name}" if several else name
            yield Measure(section, f"free but unusable: {what}", found.of_capacity, percent)
            yield Measure(section, f"the same at the end: {what}", found.at_end_of_capacity, percent)
    yield Measure(section, "tasks preempted", report.preemptions, count)
    yield Measure(section, "lost work", sum(loss.seconds for loss in report.lost_work), spell_time)


def _waits(result: FullReport) -> Iterator[Measure]:
    figures, section = result.figures, "applications"
    yield from _times(section, "wait, first task", figures.wait)
    yield from _times(section, "wait, all tasks", figures.whole_wait)
    yield from _ratios(section, figures.slowdown)
    task_wait = result.report.task_wait
    yield Measure(section, "wait of tasks, mean", task_wait.mean if task_wait else None, spell_time)
    fairness, section = figures.fairness, "fairness (Jain's index)"
    yield Measure(section, "of slowdown, over queues", fairness.slowdown_of_queues, index)
    yield Measure(section, "of slowdown, over users", fairness.slowdown_of_users, index)
    yield Measure(section, "of use, over queues", fairness.use_of_queues, index)
    yield Measure(section, "of use, over users", fairness.use_of_users, index)


def _times(section: str, what: str, found: Summary | None) -> Iterator[Measure]:
    yield Measure(section, f"{what}, mean", found.mean if found else None, spell_time)
    yield Measure(section, f"{what}, median", found.median if found else None, spell_time)
    yield Measure(section, f"{what}, 95 %", found.p95 if found else None, spell_time)
    yield Measure(section, f"{what}, longest", found.max if found else None, spell_time)


def _ratios(section: str, found: Summary | None) -> Iterator[Measure]:
    yield Measure(section, "bounded slowdown, mean", found.mean if found else None, ratio)
    yield Measure(section, "bounded slowdown, median", found.median if found else None, ratio)
    yield Measure(section, "bounded slowdown, 95 %", found.p95 if found else None, ratio)


def _queue(queue: GroupReport, *, several: bool) -> Iterator[Measure]:
    section = f"{queue.partition}: {queue.name}" if several else queue.name
    wait, whole, slowdown = queue.wait, queue.whole_wait, queue.slowdown
    yield Measure(section, "finished", queue.finished, count)
    yield Measure(section, "wait, first task, mean", wait.mean if wait else None, spell_time)
    yield Measure(section, "wait, all tasks, mean", whole.mean if whole else None, spell_time)
    yield Measure(section, "wait, all tasks, longest", whole.max if whole else None, spell_time)
    yield Measure(section, "bounded slowdown, mean", slowdown.mean if slowdown else None, ratio)
    yield Measure(section, "use", queue.use, percent)
    for name, kept in queue.guarantees.items():
        yield Measure(section, f"guarantee of {name} met", kept.kept, percent)
