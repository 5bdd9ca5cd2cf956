"""Small and large applications, told apart by their part of the cluster.

The size of an application is its dominant share: of all resource types the largest part of its partition's
capacity, at the time of its submission, that all its tasks take together. Classes are decades, so that the
same ones serve a cluster of ten nodes and one of ten thousand.
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
"""One part in so many at most, and what the class is called."""

NAMES = tuple(name for _, name in CLASSES)


def dominant_share(amount: Mapping[str, int], capacity: Mapping[str, int]) -> float:
    """The largest part of any type of `capacity` that `amount` is; infinite where there is none of it."""
    shares = [
        value / capacity[name] if capacity.get(name) else float("inf")
        for name, value in amount.items()
        if value > 0
    ]
    return max(shares, default=0.0)


def size_class(plan: WorkloadApplication, capacity: Mapping[str, int]) -> str:
    """The class of an application in a partition of this capacity; one of `NAMES`."""
    total = plan.total
    for parts, name in CLASSES:
        # Whole numbers, so that what is a hundredth exactly is so on every machine.
        if all(value * parts <= capacity.get(kind, 0) for kind, value in total.items() if value > 0):
            return name
    raise AssertionError("the last class takes everything")
