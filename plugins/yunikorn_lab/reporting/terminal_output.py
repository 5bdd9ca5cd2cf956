"""Output of a report to the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NoReturn, TextIO

from rich import box
from rich.console import Console
from rich.table import Table as Grid

from yunikorn.errors import printable
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.sections.report_sections import report_sections
from yunikorn_lab.reporting.tables import Table, outcome, totals
from yunikorn_lab.simulation.explain_requests import in_lines
from yunikorn_lab.simulation.report import Report


class _ReportConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Raise `BrokenPipeError` for the caller, because rich would exit with status 1."""
        raise BrokenPipeError


def report_console(width: int | None, stream: TextIO | None = None) -> Console:
    """Return a console for `stream` or standard output, `width` columns wide, or as wide as the terminal."""
    # With NO_COLOR, rich leaves out colours, but not bold and italic letters.
    plain = False if os.environ.get("NO_COLOR") else None
    return _ReportConsole(
        highlight=False, markup=False, emoji=False, width=width, file=stream, force_terminal=plain
    )


def print_report(result: FullReport, console: Console, rate: str) -> None:
    """Print a report; `rate` is the speed of the simulation, which is not part of the report."""
    report = result.report
    print_verdict(result.verdict, console)
    console.print(_totals(report, rate))
    for section in report_sections(result):
        print_tables(section.tables, console)
    for answer in report.explanations:
        for line in in_lines(answer):
            console.print(printable(line), soft_wrap=True)
        console.print()
    for failure in report.plugin_faults:
        console.print(f"Plugin failure: {failure}")


def print_verdict(sentences: Iterable[str], console: Console) -> None:
    """Print the sentences of a verdict, one per line."""
    for sentence in sentences:
        console.print(f"- {printable(sentence)}", soft_wrap=True)
    console.print()


def print_tables(tables: Iterable[Table], console: Console) -> None:
    """Print each table, with its note below."""
    for table in tables:
        grid = Grid(
            title=printable(table.title),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        # Only the first column folds, so that numbers are never split.
        grid.add_column(printable(table.columns[0]), overflow="fold", min_width=table.min_width)
        for number, name in enumerate(table.columns[1:], 1):
            is_text = number < table.texts or (table.has_examples and name == table.columns[-1])
            grid.add_column(printable(name), justify="left" if is_text else "right", no_wrap=True)
        for row in table.rows:
            is_heading = table.has_parts and not any(row[1:])
            grid.add_row(*(printable(cell.upper() if is_heading else cell) for cell in row))
        console.print(grid)
        if table.note:
            console.print(f"{printable(table.note)}\n")


def _totals(report: Report, rate: str) -> Grid:
    grid = Grid(
        title=f"Simulation of {printable(report.workload)} ({outcome(report)})",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_header=False,
    )
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in (*totals(report), ("speed", rate)):
        grid.add_row(name, text)
    return grid
