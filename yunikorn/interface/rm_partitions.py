"""Partitions of one resource manager, under the names that the resource manager uses.

Its entries find their partitions by these names, and the outboxes of the partitions become one response with
these names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import TYPE_CHECKING

from yunikorn.accounting.changes import Changes
from yunikorn.accounting.outbox import lists_of
from yunikorn.interface.constants import DEFAULT_PARTITION
from yunikorn.interface.messages import (
    AcceptedApplication,
    AcceptedNode,
    Allocation,
    AllocationAskRelease,
    AllocationRelease,
    FailedNodeUpdate,
    PreemptionPolicy,
    RejectedAllocationAsk,
    RejectedApplication,
    RejectedNode,
    UpdatedApplication,
    UpdateResponse,
)

if TYPE_CHECKING:
    from yunikorn.accounting.outbox import Outbox, Release
    from yunikorn.model.allocation import Allocation as Placed
    from yunikorn.model.ask import AskSpec
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
        """Return the name of a partition in the core, which is unique over all RMs (docs/decisions/0039)."""
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


def response_of(unsent: Iterable[tuple[str, Changes]]) -> UpdateResponse | None:
    """Return one response with all messages of these changes, which are cleared; None for no changes.

    Each comes with the partition's name as the RM spells it, and has messages.
    """
    response: UpdateResponse | None = None
    for name, changes in unsent:
        response = response or UpdateResponse()
        _deliver(changes.outbox, name, response)
        changes.clear_outbox()
    return response


def _deliver(outbox: Outbox, name: str, response: UpdateResponse) -> None:
    # Most outboxes have entries of one or two kinds only.
    if outbox.allocations:
        response.new_allocations += map(_allocation, outbox.allocations, repeat(name))
    if outbox.releases:
        response.released_allocations += [_release(release, name) for release in outbox.releases]
    if outbox.updated_applications:
        for app_id, entry in outbox.updated_applications:
            change = UpdatedApplication(app_id, entry.state, entry.time, entry.reason)
            response.updated_applications.append(change)
    if outbox.accepted_applications or outbox.rejected_applications:
        response.accepted_applications += map(AcceptedApplication, outbox.accepted_applications)
        response.rejected_applications += [
            RejectedApplication(refusal.object_id, refusal.reason) for refusal in outbox.rejected_applications
        ]
    if outbox.unknown_releases:
        response.released_allocations += [
            AllocationRelease(
                unrouted.application_id,
                unrouted.uuid,
                name,
                message=unrouted.message,
                allocation_key=unrouted.key,
            )
            for unrouted in outbox.unknown_releases
        ]
    if outbox.ask_releases or outbox.rejected_asks:
        _deliver_asks(outbox, name, response)
    if outbox.accepted_nodes or outbox.rejected_nodes or outbox.failed_node_updates:
        _deliver_nodes(outbox, response)


def _deliver_asks(outbox: Outbox, name: str, response: UpdateResponse) -> None:
    response.released_allocation_asks += [
        AllocationAskRelease(ask.application_id, ask.key, name, ask.termination, ask.message)
        for ask in outbox.ask_releases
    ]
    response.rejected_allocations += [
        RejectedAllocationAsk(refusal.object_id, refusal.application_id, refusal.reason)
        for refusal in outbox.rejected_asks
    ]


def _deliver_nodes(outbox: Outbox, response: UpdateResponse) -> None:
    response.accepted_nodes += map(AcceptedNode, outbox.accepted_nodes)
    response.rejected_nodes += [
        RejectedNode(refusal.object_id, refusal.reason) for refusal in outbox.rejected_nodes
    ]
    response.failed_node_updates += [
        FailedNodeUpdate(refusal.object_id, refusal.reason) for refusal in outbox.failed_node_updates
    ]


def _allocation(placed: Placed, name: str) -> Allocation:
    spec = placed.spec
    # Positional arguments are faster, and there is one call per decision.
    return Allocation(
        placed.key,
        placed.app.id,
        placed.uuid,
        placed.node.id,
        placed.resource,
        placed.queue_name,
        name,
        placed.priority,
        dict(spec.tags) if spec.tags else {},
        spec.task_group,
        spec.placeholder,
        spec.originator,
        None if spec.may_be_preempted and spec.may_preempt else _policy(spec),
    )


def _policy(spec: AskSpec) -> PreemptionPolicy:
    """Return the preemption policy of an allocation."""
    return PreemptionPolicy(spec.may_be_preempted, spec.may_preempt)


def _release(release: Release, name: str) -> AllocationRelease:
    placed = release.allocation
    return AllocationRelease(
        placed.app.id, placed.uuid, name, release.termination, release.message, placed.key
    )
