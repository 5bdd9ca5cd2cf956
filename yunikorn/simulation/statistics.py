"""Statistics of a simulation: waiting times, and usage compared with capacity over time."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

import attrs

from yunikorn.clock import SECOND
from yunikorn.resources import Tally, grow

DIGITS = 6
"""Decimal places of seconds and shares in a report."""


def seconds(nanoseconds: float) -> float:
    """Convert nanoseconds to the rounded seconds of a report."""
    return round(nanoseconds / SECOND, DIGITS)


@attrs.frozen
class WaitSummary:
    """Statistics of waiting times in seconds; `p95` is the 95th percentile."""

    count: int
    mean: float
    median: float
    p95: float
    max: float


class Waits:
    """Waiting times (ns), stored in eight bytes each."""

    def __init__(self, waits: Iterable[int] = ()) -> None:
        self._waits = array("q", waits)

    def add(self, wait: int) -> None:
        """Add a waiting time in nanoseconds."""
        self._waits.append(wait)

    def merge(self, other: Waits) -> None:
        """Add all waiting times of `other`."""
        self._waits.extend(other._waits)

    def summary(self) -> WaitSummary | None:
        """Return the statistics, or None without any waiting time.

        The median of an even number of values is the mean of the two middle values. The 95th percentile is
        the smallest measured value that at least 95 % of the values do not exceed (nearest rank).
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
    """Integral of the usage over time per resource type: amount times nanoseconds."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent: Tally = {}

    def add(self, amount: Mapping[str, int], duration: int) -> None:
        """Add the usage of `amount` for `duration` nanoseconds."""
        spent = self.spent
        for name, value in amount.items():
            spent[name] = spent.get(name, 0) + value * duration


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
