"""Codecs of nodes in release v0.11.0."""

from __future__ import annotations

from yunikorn.interface.messages import (
    AcceptedNode,
    FailedNodeUpdate,
    NewNodeInfo,
    NodeAction,
    RejectedNode,
    UpdateNodeInfo,
)
from yunikorn.wire.allocations import fill_allocation, from_allocation
from yunikorn.wire.generated import si_current_pb2 as current
from yunikorn.wire.generated import si_v0_11_pb2 as v0_11
from yunikorn.wire.repeated_fields import fill_all
from yunikorn.wire.wire_amounts import fill_amount, from_amount

_ACTIONS = {action.value: action for action in NodeAction}
"""Actions by their number in v0.11.0, which equals the value in `NodeAction`."""


def from_new(message: v0_11.NewNodeInfo) -> NewNodeInfo:
    """Decode a new node."""
    return NewNodeInfo(
        message.nodeID,
        dict(message.attributes),
        from_amount(message.schedulableResource),
        from_amount(message.occupiedResource),
        [from_allocation(one) for one in message.existingAllocations],
        not message.drained,
    )


def fill_new(node: NewNodeInfo, message: v0_11.NewNodeInfo) -> None:
    """Encode a new node."""
    message.nodeID = node.node_id
    for key, value in node.attributes.items():
        message.attributes[key] = value
    if node.schedulable_resource:
        fill_amount(node.schedulable_resource, message.schedulableResource)
    if node.occupied_resource:
        fill_amount(node.occupied_resource, message.occupiedResource)
    message.drained = not node.schedulable
    fill_all("existing_allocations", node.existing_allocations, fill_allocation, message.existingAllocations)


def from_update(message: v0_11.UpdateNodeInfo) -> UpdateNodeInfo:
    """Decode the update of a node; a missing amount becomes None."""
    return UpdateNodeInfo(
        message.nodeID,
        _ACTIONS.get(message.action, NodeAction.UNKNOWN),
        dict(message.attributes),
        from_amount(message.schedulableResource) if message.HasField("schedulableResource") else None,
        from_amount(message.occupiedResource) if message.HasField("occupiedResource") else None,
    )


def fill_update(update: UpdateNodeInfo, message: v0_11.UpdateNodeInfo) -> None:
    """Encode the update of a node."""
    message.nodeID = update.node_id
    message.action = update.action
    for key, value in update.attributes.items():
        message.attributes[key] = value
    if update.schedulable_resource is not None:
        message.schedulableResource.SetInParent()
        fill_amount(update.schedulable_resource, message.schedulableResource)
    if update.occupied_resource is not None:
        message.occupiedResource.SetInParent()
        fill_amount(update.occupied_resource, message.occupiedResource)


# -- answers, alike in either layout ----------------------------------------------------------------------


def from_accepted(message: v0_11.AcceptedNode | current.AcceptedNode) -> AcceptedNode:
    """Decode the acceptance of a node."""
    return AcceptedNode(message.nodeID)


def fill_accepted(one: AcceptedNode, message: v0_11.AcceptedNode | current.AcceptedNode) -> None:
    """Encode the acceptance of a node."""
    message.nodeID = one.node_id


def from_rejected(message: v0_11.RejectedNode | current.RejectedNode) -> RejectedNode:
    """Decode the rejection of a node."""
    return RejectedNode(message.nodeID, message.reason)


def fill_rejected(one: RejectedNode, message: v0_11.RejectedNode | current.RejectedNode) -> None:
    """Encode the rejection of a node."""
    message.nodeID = one.node_id
    message.reason = one.reason


def from_failed(message: v0_11.FailedNodeUpdate) -> FailedNodeUpdate:
    """Decode the failure of a node update."""
    return FailedNodeUpdate(message.nodeID, message.reason)


def fill_failed(one: FailedNodeUpdate, message: v0_11.FailedNodeUpdate) -> None:
    """Encode the failure of a node update."""
    message.nodeID = one.node_id
    message.reason = one.reason
