"""All queues of a simulation that ever had something in them, over time."""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.reporting.intervals import Timeline
from yunikorn.reporting.queue_observation import QueueObservation
from yunikorn.reporting.quota_source import QuotaSource


class QueueObservations:
    """By partition and path; root is left out, since it is the partition itself."""

    def __init__(self, timeline: Timeline, quota_source: QuotaSource) -> None:
        self._timeline = timeline
        self._quota_source = quota_source
        self._observations: dict[tuple[str, str], QueueObservation] = {}
        self._unsettled: dict[QueueObservation, None] = {}
        self._configured = 0
        """Since when the configuration is as it is now (ns)."""

    def at(self, partition: str, path: str) -> QueueObservation:
        """The queue of this path, about to be changed; made with those above it if it is new."""
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
        # It may have been there, and empty, for long.
        observation.take_quota(self._configured, self._quota_source.quota(partition, path))
        self._observations[partition, path] = observation
        return observation

    def look_again(self, moment: int) -> None:
        """The configuration is another one: quotas may be, too."""
        self._configured = moment
        for (partition, path), observation in self._observations.items():
            observation.take_quota(moment, self._quota_source.quota(partition, path))
            self._unsettled[observation] = None

    def settle(self, moment: int) -> None:
        """All changes of `moment` are in: enter where what changed stands."""
        for queue in self._unsettled:
            observation: QueueObservation | None = queue
            while observation is not None:
                observation.settle(moment)
                observation = observation.above
        self._unsettled.clear()

    def close(self, moment: int) -> None:
        """The simulation ended: enter what is open."""
        for observation in self._observations.values():
            observation.close(moment)

    def __iter__(self) -> Iterator[tuple[str, str, QueueObservation]]:
        """Partition, path and observation, in the order of the paths: each parent before its children."""
        for (partition, path), observation in sorted(self._observations.items(), key=_by_path):
            yield partition, path, observation


def _by_path(item: tuple[tuple[str, str], QueueObservation]) -> tuple[str, list[str]]:
    (partition, path), _ = item
    return partition, path.split(".")
