"""Time that a report covers, in whole hours or days, and the groups of its rows.

Days begin at midnight in UTC, weeks on Mondays. Weeks have the names of ISO 8601.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from operator import itemgetter

import attrs

from yunikorn.errors import UsageError
from yunikorn.text import suggest
from yunikorn_history.history_tables import DAY, LEVELS

LONGEST_IN_HOURS = 14 * DAY
"""Longest time of a report whose sums begin and end with hours; a longer one begins and ends with days."""
HOURS, DAYS = 2, 3
"""Levels of series and usage that reports read."""
PERIODS: dict[str, Callable[[datetime], str]] = {
    "day": lambda at: f"{at:%Y-%m-%d}",
    "week": lambda at: f"{at:%G-W%V}",
    "month": lambda at: f"{at:%Y-%m}",
}
"""Names of periods of time by kind."""
TAG = "tag:"
SUBJECTS = ("queue", "user", "group", "template", TAG)
"""Subjects of groups."""


@attrs.frozen
class ReportWindow:
    """Time of a report (ms since 1970), from `since` to before `until`."""

    since: int
    until: int
    level: int
    runs: Sequence[tuple[int, int]] = ()
    """Begin and end of the times in which a scheduler ran, in order; they do not overlap."""

    @classmethod
    def around(
        cls, since: int, until: int, runs: Sequence[tuple[int, int]], *, has_hours: bool
    ) -> ReportWindow:
        """Return the window of whole hours or days around a time, up to the end of the latest run.

        Without `has_hours`, the history has only days left.
        """
        level = HOURS if has_hours and until - since <= LONGEST_IN_HOURS else DAYS
        length = LEVELS[level]
        end = -(-until // length) * length
        return cls(since // length * length, min(end, runs[-1][1]), level, runs)

    @property
    def length(self) -> int:
        """Length of the buckets of series."""
        return LEVELS[self.level]

    @property
    def buckets(self) -> int:
        """Number of buckets."""
        return -(-(self.until - self.since) // self.length)

    def index(self, time: int) -> int:
        """Return the number of the bucket with a time."""
        return (time - self.since) // self.length

    def covered(self, time: int) -> int:
        """Return how much of the bucket that begins at a time is in the window."""
        return min(time + self.length, self.until) - time

    def observed(self, time: int) -> int:
        """Return for how much of the bucket that begins at a time a scheduler ran."""
        return self.observed_between(time, time + self.length)

    def observed_between(self, since: int, until: int) -> int:
        """Return for how much of a time a scheduler ran, in the window."""
        since, until = self.clip(since, until)
        first = bisect_right(self.runs, since, key=itemgetter(1))
        found = 0
        for begin, end in islice(self.runs, first, None):
            if begin >= until:
                break
            found += min(end, until) - max(begin, since)
        return found

    def periods(self, period: str) -> list[tuple[str, int, int]]:
        """Return name, begin and end of the days, weeks or months of the window, or the window itself."""
        if not period:
            return [("", self.since, self.until)]
        found: list[tuple[str, int, int]] = []
        for day in range(self.since // DAY * DAY, self.until, DAY):
            name, (since, until) = period_name(period, day), self.clip(day, day + DAY)
            if found and found[-1][0] == name:
                since = found.pop()[1]
            found.append((name, since, until))
        return found

    def clip(self, since: int, until: int) -> tuple[int, int]:
        """Return the part of a time that is in the window."""
        return max(since, self.since), min(until, self.until)


@attrs.frozen
class ReportFilter:
    """Restriction of a report to a queue or a user."""

    queue: str = ""
    """Path of a queue, for it and the queues below it; empty for all."""
    user: str = ""


@lru_cache(maxsize=4096)
def _name_of_day(period: str, day: int) -> str:
    return PERIODS[period](datetime.fromtimestamp(day * 86_400, UTC))


def period_name(period: str, time: int) -> str:
    """Return the name of the day, week or month with a time (ms since 1970)."""
    return _name_of_day(period, time // DAY)


def spell_time(time: int) -> str:
    """Return a time (ms since 1970) such as `2026-03-01T12:00Z`."""
    return f"{datetime.fromtimestamp(time // 1000, UTC):%Y-%m-%dT%H:%MZ}"


@attrs.frozen
class Grouping:
    """Groups of the rows of a report: a subject, a period of time, or both."""

    by: tuple[str, ...]
    """As given, in this order."""
    period: str = attrs.field(init=False)
    """`day`, `week` or `month`; empty without a period."""
    subject: str = attrs.field(init=False)
    """Subject of the groups, apart from the period; empty without one."""

    @period.default
    def _find_period(self) -> str:
        return next((part for part in self.by if part in PERIODS), "")

    @subject.default
    def _find_subject(self) -> str:
        return next((part for part in self.by if part not in PERIODS), "")

    @property
    def tag(self) -> str:
        """Name of the tag; empty for other groups."""
        return self.subject[len(TAG) :] if self.subject.startswith(TAG) else ""

    @property
    def column(self) -> str:
        """Column of applications that has the subject; any one without a subject."""
        return "tags" if self.tag else {"": "queue", "group": "groups"}.get(self.subject, self.subject)

    @property
    def members(self) -> str:
        """Words for the groups of several subjects, such as `users`."""
        return f"values of {self.tag}" if self.tag else f"{self.subject}s".replace("queues", "leaf queues")

    @classmethod
    def parse(
        cls, text: str, subjects: tuple[str, ...], *, needs_subject: bool = False, why_none: str = ""
    ) -> Grouping:
        """Parse a text such as `user,month`; raises `UsageError`.

        With `needs_subject`, a period alone makes no groups; `why_none` says why there are no `subjects`.
        """
        parts = tuple(part.strip() for part in text.split(","))
        known = (*subjects, *PERIODS)
        spelled = ", ".join("tag:NAME" if name == TAG else name for name in known)
        for part in parts:
            if part not in subjects and part not in PERIODS and not (TAG in known and part.startswith(TAG)):
                is_subject = part in SUBJECTS or part.startswith(TAG)
                why = f"; {why_none}" if is_subject else ""
                raise UsageError(
                    f"--by: there are no groups by '{part}'{suggest(part, known)}; known: {spelled}{why}"
                )
            if part == TAG:
                raise UsageError("--by: tag: needs the name of a tag, such as tag:team")
        found = cls(parts)
        chosen = [part for part in parts if part in PERIODS]
        if len(parts) > 2 or len(chosen) > 1 or len(set(parts)) < len(parts) or len(parts) - len(chosen) > 1:
            such = (
                f"one or two, of which one may be a period, such as {subjects[0]},month"
                if subjects
                else "one"
            )
            raise UsageError(f"--by {text}: expected {such}")
        if needs_subject and not found.subject:
            raise UsageError(
                f"--by {text}: expected a group as well, such as {subjects[0]},{text}; known: {spelled}"
            )
        return found

    def named(self, subject: str, period: str) -> dict[str, str]:
        """Return the cells of a group, in the order of the option."""
        return {part: period if part in PERIODS else subject for part in self.by}
