"""Nodes of release v0.11.0."""

from __future__ import annotations

from yunikorn.interface.messages import (
    AcceptedNode,
    FailedNodeUpdate,
    NewNodeInfo,
    NodeAction,
    RejectedNode,
    UpdateNodeInfo,
)
from yunikorn.interface.wire.allocations import fill_allocation, from_allocation
from yunikorn.interface.wire.generated import si_current_pb2 as current
from yunikorn.interface.wire.generated import si_v0_11_pb2 as v0_11
from yunikorn.interface.wire.repeated_fields import fill_all
from yunikorn.interface.wire.wire_amounts import fill_amount, from_amount

_ACTIONS = {action.value: action for action in NodeAction}
"""The numbers of v0.11.0 are those of our own messages."""


def from_new(message: v0_11.NewNodeInfo) -> NewNodeInfo:
    """A node that joins."""
    return NewNodeInfo(
        message.nodeID,
        dict(message.attributes),
        from_amount(message.schedulableResource),
        from_amount(message.occupiedResource),
        [from_allocation(one) for one in message.existingAllocations],
        not message.drained,
    )


def fill_new(node: NewNodeInfo, message: v0_11.NewNodeInfo) -> None:
    """Write a node that joins."""
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
    """A node that changes; amounts that are not there stay as they are."""
    return UpdateNodeInfo(
        message.nodeID,
        _ACTIONS.get(message.action, NodeAction.UNKNOWN),
        dict(message.attributes),
        from_amount(message.schedulableResource) if message.HasField("schedulableResource") else None,
        from_amount(message.occupiedResource) if message.HasField("occupiedResource") else None,
    )


def fill_update(update: UpdateNodeInfo, message: v0_11.UpdateNodeInfo) -> None:
    """Write a node that changes."""
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
    """A node that was registered."""
    return AcceptedNode(message.nodeID)


def fill_accepted(one: AcceptedNode, message: v0_11.AcceptedNode | current.AcceptedNode) -> None:
    """Write a node that was registered."""
    message.nodeID = one.node_id


def from_rejected(message: v0_11.RejectedNode | current.RejectedNode) -> RejectedNode:
    """A node that was refused."""
    return RejectedNode(message.nodeID, message.reason)


def fill_rejected(one: RejectedNode, message: v0_11.RejectedNode | current.RejectedNode) -> None:
    """Write a node that was refused."""
    message.nodeID = one.node_id
    message.reason = one.reason


def from_failed(message: v0_11.FailedNodeUpdate) -> FailedNodeUpdate:
    """A change of a node that could not be carried out."""
    return FailedNodeUpdate(message.nodeID, message.reason)


def fill_failed(one: FailedNodeUpdate, message: v0_11.FailedNodeUpdate) -> None:
    """Write a change of a node that could not be carried out."""
    message.nodeID = one.node_id
    message.reason = one.reason
