"""Observation of a queue over time: usage, waiting requests, and fulfilment of its guarantee.

Observations of all queues that had applications during a simulation.

Lookup of queues and quotas in the core during a simulation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.reporting.intervals import Series, Timeline
from yunikorn.resources import NOTHING, Resource, Tally, grow
from yunikorn.simulation.simulated_rm import RM_ID
from yunikorn.simulation.statistics import DIGITS, seconds


@attrs.frozen
class QuotaStep:
    """Guarantee and maximum of a queue from `time` (seconds) on."""

    time: float
    guaranteed: dict[str, int]
    max: dict[str, int]


@attrs.frozen
class Guarantee:
    """Fulfilment of a guarantee of one resource type."""

    guaranteed: int
    """Guarantee at the end of the simulation, in the type's base unit."""
    used: float | None
    """Mean usage divided by the mean guarantee; above 1 the queue borrowed more than it lent."""
    kept: float | None
    """Part of the owed amount that the queue used; None if no amount was owed at any time.

    The amount owed at each moment is the guarantee, or the sum of used and waiting amounts if that is less.
    """


class QueueObservation:
    """A queue, leaf or parent, including its descendants."""

    def __init__(self, timeline: Timeline, above: QueueObservation | None) -> None:
        self.above = above
        self.is_leaf = True
        self.held: Tally = {}
        self.lacked: Tally = {}
        """Total amounts of waiting requests."""
        self.waiting = 0
        self.running = 0
        self.steps: list[QuotaStep] = []
        self.quota = QueueQuota()
        self.used: dict[str, Series] = {}
        self.wanted: dict[str, Series] = {}
        self.waits = timeline.series()
        self.runs = timeline.series()
        self._timeline = timeline
        self._guaranteed: dict[str, Series] = {}
        self._owed: dict[str, Series] = {}
        self._kept: dict[str, Series] = {}

    def hold(self, amount: Mapping[str, int], sign: int) -> None:
        """Increase the usage of the queue and its ancestors by `amount` (`sign` 1), or reduce it (-1)."""
        observation: QueueObservation | None = self
        while observation is not None:
            grow(observation.held, amount, sign)
            observation = observation.above

    def run(self, tasks: int) -> None:
        """Increase the number of running tasks of the queue and its ancestors."""
        observation: QueueObservation | None = self
        while observation is not None:
            observation.running += tasks
            observation = observation.above

    def lack(self, amount: Mapping[str, int], requests: int) -> None:
        """Add waiting requests for `amount` to the queue and its ancestors."""
        observation: QueueObservation | None = self
        while observation is not None:
            grow(observation.lacked, amount, requests)
            observation = observation.above

    def wait(self, tasks: int) -> None:
        """Increase the number of waiting tasks of the queue and its ancestors."""
        observation: QueueObservation | None = self
        while observation is not None:
            observation.waiting += tasks
            observation = observation.above

    def take_quota(self, moment: int, quota: QueueQuota) -> None:
        """Set the quota from `moment` on."""
        if self.steps and quota == self.quota:
            return
        self.quota = quota
        self.steps.append(QuotaStep(seconds(moment), dict(quota.guaranteed), dict(quota.max)))
        for name in {**self._guaranteed, **quota.guaranteed}:
            self._series(self._guaranteed, name).set(moment, quota.guaranteed.get(name, 0))
        self.settle(moment)

    def settle(self, moment: int) -> None:
        """Record the current state; called after all changes of `moment`."""
        self.waits.set(moment, self.waiting)
        self.runs.set(moment, self.running)
        for books, series in ((self.held, self.used), (self.lacked, self.wanted)):
            for name in {**series, **books}:
                self._series(series, name).set(moment, books.get(name, 0))
        for name in self._guaranteed:
            held = self.held.get(name, 0)
            owed = min(self.quota.guaranteed.get(name, 0), held + self.lacked.get(name, 0))
            self._series(self._owed, name).set(moment, owed)
            self._series(self._kept, name).set(moment, min(held, owed))

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation."""
        self.settle(moment)
        for books in (self.used, self.wanted, self._guaranteed, self._owed, self._kept):
            for series in books.values():
                series.wind(moment)
        self.waits.wind(moment)
        self.runs.wind(moment)

    def guarantees(self) -> dict[str, Guarantee]:
        """Return the fulfilment of the guarantees, by resource type. Call `close` before."""
        found = {}
        for name, series in sorted(self._guaranteed.items()):
            used = self.used[name].total() if name in self.used else 0
            owed = self._owed[name].total() if name in self._owed else 0
            found[name] = Guarantee(
                guaranteed=self.quota.guaranteed.get(name, 0),
                used=_ratio(used, series.total()),
                kept=_ratio(self._kept[name].total(), owed) if owed else None,
            )
        return found

    def _series(self, books: dict[str, Series], name: str) -> Series:
        series = books.get(name)
        if series is None:
            series = books[name] = self._timeline.series()
        return series


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, DIGITS) if whole else None


class QueueObservations:
    """Observations by partition and path, without root, which equals the partition itself."""

    def __init__(self, timeline: Timeline, quota_source: QuotaSource) -> None:
        self._timeline = timeline
        self._quota_source = quota_source
        self._observations: dict[tuple[str, str], QueueObservation] = {}
        self._unsettled: dict[QueueObservation, None] = {}
        self._configured = 0
        """Time of the last change of the configuration (ns)."""

    def at(self, partition: str, path: str) -> QueueObservation:
        """Return the queue of this path for a change; creates missing queues, including ancestors."""
        observation = self._observations.get((partition, path))
        if observation is None:
            observation = self._make(partition, path)
        self._unsettled[observation] = None
        return observation

    def _make(self, partition: str, path: str) -> QueueObservation:
        above_path = path.rpartition(".")[0]
        above: QueueObservation | None = None
        if "." in above_path:
            above = self._observations.get((partition, above_path)) or self._make(partition, above_path)
            above.is_leaf = False
        observation = QueueObservation(self._timeline, above)
        # The queue may have existed without applications since that time.
        observation.take_quota(self._configured, self._quota_source.quota(partition, path))
        self._observations[partition, path] = observation
        return observation

    def check_again(self, moment: int) -> None:
        """Read all quotas again after a reload of the configuration."""
        self._configured = moment
        for (partition, path), observation in self._observations.items():
            observation.take_quota(moment, self._quota_source.quota(partition, path))
            self._unsettled[observation] = None

    def settle(self, moment: int) -> None:
        """Record the state of changed queues and their ancestors; called after all changes of `moment`."""
        for queue in self._unsettled:
            observation: QueueObservation | None = queue
            while observation is not None:
                observation.settle(moment)
                observation = observation.above
        self._unsettled.clear()

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation."""
        for observation in self._observations.values():
            observation.close(moment)

    def __iter__(self) -> Iterator[tuple[str, str, QueueObservation]]:
        """Yield partition, path and observation, sorted by path, so that parents precede their children."""
        for (partition, path), observation in sorted(self._observations.items(), key=_by_path):
            yield partition, path, observation


