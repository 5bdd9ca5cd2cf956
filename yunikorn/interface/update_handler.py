"""Application of an RM's update to the partitions, entry by entry; a bad entry is rejected on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from yunikorn.accounting.event_recorder import shortened
from yunikorn.interface.ask_entries import AskEntries, existing_of, time_limit
from yunikorn.interface.checks import (
    allocation_fault,
    application_fault,
    ask_release_fault,
    check_request,
    is_regular,
    name_fault,
    node_fault,
    node_update_fault,
    release_fault,
    removal_fault,
    shown_id,
)
from yunikorn.interface.constants import NODE_PARTITION
from yunikorn.interface.messages import NodeAction
from yunikorn.interface.waiting_entries import WaitingEntries
from yunikorn.model.gang import ATOMIC, style_named
from yunikorn.resources import is_zero
from yunikorn.scheduling.application_spec import ApplicationSpec

if TYPE_CHECKING:
    from yunikorn.interface.messages import (
        AddApplicationRequest,
        Allocation,
        AllocationAskRelease,
        AllocationRelease,
        NewNodeInfo,
        RemoveApplicationRequest,
        UpdateNodeInfo,
        UpdateRequest,
    )
    from yunikorn.interface.rm_partitions import RMPartitions
    from yunikorn.model.node import Node
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler
    from yunikorn.states import NodeEvent

NO_SIZE = "an Atomic gang needs a placeholderAsk: the total resources of its members"
Removals = Sequence["RemoveApplicationRequest"]
NodeUpdates = Sequence["UpdateNodeInfo"]
_MOVES: dict[NodeAction, NodeEvent] = {
    NodeAction.DRAIN_NODE: "drain",
    NodeAction.DRAIN_TO_SCHEDULABLE: "schedule",
}
"""Events of the node's state machine, by action."""
UNKNOWN_ACTION = "unknown action: nothing was changed"


