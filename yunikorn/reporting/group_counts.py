"""Applications that belong together: those of a queue, of a user, of a size; and how they fared."""

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
    """How the applications of one queue, user or size class fared."""

    name: str
    partition: str
    """Of a queue; empty for users and size classes, which have all partitions together."""
    applications: int
    finished: int
    wait: Summary | None
    """Seconds from submission to the start of the first task."""
    whole_wait: Summary | None
    """Seconds from submission to the start of the last task: for parallel jobs the wait that counts."""
    slowdown: Summary | None
    """Bounded slowdown of the applications that finished."""
    use: float
    """Dominant share: of all types the largest part of the capacity that their tasks had, over all time."""
    guarantees: dict[str, Guarantee] = attrs.Factory(dict)
    """Of a queue, by resource type."""


class GroupCounts:
    """Counts while a simulation runs."""

    def __init__(self) -> None:
        self.applications = 0
        self.finished = 0
        self.waits = Sample()
        self.whole_waits = Sample()
        self.slowdowns = Sample()
        self.spent: dict[str, Tally] = {}
        """By partition: amounts times nanoseconds that its tasks had."""

    def started(self, observation: ApplicationObservation, moment: int) -> None:
        """The first task of an application started."""
        self.waits.add(seconds(moment - observation.record.plan.submit))

    def whole(self, observation: ApplicationObservation, moment: int) -> None:
        """The last task of an application started."""
        self.whole_waits.add(seconds(moment - observation.record.plan.submit))

    def finish(self, observation: ApplicationObservation, moment: int) -> None:
        """An application finished."""
        self.finished += 1
        slowdown = observation.slowdown(moment)
        if slowdown is not None:
            self.slowdowns.add(slowdown)

    def spend(self, partition: str, amount: Mapping[str, int], duration: int) -> None:
        """A task had `amount` for `duration` nanoseconds."""
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
        """The figures, given each partition's capacity as amounts times nanoseconds."""
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
