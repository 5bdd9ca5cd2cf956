"""Times of day and weekly windows, as admission and quota policies write them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as time_of_day
from zoneinfo import ZoneInfo

import attrs

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTE, HOUR, DAY = 60, 3600, 86400
SECOND = 1_000_000_000


def seconds_of(time: str) -> int:
    """Return a time of day such as `06:30` in seconds. Raises `ValueError` for any other text."""
    hours, colon, minutes = time.partition(":")
    if not (colon and hours.isdecimal() and minutes.isdecimal() and len(hours) <= 2 and len(minutes) == 2):
        raise ValueError(f"{time!r} is not a time of day such as 06:30")
    if int(hours) > 23 or int(minutes) > 59:
        raise ValueError(f"{time!r} is not a time of day: use 00:00 to 23:59")
    return int(hours) * HOUR + int(minutes) * MINUTE


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name in the IANA database. Raises `ValueError` if it is not known here."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except Exception:
        # Names of folders and malformed names raise errors of their own.
        raise ValueError(
            f"unknown time zone {name!r}: use a name of the IANA database, such as Europe/Berlin; if the "
            "system has no such database, install the package tzdata"
        ) from None


def days_of(text: str) -> frozenset[int]:
    """Return days of the week from a text such as `mon`, `sat-sun` or `mon+wed+fri`; Monday is 0.

    Raises `ValueError` for any other text.
    """
    found: set[int] = set()
    for part in text.split("+"):
        first, dash, last = part.partition("-")
        last = last if dash else first
        for day in (first, last):
            if day not in DAYS:
                raise ValueError(f"{day!r} is not a day: use {', '.join(DAYS)}, as in mon-fri or mon+wed")
        start, end = DAYS.index(first), DAYS.index(last)
        found.update((start + more) % 7 for more in range((end - start) % 7 + 1))
    return frozenset(found)


@attrs.frozen
class DailyWindow:
    """Period that begins at the same local time on some days of every week."""

    days: frozenset[int]
    opens: int
    """Time of day (s) at which the window opens."""
    closes: int
    """Time (s) at which the window closes, counted from midnight before it opens."""

    @classmethod
    def read(cls, text: str) -> DailyWindow:
        """Return the window in a text such as `08:00-18:00` or `mon-fri 22:00-06:00`.

        A window that does not close after it opens closes on the next day. Raises `ValueError`.
        """
        days, _, hours = text.rpartition(" ")
        start, dash, end = hours.partition("-")
        if not dash:
            raise ValueError(f"{text!r} is not a window such as 08:00-18:00 or mon-fri 08:00-18:00")
        opens, closes = seconds_of(start), seconds_of(end)
        return cls(days_of(days.strip() or "mon-sun"), opens, closes if closes > opens else closes + DAY)

    def periods(self, now: int, zone: tzinfo) -> Iterator[tuple[int, int]]:
        """Yield the periods from two days before `now` to eight days after, as first time and end (ns).

        Local times follow changes of the clock. A time that such a change skips counts as if the clock had
        not changed yet; of a time that occurs twice, the first one counts.
        """
        today = datetime.fromtimestamp(now // SECOND, zone).date()
        for more in range(-2, 9):
            day = today + timedelta(days=more)
            if day.weekday() in self.days:
                yield _instant(day, self.opens, zone), _instant(day, self.closes, zone)


def _instant(day: date, seconds: int, zone: tzinfo) -> int:
    days, second = divmod(seconds, DAY)
    hour, rest = divmod(second, HOUR)
    local = datetime.combine(day + timedelta(days=days), time_of_day(hour, rest // MINUTE), zone)
    return int(local.timestamp()) * SECOND