class UpdateHandler:
    """Handler of the updates of one RM, in the order of `docs/decisions/0030`."""

    def __init__(self, partitions: RMPartitions, *, workers: bool = False) -> None:
        """Create for these partitions; with `workers`, applications may wait for their checks."""
        self._partitions = partitions
        self._asks = AskEntries(partitions)
        self._waiting: WaitingEntries | None = None
        if workers:
            self._waiting = WaitingEntries(partitions, self._asks, self.release_ask, self.release)

    def take(self, request: UpdateRequest) -> None:
        """Apply applications, then asks and releases, then nodes, and existing allocations at the end.

        An id that is both removed and registered in one update is removed first if it is known. Raises
        `UsageError` before any entry is applied if the request does not consist of the interface's classes.
        """
        if not is_regular(request):
            check_request(request)
        then: Removals = request.remove_applications
        if then and request.new_applications:
            then = self._remove_known(then)
        for new in request.new_applications:
            self._add_application(new)
        for gone in then:
            self._remove_application(gone)
        if self._waiting is not None:
            request = self._waiting.keep_back(request)
        if request.asks:
            self._asks.take(request.asks)
        for ask_release in request.releases.allocation_asks_to_release:
            self.release_ask(ask_release)
        for release in request.releases.allocations_to_release:
            self.release(release)
        recovered: list[tuple[PartitionScheduler, Allocation, str]] = []
        after: NodeUpdates = request.updated_nodes
        if after and request.new_schedulable_nodes:
            after = self._update_known(after, request.new_schedulable_nodes)
        for node in request.new_schedulable_nodes:
            self._add_node(node, recovered)
        for update in after:
            self._update_node(update)
        for partition, allocation, node_id in recovered:
            self._recover(partition, allocation, node_id)
        if request.allocations:
            self._asks.take_allocations(request.allocations)

    # -- what is removed and registered at once -----------------------------------------------------

    def _remove_known(self, removals: Removals) -> Removals:
        """Remove the known applications before new ones are added; return the other removals."""
        first: list[RemoveApplicationRequest] = []
        then: list[RemoveApplicationRequest] = []
        for gone in removals:
            partition, _ = self._asks.partition(gone.partition_name, removal_fault(gone))
            known = partition is not None and partition.knows(gone.application_id)
            (first if known else then).append(gone)
        for gone in first:
            self._remove_application(gone)
        return then

    def _update_known(self, updates: NodeUpdates, nodes: Sequence[NewNodeInfo]) -> NodeUpdates:
        """Update known nodes up to their removal before they are registered; return the other updates."""
        new = {node.node_id for node in nodes if not node_fault(node)}
        removed: dict[object, int] = {}
        for index, update in enumerate(updates):
            if update.action == NodeAction.DECOMMISSION and not node_update_fault(update):
                node_id = update.node_id
                if node_id in new and self._partitions.node(node_id, _partition_of(update.attributes)):
                    removed[node_id] = index
        if not removed:
            return updates
        before: list[UpdateNodeInfo] = []
        after: list[UpdateNodeInfo] = []
        for index, update in enumerate(updates):
            known = not name_fault("nodeID", update.node_id)
            (before if known and index <= removed.get(update.node_id, -1) else after).append(update)
        for update in before:
            self._update_node(update)
        return after

    # -- applications -------------------------------------------------------------------------------

    def _add_application(self, new: AddApplicationRequest) -> None:
        partition, reason = self._asks.partition(new.partition_name, application_fault(new))
        if not reason and not new.application_id:
            reason = "an application needs an id"
        elif new.gang_scheduling_style and not reason and _is_atomic_without_size(new):
            reason = NO_SIZE
        if partition is None or reason:
            self._partitions.unrouted.application_rejected(shown_id(new.application_id), reason)
            return
        ugi = new.ugi
        submission = ApplicationSpec(
            new.application_id, new.queue_name, ugi.user, tuple(ugi.groups), new.tags
        )
        submission.execution_timeout = time_limit(new.execution_timeout_ms)
        submission.gang, submission.gang_style = new.placeholder_ask, new.gang_scheduling_style
        partition.submitted.submit(submission)

    def _remove_application(self, gone: RemoveApplicationRequest) -> None:
        partition, reason = self._asks.partition(gone.partition_name, removal_fault(gone))
        if partition is not None:
            partition.remove_application(gone.application_id)
        else:
            reason = f"{reason}: nothing was removed"
            self._partitions.unrouted.application_rejected(shown_id(gone.application_id), reason)

    # -- releases ------------------------------------------------------------------------------------

    def release_ask(self, gone: AllocationAskRelease) -> None:
        """Apply the release of an ask."""
        partition, reason = self._asks.partition(gone.partition_name, ask_release_fault(gone))
        if partition is None:
            self._asks.refuse(gone, f"{reason}: nothing was released")
        elif not gone.application_id and not gone.allocation_key:
            self._asks.refuse(gone, "an ask release needs an application id or an allocation key", partition)
        else:
            partition.submitted_asks.release(
                gone.application_id, gone.allocation_key, gone.termination_type, shortened(gone.message)
            )

    def release(self, gone: AllocationRelease) -> None:
        """Apply the release of an allocation."""
        partition, reason = self._asks.partition(gone.partition_name, release_fault(gone))
        if partition is None:
            # Unlike an unknown allocation, this one is not answered by a release: it may be running in
            # another partition.
            self._asks.refuse(gone, f"{reason}: nothing was released")
            return
        message = shortened(gone.message) if gone.message else ""
        partition.release(gone.application_id, gone.uuid, gone.allocation_key, gone.termination_type, message)

    # -- nodes --------------------------------------------------------------------------------------

    def _add_node(
        self, new: NewNodeInfo, recovered: list[tuple[PartitionScheduler, Allocation, str]]
    ) -> None:
        fault = node_fault(new)
        name = "" if fault else _partition_of(new.attributes)
        partition, reason = self._asks.partition(name, fault)
        if partition is None:
            self._partitions.unrouted.node_rejected(shown_id(new.node_id), reason)
            return
        node = partition.add_node(
            new.node_id,
            new.schedulable_resource,
            new.attributes,
            new.occupied_resource,
            schedulable=new.schedulable,
        )
        if node is not None:
            recovered.extend((partition, one, node.id) for one in new.existing_allocations)

    def _recover(self, partition: PartitionScheduler, one: Allocation, node_id: str) -> None:
        reason = allocation_fault(one)
        if not reason and (one.node_id != node_id or one.partition_name):
            reason = self._contradiction(partition, one, node_id)
        if not reason:
            priority, reason = self._asks.priority(one)
            reason = reason or partition.existing.recover(existing_of(one, node_id, priority))
        if reason:
            self._asks.refuse(one, reason, partition)

    def _contradiction(self, partition: PartitionScheduler, one: Allocation, node_id: str) -> str:
        """Compare the node and partition named by a recovered allocation with those of the reporting node."""
        report = f"allocation {one.uuid or one.allocation_key} was reported on node {node_id}"
        if one.node_id not in ("", node_id):
            return f"{report} and names node {one.node_id}"
        named = self._partitions.find(one.partition_name) if one.partition_name else partition
        if named is None:
            return f"failed to find partition {one.partition_name}"
        if named is not partition:
            return f"{report} of partition {partition.name} and names partition {named.name}"
        return ""

    def _update_node(self, update: UpdateNodeInfo) -> None:
        reason = node_update_fault(update)
        found = None
        if not reason:
            found = self._partitions.node(update.node_id, _partition_of(update.attributes))
            reason = "" if found is not None else f"failed to find node {update.node_id}"
        if found is not None:
            reason = self._act(*found, update)
        if reason:
            changes = self._partitions.unrouted if found is None else found[0].partition.changes
            changes.node_update_failed(shown_id(update.node_id), reason)

    @staticmethod
    def _act(partition: PartitionScheduler, node: Node, update: UpdateNodeInfo) -> str:
        if update.action == NodeAction.UNKNOWN:
            return UNKNOWN_ACTION
        if update.action == NodeAction.DECOMMISSION:
            partition.remove_node(node)
            return ""
        capacity, occupied = update.schedulable_resource, update.occupied_resource
        move = _MOVES.get(update.action)
        if move:
            # The Kubernetes shim sends empty amounts with every drain, which do not mean an empty node.
            capacity, occupied = capacity or None, occupied or None
        only_partition = not update.attributes.keys() - {NODE_PARTITION}
        attributes = None if only_partition else update.attributes
        return partition.update_node(node, capacity, occupied, attributes, move)


def _partition_of(attributes: Mapping[str, str]) -> str:
    """Return the name of the partition in the attributes of a node, or an empty text."""
    return attributes.get(NODE_PARTITION, "")


def _is_atomic_without_size(new: AddApplicationRequest) -> bool:
    return style_named(new.gang_scheduling_style) == ATOMIC and is_zero(new.placeholder_ask)
