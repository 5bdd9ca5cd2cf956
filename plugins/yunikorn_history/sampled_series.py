"""Rows of `series`: use and waits of queues, users, nodes and the partition in minutes, hours and days.

Each sample is added to three buckets of each name, so that hours and days follow from the minutes. A bucket
keeps sums; its row has means over all samples of the bucket, those included in which the name had nothing.
Placements and preemptions need no sample: they are counted each time that rows are written.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Event as ThreadEvent
from typing import Any

import attrs

from yunikorn.accounting.event_batch import ALLOCATED, RELEASED, Entry, Source
from yunikorn.clock import MILLISECOND
from yunikorn.event_types import EventDetail
from yunikorn.resources import Tally, grow
from yunikorn_history.core_sample import SampledCore, SampledPartition, SampledUse
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
_STEADY = ("capacity", "guaranteed")
"""Values that seldom change, with means beside the latest ones where they did."""
_pause = ThreadEvent().wait
Name = tuple[int, int, int, int]
"""Kind of a series, and the ids of its name, resource manager and partition."""
NamedPoint = tuple[int, str, Source, "SampledPoint"]
"""Kind of a series, name, partition and values."""
Placed = Mapping[Source, Mapping[tuple[str, str], "SampledPoint"]]
"""Placements and preemptions by partition, queue and user."""


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
    present: int = 0
    """Number of samples of the bucket in which the name had something."""
    steady: dict[str, Tally] = attrs.Factory(dict)
    """Sums of capacity and guarantee over these."""

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

    def hold(self) -> None:
        """Add the latest capacity and guarantee to their sums, with each sample."""
        self.present += 1
        for name in _STEADY:
            grow(self.steady.setdefault(name, {}), self.latest.get(name, {}))

    def steady_mean(self, name: str, number: int) -> Mapping[str, float]:
        """Return the mean capacity or guarantee over a number of samples; the latest one without any."""
        if not number:
            return self.latest.get(name, {})  # type: ignore[no-any-return]
        return {key: _mean(value, number) for key, value in self.steady.get(name, {}).items()}

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to tell."""
        counts = self.running, self.waiting, self.started, self.preempted, self.unschedulable
        return not (self.used or self.pending or any(counts))

    def text(self, kind: int, samples: int) -> str:
        """Return JSON of a bucket with this number of samples; what is zero or empty is left out."""
        samples -= self.missed
        number = max(1, samples)
        found: dict[str, Any] = {name: _mean(getattr(self, name), number) for name in _MEANS}
        free = 1 - found.pop("unschedulable")
        if kind == NODE_SERIES:
            found["schedulable"] = round(free, 4)
        for name in ("used", "pending"):
            found[name] = {key: _mean(value, number) for key, value in getattr(self, name).items()}
        found |= {name: getattr(self, name) for name in ("started", "preempted", "waits", "idle")}
        found |= self.latest
        # A queue keeps its guarantee while it has nothing; a partition that is away has no capacity.
        held = samples if kind == PARTITION_SERIES else self.present
        means = {name: self.steady_mean(name, held) for name in _STEADY}
        found["mean"] = {name: mean for name, mean in means.items() if mean != self.latest.get(name, {})}
        kept = {name: value for name, value in found.items() if value or name == "schedulable"}
        return json.dumps({"n": samples, **kept}, sort_keys=True, separators=(",", ":"))

    @classmethod
    def of_text(cls, kind: int, text: str) -> tuple[SampledPoint, int]:
        """Return a bucket, and the number of its samples."""
        data = json.loads(text)
        number, means = data.pop("n"), data.pop("mean", {})
        point = cls(
            present=number,
            **{name: data.pop(name) for name in ("started", "preempted", "waits", "idle") if name in data},
        )
        for name in _STEADY:
            mean = means.get(name, data.get(name, {}))
            point.steady[name] = {key: round(value * number) for key, value in mean.items()}
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
        self._placed: dict[Source, dict[tuple[str, str], SampledPoint]] = {}
        """Placements and preemptions since the latest rows, by partition, queue and user."""
        self._sampled: Mapping[Source, SampledPartition] = {}
        """Partitions of the latest sample."""
        self._before: dict[int, _Bucket] = {}
        """Buckets before the present ones, by level, until there is a sample in the present one."""
        self._ended: list[_Bucket] = []
        """Buckets that are over, and have rows to be written."""
        self._number = 0
        self._kept: dict[tuple[int, int], list[tuple[Name, str]]] = {}
        """Names and JSON of the rows of buckets that are not begun, by level and time."""
        for kind, name, level, time, rm, partition, text in kept:
            self._kept.setdefault((level, time), []).append(((kind, name, rm, partition), text))
        self._buckets = {level: self._begun(level, now - now % length) for level, length in LEVELS.items()}

    def _begun(self, level: int, time: int) -> _Bucket:
        """Return a bucket with what was written to it before."""
        for passed in [one for one in self._kept if one[0] == level and one[1] < time]:
            del self._kept[passed]
        bucket, numbers = _Bucket(level, time), dict[Name, int]()
        for name, text in self._kept.pop((level, time), ()):
            bucket.points[name], numbers[name] = SampledPoint.of_text(name[0], text)
        bucket.samples = max((n for name, n in numbers.items() if name[0] == PARTITION_SERIES), default=0)
        for name, point in bucket.points.items():
            # Other names are written with each sample in which they have anything.
            point.missed = bucket.samples - numbers[name] if name[0] == NODE_SERIES else 0
        return bucket

    def observe(self, entries: Iterable[Entry], source: Source) -> None:
        """Count placements and preemptions."""
        placed = self._placed.setdefault(source, {})
        for entry in entries:
            if type(entry) is not tuple or entry[0] not in (ALLOCATED, RELEASED):
                continue
            allocation = entry[2]
            if allocation.placeholder:
                continue
            point = placed.setdefault((allocation.queue_name, allocation.app.user), SampledPoint())
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
        self._sampled = sample.partitions
        buckets = [self._bucket(level, sample.time) for level in LEVELS]
        for bucket in buckets:
            bucket.samples += 1
            for name in bucket.points:
                if name[0] == NODE_SERIES and name[1] % TURNS == self._number % TURNS:
                    bucket.changed[name] = None
        self._merge(buckets, _points(sample, passed), is_sample=True)
        for bucket in buckets:
            if bucket is self._buckets[bucket.level]:
                self._before.pop(bucket.level, None)
            else:
                bucket.changed = dict.fromkeys(bucket.points)

    def count(self, time: int) -> None:
        """Add the placements and preemptions since the call before to the buckets of a time (ms).

        They are written with the rows of these allocations, so that a kill loses both or neither.
        """
        placed, self._placed = self._placed, {}
        if any(placed.values()):
            points = _counted_points(placed, self._sampled)
            self._merge([self._bucket(level, time) for level in LEVELS], points, is_sample=False)

    def _bucket(self, level: int, time: int) -> _Bucket:
        """Return the bucket of a level with a time."""
        time -= time % LEVELS[level]
        bucket, before = self._buckets[level], self._before.get(level)
        if time == bucket.time:
            return bucket
        if before is not None and time == before.time:
            # Counts began the present bucket before a sample of the one before was read.
            if before not in self._ended:
                self._ended.append(before)
            return before
        # The means of all names depend on the number of samples.
        bucket.changed = dict.fromkeys(bucket.points)
        self._ended.append(bucket)
        self._before[level] = bucket
        self._buckets[level] = self._begun(level, time)
        return self._buckets[level]

    def _merge(self, buckets: Sequence[_Bucket], points: Iterable[NamedPoint], *, is_sample: bool) -> None:
        """Add points to the buckets of a minute, an hour and a day; nodes have no minutes."""
        of = self._names.of
        for number, (kind, text, source, point) in enumerate(points):
            if number % AT_ONCE == AT_ONCE - 1:
                _pause(1e-5)
            name = kind, of(text), of(source[0]), of(source[1])
            for bucket in buckets[kind == NODE_SERIES :]:
                whole = bucket.points.setdefault(name, SampledPoint())
                whole.merge(point)
                if is_sample:
                    whole.hold()
                if kind != NODE_SERIES:
                    bucket.changed[name] = None

    def repeat(self) -> None:
        """Yield all rows of the present minute, hour and day again."""
        for bucket in self._buckets.values():
            bucket.changed = dict.fromkeys(bucket.points)

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
                data = bucket.points[name].text(name[0], bucket.samples)
                yield (*name[:2], bucket.level, bucket.time, *name[2:], data)
        self._ended = [bucket for bucket in self._ended if bucket.changed]


