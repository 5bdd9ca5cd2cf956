"""Statistics: samples of numbers, and usage compared with capacity over time."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence

import attrs

from yunikorn.clock import SECOND
from yunikorn.resources import Tally, grow

DIGITS = 6
"""Decimal places of seconds and shares in a report."""


def seconds(nanoseconds: float) -> float:
    """Convert nanoseconds to the rounded seconds of a report."""
    return round(nanoseconds / SECOND, DIGITS)


@attrs.frozen
class Summary:
    """Statistics of a sample of seconds or ratios; `p95` is the 95th percentile."""

    count: int
    mean: float
    median: float
    p95: float
    max: float


def nearest_rank(ordered: Sequence[float], percent: int) -> float:
    """Return the smallest of the sorted numbers that at least `percent` % of them do not exceed."""
    return ordered[max(-(-percent * len(ordered) // 100), 1) - 1]


class Sample:
    """Numbers in the order of measurement, stored in eight bytes each."""

    _TYPE = "d"
    _UNIT = 1

    def __init__(self, numbers: Iterable[float] = ()) -> None:
        self._numbers = array(self._TYPE, numbers)

    def add(self, number: float) -> None:
        """Add a number."""
        self._numbers.append(number)

    def merge(self, other: Sample) -> None:
        """Add all numbers of another sample."""
        self._numbers.extend(other._numbers)

    def mean(self) -> float | None:
        """Return the mean, or None for an empty sample."""
        return self._sum() / len(self._numbers) if self._numbers else None

    def _sum(self) -> float:
        return math.fsum(self._numbers)

    def summary(self) -> Summary | None:
        """Return the statistics, or None for an empty sample.

        The median of an even number of values is the mean of the two middle values. The 95th percentile is
        that of the nearest rank.
        """
        mean = self.mean()
        if mean is None:
            return None
        ordered = sorted(self._numbers)
        count = len(ordered)
        middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
        figures = (mean, middle, nearest_rank(ordered, 95), ordered[-1])
        return Summary(count, *(round(figure / self._UNIT, DIGITS) for figure in figures))

    def percentile(self, percent: int) -> float | None:
        """Return the percentile of the nearest rank, or None for an empty sample."""
        ordered = sorted(self._numbers)
        return round(nearest_rank(ordered, percent) / self._UNIT, DIGITS) if ordered else None

    def curve(self, points: int) -> list[float]:
        """Return at most `points` evenly spaced order statistics, including the smallest and the largest."""
        ordered = sorted(self._numbers)
        if len(ordered) <= points:
            return [round(number, DIGITS) for number in ordered]
        last = len(ordered) - 1
        return [round(ordered[index * last // (points - 1)], DIGITS) for index in range(points)]


class Waits(Sample):
    """Waiting times in whole nanoseconds, summed exactly; the statistics are in seconds."""

    _TYPE = "q"
    _UNIT = SECOND

    def _sum(self) -> float:
        return sum(self._numbers)


class Capacity:
    """Capacity of a partition over time."""

    def __init__(self) -> None:
        self.now: Tally = {}
        self._changes: list[tuple[int, Mapping[str, int], int]] = []

    def change(self, moment: int, amount: Mapping[str, int], sign: int) -> None:
        """Add `amount` to the capacity from `moment` on (`sign` 1), or subtract the amount (-1)."""
        grow(self.now, amount, sign)
        self._changes.append((moment, amount, sign))

    def between(self, start: int, end: int) -> Tally:
        """Return the integral of the capacity from `start` to `end`: amount times nanoseconds."""
        total: Tally = {}
        for moment, amount, sign in self._changes:
            if end > moment:
                grow(total, amount, sign * (end - max(moment, start)))
        return total


def used_share(spent: Mapping[str, int], capacity: Mapping[str, int]) -> dict[str, float]:
    """Return the `spent` part of each type of `capacity`, by name, without types whose capacity is 0."""
    return {
        name: round(spent.get(name, 0) / total, DIGITS)
        for name, total in sorted(capacity.items())
        if total > 0
    }
