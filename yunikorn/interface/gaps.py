"""What a configuration asks for that this version does not do yet: said aloud, never passed over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from yunikorn.config.properties import BACKOFF
from yunikorn.errors import Problem

if TYPE_CHECKING:
    from yunikorn.config.schema import PartitionConfig, QueueConfig, SchedulerConfig

_PROPERTIES = {
    BACKOFF: "requests are not backed off",
}


def gaps(config: SchedulerConfig) -> list[Problem]:
    """Every key of `config` that is read and checked, but has no effect in this version."""
    return [
        gap
        for index, one in enumerate(config.partitions)
        for gap in _of_partition(one, f"partitions[{index}]")
    ]


def _of_partition(config: PartitionConfig, path: str) -> Iterator[Problem]:
    for queue_path, queue in config.root.walk():
        yield from _of_queue(queue, f"{path}, queue {queue_path}")


def _of_queue(queue: QueueConfig, path: str) -> Iterator[Problem]:
    for key, meaning in _PROPERTIES.items():
        if key in queue.properties:
            yield _gap(f"{path}: property {key}", meaning)


def _gap(path: str, meaning: str) -> Problem:
    return Problem(path, f"has no effect in this version: {meaning}")