def _points(sample: SampledCore, passed: int) -> Iterator[NamedPoint]:
    """Yield all that has something in a sample."""
    for source, of in sample.partitions.items():
        yield from _points_of(source, of, of.leaves.items(), of.users.items(), passed)
    for node in sample.nodes:
        if node.used is not None or not node.schedulable:
            point = SampledPoint(node.used or {}, unschedulable=int(not node.schedulable))
            point.latest = {"capacity": node.capacity}
            yield NODE_SERIES, node.name, (node.rm, node.partition), point


def _counted_points(placed: Placed, sampled: Mapping[Source, SampledPartition]) -> Iterator[NamedPoint]:
    """Yield placements and preemptions, also those of a partition that has gone since."""
    for source, points in placed.items():
        of = sampled.get(source) or SampledPartition()
        leaves = [(path, point) for (path, _), point in points.items()]
        users = [(user, point) for (_, user), point in points.items()]
        if points:
            yield from _points_of(source, of, leaves, users, 0)


def _points_of(
    source: Source,
    of: SampledPartition,
    leaves: Iterable[tuple[str, SampledUse]],
    of_users: Iterable[tuple[str, SampledUse]],
    passed: int,
) -> Iterator[NamedPoint]:
    """Yield the values of queues, of users and of the whole of a partition."""
    queues, users = dict[str, SampledPoint](), dict[str, SampledPoint]()
    for path, use in leaves:
        while path:
            queues.setdefault(path, SampledPoint()).merge(use)
            path = path.rpartition(".")[0]
    for user, use in of_users:
        users.setdefault(user, SampledPoint()).merge(use)
    total = SampledPoint(idle=idle_of(of, passed))
    total.latest = {"capacity": of.capacity, "nodes": of.nodes}
    for path, point in queues.items():
        if "." not in path:
            total.merge(point)
        if not point.is_empty:
            guaranteed, quota = of.bounds.get(path, ({}, {}))
            point.latest = {"guaranteed": guaranteed, "max": quota}
            yield QUEUE_SERIES, path, source, point
    for user, point in users.items():
        if not point.is_empty:
            yield USER_SERIES, user, source, attrs.evolve(point, pending={}, preempted=0)
    yield PARTITION_SERIES, "", source, total


