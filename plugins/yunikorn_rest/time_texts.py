"""Times as texts."""

from __future__ import annotations

from datetime import UTC, datetime

from yunikorn.clock import MICROSECOND, MILLISECOND, SECOND

_SMALL_UNITS = ((MILLISECOND, "ms"), (MICROSECOND, "µs"), (1, "ns"))


def rfc3339(nanoseconds: int) -> str:
    """Return a time (ns) as `2026-01-31T12:00:00.5Z` (RFC 3339), with as many digits as necessary."""
    seconds, fraction = divmod(nanoseconds, SECOND)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    digits = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"{text}{digits}Z"


def in_milliseconds(nanoseconds: int) -> str:
    """Return a time (ns) as `2026-01-31T12:00:00.500Z` (RFC 3339), always with milliseconds."""
    whole = datetime.fromtimestamp(nanoseconds // SECOND, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{nanoseconds % SECOND // MILLISECOND:03}Z"


def go_duration(nanoseconds: int) -> str:
    """Return a duration (ns) as Go spells it, such as `1h0m0s`, `1m30s`, `500ms` or `0s`."""
    if not nanoseconds:
        return "0s"
    if 0 < nanoseconds < SECOND:
        unit, name = next(one for one in _SMALL_UNITS if nanoseconds >= one[0])
        whole, rest = divmod(nanoseconds, unit)
        return f"{whole}{_fraction(rest, unit)}{name}"
    seconds, rest = divmod(nanoseconds, SECOND)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{seconds}{_fraction(rest, SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text


def _fraction(rest: int, unit: int) -> str:
    if not rest:
        return ""
    return "." + str(rest).zfill(len(str(unit)) - 1).rstrip("0")
