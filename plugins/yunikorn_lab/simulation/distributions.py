"""Distributions by name, with bit-identical results on every machine.

Logarithm and exponential function of the C library differ between platforms in the last digit. The functions
here use only operations that IEEE 754 rounds uniquely: addition, multiplication, division and square root.

Distributions are sampled by inversion, with one random number per value. `Normal` and `Lognormal` use a
rejection method instead (`standard_normal`). The options of a distribution are the keys of a scenario:
amounts (`low`, `mean`, ...) in the unit of the drawn quantity, plain numbers (`sigma`, `shape`, ...) without
a unit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import frexp, ldexp, sqrt
from typing import Any, Generic, Protocol, TypeVar

import attrs

from yunikorn_lab.simulation.rng import Rng

LN2_HIGH = 2977044471 / 2**32
"""First 32 bits of ln 2; the product with a small whole number is exact."""
LN2_LOW = 1.9082149292705877e-10
"""The rest of ln 2, beyond `LN2_HIGH`."""


_RECIPROCALS = tuple([1 / odd for odd in range(23, 1, -2)])
"""Coefficients of the series of `ln`, the smallest first."""


def ln(value: float) -> float:
    """Return the natural logarithm of a positive number; the error is below 3e-16, relative or absolute."""
    if not value > 0:
        raise ValueError(f"only numbers above 0 have a logarithm, got {value}")
    part, power = frexp(value)
    if part < 0.7071067811865476:
        part, power = 2 * part, power - 1
    ratio = (part - 1) / (part + 1)
    square = ratio * ratio
    # Series of the inverse hyperbolic tangent: ratio is at most 0.172, so 12 terms are enough.
    total = 0.0
    for part in _RECIPROCALS:
        total = (total + part) * square
    return power * LN2_HIGH + (power * LN2_LOW + (2 * ratio + 2 * ratio * total))


def exp(value: float) -> float:
    """Return e to the power of a number from -700 to 700; the relative error is below 1e-15."""
    if not -700 <= value <= 700:
        raise ValueError(f"e to the power of {value} is too large or too small")
    power = int(value / LN2_HIGH + (0.5 if value >= 0 else -0.5))
    rest = (value - power * LN2_HIGH) - power * LN2_LOW
    # Taylor series: rest is at most 0.35, so 15 terms are enough.
    total = 1.0
    for divisor in range(15, 0, -1):
        total = 1 + total * rest / divisor
    return ldexp(total, power)


def power(base: float, exponent: float) -> float:
    """Return a positive `base` to the power of `exponent`."""
    return exp(exponent * ln(base))


T = TypeVar("T")

LARGEST_EXPONENT = 600.0
"""Upper limit of exponents, which prevents overflow; the `max` of a scenario is far below e to this power."""


class Distribution(Protocol):
    """A distribution of random values."""

    def draw(self, rng: Rng) -> float:
        """Draw the next value."""
        ...


@attrs.frozen
class Constant:
    """The constant `value`."""

    value: float

    def draw(self, rng: Rng) -> float:
        """Return the value without using a random number."""
        return self.value


@attrs.frozen
class Uniform:
    """Uniform distribution from `low` to `high`."""

    low: float
    high: float

    def draw(self, rng: Rng) -> float:
        """Draw the next value."""
        return self.low + (self.high - self.low) * rng()


@attrs.frozen
class Exponential:
    """Exponential distribution with the mean `mean`."""

    mean: float

    def draw(self, rng: Rng) -> float:
        """Draw the next value."""
        return -self.mean * ln(1 - rng())


@attrs.frozen
class Normal:
    """Normal distribution with the mean `mean` and the standard deviation `deviation`."""

    mean: float
    deviation: float

    def draw(self, rng: Rng) -> float:
        """Draw the next value, which may be negative."""
        return self.mean + self.deviation * standard_normal(rng)


@attrs.frozen
class Lognormal:
    """Lognormal distribution; `sigma` is the standard deviation of the logarithm."""

    median: float
    sigma: float

    def draw(self, rng: Rng) -> float:
        """Draw the next value."""
        return self.median * exp(min(self.sigma * standard_normal(rng), LARGEST_EXPONENT))


@attrs.frozen
class Weibull:
    """Weibull distribution: heavy-tailed for a `shape` below 1, exponential for 1, near `scale` for large."""

    scale: float
    shape: float

    def draw(self, rng: Rng) -> float:
        """Draw the next value."""
        return self.scale * _power(-ln(1 - rng()), 1 / self.shape)


@attrs.frozen
class Pareto:
    """Pareto distribution from `low` up; a smaller `shape` gives a longer tail (no mean at 1 or less)."""

    low: float
    shape: float

    def draw(self, rng: Rng) -> float:
        """Draw the next value."""
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
"""Distributions by scenario name; `choice` and `zipf` select from lists and are parsed separately."""

PLAIN = frozenset({"sigma", "shape"})
"""Options without a unit."""


class WeightedChoice(Generic[T]):
    """A choice of one of several values, with probabilities proportional to weights."""

    def __init__(self, values: Sequence[T], weights: Iterable[float]) -> None:
        self.values = list(values)
        self.weights = list(weights)
        self._bounds = list(accumulate(self.weights))

    def draw(self, rng: Rng) -> T:
        """Draw the next value."""
        bounds = self._bounds
        return self.values[min(bisect_right(bounds, rng() * bounds[-1]), len(bounds) - 1)]


def zipf_weights(count: int, exponent: float) -> list[float]:
    """Return the weights of `count` values by rank: rank**-exponent."""
    return [power(rank, -exponent) for rank in range(1, count + 1)]


def standard_normal(rng: Rng) -> float:
    """Draw a standard normal number by Marsaglia's polar method."""
    while True:
        x, y = 2 * rng() - 1, 2 * rng() - 1
        square = x * x + y * y
        if 0 < square < 1:
            return x * sqrt(-2 * ln(square) / square)


def _power(base: float, exponent: float) -> float:
    return exp(min(exponent * ln(base), LARGEST_EXPONENT)) if base > 0 else 0.0


@attrs.frozen
class DrawnAmounts:
    """Whole amounts drawn from a distribution: multiples of `step`, limited to `low` to `high`."""

    distribution: Distribution
    step: int
    low: int
    high: int

    def draw(self, rng: Rng) -> int:
        """Draw the next amount."""
        of, step = self.distribution, self.step
        if isinstance(of, Constant):
            amount = round(of.value)
        elif isinstance(of, Uniform):
            first = round(of.low)
            amount = first + int(rng() * ((round(of.high) - first) // step + 1)) * step
        else:
            amount = int(max(of.draw(rng), 0.0) / step + 0.5) * step
        return min(max(amount, self.low), self.high)
