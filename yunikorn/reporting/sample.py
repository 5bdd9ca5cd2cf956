"""Samples of numbers and their statistics."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable

import attrs

from yunikorn.simulation.statistics import DIGITS


@attrs.frozen
class Summary:
    """Statistics of a sample of seconds or ratios; `p95` is the 95th percentile."""

    count: int
    mean: float
    median: float
    p95: float
    max: float


class Sample:
    """Numbers in the order of measurement, stored in eight bytes each."""

    def __init__(self, numbers: Iterable[float] = ()) -> None:
        self._numbers = array("d", numbers)

    def add(self, number: float) -> None:
        """Add a number."""
        self._numbers.append(number)

    def __len__(self) -> int:
        return len(self._numbers)

    def mean(self) -> float | None:
        """Return the mean, or None for an empty sample."""
        return math.fsum(self._numbers) / len(self._numbers) if self._numbers else None

    def summary(self) -> Summary | None:
        """Return the statistics, or None for an empty sample.

        The median of an even number of values is the mean of the two middle values. The 95th percentile is
        the smallest value that at least 95 % of the values do not exceed (nearest rank).
        """
        mean = self.mean()
        if mean is None:
            return None
        ordered = sorted(self._numbers)
        count = len(ordered)
        middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
        rank = -(-95 * count // 100)
        figures = (mean, middle, ordered[rank - 1], ordered[-1])
        return Summary(count, *(round(figure, DIGITS) for figure in figures))

    def curve(self, points: int) -> list[float]:
        """Return at most `points` evenly spaced order statistics, including the smallest and the largest."""
        ordered = sorted(self._numbers)
        if len(ordered) <= points:
            return [round(number, DIGITS) for number in ordered]
        last = len(ordered) - 1
        return [round(ordered[index * last // (points - 1)], DIGITS) for index in range(points)]
