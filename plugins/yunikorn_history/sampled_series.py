"""Rows of `series`: use and waits of queues, users, nodes and the partition in minutes, hours and days.

Each sample is added to three buckets of each name, so that hours and days follow from the minutes. A bucket
keeps sums; its row has means over all samples of the bucket, those included in which the name had nothing.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from threading import Event as ThreadEvent
from typing import Any

import attrs

from yunikorn.accounting.event_batch import ALLOCATED, RELEASED, Entry
from yunikorn.clock import MILLISECOND
from yunikorn.event_types import EventDetail
from yunikorn.resources import Tally, grow
from yunikorn_history.core_sample import SampledCore, SampledUse
from yunikorn_history.history_tables import (
    LEVELS,
    NODE_SERIES,
    PARTITION_SERIES,
    QUEUE_SERIES,
    USER_SERIES,
)
from yunikorn_history.rows import Ids, Row

WAIT_BOUNDS = tuple(sorted({round(2 ** (power / 2) + 0.499) for power in range(76)}))
"""Upper bounds of waits (ms), powers of the square root of two; the last one has all that is longer."""
TURNS = 10
"""Number of samples in which the row of each node is written once, as there may be many nodes."""
MOST = 5_000
"""Number of rows in a commit."""
AT_ONCE = 50
"""Number of points and rows between two pauses, in which other threads continue."""
_MEANS = ("running", "waiting", "unschedulable")
_pause = ThreadEvent().wait
Name = tuple[int, int]
"""Kind and id of the name of a series."""


@attrs.define
class SampledPoint(SampledUse):
    """Use and changes of a name in a bucket, or since the sample before."""

    started: int = 0
    preempted: int = 0
    unschedulable: int = 0
    waits: dict[str, int] = attrs.Factory(dict)
    idle: dict[str, Tally] = attrs.Factory(dict)
    latest: dict[str, Any] = attrs.Factory(dict)
    """Values that are not summed."""
    missed: int = 0
    """Number of samples of the bucket without this name, because the name was not known."""

    def merge(self, other: SampledUse) -> None:
        """Add another point, or the use at one moment."""
        self.add(other)
        if isinstance(other, SampledPoint):
            self.started += other.started
            self.preempted += other.preempted
            self.unschedulable += other.unschedulable
            grow(self.waits, other.waits)
            for cause, amounts in other.idle.items():
                grow(self.idle.setdefault(cause, {}), amounts)
            self.latest |= other.latest

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to tell."""
        counts = self.running, self.waiting, self.started, self.preempted, self.unschedulable
        return not (self.used or self.pending or any(counts))

    def text(self, kind: int, samples: int) -> str:
        """Return JSON of a bucket with this number of samples; what is zero or empty is left out."""
        number = max(1, samples - self.missed)
        found: dict[str, Any] = {name: _mean(getattr(self, name), number) for name in _MEANS}
        free = 1 - found.pop("unschedulable")
        if kind == NODE_SERIES:
            found["schedulable"] = round(free, 4)
        for name in ("used", "pending"):
            found[name] = {key: _mean(value, number) for key, value in getattr(self, name).items()}
        found |= {name: getattr(self, name) for name in ("started", "preempted", "waits", "idle")}
        found |= self.latest
        kept = {name: value for name, value in found.items() if value or name == "schedulable"}
        return json.dumps({"n": number, **kept}, sort_keys=True, separators=(",", ":"))

    @classmethod
    def of_text(cls, kind: int, text: str) -> tuple[SampledPoint, int]:
        """Return a bucket, and the number of its samples."""
        data = json.loads(text)
        number = data.pop("n")
        point = cls(
            **{name: data.pop(name) for name in ("started", "preempted", "waits", "idle") if name in data}
        )
        for name in ("used", "pending"):
            sums = {key: round(value * number) for key, value in data.pop(name, {}).items()}
            setattr(point, name, sums)
        if kind == NODE_SERIES:
            data["unschedulable"] = 1 - data.pop("schedulable")
        for name in _MEANS:
            setattr(point, name, round(data.pop(name, 0) * number))
        point.latest = data
        return point, number


