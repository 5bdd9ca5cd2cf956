"""Slowdown of applications, fairness, and dispersion over several seeds.

The bounded slowdown is the time from submission to the end of an application, divided by its run time with
all tasks started at once (that of its longest task). The divisor is at least 10 seconds and the result at
least 1; otherwise short jobs would dominate every mean. Losses by preemption and node failures are included.
Sources: D. Feitelson, L. Rudolph, "Metrics and benchmarking for parallel job scheduling", JSSPP 1998; the
bound of 10 s as in D. Feitelson, "Metrics for parallel job scheduling and their convergence", JSSPP 2001.

Jain's index of n numbers is the square of their sum over n times the sum of their squares. The index is 1 if
all numbers are equal, and 1/n if all but one are 0. Source: R. Jain, D. Chiu, W. Hawe, "A quantitative
measure of fairness and discrimination for resource allocation in shared computer systems", DEC-TR-301, 1984.

The confidence interval of a mean contains the true mean in 95 of 100 cases if the figure is approximately
normally distributed. The calculation uses Student's t distribution with one degree of freedom less than there
are runs. Differences are calculated pairwise, run by run: both variants use the same drawn workload, so
variation between workloads cancels out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import attrs

from yunikorn.clock import SECOND
from yunikorn_lab.simulation.statistics import DIGITS
from yunikorn_lab.simulation.workload import FOREVER, WorkloadApplication

BOUND = 10 * SECOND
"""Minimum run time in the divisor (ns)."""


def own_time(plan: WorkloadApplication) -> int | None:
    """Return the run time with all tasks started at once (ns); None if a task has no end of its own."""
    longest = 0
    for group in plan.tasks:
        runs = group.runtime
        if group.timeout and (runs == FOREVER or group.timeout < runs):
            runs = group.timeout
        if runs == FOREVER:
            return None
        longest = max(longest, group.delay + runs)
    return longest


def bounded_slowdown(response: int, own: int) -> float:
    """Return the bounded slowdown for the time from submission to end and the run time (both ns)."""
    return max(1.0, response / max(own, BOUND))


def jain_index(numbers: Iterable[float]) -> float | None:
    """Return Jain's index of non-negative numbers; None without numbers other than 0."""
    found = list(numbers)
    # Normalised by the largest number, so that no square overflows.
    largest = max(found, default=0)
    if not largest:
        return None
    parts = [number / largest for number in found]
    return round(math.fsum(parts) ** 2 / (len(parts) * math.fsum(part * part for part in parts)), DIGITS)


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
    found = difference(one, other)
    if found is None:
        return any((a is None) != (b is None) for a, b in zip(one, other, strict=True))
    return abs(found.mean) > (found.half or 0.0)


def difference(one: Sequence[float | None], other: Sequence[float | None]) -> Dispersion | None:
    """Return the difference of two variants, pair by pair in the order of the seeds; None without pairs."""
    pairs = zip(one, other, strict=True)
    return dispersion([b - a for a, b in pairs if a is not None and b is not None])
