"""Rows of `usage`: exact service in each hour and day, by queue, user, groups and tags.

The rows that are written have the service until a *checkpoint*, whose time is in `meta`, and are written in
the same transaction. They follow from the rows of allocations: after a restart, allocations that began or
ended later, or still run, are counted again from the checkpoint on.

Service is linear. What runs has a *rate*, which each checkpoint adds for the time since the one before. An
allocation that begins or ends in between adds or subtracts the difference between its time and the
checkpoint. So the order of entries does not matter, and a clock that is set back makes no sum wrong.
"""

from __future__ import annotations

import heapq
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

import attrs
import sqlalchemy as sa

from yunikorn.resources import INT64_MAX
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    DAY,
    HOUR,
    LEVELS,
    META,
    MINUTE,
    PLACEHOLDER,
    PREEMPTED,
    RUNS,
    SHAPES,
    USAGE,
)
from yunikorn_history.rows import RowBatch

_log = logging.getLogger("yunikorn.history")

UsageKey = tuple[int, int, int, int, int, int]
"""Ids of the resource manager, partition, queue, user, groups and tags."""
Amounts = Mapping[str, int]
Find = Callable[[sa.Select[Any]], Sequence[Sequence[Any]]]
"""Function that reads rows from the database."""
Period = tuple[int, int, Amounts]
"""Beginning and end (ms) of a time in which an allocation had a size."""

SETTLED = 2_000
"""Time after which no earlier entry is expected (ms); one that comes nevertheless is written at once."""
LONGEST = 31 * DAY
"""Longest time (ms) between an entry and a checkpoint; beyond, an entry counts from the checkpoint on."""
LONGEST_LOST = 366 * DAY
"""Longest time (ms) that is counted as lost with an allocation."""
MOST = 500_000
"""Largest number of hours, those of each key counted, between two checkpoints. More are a step of the clock,
and count as none."""
CHECKPOINT = "usage"
"""Key of the time of the latest checkpoint in `meta`."""


@attrs.define
class UsageBucket:
    """Service and tasks of a key in an hour or a day."""

    service: dict[str, int] = attrs.Factory(dict)
    placeholder: dict[str, int] = attrs.Factory(dict)
    lost: dict[str, int] = attrs.Factory(dict)
    started: int = 0
    ended: int = 0
    preempted: int = 0

    def text(self) -> str:
        """Return JSON; what is zero is left out."""
        found: dict[str, Any] = {"started": self.started, "ended": self.ended, "preempted": self.preempted}
        for name in ("placeholder", "lost", "service"):
            found[name] = {key: value for key, value in getattr(self, name).items() if value}
        kept = {name: value for name, value in found.items() if value or name == "service"}
        return json.dumps(kept, sort_keys=True, separators=(",", ":"))


def periods_of(placed: int, ended: int, amounts: Amounts, sizes: str | None) -> list[Period]:
    """Return the periods of an allocation; `sizes` is the column of its row."""
    found: list[Period] = []
    for until, size in json.loads(sizes) if sizes else ():
        found.append((placed, until, size))
        placed = until
    return [*found, (placed, ended, amounts)]


