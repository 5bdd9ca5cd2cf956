"""Times and durations in recordings: seconds with up to nine decimals, and dates."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from yunikorn.clock import SECOND
from yunikorn.config.durations import parse_duration
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
