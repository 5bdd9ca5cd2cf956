"""Figures of groups of applications: those of a queue, a user or a size class.

The size of an application is its dominant share: the largest part, over all resource types, of its
partition's capacity at submission that its tasks use together. Classes are decades, so that the same classes
suit clusters of ten and of ten thousand nodes.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.resources import Tally, grow
from yunikorn_lab.reporting.queue_observation import Guarantee
from yunikorn_lab.simulation.statistics import DIGITS, Sample, Summary
from yunikorn_lab.simulation.workload import WorkloadApplication


@attrs.frozen
class GroupReport:
    """Figures of the applications of one queue, user or size class."""

    name: str
    partition: str
    """Partition of a queue; empty for users and size classes, which span all partitions."""
    applications: int
    finished: int
    wait: Summary | None
    """Seconds from submission to the start of the first task."""
    whole_wait: Summary | None
    """Seconds from submission to the start of the last task, the relevant wait of parallel jobs."""
    slowdown: Summary | None
    """Bounded slowdown of the finished applications."""
    use: float
    """Dominant share: the largest part, over all types, of the capacity over time that the tasks used."""
    guarantees: dict[str, Guarantee] = attrs.Factory(dict)
    """Guarantees of a queue, by resource type."""
    use_at_end: dict[str, float] = attrs.Factory(dict)
    """Part of the partition's capacity that a queue used at the end of the simulation, by resource type."""


class GroupCounts:
    """Counters of a group during a simulation."""

    def __init__(self) -> None:
        self.applications = 0
        self.finished = 0
        self.waits = Sample()
        """Seconds from submission to the start of the first task."""
        self.whole_waits = Sample()
        """Seconds from submission to the start of the last task."""
        self.slowdowns = Sample()
        self.usage: dict[str, Tally] = {}
        """Usage integrated over time (amounts times nanoseconds), by partition."""

    def spend(self, partition: str, amount: Mapping[str, int], duration: int) -> None:
        """Add a task's usage of `amount` for `duration` nanoseconds."""
        grow(self.usage.setdefault(partition, {}), amount, duration)

    def report(
        self, name: str, capacities: Mapping[str, Mapping[str, int]], partition: str = ""
    ) -> GroupReport:
        """Return the figures, given each partition's capacity as amounts times nanoseconds."""
        shares = [
            value / capacities[at][kind]
            for at, usage in self.usage.items()
            for kind, value in usage.items()
            if capacities.get(at, {}).get(kind)
        ]
        return GroupReport(
            name=name,
            partition=partition,
            applications=self.applications,
            finished=self.finished,
            wait=self.waits.summary(),
            whole_wait=self.whole_waits.summary(),
            slowdown=self.slowdowns.summary(),
            use=round(max(shares, default=0.0), DIGITS),
        )


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


def size_class(plan: WorkloadApplication, capacity: Mapping[str, int]) -> str:
    """Return the size class of an application in a partition of this capacity, one of `NAMES`."""
    total = plan.total
    for parts, name in CLASSES:
        # Integer arithmetic gives the same class on every machine for shares exactly at a boundary.
        if all(value * parts <= capacity.get(kind, 0) for kind, value in total.items() if value > 0):
            return name
    raise AssertionError("the last class takes everything")
