"""Time series of a simulation: means over equal intervals, for files and plots."""

from __future__ import annotations

import attrs

from yunikorn.reporting.queue_observation import QuotaStep


@attrs.frozen
class PartitionHistory:
    """Time series of a partition; amounts per resource type in base units (milli-vcores, bytes, counts)."""

    partition: str
    capacity: dict[str, list[float]]
    used: dict[str, list[float]]
    unusable: dict[str, list[float]]
    """Free amounts that waiting tasks cannot use."""
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
class NodeHistory:
    """Used parts of the capacity, by resource type and row of nodes; None for a row without capacity."""

    nodes: int
    per_row: int
    shares: dict[str, list[list[float | None]]]


@attrs.frozen
class History:
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

    @property
    def edges(self) -> list[float]:
        """Boundaries of the intervals, in seconds; empty without intervals."""
        count = self.count
        return [*(self.start + index * self.width for index in range(count)), self.end] if count else []

    @property
    def count(self) -> int:
        """Number of intervals."""
        return len(self.partitions[0].waiting) if self.partitions else 0
