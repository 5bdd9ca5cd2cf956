"""What a simulation looked like over time: means over equal intervals, for files and pictures."""

from __future__ import annotations

import attrs

from yunikorn.reporting.queue_observation import QuotaStep


@attrs.frozen
class PartitionHistory:
    """One partition; amounts per resource type, in its own units (milli-cores, bytes, pieces)."""

    partition: str
    capacity: dict[str, list[float]]
    used: dict[str, list[float]]
    unusable: dict[str, list[float]]
    """Free, but of no use to what waits."""
    waiting: list[float]
    running: list[float]


@attrs.frozen
class QueueHistory:
    """One queue with all below it; amounts as above."""

    partition: str
    queue: str
    is_leaf: bool
    used: dict[str, list[float]]
    wanted: dict[str, list[float]]
    """What waits, in sum."""
    waiting: list[float]
    running: list[float]
    quotas: list[QuotaStep]


@attrs.frozen
class NodeHistory:
    """Parts that were used, per resource type and row of nodes; None where there was nothing to use."""

    nodes: int
    per_row: int
    shares: dict[str, list[list[float | None]]]


@attrs.frozen
class History:
    """Intervals, and what was in them."""

    start: float
    """Where the first one begins, in seconds."""
    width: float
    """How wide they are, in seconds."""
    end: float
    """Where the last one ends, which may be narrower."""
    partitions: list[PartitionHistory]
    queues: list[QueueHistory]
    """In the order of their paths, each parent before its children."""
    nodes: NodeHistory

    @property
    def edges(self) -> list[float]:
        """Where intervals begin, and where the last one ends; empty without any."""
        count = self.count
        return [*(self.start + index * self.width for index in range(count)), self.end] if count else []

    @property
    def count(self) -> int:
        """How many intervals there are."""
        return len(self.partitions[0].waiting) if self.partitions else 0
