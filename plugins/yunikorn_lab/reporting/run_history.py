"""Time series of a run as its results have them: means over each interval."""

from __future__ import annotations

import attrs

from yunikorn_lab.reporting.tables import queue_label
from yunikorn_lab.reporting.topology_rooms import TopologyHistory


@attrs.frozen
class QuotaStep:
    """Guarantee and maximum of a queue from `time` (seconds) on."""

    time: float
    guaranteed: dict[str, int]
    max: dict[str, int]


@attrs.frozen
class PartitionHistory:
    """Time series of a partition; amounts per resource type in base units (milli-vcores, bytes, counts)."""

    partition: str
    capacity: dict[str, list[float]]
    used: dict[str, list[float]]
    unusable: dict[str, list[float]]
    """Free amounts that waiting tasks cannot use."""
    idle: dict[str, dict[str, list[float]]]
    """Capacity that stands idle while work waits, by cause."""
    waiting: list[float]
    running: list[float]


@attrs.frozen
class QueueHistory:
    """Time series of a queue and its descendants; units are as for `PartitionHistory`."""

    partition: str
    queue: str
    is_leaf: bool
    used: dict[str, list[float]]
    wanted: dict[str, list[float]]
    """Total amounts of waiting requests."""
    waiting: list[float]
    running: list[float]
    quotas: list[QuotaStep]


@attrs.frozen
class UserHistory:
    """Time series of a user, or of all others together; units are as for `PartitionHistory`."""

    user: str
    """Name of the user; empty for the others."""
    users: int
    """Number of users that the series stand for."""
    since: float | None
    """Time (seconds) from which on these are the user's own; before, the others have them. None: always."""
    used: dict[str, list[float]]
    """Amounts of running tasks, without placeholders."""
    wanted: dict[str, list[float]]
    """Total amounts of waiting requests."""
    waiting: list[float]
    running: list[float]


@attrs.frozen
class NodeHistory:
    """Used parts of the capacity, by resource type and row of nodes; None for a row without capacity."""

    nodes: int
    per_row: int
    names: list[str]
    """Name of the first node of each row."""
    shares: dict[str, list[list[float | None]]]


@attrs.frozen
class RunHistory:
    """All time series of a simulation."""

    start: float
    """Start of the first interval, in seconds."""
    width: float
    """Width of the intervals, in seconds."""
    end: float
    """End of the last interval, which may be narrower, in seconds."""
    partitions: list[PartitionHistory]
    queues: list[QueueHistory]
    """Queues sorted by path, so that parents precede their children."""
    nodes: NodeHistory
    origin: float | None = None
    """Unix time (seconds) of 0 of simulated time; None without dates, and in runs of earlier versions."""
    users: list[UserHistory] = attrs.Factory(list)
    """Users with the highest use, highest first, then all others together; empty without several users."""
    topology: list[TopologyHistory] = attrs.Factory(list)
    """Left out of results of workloads without gangs that ask for domains."""

    def label(self, partition: str, name: str) -> str:
        """Return the label of a queue or a resource type, with its partition if there are several."""
        return queue_label(partition, name, several=len(self.partitions) > 1)

    @property
    def edges(self) -> list[float]:
        """Boundaries of the intervals, in seconds; empty without intervals."""
        count = self.count
        return [*(self.start + index * self.width for index in range(count)), self.end] if count else []

    @property
    def count(self) -> int:
        """Number of intervals."""
        return len(self.partitions[0].waiting) if self.partitions else 0
