"""Named ways in which applications arrive: the moments, in nanoseconds from the first possible one on.

Each gives moments without end, in order; how many are taken, and up to when, is said beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import attrs

from yunikorn.clock import MILLISECOND, SECOND
from yunikorn.simulation.distributions import Distribution
from yunikorn.simulation.exact_math import exp, ln
from yunikorn.simulation.rng import Streams

DAY = 86_400 * SECOND
WEEK = 7 * DAY
FIRST_WEEKEND_DAY = 5
"""Day 0 is a Monday that begins when the simulation does."""


class Process(Protocol):
    """A way to arrive."""

    def moments(self, streams: Streams) -> Iterator[int]:
        """The moments, without end unless it says so."""
        ...


@attrs.frozen
class Regular:
    """One `every` so often, the first at once."""

    every: int

    def moments(self, streams: Streams) -> Iterator[int]:
        """0, `every`, two times `every`, ..."""
        moment = 0
        while True:
            yield moment
            moment += self.every


@attrs.frozen
class Poisson:
    """Arrivals that know nothing of each other, one `every` so often on average."""

    every: int

    def moments(self, streams: Streams) -> Iterator[int]:
        """Gaps are exponential."""
        rng, moment = streams("arrivals"), 0.0
        while True:
            moment -= self.every * ln(1 - rng())
            yield _moment(moment)


@attrs.frozen
class Gaps:
    """Times between arrivals of any distribution `gap`."""

    gap: Distribution

    def moments(self, streams: Streams) -> Iterator[int]:
        """Each a gap after the one before, the first a gap after the start."""
        rng, moment = streams("arrivals"), 0.0
        while True:
            moment += max(self.gap.draw(rng), 0.0)
            yield _moment(moment)


@attrs.frozen
class Uniformly:
    """`count` arrivals, each at any moment of `during`, equally likely; then no more."""

    count: int
    during: int

    def moments(self, streams: Streams) -> Iterator[int]:
        """In order: the earliest of those that are left is drawn each time."""
        rng, moment = streams("arrivals"), 0.0
        for left in range(self.count, 0, -1):
            moment += (self.during - moment) * (1 - exp(ln(1 - rng()) / left))
            yield min(_moment(moment), self.during)


@attrs.frozen
class Bursts:
    """Crowds of `size`, whose members come a `gap` apart; from one crowd to the next `every` on average."""

    every: int
    size: Distribution
    gap: int = 0

    def moments(self, streams: Streams) -> Iterator[int]:
        """The time from the end of a crowd to the next is exponential."""
        rng, sizes, moment = streams("arrivals"), streams("bursts"), 0.0
        while True:
            moment -= self.every * ln(1 - rng())
            members = max(round(self.size.draw(sizes)), 1)
            for member in range(members):
                yield _moment(moment) + member * self.gap
            moment += (members - 1) * self.gap


@attrs.frozen
class Daily:
    """Like `Poisson`, but more by day than by night.

    One `every` so often on average over a working day. The rate rises and falls in straight lines between its
    highest at `peak`, a time of the day, and its lowest twelve hours later: `swing` above the average and
    below it. On the last two days of every seven it is `weekend` times as high.
    """

    every: int
    peak: int = 14 * 3600 * SECOND
    swing: float = 0.8
    weekend: float = 1.0

    def rate(self, moment: float) -> float:
        """The rate at a moment, 1 on average over a working day."""
        away = abs((moment - self.peak + DAY / 2) % DAY - DAY / 2)
        rate = 1 + self.swing * (1 - 4 * away / DAY)
        return rate * self.weekend if moment % WEEK >= FIRST_WEEKEND_DAY * DAY else rate

    def moments(self, streams: Streams) -> Iterator[int]:
        """Arrivals of the highest rate, of which some are left out."""
        rng, taken, moment = streams("arrivals"), streams("arrivals taken"), 0.0
        highest = (1 + self.swing) * max(self.weekend, 1.0)
        while True:
            moment -= self.every / highest * ln(1 - rng())
            if taken() * highest < self.rate(moment):
                yield _moment(moment)


def _moment(moment: float) -> int:
    # Whole milliseconds: times that can be read and written, and no one needs finer ones.
    return round(moment / MILLISECOND) * MILLISECOND
