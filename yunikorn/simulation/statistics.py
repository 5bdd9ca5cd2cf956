"""Figures of a simulation: waiting times, and use against capacity over time."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

import attrs

from yunikorn.clock import SECOND
from yunikorn.resources import Tally, grow

DIGITS = 6
"""Decimal places of seconds and shares in a report."""


def seconds(nanoseconds: float) -> float:
    """Nanoseconds as the seconds of a report."""
    return round(nanoseconds / SECOND, DIGITS)


@attrs.frozen
class WaitSummary:
    """Waiting times in seconds: how many, mean, median, the 95th percentile and the longest."""

    count: int
    mean: float
    median: float
    p95: float
    max: float


class Waits:
    """Waiting times, eight bytes each."""

    def __init__(self, waits: Iterable[int] = ()) -> None:
        self._waits = array("q", waits)

    def add(self, wait: int) -> None:
        """One more, in nanoseconds."""
        self._waits.append(wait)

    def merge(self, other: Waits) -> None:
        """All of another's."""
        self._waits.extend(other._waits)

    def summary(self) -> WaitSummary | None:
        """The figures, or None when nothing was measured.

        The median of an even number is the mean of the two in the middle; the 95th percentile is the
        smallest value that at least 95 % do not exceed (nearest rank).
        """
        count = len(self._waits)
        if not count:
            return None
        ordered = sorted(self._waits)
        middle = ordered[(count - 1) // 2] + ordered[count // 2]
        rank = -(-95 * count // 100)
        return WaitSummary(
            count,
            seconds(sum(ordered) / count),
            seconds(middle / 2),
            seconds(ordered[rank - 1]),
            seconds(ordered[-1]),
        )


class Usage:
    """How much of each resource type was held for how long: amount times nanoseconds."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent: Tally = {}

    def add(self, amount: Mapping[str, int], duration: int) -> None:
        """`amount` was held for `duration` nanoseconds."""
        spent = self.spent
        for name, value in amount.items():
            spent[name] = spent.get(name, 0) + value * duration


class Capacity:
    """The capacity of a partition over time."""

    def __init__(self) -> None:
        self.now: Tally = {}
        self._changes: list[tuple[int, Mapping[str, int], int]] = []

    def change(self, moment: int, amount: Mapping[str, int], sign: int) -> None:
        """From `moment` on there is `amount` more (`sign` 1) or less (-1)."""
        grow(self.now, amount, sign)
        self._changes.append((moment, amount, sign))

    def between(self, start: int, end: int) -> Tally:
        """Amount times nanoseconds that the capacity adds up to from `start` to `end`."""
        total: Tally = {}
        for moment, amount, sign in self._changes:
            if end > moment:
                grow(total, amount, sign * (end - max(moment, start)))
        return total


def used_share(spent: Mapping[str, int], capacity: Mapping[str, int]) -> dict[str, float]:
    """Which part of each type of `capacity` was `spent`, by name; types without capacity are left out."""
    return {
        name: round(spent.get(name, 0) / total, DIGITS)
        for name, total in sorted(capacity.items())
        if total > 0
    }
