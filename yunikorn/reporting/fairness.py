"""How evenly something is spread, as one number.

Jain's index of n numbers is the square of their sum over n times the sum of their squares: 1 when all are
equal, 1/n when one has everything. Source: R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness
and discrimination for resource allocation in shared computer systems", DEC-TR-301, 1984.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from yunikorn.simulation.statistics import DIGITS


def jain_index(numbers: Iterable[float]) -> float | None:
    """Jain's index of numbers of at least 0; None when there are none, or nothing but zeros."""
    found = list(numbers)
    # Measured against the largest, so that no square grows beyond what a float can be.
    largest = max(found, default=0)
    if not largest:
        return None
    parts = [number / largest for number in found]
    return round(math.fsum(parts) ** 2 / (len(parts) * math.fsum(part * part for part in parts)), DIGITS)