@attrs.define(eq=False)
class _Bucket:
    """A minute, hour or day of all names."""

    level: int
    time: int = -1
    samples: int = 0
    points: dict[Name, SampledPoint] = attrs.Factory(dict)
    changed: dict[Name, None] = attrs.Factory(dict)


class SampledSeries:
    """Series of a core, used by one thread."""

    def __init__(self, names: Ids, kept: Iterable[Sequence[Any]] = (), now: int = 0) -> None:
        """Continue from `kept`: the rows of the minute, hour and day of `now` (ms), and of later ones.

        There are later ones if the clock was set back before the start: that time comes again.
        """
        self._names = names
        self._placed: dict[tuple[str, str], SampledPoint] = {}
        """Placements and preemptions since the latest sample, by queue and user."""
        self._ended: list[_Bucket] = []
        """Buckets that are over, and have rows to be written."""
        self._number = 0
        self._kept: dict[tuple[int, int], list[tuple[Name, str]]] = {}
        """Names and JSON of the rows of buckets that are not begun, by level and time."""
        for kind, name, level, time, text in kept:
            self._kept.setdefault((level, time), []).append(((kind, name), text))
        self._buckets = {level: self._begun(level, now - now % length) for level, length in LEVELS.items()}

    def _begun(self, level: int, time: int) -> _Bucket:
        """Return a bucket with what was written to it before."""
        for passed in [one for one in self._kept if one[0] == level and one[1] < time]:
            del self._kept[passed]
        bucket, numbers = _Bucket(level, time), dict[Name, int]()
        for name, text in self._kept.pop((level, time), ()):
            bucket.points[name], numbers[name] = SampledPoint.of_text(name[0], text)
        bucket.samples = numbers.get((PARTITION_SERIES, 0), 0)
        for name, point in bucket.points.items():
            # Other names are written with each sample in which they have anything.
            point.missed = bucket.samples - numbers[name] if name[0] == NODE_SERIES else 0
        return bucket

    def observe(self, entries: Iterable[Entry]) -> None:
        """Count placements and preemptions."""
        for entry in entries:
            if type(entry) is not tuple or entry[0] not in (ALLOCATED, RELEASED):
                continue
            allocation = entry[2]
            if allocation.placeholder:
                continue
            point = self._placed.setdefault((allocation.queue_name, allocation.app.user), SampledPoint())
            if entry[0] is RELEASED:
                point.preempted += entry[4] == EventDetail.ALLOC_PREEMPT
            elif allocation.ask is not None:
                point.started += 1
                since = min(allocation.ask.created, allocation.placeholder_requested or entry[1])
                bound = wait_bound((entry[1] - since) // MILLISECOND)
                point.waits[bound] = point.waits.get(bound, 0) + 1

    def add(self, sample: SampledCore, passed: int) -> None:
        """Add a sample, `passed` milliseconds after the one before."""
        self._number += 1
        for level, length in LEVELS.items():
            bucket, time = self._buckets[level], sample.time - sample.time % length
            if time != bucket.time:
                # The means of all names depend on the number of samples.
                bucket.changed = dict.fromkeys(bucket.points)
                self._ended.append(bucket)
                bucket = self._buckets[level] = self._begun(level, time)
            bucket.samples += 1
            for name in bucket.points:
                if name[0] == NODE_SERIES and name[1] % TURNS == self._number % TURNS:
                    bucket.changed[name] = None
        for number, (kind, text, point) in enumerate(self._points(sample, passed)):
            if number % AT_ONCE == AT_ONCE - 1:
                _pause(1e-5)
            name = kind, self._names.of(text)
            for bucket in list(self._buckets.values())[kind == NODE_SERIES :]:
                bucket.points.setdefault(name, SampledPoint()).merge(point)
                if kind != NODE_SERIES:
                    bucket.changed[name] = None

    def repeat(self) -> None:
        """Yield all rows of the present minute, hour and day again."""
        for bucket in self._buckets.values():
            bucket.changed = dict.fromkeys(bucket.points)

    def _points(self, sample: SampledCore, passed: int) -> Iterator[tuple[int, str, SampledPoint]]:
        """Yield kind, name and values of all that has something; the partition is last."""
        queues: dict[str, SampledPoint] = {}
        users: dict[str, SampledPoint] = {}
        placed, self._placed = self._placed, {}
        parts = [(path, use) for path, use in sample.leaves.items()]
        parts += [(path, point) for (path, _), point in placed.items()]
        for path, use in parts:
            while path:
                queues.setdefault(path, SampledPoint()).merge(use)
                path = path.rpartition(".")[0]
        parts = [(user, use) for user, use in sample.users.items()]
        for user, use in [*parts, *((user, point) for (_, user), point in placed.items())]:
            users.setdefault(user, SampledPoint()).merge(use)
        total = SampledPoint(idle=idle_of(sample, passed))
        total.latest = {"capacity": sample.capacity, "nodes": len(sample.nodes)}
        for path, point in queues.items():
            if "." not in path:
                total.merge(point)
            if not point.is_empty:
                bounds = zip(("guaranteed", "max"), sample.bounds.get(path, ()), strict=False)
                point.latest = {name: amounts for name, amounts in bounds if amounts}
                yield QUEUE_SERIES, path, point
        for user, point in users.items():
            if not point.is_empty:
                yield USER_SERIES, user, attrs.evolve(point, pending={}, preempted=0)
        for node in sample.nodes:
            if node.used is not None or not node.schedulable:
                unschedulable = int(not node.schedulable)
                latest = {"capacity": node.capacity}
                used = node.used or {}
                yield NODE_SERIES, node.name, SampledPoint(used, unschedulable=unschedulable, latest=latest)
        yield PARTITION_SERIES, "", total

    def rows(self) -> Iterator[Row]:
        """Yield up to `MOST` rows that have changed."""
        number = 0
        for bucket in [*self._ended, *self._buckets.values()]:
            while bucket.changed and number < MOST:
                name = next(iter(bucket.changed))
                del bucket.changed[name]
                number += 1
                if number % AT_ONCE == 0:
                    _pause(1e-5)
                yield (*name, bucket.level, bucket.time, bucket.points[name].text(name[0], bucket.samples))
        self._ended = [bucket for bucket in self._ended if bucket.changed]


def _mean(total: int, number: int) -> float:
    """Return a mean, from which the total follows again if it is small, such as that of a count."""
    mean = total / number
    return round(mean) if mean >= 1e6 or mean.is_integer() else round(mean, 4)


def wait_bound(wait: int) -> str:
    """Return the upper bound of the bucket of a wait (ms), as a key of `waits`."""
    return str(WAIT_BOUNDS[min(bisect_left(WAIT_BOUNDS, wait), len(WAIT_BOUNDS) - 1)])


def idle_of(sample: SampledCore, passed: int) -> dict[str, Tally]:
    """Return the service that was free while requests waited, by the cause of their waits.

    The free amounts, at most those that are requested, are divided among the causes by their requests.
    """
    found: dict[str, Tally] = {}
    for name, free in sample.free.items():
        total = sum(amounts.get(name, 0) for amounts in sample.causes.values())
        left = min(free, total)
        for cause, amounts in sample.causes.items():
            requested = amounts.get(name, 0)
            # The rest of the division goes to the last cause.
            total -= requested
            part = left if total <= 0 else left * requested // (total + requested)
            left -= part
            if part > 0 and passed > 0:
                found.setdefault(cause, {})[name] = part * passed
    return found
