"""The report of a simulation as tables for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

from rich import box
from rich.console import Console
from rich.table import Table

from yunikorn.errors import printable
from yunikorn.simulation.answers import in_lines
from yunikorn.simulation.limit_waits import HeldBack
from yunikorn.simulation.report import QueueReport, Report
from yunikorn.simulation.statistics import WaitSummary

REASONS = 10
"""So many reasons are listed; the number of the others is said."""


class _ReportConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        """The reader left: for whoever called to know, not for rich, which would exit with status 1."""
        raise BrokenPipeError


def report_console(width: int | None) -> Console:
    """Where a report is printed: standard output, `width` columns wide, or as wide as the terminal."""
    return _ReportConsole(highlight=False, markup=False, emoji=False, width=width)


def print_report(
    report: Report, console: Console, rate: str, more: Callable[[Console], None] | None = None
) -> None:
    """Print all of `report`; `rate` says how fast it went, which is not part of it.

    `more` prints further tables, after those of waits and queues.
    """
    console.print(_totals(report, rate))
    console.print(_waits(report))
    if report.queues:
        console.print(_queues(report))
    if report.limit_waits.limits:
        console.print(_limits(report.limit_waits.limits))
    if more is not None:
        more(console)
    for title, reasons in (
        ("Rejected applications", report.rejections),
        ("Refused tasks", report.refusals),
        ("Tasks that wait", report.waiting),
    ):
        if reasons:
            table = _table(title, "reason", numbers=("count",))
            table.add_column("first", no_wrap=True)
            for reason in reasons[:REASONS]:
                table.add_row(printable(reason.reason), str(reason.count), printable(reason.example))
            if len(reasons) > REASONS:
                table.add_row(f"and {len(reasons) - REASONS} more reasons", "", "")
            console.print(table)
    for answer in report.explanations:
        for line in in_lines(answer):
            console.print(printable(line), soft_wrap=True)
        console.print()
    for fault in report.plugin_faults:
        console.print(f"Fault: {fault}")


def _table(title: str, *texts: str, numbers: tuple[str, ...] = ()) -> Table:
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for text in texts:
        table.add_column(text, overflow="fold")
    for number in numbers:
        table.add_column(number, justify="right", no_wrap=True)
    return table


def _totals(report: Report, rate: str) -> Table:
    counts, tasks, times = report.applications, report.tasks, report.times
    table = Table(
        title=f"Simulation of {printable(report.workload)} ({_outcome(report)})",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_header=False,
    )
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    later = f", {counts.not_submitted} not yet submitted" if counts.not_submitted else ""
    failed = f", {counts.failed} failed" if counts.failed else ""
    table.add_row(
        "applications",
        f"{counts.submitted} submitted: {counts.finished} finished{failed}, {counts.rejected} rejected, "
        f"{counts.running} running, {counts.waiting} waiting{later}",
    )
    lost = tasks.refused + tasks.dropped
    refused = f", {lost} refused or dropped" if lost else ""
    failed_tasks = f", {tasks.failed} failed" if tasks.failed else ""
    cut_off = f" ({tasks.timed_out} timed out)" if tasks.timed_out else ""
    restarted = f"; {tasks.restarted} restarts" if tasks.restarted else ""
    table.add_row(
        "tasks",
        f"{tasks.asked} asked for: {tasks.ended} ended{cut_off}{failed_tasks}, {tasks.running} running, "
        f"{tasks.waiting} waiting{refused}{restarted}",
    )
    for what, figures in _losses(report):
        table.add_row(what, figures)
    if tasks.too_large:
        table.add_row("too large", f"{tasks.too_large} tasks fit on no node")
    if report.input:
        table.add_row("input", ", ".join(f"{count} {what}" for what, count in report.input.items()))
    table.add_row("makespan", "-" if times.makespan is None else duration(times.makespan))
    for partition, shares in report.utilisation.items():
        table.add_row(f"use of {partition}", _shares(shares))
    table.add_row(
        "decisions", f"{report.decisions} ({report.allocations} allocations), {report.releases} releases"
    )
    table.add_row("speed", rate)
    return table


def _outcome(report: Report) -> str:
    return {
        "complete": "to its end",
        "until": f"until {duration(report.times.stopped)}",
        "interrupted": f"interrupted at {duration(report.times.stopped)}",
    }[report.outcome]


def _waits(report: Report) -> Table:
    table = _table("Waiting time", "of", numbers=("measured", "mean", "median", "95 %", "longest"))
    table.add_row("applications (first task)", *_wait(report.application_wait))
    table.add_row("tasks", *_wait(report.task_wait))
    if report.gangs is not None:
        table.add_row("gangs (until whole)", *_wait(report.gangs.wait))
    held = report.limit_waits
    if held.applications is not None:
        table.add_row("applications kept from starting", *_wait(held.applications))
    if held.tasks is not None:
        table.add_row("requests held by limits", *_wait(held.tasks))
    return table


def _limits(held: list[HeldBack]) -> Table:
    table = _table("Limits that held requests", "limit", numbers=("held in all",))
    for each in held[:REASONS]:
        table.add_row(printable(each.limit), duration(each.seconds))
    if len(held) > REASONS:
        rest = sum(each.seconds for each in held[REASONS:])
        table.add_row(f"and {len(held) - REASONS} more limits", duration(rest))
    return table


def _losses(report: Report) -> Iterator[tuple[str, str]]:
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
        fates = f"{gangs.whole} were whole{given_up}, {gangs.waiting} waiting"
        yield "gangs", f"{gangs.submitted} submitted: {fates}"


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


def _queues(report: Report) -> Table:
    types = sorted({name for queue in report.queues for name in queue.utilisation})
    numbers = ("apps", "done", "wait", "longest", "tasks", "wait", *types)
    title = "Queues (waiting time of applications and tasks, use of the partition)"
    table = _table(title, "queue", numbers=numbers)
    table.columns[0].min_width = 14
    several = len({queue.partition for queue in report.queues}) > 1
    for queue in report.queues:
        name = f"{queue.partition}: {queue.queue}" if several else queue.queue
        table.add_row(name, *_queue(queue), *(_percent(queue.utilisation.get(each)) for each in types))
    return table


def _queue(queue: QueueReport) -> tuple[str, ...]:
    first, tasks = queue.application_wait, queue.task_wait
    return (
        str(queue.applications),
        str(queue.finished),
        duration(first.mean) if first else "-",
        duration(first.max) if first else "-",
        str(queue.tasks),
        duration(tasks.mean) if tasks else "-",
    )


def _shares(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {_percent(share)}" for name, share in shares.items()) or "-"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def duration(seconds: float) -> str:
    """`2d 3h 4m`, `3h 4m`, `4m 5s`, `5.2s`: as much as a reader wants to know."""
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds % 1 else f"{seconds:.0f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60}s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60}h {minutes % 60}m"
    return f"{minutes // 1440}d {minutes // 60 % 24}h {minutes % 60}m"
