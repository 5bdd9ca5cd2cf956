"""Rows of the report's tables as plain text, shared by the terminal output and the HTML page."""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.simulation.counters import RefusalReason
from yunikorn.simulation.limit_waits import HeldBack
from yunikorn.simulation.report import QueueReport, Report
from yunikorn.simulation.statistics import WaitSummary

REASONS = 10
"""Maximum number of listed reasons; the number of further reasons is printed."""


def outcome(report: Report) -> str:
    """Return how far the simulation went, as text."""
    return {
        "complete": "to its end",
        "until": f"until {duration(report.times.stopped)}",
        "interrupted": f"interrupted at {duration(report.times.stopped)}",
    }[report.outcome]


def totals(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the totals as pairs of a name and a text."""
    counts, times = report.applications, report.times
    later = f", {counts.not_submitted} not yet submitted" if counts.not_submitted else ""
    failed = f", {counts.failed} failed" if counts.failed else ""
    yield (
        "applications",
        f"{counts.submitted} submitted: {counts.finished} finished{failed}, {counts.rejected} rejected, "
        f"{counts.running} running, {counts.waiting} waiting{later}",
    )
    yield "tasks", _tasks(report)
    yield from _lost_work(report)
    if report.tasks.too_large:
        yield "too large", f"{report.tasks.too_large} tasks fit on no node"
    if report.input:
        yield "input", ", ".join(f"{count} {what}" for what, count in report.input.items())
    yield "makespan", "-" if times.makespan is None else duration(times.makespan)
    for partition, shares in report.utilisation.items():
        yield f"use of {partition}", _shares(shares)
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


WAITS = ("measured", "mean", "median", "95 %", "longest")


def waits(report: Report) -> Iterator[tuple[str, ...]]:
    """Yield the waits; the columns after the first are `WAITS`."""
    yield "applications (first task)", *_wait(report.application_wait)
    yield "tasks", *_wait(report.task_wait)
    if report.gangs is not None:
        yield "gangs (until fully allocated)", *_wait(report.gangs.wait)
    held = report.limit_waits
    if held.applications is not None:
        yield "applications blocked by limits", *_wait(held.applications)
    if held.tasks is not None:
        yield "requests blocked by limits", *_wait(held.tasks)


def _wait(wait: WaitSummary | None) -> tuple[str, str, str, str, str]:
    if wait is None:
        return ("0", "-", "-", "-", "-")
    return (
        str(wait.count),
        duration(wait.mean),
        duration(wait.median),
        duration(wait.p95),
        duration(wait.max),
    )


def queues(report: Report) -> tuple[str, list[str], list[list[str]]]:
    """Return the title of the queues' table, its columns after the first, and its rows."""
    types = sorted({name for queue in report.queues for name in queue.utilisation})
    several = len({queue.partition for queue in report.queues}) > 1
    rows = [
        [
            f"{queue.partition}: {queue.queue}" if several else queue.queue,
            *_queue(queue),
            *(percent(queue.utilisation.get(each)) for each in types),
        ]
        for queue in report.queues
    ]
    title = "Queues (waiting time of applications and tasks, use of the partition)"
    return title, ["apps", "done", "wait", "longest", "tasks", "wait", *types], rows


def _queue(queue: QueueReport) -> list[str]:
    first, tasks = queue.application_wait, queue.task_wait
    return [
        str(queue.applications),
        str(queue.finished),
        duration(first.mean) if first else "-",
        duration(first.max) if first else "-",
        str(queue.tasks),
        duration(tasks.mean) if tasks else "-",
    ]


def limits(held: list[HeldBack]) -> Iterator[tuple[str, str]]:
    """Yield limits and the time for which they blocked requests."""
    for each in held[:REASONS]:
        yield each.limit, duration(each.seconds)
    if len(held) > REASONS:
        rest = sum(each.seconds for each in held[REASONS:])
        yield f"and {len(held) - REASONS} more limits", duration(rest)


def reasons(report: Report) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield the tables of reasons: a title, and rows of a reason, its count and an example."""
    for title, found in (
        ("Rejected applications", report.rejections),
        ("Refused tasks", report.refusals),
        ("Waiting tasks", report.waiting),
    ):
        if found:
            yield title, list(_reasons(found))


def _reasons(found: list[RefusalReason]) -> Iterator[tuple[str, str, str]]:
    for reason in found[:REASONS]:
        yield reason.reason, str(reason.count), reason.example
    if len(found) > REASONS:
        yield f"and {len(found) - REASONS} more reasons", "", ""


def _shares(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {percent(share)}" for name, share in shares.items()) or "-"


def percent(share: float | None) -> str:
    """Return `46%`, or `-` for None."""
    return "-" if share is None else f"{share:.0%}"


def duration(seconds: float) -> str:
    """Format seconds as `2d 3h 4m`, `3h 4m`, `4m 5s` or `5.2s`, depending on the magnitude."""
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds % 1 else f"{seconds:.0f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60}s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60}h {minutes % 60}m"
    return f"{minutes // 1440}d {minutes // 60 % 24}h {minutes % 60}m"
