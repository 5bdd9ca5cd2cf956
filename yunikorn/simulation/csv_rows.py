"""Rows of a CSV file, with access by column name and with their line numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from yunikorn.clock import SECOND
from yunikorn.errors import Problem
from yunikorn.simulation.input_error import InputError
from yunikorn.simulation.trace_line import MAX_SECONDS, BadLine

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
