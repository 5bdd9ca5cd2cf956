"""Values in the lines of a recording: times, texts and objects, converted and checked.

Times and durations are seconds with up to nine decimals. A function that reads reports each problem with its
path in the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from yunikorn.clock import SECOND
from yunikorn.config.durations import parse_duration
from yunikorn.errors import Problem
from yunikorn.framework.options import faults, make_converter
from yunikorn.resources import INT64_MAX

_DATE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z")


def write_seconds(nanoseconds: int) -> str:
    """Return seconds as an exact JSON number: `0`, `3.2`, `0.000000001`."""
    whole, fraction = divmod(nanoseconds, SECOND)
    return f"{whole}.{fraction:09d}".rstrip("0").rstrip(".")


def read_seconds(value: object) -> int:
    """Return the nanoseconds of a number of seconds or a duration (`"1h30m"`); raises `ValueError`."""
    if isinstance(value, str):
        span = parse_duration(value)
    elif isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        try:
            exact = Decimal(value) * SECOND
            span = int(exact)
        except (InvalidOperation, OverflowError, ValueError) as error:
            raise ValueError(f"{value} is not a time") from error
        if span != exact:
            raise ValueError(f"{value} is finer than nanoseconds")
    else:
        raise ValueError("expected seconds as a number, or a duration such as 30s or 1h30m")
    if not 0 <= span <= INT64_MAX:
        raise ValueError(f"{value} is not a time from 0 to about 292 years")
    return span


def write_date(nanoseconds: int) -> str:
    """Return a time in nanoseconds since 1970 as a date: `2026-11-20T14:16:18.5Z`."""
    whole, fraction = divmod(nanoseconds, SECOND)
    date = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    digits = f".{fraction:09d}".rstrip("0").rstrip(".")
    return f"{date}{digits}Z"


def read_date(text: str) -> int:
    """Return the nanoseconds since 1970 of a date in the form of `write_date`; raises `ValueError`."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a date such as 2026-11-20T14:16:18.5Z, got {text!r}")
    whole = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    moment = int(whole.timestamp()) * SECOND + int((match[2] or "").ljust(9, "0"))
    if moment < 0:
        raise ValueError(f"{text} is before 1970")
    return moment


Report = Callable[[Problem], None]
Reading = Callable[[object, str, Report], Any]
"""Function that converts a value at a path, and reports problems."""

_converter = make_converter()


def read_text(value: object, path: str, report: Report) -> str:
    """Return a text."""
    if isinstance(value, str):
        return value
    report(Problem(path, "expected text"))
    return ""


def read_text_or_null(value: object, path: str, report: Report) -> str | None:
    """Return a text, or None for null."""
    return None if value is None else read_text(value, path, report)


def read_true(value: object, path: str, report: Report) -> bool:
    """Check the value of a key that has no content."""
    if value is not True:
        report(Problem(path, "expected true"))
    return True


def read_span(value: object, path: str, report: Report) -> int:
    """Return the nanoseconds of a number of seconds or a duration."""
    try:
        return read_seconds(value)
    except ValueError as error:
        report(Problem(path, str(error)))
        return 0


def structured(kind: type[Any]) -> Reading:
    """Return a function that converts an object to a class of attrs; its result is None after a problem."""

    def read(value: object, path: str, report: Report) -> Any:
        try:
            return _converter.structure(value, kind)
        except Exception as error:
            for place, what in faults(error):
                report(Problem(f"{path}{place}" if place[:1] in ("", ".", "[") else f"{path}.{place}", what))
            return None

    return read
