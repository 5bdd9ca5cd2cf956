"""Parts of all readers of traces: rows of a table, applications made of them, and templates for names."""

from __future__ import annotations

import csv
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import attrs

from yunikorn.clock import SECOND
from yunikorn.errors import Problem, UsageError
from yunikorn.resources import Resource
from yunikorn_commands.input_source import InputError, remarks_on
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication, WorkloadNode
from yunikorn_plugins.run_time_estimators import LIMIT_TAG

MAX_SECONDS = 9_000_000_000
"""Limit of times in seconds, so that nanoseconds fit into 64 bits."""

MAX_PROCESSORS = 10_000_000

NO_LIMIT: Mapping[str, str] = {}


def limit_tag(seconds: float) -> Mapping[str, str]:
    """Return the tags of an application whose jobs may run for so long; none without a limit."""
    return {LIMIT_TAG: f"{seconds:.12g}"} if seconds > 0 else NO_LIMIT


class BadLine(ValueError):
    """An invalid line; the message states the expected content."""


# -- rows ---------------------------------------------------------------------------------------------

_WHOLE = re.compile(r"[0-9]{1,18}(\.0*)?\Z")
_TIME = re.compile(r"[0-9]{1,18}(\.[0-9]{0,30})?\Z")


class TraceRow:
    """A row; empty fields and missing columns read as unknown values."""

    __slots__ = ("_fields", "line")

    def __init__(self, line: int, fields: dict[str, str]) -> None:
        self.line = line
        """Line number, counted from 1."""
        self._fields = fields

    def __contains__(self, column: str) -> bool:
        return column in self._fields

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


def read_rows(text: str, file: str, required: Sequence[str]) -> Iterator[TraceRow | Problem]:
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
        yield TraceRow(lines.line_num, values)


def read_lines(
    text: str, delimiter: str, check_header: Callable[[list[str], int], None] = lambda header, line: None
) -> Iterator[TraceRow | Problem]:
    """Yield the rows after the header of a text with a delimiter but without quotes, as `read_rows` does.

    Outputs that were joined repeat the header. `check_header` receives the header and its line.
    """
    header: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = [field.strip() for field in line.split(delimiter)]
        if not line.strip() or fields == header:
            continue
        if not header:
            header = fields
            check_header(header, number)
        elif len(fields) != len(header):
            yield Problem("", f"expected {len(header)} columns as in the header, got {len(fields)}", number)
        else:
            yield TraceRow(number, dict(zip(header, fields, strict=True)))


def take_rows(rows: Iterable[TraceRow | Problem], take: Callable[[TraceRow], None]) -> list[Problem]:
    """Pass the rows to `take`, and return the problems, including each `BadLine` that `take` raises."""
    problems: list[Problem] = []
    for row in rows:
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


# -- applications -----------------------------------------------------------------------------------------


DATED = 500_000_000
"""Times of a trace from which they count as Unix times (s): all since November 1985, and no shorter trace."""


def date_of(origin: float, start: float = 0.0) -> float | None:
    """Return the Unix time (s) of the time `origin` in a trace, None if the trace does not say it.

    `start` is the Unix time at which the trace begins, 0 if it names none.
    """
    if origin >= DATED:
        return origin
    return start + origin if start >= DATED else None


class TraceApplications:
    """Applications as a reader makes them, and counts of what it skips or replaces; the base of readers."""

    skipped = "lines skipped"
    """Name of the count of entries that cannot be read."""

    def __init__(self) -> None:
        self.applications: list[WorkloadApplication] = []
        self.counts: Counter[str] = Counter()
        self._resources: dict[Resource, Resource] = {}

    def shared(self, found: Resource) -> Resource:
        """Return an equal amount of an earlier task if there is one, to save memory in long traces."""
        return self._resources.setdefault(found, found)

    def check(self, file: str, problems: list[Problem], nothing: str, *, strict: bool) -> list[str]:
        """Return remarks on the entries with problems; raises `InputError` for them if reading is `strict`.

        Raises `InputError` in both cases if there are no applications; `nothing` says so.
        """
        if not self.applications or (strict and problems):
            raise InputError(file, problems or [Problem("", nothing)])
        if problems:
            self.counts[self.skipped] = len(problems)
        return remarks_on(file, problems)

    def workload(self, name: str, format: str, nodes: list[WorkloadNode], remarks: list[str]) -> Workload:
        """Return the workload, in order of submission, in which the first application arrives at 0."""
        origin = min(each.submit for each in self.applications)
        moved = [attrs.evolve(each, submit=each.submit - origin) for each in self.applications]
        moved.sort(key=lambda application: application.submit)
        counts = {what: count for what, count in self.counts.items() if count}
        found = Workload(name, format, nodes, moved, remarks=remarks, counts=counts, origin=origin / SECOND)
        found.began = date_of(found.origin)
        return found


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


_NO_NAME = re.compile(r"[^a-zA-Z0-9_:#/@-]")


def queue_template(template: str) -> Callable[[Mapping[str, str]], str]:
    """Return a function that fills the template of a queue, given the values of its fields as texts.

    A value is one name of a path: a dot in it becomes `_dot_`, as in placement rules, and other characters
    that names of queues cannot have become `_`.
    """
    known: dict[tuple[str, ...], str] = {}

    def fill(values: Mapping[str, str]) -> str:
        key = tuple(values.values())
        if key not in known:
            legal = {
                name: _NO_NAME.sub("_", value.replace(".", "_dot_"))[:64] for name, value in values.items()
            }
            known[key] = template.format_map(legal)
        return known[key]

    return fill
