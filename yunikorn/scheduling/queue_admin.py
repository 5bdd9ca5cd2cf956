"""Stopping and starting of queues and partitions, and draining of nodes, by API calls.

A stopped queue keeps its allocations and accepts applications, but nothing new is placed in the queue or its
descendants. A queue stopped by a call stays stopped after a reload, until a call starts it. A queue stopped
by the property `queue.state` can only be started by a new configuration. A node is schedulable if neither its
RM nor a call drains it (`docs/decisions/archive/0093`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.errors import StateError, UsageError
from yunikorn.states import PARTITION, QUEUE
from yunikorn.text import suggest

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.queue import Queue
    from yunikorn.states import Event, Lifecycle


def stop_queue(partition: Partition, path: str, *, lasting: bool = False) -> bool:
    """Stop a queue, root included; returns True if it was running.

    A `lasting` stop belongs to the path, and holds again for a queue that is removed and created again.
    Raises `UsageError` if the queue does not exist, or is draining and cannot be stopped.
    """
    queue = _find(partition, path)
    changed = _fire(QUEUE, queue, "stop")
    queue.stopped_by_call = True
    if lasting:
        partition.queues.lasting_stops[queue.path] = None
    if changed:
        partition.changes.queue_switched(queue, "queue stopped")
    return changed


def start_queue(partition: Partition, path: str) -> bool:
    """Start a queue that a call has stopped; returns True if it was stopped.

    Raises `UsageError` if the queue does not exist, or is stopped by its configuration.
    """
    lasting = partition.queues.lasting_stops
    if partition.queue(path) is None and path.lower() in lasting:
        del lasting[path.lower()]
        return True
    queue = _find(partition, path)
    if queue.settings.stopped:
        raise UsageError(
            f"queue {queue.path} is stopped by its property queue.state: change the configuration to start it"
        )
    changed = _fire(QUEUE, queue, "start")
    queue.stopped_by_call = False
    lasting.pop(queue.path, None)
    if changed:
        partition.changes.queue_switched(queue, "queue started")
    return changed


def stop_partition(partition: Partition) -> bool:
    """Stop a partition, which then accepts no applications, asks or nodes and places nothing.

    Running allocations continue. Returns True if the partition was running. Raises `UsageError` if it is
    draining.
    """
    return _fire(PARTITION, partition, "stop")


def start_partition(partition: Partition) -> bool:
    """Start a stopped partition; returns True if it was stopped. Raises `UsageError` if it is draining."""
    return _fire(PARTITION, partition, "start")


def drain_node(partition: Partition, node_id: str) -> bool:
    """Drain a node; returns True if no call drained it. Raises `UsageError` if the node does not exist."""
    _check_node(partition, node_id)
    return partition.drain_node(node_id)


def undrain_node(partition: Partition, node_id: str) -> bool:
    """Undo `drain_node`; returns True if a call drained the node.

    Raises `UsageError` if the node neither exists nor is drained.
    """
    if node_id not in partition.drained_by_operator:
        _check_node(partition, node_id)
    return partition.undrain_node(node_id)


def _check_node(partition: Partition, node_id: str) -> None:
    if node_id not in partition.nodes:
        hint = suggest(node_id, partition.nodes)
        raise UsageError(f"there is no node '{node_id}' in partition {partition.name}{hint}")


def _find(partition: Partition, path: str) -> Queue:
    queue = partition.queue(path)
    if queue is None:
        raise UsageError(f"there is no queue '{path}' in partition {partition.name}")
    return queue


def _fire(machine: Lifecycle[Event], thing: Partition | Queue, event: Event) -> bool:
    try:
        return machine.fire(thing, event)
    except StateError as error:
        raise UsageError(f"{error}; it is being removed") from error
