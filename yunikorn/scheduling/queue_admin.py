"""Stopping and starting queues and partitions by a call (object-states seed: Stop and Start).

A stopped queue keeps its work and accepts applications, but nothing new is placed in it or below it.
What a call stopped, a call has to start: a reload neither starts it nor forgets that it is stopped.
What the property `queue.state` stopped, the configuration has to start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.errors import StateError, UsageError
from yunikorn.states import PARTITION, QUEUE

if TYPE_CHECKING:
    from yunikorn.objects.partition import Partition
    from yunikorn.objects.queue import Queue
    from yunikorn.states import Lifecycle


def stop_queue(partition: Partition, path: str) -> bool:
    """Stop a queue, root included; returns whether it ran until now.

    Raises `UsageError` when there is no such queue, or when it is draining and so cannot be stopped.
    """
    queue = _find(partition, path)
    changed = _fire(QUEUE, queue, "stop")
    queue.stopped_by_call = True
    if changed:
        partition.event_recorder.record("QUEUE", queue.path, change="SET", message="queue stopped")
    return changed


def start_queue(partition: Partition, path: str) -> bool:
    """Start a queue that a call stopped; returns whether it was stopped until now.

    Raises `UsageError` when there is no such queue, or when its own configuration stops it.
    """
    queue = _find(partition, path)
    if queue.settings.stopped:
        raise UsageError(
            f"queue {queue.path} is stopped by its property queue.state: change the configuration to start it"
        )
    changed = _fire(QUEUE, queue, "start")
    queue.stopped_by_call = False
    if changed:
        partition.event_recorder.record("QUEUE", queue.path, change="SET", message="queue started")
    return changed


def stop_partition(partition: Partition) -> bool:
    """Stop a partition: it takes no applications, asks or nodes and places nothing, but keeps its work.

    Returns whether it ran until now. Raises `UsageError` when it is draining.
    """
    return _fire(PARTITION, partition, "stop")


def start_partition(partition: Partition) -> bool:
    """Start a stopped partition; returns whether it was stopped. Raises `UsageError` when it is draining."""
    return _fire(PARTITION, partition, "start")


def _find(partition: Partition, path: str) -> Queue:
    queue = partition.queue(path)
    if queue is None:
        raise UsageError(f"there is no queue '{path}' in partition {partition.name}")
    return queue


def _fire(machine: Lifecycle, thing: Partition | Queue, event: str) -> bool:
    try:
        return machine.fire(thing, event)
    except StateError as error:
        raise UsageError(f"{error}; it is on its way out") from error
