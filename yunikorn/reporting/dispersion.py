"""Means over several seeds with confidence intervals.

The interval contains the true mean in 95 of 100 cases if the figure is approximately normally distributed.
The calculation uses Student's t distribution with one degree of freedom less than there are runs. Differences
are calculated pairwise, run by run: both variants use the same drawn workload, so variation between workloads
cancels out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from yunikorn.simulation.statistics import DIGITS

_QUANTILES = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""97.5 % points of Student's t distribution for 1 to 30 degrees of freedom."""
_MORE = ((120, 1.980), (60, 2.000), (40, 2.021), (30, 2.042))
"""The same points for larger degrees of freedom; rounding down to a listed one widens the interval."""


@attrs.frozen
class Dispersion:
    """Mean of a figure over runs, and half the width of its 95 % confidence interval (None for one run)."""

    mean: float
    half: float | None
    runs: int


def dispersion(values: Sequence[float]) -> Dispersion | None:
    """Return mean and confidence interval of the values, or None without values."""
    if not values:
        return None
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Dispersion(round(mean, DIGITS), None, 1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = quantile(count - 1) * math.sqrt(variance / count)
    return Dispersion(round(mean, DIGITS), round(half, DIGITS), count)


def quantile(freedom: int) -> float:
    """Return the 97.5 % point of Student's t distribution for at least one degree of freedom."""
    if freedom <= len(_QUANTILES):
        return _QUANTILES[freedom - 1]
    return next(value for least, value in _MORE if freedom >= least)


def differ(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """Return True if two variants differ, given their figures in the order of the seeds.

    With one run every difference counts. With several runs the 95 % confidence interval of the differences
    must not contain 0.
    """
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    if not pairs:
        return any((a is None) != (b is None) for a, b in zip(one, other, strict=True))
    found = dispersion([b - a for a, b in pairs])
    assert found is not None
    return abs(found.mean) > (found.half or 0.0)
