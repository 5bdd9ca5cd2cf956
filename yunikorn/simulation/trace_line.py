"""Lines of traces: rows of a CSV file, jobs of the Standard Workload Format, and templates for their names.

A line of the Standard Workload Format, version 2.2, has 18 columns of numbers; -1 stands for an unknown
value. Whole numbers may be written as floats, and columns after the 18th are ignored. Times are in seconds.
"""

from __future__ import annotations

import csv
import math
import re
import string
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from yunikorn.clock import SECOND
from yunikorn.errors import Problem, UsageError
from yunikorn.resources import INT64_MAX
from yunikorn.simulation.source import InputError

COLUMNS = 18
MAX_SECONDS = 9_000_000_000
"""Limit of times in seconds, so that nanoseconds fit into 64 bits."""

MAX_PROCESSORS = 10_000_000
MAX_MEMORY = 10**15


class BadLine(ValueError):
    """An invalid line; the message states the expected content."""


class Job(NamedTuple):
    """Values of a job's line; -1 stands for an unknown value. Times are in seconds."""

    number: int
    submit: float
    """Submit time in the time of the trace."""
    processors: int
    """Number of allocated processors if known, else of requested processors."""
    runtime: float
    requested_time: float
    memory: int
    """Memory per processor in the unit of the trace: requested memory if known, else used memory."""
    user: int
    group: int
    application: int
    queue: int
    partition: int
    wait: float = -1
    """Wait from submission to start that the trace recorded."""


def parse_line(line: str) -> Job:
    """Parse `line`; raises `BadLine`."""
    fields = line.split()
    if len(fields) < COLUMNS:
        raise BadLine(f"expected {COLUMNS} columns of numbers, got {len(fields)}")
    number = _whole(fields, 0, "a job number")
    submit = _time(fields, 1, "a submit time in seconds")
    if number < 0:
        raise BadLine(f"expected a job number of at least 0 in column 1, got '{fields[0]}'")
    if submit < 0:
        raise BadLine(f"expected a submit time of at least 0 in column 2, got '{fields[1]}'")
    used, wanted = _memory(fields, 6, "used memory"), _memory(fields, 9, "requested memory")
    return Job(
        number,
        submit,
        _processors(fields),
        _time(fields, 3, "a run time in seconds"),
        _time(fields, 8, "a requested time in seconds"),
        wanted if wanted > 0 else used,
        _whole(fields, 11, "a user"),
        _whole(fields, 12, "a group"),
        _whole(fields, 13, "an application"),
        _whole(fields, 14, "a queue"),
        _whole(fields, 15, "a partition"),
        _time(fields, 2, "a wait in seconds"),
    )


def _processors(fields: list[str]) -> int:
    allocated = _whole(fields, 4, "allocated processors")
    requested = _whole(fields, 7, "requested processors")
    processors = allocated if allocated > 0 else requested
    if processors <= 0:
        raise BadLine(
            f"expected a number of processors in column 5 or 8, got '{fields[4]}' and '{fields[7]}'"
        )
    if processors > MAX_PROCESSORS:
        raise BadLine(f"expected at most {MAX_PROCESSORS} processors, got {processors}")
    return processors


def _memory(fields: list[str], index: int, meaning: str) -> int:
    memory = _whole(fields, index, meaning)
    if memory > MAX_MEMORY:
        raise BadLine(
            f"expected {meaning} of at most {MAX_MEMORY} in column {index + 1}, got '{fields[index]}'"
        )
    return memory


def _whole(fields: list[str], index: int, meaning: str) -> int:
    text = fields[index]
    try:
        value = int(text)
    except ValueError:
        value = int(_number(text, index, meaning))
    if abs(value) > INT64_MAX:
        raise BadLine(f"expected {meaning} that fits 64 bits in column {index + 1}, got '{text[:40]}'")
    return value


def _time(fields: list[str], index: int, meaning: str) -> float:
    text = fields[index]
    try:
        value: float = int(text)
    except ValueError:
        value = _number(text, index, meaning)
    if value > MAX_SECONDS:
        raise BadLine(f"expected {meaning} of at most {MAX_SECONDS} in column {index + 1}, got '{text}'")
    return value


def _number(text: str, index: int, meaning: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise BadLine(f"expected {meaning} in column {index + 1}, got '{shown}'")
    return value


_TYPES = "qdqddqqqqqqd"
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
    number, submit, processors, runtime, requested, *others, wait = row
    times = (_plain(runtime), _plain(requested))
    job: tuple[float, ...] = (number, _plain(submit), processors, *times, *others, _plain(wait))
    return Job._make(job)


def _plain(time: float) -> float:
    # Whole seconds become integers again, so that sums are exact.
    return int(time) if time.is_integer() else time


# -- CSV files ------------------------------------------------------------------------------------------

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


def take_rows(text: str, file: str, required: Sequence[str], take: Callable[[CsvRow], None]) -> list[Problem]:
    """Pass the rows to `take`, and return the problems, including each `BadLine` that `take` raises."""
    problems: list[Problem] = []
    for row in read_rows(text, file, required):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        try:
            take(row)
        except BadLine as error:
            problems.append(Problem("", str(error), row.line))
    return problems


def _careful(lines: Iterator[list[str]], file: str) -> Iterator[list[str]]:
    try:
        yield from lines
    except csv.Error as error:
        raise InputError(file, [Problem("", f"is not valid CSV: {error}")]) from error


# -- templates ------------------------------------------------------------------------------------------

UNKNOWN = "unknown"
"""Value of a field that the trace leaves unknown."""


def check_templates(templates: Mapping[str, str], fields: Sequence[str]) -> None:
    """Raise `UsageError` for all templates, given by option, that are malformed or use unknown fields."""
    lines = [
        f"the template '{template}' for {option} {failure}"
        for option, template in templates.items()
        if (failure := _fault(template, fields))
    ]
    if lines:
        raise UsageError("\n".join(lines))


def _fault(template: str, fields: Sequence[str]) -> str:
    try:
        for _, name, _, _ in string.Formatter().parse(template):
            if name is not None and name not in fields:
                known = ", ".join(f"{{{field}}}" for field in fields)
                return f"uses the unknown field '{{{name}}}'; known: {known}"
        template.format_map(dict.fromkeys(fields, UNKNOWN))
    except (ValueError, LookupError) as error:
        return f"cannot be read: {error}"
    return ""
