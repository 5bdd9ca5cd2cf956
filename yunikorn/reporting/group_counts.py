"""Figures of groups of applications: those of a queue, a user or a size class."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.reporting.application_observation import ApplicationObservation
from yunikorn.reporting.queue_observation import Guarantee
from yunikorn.reporting.sample import Sample, Summary
from yunikorn.resources import Tally
from yunikorn.simulation.statistics import DIGITS, seconds


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


class GroupCounts:
    """Counters of a group during a simulation."""

    def __init__(self) -> None:
        self.applications = 0
        self.finished = 0
        self.waits = Sample()
        self.whole_waits = Sample()
        self.slowdowns = Sample()
        self.spent: dict[str, Tally] = {}
        """Usage integrated over time (amounts times nanoseconds), by partition."""

    def started(self, observation: ApplicationObservation, moment: int) -> None:
        """Note the start of an application's first task."""
        self.waits.add(seconds(moment - observation.record.plan.submit))

    def whole(self, observation: ApplicationObservation, moment: int) -> None:
        """Note the start of an application's last task."""
        self.whole_waits.add(seconds(moment - observation.record.plan.submit))

    def finish(self, observation: ApplicationObservation, moment: int) -> None:
        """Note that an application finished."""
        self.finished += 1
        slowdown = observation.slowdown(moment)
        if slowdown is not None:
            self.slowdowns.add(slowdown)

    def spend(self, partition: str, amount: Mapping[str, int], duration: int) -> None:
        """Add a task's usage of `amount` for `duration` nanoseconds."""
        spent = self.spent.setdefault(partition, {})
        for name, value in amount.items():
            spent[name] = spent.get(name, 0) + value * duration

    def report(
        self,
        name: str,
        capacities: Mapping[str, Mapping[str, int]],
        partition: str = "",
        guarantees: dict[str, Guarantee] | None = None,
    ) -> GroupReport:
        """Return the figures, given each partition's capacity as amounts times nanoseconds."""
        shares = [
            value / capacities[at][kind]
            for at, spent in self.spent.items()
            for kind, value in spent.items()
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
            guarantees=guarantees or {},
        )
