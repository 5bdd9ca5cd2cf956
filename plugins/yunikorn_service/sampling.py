"""Durations in the core's thread, and which decisions are measured."""

from __future__ import annotations

from collections.abc import Callable

from yunikorn.clock import MICROSECOND, SECOND
from yunikorn_service.histogram import Histogram

COARSE = tuple(100 * MICROSECOND * 10**exponent for exponent in range(8))
"""Bounds of the histograms of YuniKorn 1.9: 100 microseconds to 1,000 seconds."""
FINE = (
    *(step * 10**tens * 10 * MICROSECOND for tens in range(5) for step in (1, 2, 5)),
    SECOND,
    10 * SECOND,
)
"""Bounds of the histogram of single decisions: 10 microseconds to 10 seconds."""
SAMPLED = 64
"""One of so many decisions is measured."""


class Durations:
    """Histograms of durations in the core's thread."""

    def __init__(self) -> None:
        self.round = Histogram(COARSE)
        """Rounds of decisions of all partitions."""
        self.turn = Histogram(COARSE)
        """Decisions of one partition in a round."""
        self.queue_sort = Histogram(COARSE)
        """Sorting of queues in measured decisions."""
        self.app_sort = Histogram(COARSE)
        """Sorting of applications in measured decisions."""
        self.search = Histogram(COARSE)
        """Searches for a node in measured decisions."""
        self.fit = Histogram(COARSE)
        """Those searches that found a node."""
        self.preemption = Histogram(COARSE)
        """Searches for victims."""
        self.decision = Histogram(FINE)
        """Measured decisions."""


class Sampling:
    """Stopwatch and durations of a scheduler that measures some of its decisions."""

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        self.stopwatch = stopwatch
        self.durations = Durations()
        self.until_sample = 0
        """Number of decisions until one is measured."""
        self.sampling = False
        """True during a decision that is measured."""
