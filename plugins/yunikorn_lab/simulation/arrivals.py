"""Arrival processes by name, and sequences of applications that are generated on demand.

A process yields moments in nanoseconds, counted from the earliest possible arrival, in ascending order
without end; `ApplicationPlan` limits their number and duration.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Protocol, overload

import attrs

from yunikorn.clock import MILLISECOND, SECOND
from yunikorn_lab.simulation.distributions import Distribution, exp, ln
from yunikorn_lab.simulation.rng import Streams
from yunikorn_lab.simulation.workload import WorkloadApplication

DAY = 86_400 * SECOND
WEEK = 7 * DAY
FIRST_WEEKEND_DAY = 5
"""Index of the first weekend day; day 0 is a Monday that begins with the simulation."""


class Process(Protocol):
    """An arrival process."""

    def moments(self, streams: Streams) -> Iterator[int]:
        """Yield the moments of arrival (ns), ascending and without end unless the process states a count."""
        ...


@attrs.frozen
class Regular:
    """One arrival per `every` (ns), the first at 0."""

    every: int

    def moments(self, streams: Streams) -> Iterator[int]:
        """Yield 0, `every`, two times `every`, ..."""
        moment = 0
        while True:
            yield moment
            moment += self.every


@attrs.frozen
class Poisson:
    """Poisson process with the mean gap `every` (ns)."""

    every: int

    def moments(self, streams: Streams) -> Iterator[int]:
        """Yield moments with exponentially distributed gaps."""
        rng, moment = streams("arrivals"), 0.0
        while True:
            moment -= self.every * ln(1 - rng())
            yield _moment(moment)


@attrs.frozen
class Gaps:
    """Renewal process: gaps between arrivals follow the distribution `gap`."""

    gap: Distribution

    def moments(self, streams: Streams) -> Iterator[int]:
        """Yield moments, the first of them one gap after the start."""
        rng, moment = streams("arrivals"), 0.0
        while True:
            moment += max(self.gap.draw(rng), 0.0)
            yield _moment(moment)


@attrs.frozen
class Uniformly:
    """`count` arrivals, uniformly distributed over the first `during` nanoseconds."""

    count: int
    during: int

    def moments(self, streams: Streams) -> Iterator[int]:
        """Yield the moments in order: each step draws the minimum of the remaining arrivals."""
        rng, moment = streams("arrivals"), 0.0
        for left in range(self.count, 0, -1):
            moment += (self.during - moment) * (1 - exp(ln(1 - rng()) / left))
            yield min(_moment(moment), self.during)


@attrs.frozen
class Bursts:
    """Bursts of `size` arrivals that are `gap` apart; the mean time between bursts is `every` (ns)."""

    every: int
    size: Distribution
    gap: int = 0

    def moments(self, streams: Streams) -> Iterator[int]:
        """Yield moments; the time from the end of a burst to the next burst is exponentially distributed."""
        rng, sizes, moment = streams("arrivals"), streams("bursts"), 0.0
        while True:
            moment -= self.every * ln(1 - rng())
            members = max(round(self.size.draw(sizes)), 1)
            for member in range(members):
                yield _moment(moment) + member * self.gap
            moment += (members - 1) * self.gap


@attrs.frozen
class Daily:
    """Poisson process whose rate follows the time of day and the weekend.

    The mean gap over a working day is `every` (ns). The rate is piecewise linear: its maximum is at `peak`, a
    time of the day, and its minimum twelve hours later. Maximum and minimum differ from the mean by the part
    `swing`. On the last two days of every seven the rate is multiplied by `weekend`.
    """

    every: int
    peak: int = 14 * 3600 * SECOND
    swing: float = 0.8
    weekend: float = 1.0

    def rate(self, moment: float) -> float:
        """Return the rate at a moment, relative to the mean of a working day."""
        away = abs((moment - self.peak + DAY / 2) % DAY - DAY / 2)
        rate = 1 + self.swing * (1 - 4 * away / DAY)
        return rate * self.weekend if moment % WEEK >= FIRST_WEEKEND_DAY * DAY else rate

    def moments(self, streams: Streams) -> Iterator[int]:
        """Yield moments of the inhomogeneous process by thinning arrivals of the highest rate."""
        rng, taken, moment = streams("arrivals"), streams("arrivals taken"), 0.0
        highest = (1 + self.swing) * max(self.weekend, 1.0)
        while True:
            moment -= self.every / highest * ln(1 - rng())
            if taken() * highest < self.rate(moment):
                yield _moment(moment)


def _moment(moment: float) -> int:
    # Whole milliseconds keep the times readable and survive being written to a scenario and read again.
    return round(moment / MILLISECOND) * MILLISECOND


class Arrivals(Sequence[WorkloadApplication]):
    """A sequence that is iterated from its beginning and yields equal applications in every iteration.

    Access by index iterates over all earlier applications.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[WorkloadApplication]:
        """Yield the applications from the first to the last, in order of submission."""

    @overload
    def __getitem__(self, index: int) -> WorkloadApplication: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[WorkloadApplication]: ...

    def __getitem__(self, index: int | slice) -> WorkloadApplication | Sequence[WorkloadApplication]:
        if isinstance(index, slice):
            return list(self)[index]
        place = index + len(self) if index < 0 else index
        for application in islice(self, max(place, 0), None) if place >= 0 else ():
            return application
        raise IndexError(f"there are {len(self)} applications, and none at {index}")


class Changed(Arrivals):
    """The applications of another sequence, each passed through a function."""

    def __init__(
        self,
        inner: Sequence[WorkloadApplication],
        change: Callable[[WorkloadApplication], WorkloadApplication],
    ) -> None:
        self._inner = inner
        self._change = change

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[WorkloadApplication]:
        return map(self._change, self._inner)
