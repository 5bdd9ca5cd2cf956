"""What a configuration asks for that this version does not do yet: said aloud, never passed over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from yunikorn.config.properties import BACKOFF, PREEMPTION_DELAY, PREEMPTION_POLICY, QUOTA_DELAY
from yunikorn.errors import Problem

if TYPE_CHECKING:
    from yunikorn.config.schema import PartitionConfig, QueueConfig, SchedulerConfig

_PROPERTIES = {
    BACKOFF: "requests are not backed off",
    PREEMPTION_DELAY: "nothing is preempted",
    PREEMPTION_POLICY: "nothing is preempted",
    QUOTA_DELAY: "nothing is preempted",
}


def gaps(config: SchedulerConfig) -> list[Problem]:
    """Every key of `config` that is read and checked, but has no effect in this version."""
    return [
        gap
        for index, one in enumerate(config.partitions)
        for gap in _of_partition(one, f"partitions[{index}]")
    ]


def _of_partition(config: PartitionConfig, path: str) -> Iterator[Problem]:
    if config.preemption.quota_preemption_enabled:
        yield _gap(f"{path}.preemption.quotapreemptionenabled", "nothing is preempted")
    for queue_path, queue in config.root.walk():
        yield from _of_queue(queue, f"{path}, queue {queue_path}")


def _of_queue(queue: QueueConfig, path: str) -> Iterator[Problem]:
    for key, meaning in _PROPERTIES.items():
        if key in queue.properties:
            yield _gap(f"{path}: property {key}", meaning)


def _gap(path: str, meaning: str) -> Problem:
    return Problem(path, f"has no effect in this version: {meaning}")