class ServiceUsage:
    """Service in hours and days, kept by the recorder; used by one thread.

    `add_rows` is called when the rows of the call before are in the database, and only then.
    """

    def __init__(self, find: Find, now: int) -> None:
        """Continue from the database that `find` reads, or begin (ms)."""
        self._find = find
        self._buckets: dict[int, dict[tuple[int, UsageKey], UsageBucket]] = {2: {}, 3: {}}
        """Buckets by level; among them are all that begin at `_fresh` or later."""
        self._fresh = {2: 0, 3: 0}
        self._dirty: set[tuple[int, int, UsageKey]] = set()
        self._rates: dict[UsageKey, tuple[dict[str, int], dict[str, int]]] = {}
        """Amounts that run now: all, and those of placeholders."""
        self._later: list[tuple[int, int, Callable[[int], None]]] = []
        """Heap of entries by their times, which are not counted yet."""
        self._numbers = count()
        self._is_due = False
        """True if something was counted that is to be written at once."""
        kept = find(sa.select(META.c.value).where(META.c.key == CHECKPOINT))
        self._until = int(kept[0][0]) if kept else now
        """Time of the latest checkpoint (ms)."""
        for level in self._buckets:
            length = LEVELS[level]
            self._fresh[level] = self._until - self._until % length
            self._load(level, USAGE.c.time >= self._fresh[level])
        if kept:
            self._continue()

    # -- entries, from the recorder -----------------------------------------------------------------

    def placed(self, key: UsageKey, at: int, amounts: Amounts, *, placeholder: bool = False) -> None:
        """Count an allocation from its placement on (ms)."""
        self._note(at, partial(self._run, key, amounts, placeholder, 1))
        if not placeholder:
            self._note(at, partial(self._count, key, "started"))

    def withdrawn(self, key: UsageKey, at: int, amounts: Amounts, *, placeholder: bool = False) -> None:
        """Take back an allocation that was counted from a placement on (ms)."""
        self._note(at, partial(self._run, key, amounts, placeholder, -1))
        if not placeholder:
            self._note(at, partial(self._count, key, "started", sign=-1))

    def resized(
        self, key: UsageKey, at: int, before: Amounts, after: Amounts, *, placeholder: bool = False
    ) -> None:
        """Count an allocation with another size from a time on (ms)."""
        self._note(at, partial(self._run, key, before, placeholder, -1))
        self._note(at, partial(self._run, key, after, placeholder, 1))

    def ended(
        self,
        key: UsageKey,
        periods: Sequence[Period],
        *,
        placeholder: bool = False,
        preempted: bool = False,
        sign: int = 1,
    ) -> None:
        """Count an allocation until its end; `periods` have all its sizes (see `periods_of`).

        With the sign -1, take back an end that was counted.
        """
        _, at, amounts = periods[-1]
        self._note(at, partial(self._run, key, amounts, placeholder, -sign))
        self._count_end(key, periods, placeholder, preempted, sign)

    def _count_end(
        self, key: UsageKey, periods: Sequence[Period], placeholder: bool, preempted: bool, sign: int = 1
    ) -> None:
        at = periods[-1][1]
        if not placeholder:
            self._note(at, partial(self._count, key, "ended", sign=sign))
            if preempted:
                self._note(at, partial(self._count, key, "preempted", sign=sign))
                self._note(at, partial(self._lose, key, periods, sign))

    def add_rows(self, now: int, batch: RowBatch, *, ends: bool = False) -> None:
        """Add the rows that are due (ms) to a batch with the rows of the allocations that were counted.

        `ends` if the recorder stops, so that no entry follows.
        """
        at = now if ends else now - SETTLED
        self._is_due = self._is_due or ends or not 0 <= at - self._until < MINUTE
        while self._later and self._later[0][0] <= max(at, self._until):
            time, number, entry = heapq.heappop(self._later)
            try:
                entry(self._until if abs(time - self._until) > LONGEST else time)
            except Exception:
                # It could not read the database, and has changed nothing.
                heapq.heappush(self._later, (time, number, entry))
                raise
            self._is_due = self._is_due or time <= self._until
        if self._is_due:
            self._check(at)
            for level, time, key in self._dirty:
                batch.add(USAGE.name, (level, time, *key, self._buckets[level][time, key].text()))
            batch.add(META.name, (CHECKPOINT, str(self._until)))
            self._is_due = False
            self._forget()

    # -- counting -----------------------------------------------------------------------------------

    def _note(self, at: int, entry: Callable[[int], None]) -> None:
        """Count an entry at the next call of `add_rows` that is not before its time."""
        time = self._until if at - self._until > LONGEST else at
        heapq.heappush(self._later, (time, next(self._numbers), entry))

    def _run(self, key: UsageKey, amounts: Amounts, placeholder: bool, sign: int, at: int) -> None:
        """Count amounts as running, or as running no more, from a time on."""
        fields = ("service", "placeholder")[: 1 + placeholder]
        self._add(key, fields, amounts, at, self._until, sign)
        for _, rate in zip(fields, self._rates.setdefault(key, ({}, {})), strict=False):
            for name, amount in amounts.items():
                rate[name] = rate.get(name, 0) + sign * amount

    def _count(self, key: UsageKey, field: str, at: int, *, sign: int = 1) -> None:
        for bucket, _ in self._parts(key, at, at + 1):
            setattr(bucket, field, getattr(bucket, field) + sign)

    def _lose(self, key: UsageKey, periods: Sequence[Period], sign: int, at: int) -> None:
        parts = [
            (amounts, self._parts(key, max(since, until - LONGEST_LOST), until))
            for since, until, amounts in periods
            if since < until
        ]
        for amounts, of_period in parts:
            _grow(of_period, ("lost",), amounts, sign)

    def _add(
        self, key: UsageKey, fields: Sequence[str], amounts: Amounts, since: int, until: int, sign: int = 1
    ) -> None:
        """Add the service of amounts between two times; of times in the other order, subtract the service."""
        if since > until:
            since, until, sign = until, since, -sign
        if any(amounts.values()):
            _grow(self._parts(key, since, until), fields, amounts, sign)

    def _check(self, at: int) -> None:
        """Count what runs until a time."""
        since, hours = self._until, abs(at - self._until) // HOUR
        if hours > LONGEST // HOUR or hours * len(self._rates) > MOST:
            _log.warning("the clock was set by %d hours, for which the history counts no usage", hours)
            self._until = at
        elif at > since:
            self._until = at
            for key, (every, placeholders) in list(self._rates.items()):
                self._add(key, ("service",), every, since, at)
                self._add(key, ("placeholder",), placeholders, since, at)
                if not any(every.values()):
                    del self._rates[key]

    def _continue(self) -> None:
        """Count the allocations that ran at the latest checkpoint, and what has followed since."""
        one, app, until = ALLOCATIONS.c, APPLICATIONS.c, self._until
        found = self._find(
            sa.select(one.placed, one.ended, app.ended, SHAPES.c.amounts, one.sizes, one.flags)
            .add_columns(app.rm, app.partition, app.queue, app.user, app.groups, app.tags)
            .join(APPLICATIONS, one.app == app.id)
            .join(SHAPES, one.shape == SHAPES.c.id)
            .where(sa.or_(one.ended.is_(None), one.ended > until))
        )
        [[alive]] = self._find(sa.select(sa.func.max(RUNS.c.seen)))
        for placed, ended, left, shape, sizes, flags, *owner in found:
            key: Any = tuple(owner)
            if ended is None and left is not None:
                # The end of the application was written, and that of the allocation was not.
                ended = max(placed, alive or 0)
            placeholder, amounts = bool(flags & PLACEHOLDER), json.loads(shape)
            periods = periods_of(placed, INT64_MAX if ended is None else ended, amounts, sizes)
            for since, end, size in periods:
                if end > until:
                    begin = partial(self._run, key, size, placeholder, 1)
                    begin(until) if since <= until else self._note(since, begin)
                if until < end < INT64_MAX:
                    self._note(end, partial(self._run, key, size, placeholder, -1))
            if placed > until and not placeholder:
                self._note(placed, partial(self._count, key, "started"))
            if ended is not None:
                self._count_end(key, periods, placeholder, bool(flags & PREEMPTED))

    # -- buckets ------------------------------------------------------------------------------------

    def _parts(self, key: UsageKey, since: int, until: int) -> list[tuple[UsageBucket, int]]:
        """Return the buckets of all levels between two times likewise; all are read before one is changed."""
        return [one for level in self._buckets for one in self._between(level, key, since, until)]

    def _between(
        self, level: int, key: UsageKey, since: int, until: int
    ) -> Iterator[tuple[UsageBucket, int]]:
        """Yield the buckets between two times, which are about to change, and the length of the part (ms)."""
        known, length = self._buckets[level], LEVELS[level]
        if since < self._fresh[level]:
            same = (column == value for column, value in zip(_KEY, key, strict=True))
            times = USAGE.c.time > since - length, USAGE.c.time < min(until, self._fresh[level])
            self._load(level, *times, *same)
        while since < until:
            time = since - since % length
            end = min(time + length, until)
            bucket = known.get((time, key))
            if bucket is None:
                bucket = known[time, key] = UsageBucket()
            self._dirty.add((level, time, key))
            yield bucket, end - since
            since = end

    def _load(self, level: int, *conditions: sa.ColumnElement[bool]) -> None:
        for _, time, *key, data in self._find(sa.select(USAGE).where(USAGE.c.level == level, *conditions)):
            self._buckets[level].setdefault((time, tuple(key)), UsageBucket(**json.loads(data)))

    def _forget(self) -> None:
        """Forget buckets that will hardly change; one that does is read again."""
        self._dirty = set()
        for level, known in self._buckets.items():
            recent = self._until - HOUR
            # Not less than before, because buckets in between were forgotten.
            fresh = self._fresh[level] = max(self._fresh[level], recent - recent % LEVELS[level])
            for old in [one for one in known if one[0] < fresh]:
                del known[old]


def _grow(
    parts: Sequence[tuple[UsageBucket, int]], fields: Sequence[str], amounts: Amounts, sign: int
) -> None:
    for bucket, length in parts:
        for field in fields:
            tally = getattr(bucket, field)
            for name, amount in amounts.items():
                tally[name] = tally.get(name, 0) + sign * amount * length


_KEY = (USAGE.c.rm, USAGE.c.partition, USAGE.c.queue, USAGE.c.user, USAGE.c.groups, USAGE.c.tags)
