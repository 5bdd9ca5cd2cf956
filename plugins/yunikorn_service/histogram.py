"""Histogram of durations, with counts per bucket as in Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Numbers of durations up to each of some bounds."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[int]) -> None:
        """Create without observations; `bounds` are ascending durations in nanoseconds."""
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        """Number of durations by the first bound that is not exceeded; the last entry exceeds all bounds."""
        self.total = 0
        """Sum of the durations (ns)."""

    def observe(self, duration: int) -> None:
        """Add a duration (ns)."""
        self.counts[bisect_left(self.bounds, duration)] += 1
        self.total += duration

    def copy(self) -> Histogram:
        """Return a histogram that later observations do not change."""
        other = Histogram(self.bounds)
        other.counts, other.total = list(self.counts), self.total
        return other

    @property
    def count(self) -> int:
        """Number of durations."""
        return sum(self.counts)
