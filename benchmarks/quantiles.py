"""Quantiles of latencies."""

from __future__ import annotations

from collections.abc import Sequence

from yunikorn_lab.simulation.statistics import nearest_rank


def quantile(values: Sequence[float], part: float) -> float:
    """Return the quantile `part` of `values` (nearest rank)."""
    return nearest_rank(sorted(values), round(100 * part))


def latencies(name: str, values: Sequence[float]) -> dict[str, float]:
    """Return the median and the 99th percentile as `NAME_p50_s` and `NAME_p99_s`."""
    return {f"{name}_p50_s": quantile(values, 0.5), f"{name}_p99_s": quantile(values, 0.99)}
