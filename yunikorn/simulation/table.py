"""Tables of a simulation's report for the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from rich import box
from rich.console import Console
from rich.table import Table

from yunikorn.errors import printable
from yunikorn.simulation.explain_answers import in_lines
from yunikorn.simulation.limit_waits import HeldBack
from yunikorn.simulation.report import Report
from yunikorn.simulation.report_rows import (
    WAITS,
    limits,
    outcome,
    queues,
    reasons,
    totals,
    waits,
)


class _ReportConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Raise `BrokenPipeError` for the caller, because rich would exit with status 1."""
        raise BrokenPipeError


def report_console(width: int | None) -> Console:
    """Return a console for standard output, `width` columns wide, or as wide as the terminal."""
    return _ReportConsole(highlight=False, markup=False, emoji=False, width=width)


def print_report(
    report: Report, console: Console, rate: str, more: Callable[[Console], None] | None = None
) -> None:
    """Print `report`; `rate` is the speed of the simulation, which is not part of the report.

    `more` prints further tables after the tables of waits and queues.
    """
    console.print(_totals(report, rate))
    console.print(_waits(report))
    if report.queues:
        console.print(_queues(report))
    if report.limit_waits.limits:
        console.print(_limits(report.limit_waits.limits))
    if more is not None:
        more(console)
    for title, rows in reasons(report):
        table = _table(title, "reason", numbers=("count",))
        table.add_column("example", no_wrap=True)
        for row in rows:
            table.add_row(*map(printable, row))
        console.print(table)
    for answer in report.explanations:
        for line in in_lines(answer):
            console.print(printable(line), soft_wrap=True)
        console.print()
    for failure in report.plugin_faults:
        console.print(f"Plugin failure: {failure}")


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
    table = Table(
        title=f"Simulation of {printable(report.workload)} ({outcome(report)})",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_header=False,
    )
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in totals(report):
        table.add_row(name, text)
    table.add_row("speed", rate)
    return table


def _waits(report: Report) -> Table:
    table = _table("Waiting time", "of", numbers=WAITS)
    for row in waits(report):
        table.add_row(*row)
    return table


def _limits(held: list[HeldBack]) -> Table:
    table = _table("Limits that blocked requests", "limit", numbers=("blocked in total",))
    for limit, time in limits(held):
        table.add_row(printable(limit), time)
    return table


def _queues(report: Report) -> Table:
    title, numbers, rows = queues(report)
    table = _table(title, "queue", numbers=tuple(numbers))
    table.columns[0].min_width = 14
    for row in rows:
        table.add_row(*row)
    return table
