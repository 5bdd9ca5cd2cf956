"""Tables of a report as rows of text, for the terminal and for the HTML page, and formats of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from yunikorn.text import number_of
from yunikorn_lab.simulation.report import Report


@attrs.frozen
class Table:
    """A table; the first columns hold texts, the others numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    min_width: int = 14
    """Minimum width of the first column on a terminal."""
    has_examples: bool = False
    """True if the last column holds texts."""
    has_queues: bool = False
    """True if the first column holds labels of queues, which get their colour on a page."""
    is_ordered: bool = False
    """True if the order of the rows is part of what they say; such a table is not sorted."""
    has_parts: bool = False
    """True if rows without any numbers are headings of the rows below them; such a table is not sorted."""
    texts: int = 1
    """Number of columns with texts, from the first one on."""
    rest: int = 0
    """Number of rows at the end that sum up rows which are left out; sorting keeps them at the end."""

    @property
    def is_sortable(self) -> bool:
        """True if there is anything to sort."""
        return not (self.has_parts or self.is_ordered) and len(self.rows) - self.rest > 1


def queue_label(partition: str, queue: str, *, several: bool) -> str:
    """Return the label of a queue in tables and plots, with its partition if there are several."""
    return f"{partition}: {queue}" if several else queue


def outcome(report: Report) -> str:
    """Return how far the simulation went, as text."""
    return {
        "complete": "to its end",
        "until": f"until {duration(report.times.stopped)}",
        "interrupted": f"interrupted at {duration(report.times.stopped)}",
    }[report.outcome]


def totals(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the totals as pairs of a name and a text."""
    counts = report.applications
    later = f", {counts.not_submitted} not submitted" if counts.not_submitted else ""
    if report.dependencies is not None and report.dependencies.waiting:
        later += f" ({report.dependencies.waiting} wait for a predecessor)"
    failed = f", {counts.failed} failed" if counts.failed else ""
    yield (
        "applications",
        f"{counts.submitted} submitted: {counts.finished} finished{failed}, {counts.rejected} rejected, "
        f"{counts.running} running, {counts.waiting} waiting{later}",
    )
    yield "tasks", _tasks(report)
    yield from _lost_work(report)
    if report.dependencies is not None:
        yield "dependencies", f"{number_of(report.dependencies.dependents, 'application')} with a predecessor"
    if report.startup:
        starts = report.startup
        yield (
            "start-up",
            f"{number_of(starts.count, 'start')}: mean {duration(starts.mean)}, "
            f"longest {duration(starts.max)}",
        )
    if report.tasks.too_large:
        fits = "fits" if report.tasks.too_large == 1 else "fit"
        yield "too large", f"{number_of(report.tasks.too_large, 'task')} {fits} on no node"
    if counts.too_large:
        yield "larger than the cluster", number_of(counts.too_large, "application")
    if report.input:
        yield "input", ", ".join(f"{count} {what}" for what, count in report.input.items())
    yield "makespan", duration(report.times.makespan)
    for partition, text in report.offered_load.texts:
        yield f"offered load of {partition}", text
    for partition, shares in report.utilisation.items():
        used = ", ".join(f"{name} {whole_percent(share)}" for name, share in shares.items())
        yield f"use of {partition}", used or "-"
    if report.easy_wait is not None:
        easy = report.easy_wait
        yield (
            "waits under EASY",
            f"mean {duration(easy.mean)}, 95 % {duration(easy.p95)}, longest {duration(easy.max)}, if all "
            "cores were one pool",
        )
    yield (
        "decisions",
        f"{report.decisions} ({number_of(report.allocations, 'allocation')}), "
        f"{number_of(report.releases, 'release')}",
    )


def _tasks(report: Report) -> str:
    tasks = report.tasks
    lost = tasks.refused + tasks.dropped
    refused = f", {lost} refused or dropped" if lost else ""
    failed = f", {tasks.failed} failed" if tasks.failed else ""
    cut_off = f" ({tasks.timed_out} timed out)" if tasks.timed_out else ""
    restarted = f"; {tasks.restarted} restarts" if tasks.restarted else ""
    return (
        f"{tasks.asked} asked for: {tasks.ended} ended{cut_off}{failed}, {tasks.running} running, "
        f"{tasks.waiting} waiting{refused}{restarted}"
    )


def _lost_work(report: Report) -> Iterator[tuple[str, str]]:
    places = report.preempted_placeholders
    if report.preemptions or places:
        besides = f", {number_of(places, 'placeholder')}" if places else ""
        yield "preempted", f"{number_of(report.preemptions, 'task')}{besides}"
    if report.lost_work:
        parts = [
            f"{duration(loss.seconds)} of {number_of(loss.tasks, 'task')} ({loss.reason})"
            for loss in report.lost_work
        ]
        yield "lost work", ", ".join(parts)
    gangs = report.gangs
    if gangs is not None:
        given_up = f", {gangs.given_up} given up" if gangs.given_up else ""
        fates = f"{gangs.whole} fully allocated{given_up}, {gangs.waiting} waiting"
        yield "gangs", f"{gangs.submitted} submitted: {fates}"


Format = Callable[[float | None], str]
NONE = "-"


class Number(str):
    """Text of a number in a table, with the number by which a page sorts it; None sorts last."""

    value: float | None

    def __new__(cls, format: Format, value: float | None) -> Number:
        """Format a number."""
        made = super().__new__(cls, format(value))
        made.value = value
        return made


def duration(seconds: float | None) -> str:
    """Format seconds as `2d 3h 4m`, `3h 4m`, `4m 5s` or `5.2s`, depending on the magnitude."""
    if seconds is None:
        return NONE
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds % 1 else f"{seconds:.0f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60}s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60}h {minutes % 60}m"
    return f"{minutes // 1440}d {minutes // 60 % 24}h {minutes % 60}m"


def whole_percent(share: float | None) -> str:
    """Return a percentage such as `46%`."""
    return NONE if share is None else f"{share:.0%}"


def percent(share: float | None) -> str:
    """Return a percentage such as `12 %`, with a decimal for values below ten."""
    if share is None:
        return NONE
    value = share * 100
    return f"{value:.1f} %" if 0 < abs(value) < 9.95 else f"{value:.0f} %"


def ratio(number: float | None) -> str:
    """Return a number such as `1.53`, `27.5` or `1,234`."""
    if number is None:
        return NONE
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def index(number: float | None) -> str:
    """Return an index from 0 to 1 with two decimals."""
    return NONE if number is None else f"{number:.2f}"


def count(number: float | None) -> str:
    """Return a count of one run as it is, and a mean of counts such as `1,234` or `1,234.5`."""
    if number is None or isinstance(number, int):
        return NONE if number is None else str(number)
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"
