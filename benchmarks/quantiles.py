"""Quantiles of latencies."""

from __future__ import annotations

import math
from collections.abc import Sequence


def quantile(values: Sequence[float], part: float) -> float:
    """Return the quantile `part` of `values` (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def latencies(name: str, values: Sequence[float]) -> dict[str, float]:
    """Return the median and the 99th percentile as `NAME_p50_s` and `NAME_p99_s`."""
    return {f"{name}_p50_s": quantile(values, 0.5), f"{name}_p99_s": quantile(values, 0.99)}
