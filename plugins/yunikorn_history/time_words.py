"""Times as people give them: `2026-11-27 14:00`, `2h`, `yesterday`, `last month`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from yunikorn.text import suggest

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
"""Seconds of the units of relative times."""
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
PERIODS = ("week", "month", "year")
WORDS = (
    *("now", "today", "yesterday"),
    *WEEKDAYS,
    *(f"{which} {period}" for which in ("this", "last") for period in PERIODS),
)
GRAMMAR = (
    "a date or time as 2026-11-27, 2026-11-27 14:00 or 2026-11-27T14:00Z, a time ago as 90m, 2h, 7d or 1d12h,"
    f" or {', '.join(WORDS)}"
)
_AGO = re.compile(r"(?:\d{1,9}[smhdw])+", re.ASCII)
_MILLISECONDS = re.compile(r"\d{11,14}", re.ASCII)
_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?", re.ASCII)
LATEST = 253_402_300_799_999
"""End of the year 9999 (ms)."""


def parse_time(text: str, now: int, zone: tzinfo | None = None) -> int:
    """Return a time (ms since 1970); `now` is the present one (ns).

    A date or time without an offset is one of the zone, of that of this machine by default. A word is the
    beginning of the period. Raises `ValueError`, whose message says what is expected.
    """
    wanted = " ".join(text.lower().replace("_", " ").split())
    present = datetime.fromtimestamp(now / 1e9, UTC).astimezone(zone)
    wanted = wanted.removesuffix(" ago") if _AGO.fullmatch(wanted.removesuffix(" ago")) else wanted
    try:
        if _MILLISECONDS.fullmatch(wanted):
            return min(int(wanted), LATEST)
        found = _at(wanted, present, zone)
        return max(0, round(found.timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        near = suggest(wanted, WORDS) if wanted[:1].isalpha() else ""
        raise ValueError(f"{text[:60]!r} is no time{near}; expected {GRAMMAR}") from None


def _at(wanted: str, present: datetime, zone: tzinfo | None) -> datetime:
    if _AGO.fullmatch(wanted):
        seconds = sum(int(part[:-1]) * UNITS[part[-1]] for part in re.findall(r"\d+[smhdw]", wanted))
        return present - timedelta(seconds=seconds)
    if wanted == "now":
        return present
    # Midnights are made without an offset, because that of a zone differs between summer and winter.
    midnight = present.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    if wanted in WORDS:
        return _in_zone(_beginning(wanted, midnight), zone)
    if month := _MONTH.fullmatch(wanted):
        return _in_zone(datetime(int(month[1]), int(month[2]), 1), zone)
    if _CLOCK.fullmatch(wanted):
        wanted = f"{midnight:%Y-%m-%d} {'0' if wanted[1] == ':' else ''}{wanted}"
    found = datetime.fromisoformat(wanted.upper())
    return found if found.tzinfo is not None else _in_zone(found, zone)


def _in_zone(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.astimezone() if zone is None else naive.replace(tzinfo=zone)


def _beginning(word: str, midnight: datetime) -> datetime:
    """Return the beginning of a period that a word names."""
    if word == "today":
        return midnight
    if word == "yesterday":
        return midnight - timedelta(days=1)
    if word in WEEKDAYS:
        return midnight - timedelta(days=(midnight.weekday() - WEEKDAYS.index(word)) % 7)
    which, _, period = word.partition(" ")
    if period == "week":
        return midnight - timedelta(days=midnight.weekday() + (7 if which == "last" else 0))
    first = _first(midnight, period)
    return first if which == "this" else _first(first - timedelta(days=1), period)


def _first(day: datetime, period: str) -> datetime:
    return day.replace(day=1) if period == "month" else day.replace(month=1, day=1)


def time_in_zone(milliseconds: int, zone: tzinfo | None = None) -> str:
    """Return a time as `2026-11-27T14:00:05+01:00`, in a zone or that of this machine."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone(zone)
    return moment.isoformat(timespec="seconds")
