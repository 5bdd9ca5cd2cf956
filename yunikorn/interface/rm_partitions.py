"""Partitions of one resource manager, under the names that the resource manager uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from yunikorn.accounting.changes import Changes
from yunikorn.accounting.outbox import lists_of
from yunikorn.interface.constants import DEFAULT_PARTITION
from yunikorn.interface.delivery import response_of

if TYPE_CHECKING:
    from yunikorn.interface.messages import UpdateResponse
    from yunikorn.model.node import Node
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler


class RMPartitions:
    """Partitions in the order of the configuration, and the changes that concern none of them."""

    def __init__(self, rm_id: str, unrouted: Changes) -> None:
        self._prefix = f"[{rm_id}]"
        self.by_name: dict[str, PartitionScheduler] = {}
        """Partitions by their names in the configuration."""
        self.unrouted = unrouted
        """Messages about objects that belong to no partition of this RM."""
        self.priority_classes: Mapping[str, int] = {}
        """Priorities by class, from the configuration in use."""

    def __iter__(self) -> Iterator[PartitionScheduler]:
        return iter(self.by_name.values())

    def internal_name(self, config_name: str) -> str:
        """Return the name of a partition in the core, which is unique over all RMs.

        See docs/decisions/archive/0039.
        """
        return self._prefix + config_name

    def find(self, name: str) -> PartitionScheduler | None:
        """Return the partition of this name as the RM spells it; an empty name means `default`."""
        return self.by_name.get(name.removeprefix(self._prefix) or DEFAULT_PARTITION)

    def node(self, node_id: str, partition_name: str) -> tuple[PartitionScheduler, Node] | None:
        """Return a node and its partition: the named partition, or the one that has the node."""
        wanted = self.find(partition_name) if partition_name else None
        for partition in [wanted] if wanted is not None else self:
            node = partition.partition.nodes.get(node_id)
            if node is not None:
                return partition, node
        return None

    def queue_of(self, app_id: str) -> str:
        """Return the queue of an application, also after its end; empty when the application is forgotten."""
        for at in self:
            app = at.partition.applications.get(app_id) or at.partition.ended.get(app_id)
            if app is not None:
                return app.queue.path if app.queue is not None else app.queue_name
        return ""

    def changes(self) -> list[Changes]:
        """Return the changes of all partitions, and those that concern none."""
        return [self.unrouted, *(at.partition.changes for at in self.by_name.values())]

    def response(self) -> UpdateResponse | None:
        """Return one response with the messages of `changes`, which are cleared; None if there are none."""
        unsent = [("", self.unrouted)] if any(lists_of(self.unrouted.outbox)) else []
        for name, partition in self.by_name.items():
            changes = partition.partition.changes
            if any(lists_of(changes.outbox)):
                unsent.append((name, changes))
        return response_of(unsent) if unsent else None
