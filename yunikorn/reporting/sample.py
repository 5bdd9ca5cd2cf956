"""Numbers that were measured one by one, and what can be said of them together."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable

import attrs

from yunikorn.simulation.statistics import DIGITS


@attrs.frozen
class Summary:
    """How many, mean, median, the 95th percentile and the largest; seconds, or a ratio."""

    count: int
    mean: float
    median: float
    p95: float
    max: float


class Sample:
    """Numbers, eight bytes each, in the order in which they were measured."""

    def __init__(self, numbers: Iterable[float] = ()) -> None:
        self._numbers = array("d", numbers)

    def add(self, number: float) -> None:
        """One more."""
        self._numbers.append(number)

    def __len__(self) -> int:
        return len(self._numbers)

    def mean(self) -> float | None:
        """The mean, None of nothing."""
        return math.fsum(self._numbers) / len(self._numbers) if self._numbers else None

    def summary(self) -> Summary | None:
        """The figures, or None when nothing was measured.

        The median of an even number is the mean of the two in the middle; the 95th percentile is the
        smallest that at least 95 % do not exceed (nearest rank).
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
        """At most `points` of the numbers in rising order, evenly spread, with smallest and largest."""
        ordered = sorted(self._numbers)
        if len(ordered) <= points:
            return [round(number, DIGITS) for number in ordered]
        last = len(ordered) - 1
        return [round(ordered[index * last // (points - 1)], DIGITS) for index in range(points)]
