"""Size classes of applications, relative to the cluster.

The size of an application is its dominant share: the largest part, over all resource types, of its
partition's capacity at submission that its tasks use together. Classes are decades, so that the same classes
suit clusters of ten and of ten thousand nodes.
"""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn.simulation.workload import WorkloadApplication

CLASSES = (
    (10_000, "up to 0.01 %"),
    (1_000, "0.01 to 0.1 %"),
    (100, "0.1 to 1 %"),
    (10, "1 to 10 %"),
    (1, "10 to 100 %"),
    (0, "over 100 %"),
)
"""Classes as pairs (n, name): the application takes at most 1/n of the cluster; 0 stands for no limit."""

NAMES = tuple(name for _, name in CLASSES)


def dominant_share(amount: Mapping[str, int], capacity: Mapping[str, int]) -> float:
    """Return the largest part of any type's capacity that `amount` uses; infinite without capacity."""
    shares = [
        value / capacity[name] if capacity.get(name) else float("inf")
        for name, value in amount.items()
        if value > 0
    ]
    return max(shares, default=0.0)


def size_class(plan: WorkloadApplication, capacity: Mapping[str, int]) -> str:
    """Return the size class of an application in a partition of this capacity, one of `NAMES`."""
    total = plan.total
    for parts, name in CLASSES:
        # Integer arithmetic gives the same class on every machine for shares exactly at a boundary.
        if all(value * parts <= capacity.get(kind, 0) for kind, value in total.items() if value > 0):
            return name
    raise AssertionError("the last class takes everything")
