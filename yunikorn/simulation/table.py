"""Rows of a CSV file, with access by column name and with their line numbers.

Tables of a simulation's report for the terminal.

Jobs of a trace as columns of numbers, in 88 bytes per job.
"""

from __future__ import annotations

import csv
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from rich import box
from rich.console import Console
from rich.table import Table

from yunikorn.clock import SECOND
from yunikorn.errors import Problem, printable
from yunikorn.simulation.explain_requests import in_lines
from yunikorn.simulation.limit_waits import HeldBack
from yunikorn.simulation.report import WAITS, Report, limits, outcome, queues, reasons, totals, waits
from yunikorn.simulation.source import InputError
from yunikorn.simulation.trace_line import MAX_SECONDS, BadLine, Job

_WHOLE = re.compile(r"[0-9]{1,18}(\.0*)?\Z")
_TIME = re.compile(r"[0-9]{1,18}(\.[0-9]{0,30})?\Z")


class CsvRow:
    """A row; empty fields and missing columns read as unknown values."""

    __slots__ = ("_fields", "line")

    def __init__(self, line: int, fields: dict[str, str]) -> None:
        self.line = line
        """Line number, counted from 1."""
        self._fields = fields

    def text(self, column: str) -> str:
        """Return the text of a column, or an empty string if the column is empty or missing."""
        return self._fields.get(column, "")

    def whole(self, column: str, most: int, meaning: str) -> int:
        """Return a whole number from 0 to `most`; raises `BadLine`."""
        text = self.text(column)
        value = int(text.partition(".")[0]) if _WHOLE.match(text) else -1
        if not 0 <= value <= most:
            raise BadLine(f"expected {meaning}, a whole number from 0 to {most}, {self._got(column)}")
        return value

    def time(self, column: str) -> int | None:
        """Return a time given in seconds as nanoseconds, or None if the column is empty; raises `BadLine`."""
        text = self.text(column)
        if not text:
            return None
        if not _TIME.match(text) or Fraction(text) > MAX_SECONDS:
            raise BadLine(f"expected a time in seconds from 0 to {MAX_SECONDS}, {self._got(column)}")
        return round(Fraction(text) * SECOND)

    def _got(self, column: str) -> str:
        text = self.text(column)
        return f"got '{text[:40]}' in column {column}" if text else f"got nothing in column {column}"


def read_rows(text: str, file: str, required: Sequence[str]) -> Iterator[CsvRow | Problem]:
    """Yield the rows after the header; rows with a wrong number of fields become a `Problem`.

    Raises `InputError` if the header lacks one of the `required` columns.
    """
    lines = csv.reader(text.splitlines(keepends=True))
    header = [name.strip() for name in next(_careful(lines, file), [])]
    missing = [name for name in required if name not in header]
    if missing:
        what = f"expected the columns {', '.join(required)}; missing: {', '.join(missing)}"
        raise InputError(file, [Problem("", what, 1)])
    for fields in _careful(lines, file):
        if not any(field.strip() for field in fields):
            continue
        if len(fields) != len(header):
            what = f"expected {len(header)} columns as in the header, got {len(fields)}"
            yield Problem("", what, lines.line_num)
            continue
        values = {name: field.strip() for name, field in zip(header, fields, strict=True)}
        yield CsvRow(lines.line_num, values)


def _careful(lines: Iterator[list[str]], file: str) -> Iterator[list[str]]:
    try:
        yield from lines
    except csv.Error as error:
        raise InputError(file, [Problem("", f"is not valid CSV: {error}")]) from error


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


_TYPES = "qdqddqqqqqq"
"""Array type codes of the columns, in the order of the fields of `Job`: integers and times."""


class JobTable:
    """Jobs stored in the order of the trace and iterated in order of submission."""

    def __init__(self) -> None:
        self._columns: list[array[Any]] = [array(kind) for kind in _TYPES]
        self._number, self._submit = self._columns[:2]
        self._lines = array("q")
        self._climbs = True
        """True while each job number is larger than the preceding one; allows lookups by binary search."""
        self._ordered = True
        self._known: dict[int, int] = {}
        """Lines by job number; filled once job numbers are no longer ascending."""

    def __len__(self) -> int:
        return len(self._number)

    def line_of(self, number: int) -> int | None:
        """Return the line of the job with that number, or None."""
        if not self._climbs:
            return self._known.get(number)
        place = bisect_left(self._number, number)
        found = place < len(self._number) and self._number[place] == number
        return self._lines[place] if found else None

    def add(self, job: Job, line: int) -> None:
        """Append a job whose number is not in the table yet."""
        if self._number:
            self._ordered = self._ordered and self._submit[-1] <= job.submit
            if self._climbs and job.number < self._number[-1]:
                self._climbs = False
                self._known = dict(zip(self._number, self._lines, strict=True))
        if not self._climbs:
            self._known[job.number] = line
        for column, value in zip(self._columns, job, strict=True):
            column.append(value)
        self._lines.append(line)

    @property
    def earliest(self) -> float:
        """Earliest submit time; the table must not be empty."""
        return _plain(min(self._submit))

    def __iter__(self) -> Iterator[Job]:
        if self._ordered:
            for row in zip(*self._columns, strict=True):
                yield _job(row)
            return
        submit = self._submit
        for place in sorted(range(len(self)), key=submit.__getitem__):
            yield _job(tuple(column[place] for column in self._columns))


def _job(row: tuple[float, ...]) -> Job:
    number, submit, processors, runtime, requested, *others = row
    job: tuple[float, ...] = (number, _plain(submit), processors, _plain(runtime), _plain(requested), *others)
    return Job._make(job)


def _plain(time: float) -> float:
    # Whole seconds become integers again, so that sums are exact.
    return int(time) if time.is_integer() else time
