"""Observations of queues over time: usage, waiting requests, and fulfilment of their guarantees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from yunikorn.resources import Tally, grow
from yunikorn_lab.reporting.core_view import CoreView, QueueQuota
from yunikorn_lab.reporting.observations import LoadObservation
from yunikorn_lab.reporting.run_history import QuotaStep
from yunikorn_lab.reporting.time_series import Timeline
from yunikorn_lab.simulation.statistics import DIGITS, seconds


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


class QueueObservation(LoadObservation):
    """A queue, leaf or parent, including its descendants."""

    def __init__(self, timeline: Timeline, parent: QueueObservation | None) -> None:
        self.parent = parent
        self.chain: tuple[QueueObservation, ...] = (self, *parent.chain) if parent is not None else (self,)
        """The queue and its ancestors."""
        super().__init__(timeline, *self.chain[1:])
        self.is_leaf = True
        self.pending: Tally = {}
        """Total amounts of waiting requests."""
        self.steps: list[QuotaStep] = []
        self.wanted = timeline.series()
        self._quota = QueueQuota()
        self._types: list[str] = []
        """Resource types that have had a guarantee."""
        self._guaranteed = timeline.series()
        self._owed = timeline.series()
        self._kept = timeline.series()

    def ask(self, size: Mapping[str, int], requests: int) -> None:
        """Add waiting requests of this size to the queue and its ancestors."""
        for queue in self.chain:
            grow(queue.pending, size, requests)
            queue.dirty = True

    def set_quota(self, moment: int, quota: QueueQuota) -> None:
        """Set the quota from `moment` on."""
        if self.steps and quota == self._quota:
            return
        self._quota = quota
        self.steps.append(QuotaStep(seconds(moment), dict(quota.guaranteed), dict(quota.max)))
        self._guaranteed.record(moment, quota.guaranteed)
        self._types = self._guaranteed.names
        self.record(moment)

    def record(self, moment: int) -> None:
        """Record the current state; called after all changes of `moment`."""
        super().record(moment)
        self.wanted.record(moment, self.pending)
        if self._types:
            allocated, pending, guaranteed = self.allocated, self.pending, self._quota.guaranteed
            owed, kept = {}, {}
            for name in self._types:
                used = allocated.get(name, 0)
                owed[name] = due = min(guaranteed.get(name, 0), used + pending.get(name, 0))
                kept[name] = min(used, due)
            self._owed.record(moment, owed)
            self._kept.record(moment, kept)

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation."""
        self.record(moment)
        self.wind(moment, self.wanted, self._guaranteed, self._owed, self._kept)

    def guarantees(self) -> dict[str, Guarantee]:
        """Return the fulfilment of the guarantees, by resource type. Call `close` before."""
        return {
            name: Guarantee(
                guaranteed=self._quota.guaranteed.get(name, 0),
                used=_ratio(self.used.total(name), self._guaranteed.total(name)),
                kept=_ratio(self._kept.total(name), self._owed.total(name)),
            )
            for name in self._types
        }


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, DIGITS) if whole else None


class QueueObservations:
    """Observations by partition and path, without root, which equals the partition itself."""

    def __init__(self, timeline: Timeline, view: CoreView) -> None:
        self._timeline = timeline
        self._view = view
        self._observations: dict[tuple[str, str], QueueObservation] = {}
        self._changed: dict[QueueObservation, None] = {}
        self._configured = 0
        """Time of the last change of the configuration (ns)."""

    def at(self, partition: str, path: str) -> QueueObservation:
        """Return the queue of this path for a change; creates missing queues, including ancestors."""
        observation = self._observations.get((partition, path))
        if observation is None:
            observation = self._make(partition, path)
        self._changed[observation] = None
        return observation

    def _make(self, partition: str, path: str) -> QueueObservation:
        parent_path = path.rpartition(".")[0]
        parent: QueueObservation | None = None
        if "." in parent_path:
            parent = self._observations.get((partition, parent_path)) or self._make(partition, parent_path)
            parent.is_leaf = False
        observation = QueueObservation(self._timeline, parent)
        # The queue may have existed without applications since that time.
        observation.set_quota(self._configured, self._view.quota(partition, path))
        self._observations[partition, path] = observation
        return observation

    def read_quotas(self, moment: int) -> None:
        """Read all quotas again after a reload of the configuration."""
        self._configured = moment
        for (partition, path), observation in self._observations.items():
            observation.set_quota(moment, self._view.quota(partition, path))

    def record(self, moment: int) -> None:
        """Record the state of changed queues and their ancestors; called after all changes of `moment`."""
        for queue in self._changed:
            for level in queue.chain:
                if level.dirty:
                    level.record(moment)
        self._changed.clear()

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
