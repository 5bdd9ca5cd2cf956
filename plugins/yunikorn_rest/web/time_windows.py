"""Stretches of time that charts show: their steps, the ticks of their axis, and the stretches beside them."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs

from yunikorn_rest.endpoints import Call

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
FIRST, LAST = 0, 253_402_300_799_000
"""Times (ms) between which a calendar has dates: the years 1970 to 9999."""
SPELLING = "%Y-%m-%dT%H:%MZ"
"""Spelling of times in addresses."""


@attrs.frozen
class WindowSpan:
    """A choice of the length of a window."""

    name: str
    """Name on the page."""
    length: int
    step: int
    """Length of a step of a line."""
    row: int
    """Length of the time of a row of the table, a multiple of the step."""
    tick: int
    """Time between two ticks; 0 for beginnings of every other month."""
    text: str
    """Format of the texts of ticks."""
    row_text: str
    """Format of the begins of rows."""


SPANS = {
    "hours": WindowSpan("6 hours", 6 * HOUR, MINUTE, 15 * MINUTE, 2 * HOUR, "%H:%M", "%d %b %H:%M"),
    "day": WindowSpan("Day", DAY, 5 * MINUTE, HOUR, 4 * HOUR, "%H:%M", "%d %b %H:%M"),
    "week": WindowSpan("Week", 7 * DAY, HOUR, 6 * HOUR, 2 * DAY, "%a %d", "%a %d %b %H:%M"),
    "month": WindowSpan("Month", 30 * DAY, 3 * HOUR, DAY, 5 * DAY, "%d %b", "%a %d %b"),
    "year": WindowSpan("Year", 365 * DAY, DAY, 7 * DAY, 0, "%b", "week of %d %b %Y"),
}
DEFAULT = "day"
MONDAY = 4 * DAY
"""The first Monday since 1970."""


@attrs.frozen(kw_only=True)
class TimeWindow:
    """Time that charts show, in milliseconds since 1970."""

    key: str
    """Key of `SPANS`."""
    begin: int
    end: int
    step: int
    is_latest: bool
    """True if the window ends now."""

    @property
    def span(self) -> WindowSpan:
        """Choice of the length."""
        return SPANS[self.key]

    @property
    def steps(self) -> int:
        """Number of steps."""
        return (self.end - self.begin) // self.step

    def index(self, time: int) -> int:
        """Return the number of the step in which a time is."""
        return (time - self.begin) // self.step

    def share(self, time: int) -> float:
        """Return the part of the window that is before a time, from 0 to 1."""
        return min(1.0, max(0.0, (time - self.begin) / (self.end - self.begin)))

    def in_steps(self, step: int) -> TimeWindow:
        """Return the window with steps of at least this length."""
        if step <= self.step:
            return self
        return _window(self.key, self.end, step, is_latest=self.is_latest)

    @property
    def query(self) -> dict[str, str]:
        """Parameters of an address of a page that shows this window."""
        key = "" if self.key == DEFAULT else self.key
        return {"time": key, "until": "" if self.is_latest else spelled(self.end)}

    def at(self, until: int, now: int) -> dict[str, str]:
        """Return the parameters of an address for a window of this length with another end."""
        end = "" if until >= now else spelled(until)
        return {**self.query, "until": end}

    def rows(self) -> list[tuple[int, int]]:
        """Return the begins and ends of the rows of a table."""
        row = max(self.span.row, self.step)
        offset = MONDAY if row == 7 * DAY else 0
        first = (self.begin - offset) // row * row + offset
        found = ((time, time + row) for time in range(first, self.end, row))
        return [(max(begin, self.begin), min(end, self.end)) for begin, end in found]

    def ticks(self) -> list[tuple[float, str]]:
        """Return positions from 0 to 1, and texts, of the ticks of the axis."""
        span = self.span
        if not span.tick:
            return [(self.share(time), in_utc(time, span.text)) for time in self._months()]
        first = -(-self.begin // span.tick) * span.tick
        found: list[tuple[float, str]] = []
        for time in range(first, self.end + 1, span.tick):
            midnight = span.tick < DAY and time % DAY == 0
            found.append((self.share(time), in_utc(time, "%d %b" if midnight else span.text)))
        return found

    def _months(self) -> list[int]:
        first = datetime.fromtimestamp(self.begin / 1000, UTC).year
        months = (datetime(first + number // 6, number % 6 * 2 + 1, 1, tzinfo=UTC) for number in range(12))
        times = (int(month.timestamp()) * 1000 for month in months)
        return [time for time in times if self.begin <= time <= self.end]


def window_of(call: Call, now: int) -> TimeWindow:
    """Return the window that a request wants, by default the last day; unknown values are the default."""
    key = call.query("time")
    key = key if key in SPANS else DEFAULT
    until = parsed(call.query("until"))
    is_latest = until is None or until >= now
    end = now if until is None or is_latest else until
    return _window(key, end, SPANS[key].step, is_latest=is_latest)


def _window(key: str, until: int, step: int, *, is_latest: bool) -> TimeWindow:
    end = -(-until // step) * step
    begin = max(FIRST, end - SPANS[key].length)
    return TimeWindow(key=key, begin=begin, end=max(end, begin + step), step=step, is_latest=is_latest)


def parsed(text: str) -> int | None:
    """Return a time in ISO 8601 in milliseconds, in UTC unless it has a zone; None if it is none."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    try:
        time = int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (OverflowError, OSError):
        return None
    return time if FIRST <= time <= LAST else None


def spelled(time: int) -> str:
    """Return a time (ms) as addresses spell it."""
    return in_utc(time, SPELLING)


def in_utc(time: int, spelling: str) -> str:
    """Return a time (ms) in a spelling of `strftime`; the number itself if no calendar has it."""
    if not FIRST <= time <= LAST:
        return str(time)
    return datetime.fromtimestamp(time / 1000, UTC).strftime(spelling)
