"""Observations of all queues that had applications during a simulation."""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.reporting.intervals import Timeline
from yunikorn.reporting.queue_observation import QueueObservation
from yunikorn.reporting.quota_source import QuotaSource


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

    def look_again(self, moment: int) -> None:
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
