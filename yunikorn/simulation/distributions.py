"""Named distributions, drawn by inverting them: one number of a stream gives one value.

Each is a value object whose options are the keys of a scenario: amounts (`low`, `mean`, ...) in the unit of
what is drawn, plain numbers (`sigma`, `shape`, ...) without.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import sqrt
from typing import Any, Generic, Protocol, TypeVar

import attrs

from yunikorn.simulation.exact_math import exp, ln, power
from yunikorn.simulation.rng import Rng

T = TypeVar("T")

LARGEST_EXPONENT = 600.0
"""A value that would be larger than e to this is held here; a `max` cuts it long before."""


class Distribution(Protocol):
    """What gives values at random."""

    def draw(self, rng: Rng) -> float:
        """The next value."""
        ...


@attrs.frozen
class Constant:
    """Always the same."""

    value: float

    def draw(self, rng: Rng) -> float:
        """The value; nothing is drawn."""
        return self.value


@attrs.frozen
class Uniform:
    """Anything from `low` to `high`, equally likely."""

    low: float
    high: float

    def draw(self, rng: Rng) -> float:
        """The next value."""
        return self.low + (self.high - self.low) * rng()


@attrs.frozen
class Exponential:
    """As the time between events that know nothing of each other; `mean` is its mean."""

    mean: float

    def draw(self, rng: Rng) -> float:
        """The next value."""
        return -self.mean * ln(1 - rng())


@attrs.frozen
class Normal:
    """The bell curve around `mean`; two thirds are within one `deviation` of it."""

    mean: float
    deviation: float

    def draw(self, rng: Rng) -> float:
        """The next value; it may be below 0."""
        return self.mean + self.deviation * standard_normal(rng)


@attrs.frozen
class Lognormal:
    """Half are below `median`; its logarithm is a bell curve of the deviation `sigma`."""

    median: float
    sigma: float

    def draw(self, rng: Rng) -> float:
        """The next value."""
        return self.median * exp(min(self.sigma * standard_normal(rng), LARGEST_EXPONENT))


@attrs.frozen
class Weibull:
    """Often near 0 with long gaps for a `shape` below 1, exponential for 1, around `scale` for large ones."""

    scale: float
    shape: float

    def draw(self, rng: Rng) -> float:
        """The next value."""
        return self.scale * _power(-ln(1 - rng()), 1 / self.shape)


@attrs.frozen
class Pareto:
    """From `low` up, with a long tail: the smaller the `shape`, the longer (at 1 or less it has no mean)."""

    low: float
    shape: float

    def draw(self, rng: Rng) -> float:
        """The next value."""
        return self.low * exp(min(-ln(1 - rng()) / self.shape, LARGEST_EXPONENT))


DISTRIBUTIONS: dict[str, type[Any]] = {
    "constant": Constant,
    "uniform": Uniform,
    "exponential": Exponential,
    "normal": Normal,
    "lognormal": Lognormal,
    "weibull": Weibull,
    "pareto": Pareto,
}
"""By the name that a scenario uses; `choice` and `zipf` choose from values and are read apart."""

PLAIN = frozenset({"sigma", "shape"})
"""Options that are plain numbers."""


class WeightedChoice(Generic[T]):
    """One of some values, each as likely as its weight."""

    def __init__(self, values: Sequence[T], weights: Iterable[float]) -> None:
        self.values = list(values)
        self._bounds = list(accumulate(weights))

    def draw(self, rng: Rng) -> T:
        """The next value."""
        bounds = self._bounds
        return self.values[min(bisect_right(bounds, rng() * bounds[-1]), len(bounds) - 1)]


def zipf_weights(count: int, exponent: float) -> list[float]:
    """The weights of `count` values by rank: that of the second is the first's divided by 2**exponent."""
    return [power(rank, -exponent) for rank in range(1, count + 1)]


def standard_normal(rng: Rng) -> float:
    """A number of the bell curve around 0 with deviation 1, by Marsaglia's polar method."""
    while True:
        x, y = 2 * rng() - 1, 2 * rng() - 1
        square = x * x + y * y
        if 0 < square < 1:
            return x * sqrt(-2 * ln(square) / square)


def _power(base: float, exponent: float) -> float:
    return exp(min(exponent * ln(base), LARGEST_EXPONENT)) if base > 0 else 0.0
