"""Tables of a report as rows of text, for the terminal and for the HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from yunikorn.reporting.formats import duration, whole_percent
from yunikorn.simulation.report import Report


@attrs.frozen
class Table:
    """A table; the first column holds text, the others numbers."""

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
    if report.startup:
        starts = report.startup
        yield (
            "start-up",
            f"{starts.count} starts: mean {duration(starts.mean)}, longest {duration(starts.max)}",
        )
    if report.tasks.too_large:
        yield "too large", f"{report.tasks.too_large} tasks fit on no node"
    if counts.too_large:
        yield "larger than the cluster", f"{counts.too_large} applications"
    if report.input:
        yield "input", ", ".join(f"{count} {what}" for what, count in report.input.items())
    yield "makespan", duration(report.times.makespan)
    for partition, text in report.offered_load.texts:
        yield f"offered load of {partition}", text
    for partition, shares in report.utilisation.items():
        used = ", ".join(f"{name} {whole_percent(share)}" for name, share in shares.items())
        yield f"use of {partition}", used or "-"
    yield (
        "decisions",
        f"{report.decisions} ({report.allocations} allocations), {report.releases} releases",
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
        besides = f", {places} placeholders" if places else ""
        yield "preempted", f"{report.preemptions} tasks{besides}"
    if report.lost_work:
        parts = [
            f"{duration(loss.seconds)} of {loss.tasks} tasks ({loss.reason})" for loss in report.lost_work
        ]
        yield "lost work", ", ".join(parts)
    gangs = report.gangs
    if gangs is not None:
        given_up = f", {gangs.given_up} given up" if gangs.given_up else ""
        fates = f"{gangs.whole} fully allocated{given_up}, {gangs.waiting} waiting"
        yield "gangs", f"{gangs.submitted} submitted: {fates}"