def _by_path(item: tuple[tuple[str, str], QueueObservation]) -> tuple[str, list[str]]:
    (partition, path), _ = item
    return partition, path.split(".")


@attrs.frozen
class QueueQuota:
    """Guarantee of a queue and its own maximum; types missing from the maximum are unlimited."""

    guaranteed: Resource = NOTHING
    max: Resource = NOTHING


class QuotaSource(Protocol):
    """The part of the core's state that observers need in addition to recorder calls."""

    def queue_of(self, partition: str, application: str) -> str:
        """Return the queue of an application; empty if the core has no such application (any more)."""
        ...

    def quota(self, partition: str, queue: str) -> QueueQuota:
        """Return the quota of a queue; empty if the core has no such queue (any more)."""
        ...


class CoreQuotaSource:
    """Read-only access to a core that becomes known later."""

    def __init__(self) -> None:
        self._core: Scheduler | None = None

    def meet(self, core: Scheduler) -> None:
        """Set the core."""
        self._core = core

    def queue_of(self, partition: str, application: str) -> str:
        """Return the queue of an application; empty if the core has no such application (any more)."""
        at = self._core.partition(RM_ID, partition) if self._core is not None else None
        found = at.partition.applications.get(application) if at is not None else None
        return found.chain[0].path if found is not None and found.chain else ""

    def quota(self, partition: str, queue: str) -> QueueQuota:
        """Return the quota of a queue; empty if the core has no such queue (any more)."""
        at = self._core.partition(RM_ID, partition) if self._core is not None else None
        found = at.partition.queues.queue(queue) if at is not None else None
        if found is None or found.parent is None:
            return QueueQuota()
        return QueueQuota(found.guaranteed, found.max or NOTHING)