def merged_data(kind: int, texts: Sequence[str]) -> str:
    """Return the JSON of a bucket for all partitions, given that of each: sums, with means of all samples."""
    if len(texts) == 1:
        return texts[0]
    points = [SampledPoint.of_text(kind, text) for text in texts]
    samples = max(number for _, number in points)
    whole, latest = SampledPoint(present=samples), dict[str, Any]()
    for point, number in points:
        whole.merge(point)
        for name in _STEADY:
            mean = point.steady_mean(name, number)
            sums = {key: round(value * samples) for key, value in mean.items()}
            grow(whole.steady.setdefault(name, {}), sums)
        for name, value in point.latest.items():
            if isinstance(value, dict):
                grow(latest.setdefault(name, {}), value)
            else:
                latest[name] = latest.get(name, 0) + value
    whole.latest = latest
    # A node is as schedulable as it is in the mean of its partitions.
    whole.unschedulable //= len(texts)
    return whole.text(kind, samples)


def _mean(total: int, number: int) -> float:
    """Return a mean, from which the total follows again if it is small, such as that of a count."""
    mean = total / number
    return round(mean) if mean >= 1e6 or mean.is_integer() else round(mean, 4)


def wait_bound(wait: int) -> str:
    """Return the upper bound of the bucket of a wait (ms), as a key of `waits`."""
    return str(WAIT_BOUNDS[min(bisect_left(WAIT_BOUNDS, wait), len(WAIT_BOUNDS) - 1)])


def idle_of(sample: SampledPartition, passed: int) -> dict[str, Tally]:
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
