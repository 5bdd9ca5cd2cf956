"""Jain's fairness index.

Jain's index of n numbers is the square of their sum over n times the sum of their squares. The index is 1 if
all numbers are equal, and 1/n if all but one are 0. Source: R. Jain, D. Chiu, W. Hawe, "A quantitative
measure of fairness and discrimination for resource allocation in shared computer systems", DEC-TR-301, 1984.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from yunikorn.simulation.statistics import DIGITS


def jain_index(numbers: Iterable[float]) -> float | None:
    """Return Jain's index of non-negative numbers; None without numbers other than 0."""
    found = list(numbers)
    # Normalised by the largest number, so that no square overflows.
    largest = max(found, default=0)
    if not largest:
        return None
    parts = [number / largest for number in found]
    return round(math.fsum(parts) ** 2 / (len(parts) * math.fsum(part * part for part in parts)), DIGITS)
