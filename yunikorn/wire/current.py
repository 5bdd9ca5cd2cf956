"""The newer layout of the interface, with a stream per subject, as used by current shims.

A request of an RM becomes updates of the core: several ones where their order matters, since the core applies
the parts of one update in a fixed order (`docs/decisions/0030`). A response of the core is split into three
kinds of responses; `to_..._response` returns None if there is no content of its kind.

This layout cannot express everything. The following parts of a response are left out: the action (RESYNC),
the queue and the UUID of an allocation, and failed updates of nodes. The end of an ask is sent like the end
of an allocation. A request that cannot be expressed is refused with `MalformedMessage`: the other layout can
express it.
"""

from __future__ import annotations

import attrs

from yunikorn.interface.messages import (
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    NodeAction,
    RejectedAllocationAsk,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.wire import applications, nodes
from yunikorn.wire.codec import Decoder
from yunikorn.wire.generated import si_current_pb2 as wire
from yunikorn.wire.malformed import MalformedMessage
from yunikorn.wire.repeated_fields import fill_all, fill_one
from yunikorn.wire.wire_amounts import fill_amount, fill_policy, from_amount, from_policy

_Info = wire.NodeInfo
_TERMINATIONS = {kind.value: kind for kind in TerminationType}
"""Termination types by number; the numbers of this layout are the values of `TerminationType`."""
_ACTIONS = {
    _Info.UPDATE: NodeAction.UPDATE,
    _Info.DRAIN_NODE: NodeAction.DRAIN_NODE,
    _Info.DECOMISSION: NodeAction.DECOMMISSION,
    _Info.DRAIN_TO_SCHEDULABLE: NodeAction.DRAIN_TO_SCHEDULABLE,
}
_NUMBERS = {action: number for number, action in _ACTIONS.items()}
_CREATING = (_Info.CREATE, _Info.CREATE_DRAIN)


def _unsayable(path: str, what: str) -> MalformedMessage:
    return MalformedMessage(path, f"the newer layout cannot express {what}: use Update, of release v0.11.0")


# -- asks and allocations, from the RM ----------------------------------------------------------------------


def from_allocation_request(message: wire.AllocationRequest) -> list[UpdateRequest]:
    """Decode asks, allocations and releases; the releases follow in an update of their own.

    Entries without a node are decoded as allocations, too. A key identifies one allocation in this layout, so
    the core decides by its own state if such an entry is an ask or a new size.
    """
    found = [_from_allocation(one) for one in message.allocations]
    released = [_from_release(one) for one in message.releases.allocationsToRelease]
    requests = []
    if found or not released:
        requests.append(UpdateRequest(message.rmID, allocations=found))
    if released:
        requests.append(UpdateRequest(message.rmID, releases=AllocationReleasesRequest(released)))
    return requests


def _from_allocation(message: wire.Allocation) -> Allocation:
    return Allocation(
        message.allocationKey,
        message.applicationID,
        "",
        message.nodeID,
        from_amount(message.resourcePerAlloc),
        "",
        message.partitionName,
        message.priority,
        dict(message.allocationTags) if message.allocationTags else {},
        message.taskGroupName,
        message.placeholder,
        message.originator,
        from_policy(message.preemptionPolicy) if message.HasField("preemptionPolicy") else None,
    )


def _from_release(message: wire.AllocationRelease) -> AllocationRelease:
    return AllocationRelease(
        message.applicationID,
        "",
        message.partitionName,
        _TERMINATIONS.get(message.terminationType, TerminationType.UNKNOWN),
        message.message,
        message.allocationKey,
    )


def to_allocation_request(request: UpdateRequest) -> wire.AllocationRequest | None:
    """Encode asks, allocations (also those on new nodes) and releases; raise `MalformedMessage`."""
    message = wire.AllocationRequest()
    fill_all("asks", request.asks, _fill_ask, message.allocations)
    for index, node in enumerate(request.new_schedulable_nodes):
        existing = [_on_node(one, node) for one in node.existing_allocations]
        path = f"new_schedulable_nodes[{index}].existing_allocations"
        fill_all(path, existing, _fill_allocation, message.allocations)
    fill_all("allocations", request.allocations, _fill_allocation, message.allocations)
    releases = request.releases
    if releases.allocations_to_release or releases.allocation_asks_to_release:
        into = message.releases.allocationsToRelease
        fill_all("releases.allocations_to_release", releases.allocations_to_release, _fill_release, into)
        path = "releases.allocation_asks_to_release"
        fill_all(path, releases.allocation_asks_to_release, _fill_ask_release, into)
    if not message.ByteSize():
        return None
    fill_one("", request, _fill_rm, message)
    return message


def _fill_rm(
    request: UpdateRequest, message: wire.AllocationRequest | wire.ApplicationRequest | wire.NodeRequest
) -> None:
    message.rmID = request.rm_id


def _on_node(one: Allocation, node: NewNodeInfo) -> Allocation:
    """Return an existing allocation with its node, which this layout sends separately."""
    return attrs.evolve(one, node_id=one.node_id or node.node_id)


def _fill_ask(ask: AllocationAsk, message: wire.Allocation) -> None:
    if ask.max_allocations != 1:
        raise _unsayable("max_allocations", "an ask for more or fewer than one allocation")
    if ask.priority_class_name:
        raise _unsayable("priority_class_name", "a priority class")
    if ask.execution_timeout_ms > 0:
        raise _unsayable("execution_timeout_ms", "a maximum run time of allocations")
    message.allocationKey = ask.allocation_key
    message.applicationID = ask.application_id
    message.partitionName = ask.partition_name
    if ask.resource_ask:
        fill_amount(ask.resource_ask, message.resourcePerAlloc)
    message.priority = ask.priority or 0
    for key, value in ask.tags.items():
        message.allocationTags[key] = value
    message.taskGroupName = ask.task_group_name
    message.placeholder = ask.placeholder
    message.originator = ask.originator
    if ask.preemption_policy is not None:
        fill_policy(ask.preemption_policy, message.preemptionPolicy)


def _fill_allocation(placed: Allocation, message: wire.Allocation) -> None:
    if placed.priority_class_name:
        raise _unsayable("priority_class_name", "a priority class")
    message.allocationKey = placed.allocation_key
    message.applicationID = placed.application_id
    message.nodeID = placed.node_id
    if placed.resource_per_alloc:
        fill_amount(placed.resource_per_alloc, message.resourcePerAlloc)
    message.partitionName = placed.partition_name
    message.priority = placed.priority
    if placed.allocation_tags:
        tags = message.allocationTags
        for key, value in placed.allocation_tags.items():
            tags[key] = value
    if placed.task_group_name:
        message.taskGroupName = placed.task_group_name
    message.placeholder = placed.placeholder
    message.originator = placed.originator
    if placed.preemption_policy is not None:
        fill_policy(placed.preemption_policy, message.preemptionPolicy)


def _fill_release(release: AllocationRelease, message: wire.AllocationRelease) -> None:
    if release.uuid and not release.allocation_key:
        raise _unsayable("uuid", "a release by UUID (use the allocation key)")
    _fill_end(release, message)


def _fill_ask_release(release: AllocationAskRelease, message: wire.AllocationRelease) -> None:
    if not (release.application_id and release.allocation_key):
        raise _unsayable("allocation_key", "a release of asks without application and key")
    _fill_end(release, message)


def _fill_end(release: AllocationRelease | AllocationAskRelease, message: wire.AllocationRelease) -> None:
    message.applicationID = release.application_id
    message.partitionName = release.partition_name
    message.terminationType = release.termination_type
    message.message = release.message
    message.allocationKey = release.allocation_key


# -- asks and allocations, from the scheduler ---------------------------------------------------------------


def from_allocation_response(message: wire.AllocationResponse) -> UpdateResponse:
    """Decode the results for asks and allocations."""
    return UpdateResponse(
        new_allocations=[_from_allocation(one) for one in message.new],
        released_allocations=[_from_release(one) for one in message.released],
        rejected_allocations=[
            RejectedAllocationAsk(one.allocationKey, one.applicationID, one.reason)
            for one in message.rejectedAllocations
        ],
    )


def to_allocation_response(response: UpdateResponse) -> wire.AllocationResponse | None:
    """Encode the results for asks and allocations; None if there are none."""
    if not (
        response.new_allocations
        or response.released_allocations
        or response.released_allocation_asks
        or response.rejected_allocations
    ):
        return None
    message = wire.AllocationResponse()
    fill_all("new_allocations", response.new_allocations, _fill_allocation, message.new)
    fill_all("released_allocations", response.released_allocations, _fill_end, message.released)
    fill_all("released_allocation_asks", response.released_allocation_asks, _fill_end, message.released)
    fill_all(
        "rejected_allocations", response.rejected_allocations, _fill_rejected, message.rejectedAllocations
    )
    return message


def _fill_rejected(one: RejectedAllocationAsk, message: wire.RejectedAllocation) -> None:
    message.allocationKey = one.allocation_key
    message.applicationID = one.application_id
    message.reason = one.reason


# -- applications -----------------------------------------------------------------------------------------


def from_application_request(message: wire.ApplicationRequest) -> list[UpdateRequest]:
    """Decode new and removed applications."""
    return [
        UpdateRequest(
            message.rmID,
            new_applications=[applications.from_new(one) for one in message.new],
            remove_applications=[applications.from_removed(one) for one in message.remove],
        )
    ]


def to_application_request(request: UpdateRequest) -> wire.ApplicationRequest | None:
    """Encode new and removed applications; None if there are none. Raises `MalformedMessage`."""
    if not (request.new_applications or request.remove_applications):
        return None
    message = wire.ApplicationRequest()
    fill_one("", request, _fill_rm, message)
    fill_all("new_applications", request.new_applications, applications.fill_new, message.new)
    fill_all("remove_applications", request.remove_applications, applications.fill_removed, message.remove)
    return message


def from_application_response(message: wire.ApplicationResponse) -> UpdateResponse:
    """Decode the results for applications."""
    return UpdateResponse(
        rejected_applications=[applications.from_rejected(one) for one in message.rejected],
        accepted_applications=[applications.from_accepted(one) for one in message.accepted],
        updated_applications=[applications.from_updated(one) for one in message.updated],
    )


def to_application_response(response: UpdateResponse) -> wire.ApplicationResponse | None:
    """Encode the results for applications; None if there are none."""
    if not (
        response.rejected_applications or response.accepted_applications or response.updated_applications
    ):
        return None
    message = wire.ApplicationResponse()
    rejected, accepted = response.rejected_applications, response.accepted_applications
    fill_all("rejected_applications", rejected, applications.fill_rejected, message.rejected)
    fill_all("accepted_applications", accepted, applications.fill_accepted, message.accepted)
    updated = response.updated_applications
    fill_all("updated_applications", updated, applications.fill_updated, message.updated)
    return message


# -- nodes ------------------------------------------------------------------------------------------------


def from_node_request(message: wire.NodeRequest) -> list[UpdateRequest]:
    """Decode nodes in their order, as several updates if a new node follows a changed one.

    The core applies the new nodes of an update before the changes. Within one update a known node is removed
    before it is registered again, as in the other layout.
    """
    request = UpdateRequest(message.rmID)
    requests = [request]
    for info in message.nodes:
        if info.action in _CREATING:
            if request.updated_nodes:
                request = UpdateRequest(message.rmID)
                requests.append(request)
            request.new_schedulable_nodes.append(_from_new_node(info))
        else:
            request.updated_nodes.append(_from_changed_node(info))
    return requests


def _from_new_node(info: wire.NodeInfo) -> NewNodeInfo:
    return NewNodeInfo(
        info.nodeID,
        dict(info.attributes),
        from_amount(info.schedulableResource),
        schedulable=info.action == _Info.CREATE,
    )


def _from_changed_node(info: wire.NodeInfo) -> UpdateNodeInfo:
    return UpdateNodeInfo(
        info.nodeID,
        _ACTIONS.get(info.action, NodeAction.UNKNOWN),
        dict(info.attributes),
        from_amount(info.schedulableResource) if info.HasField("schedulableResource") else None,
    )


def to_node_request(request: UpdateRequest) -> wire.NodeRequest | None:
    """Encode new and changed nodes; None if there are none. Raises `MalformedMessage`."""
    if not (request.new_schedulable_nodes or request.updated_nodes):
        return None
    message = wire.NodeRequest()
    fill_one("", request, _fill_rm, message)
    fill_all("new_schedulable_nodes", request.new_schedulable_nodes, _fill_new_node, message.nodes)
    fill_all("updated_nodes", request.updated_nodes, _fill_changed_node, message.nodes)
    return message


def _fill_new_node(node: NewNodeInfo, info: wire.NodeInfo) -> None:
    if node.occupied_resource:
        raise _unsayable(
            "occupied_resource", "occupied resources of a node (send them as foreign allocations)"
        )
    info.nodeID = node.node_id
    info.action = _Info.CREATE if node.schedulable else _Info.CREATE_DRAIN
    for key, value in node.attributes.items():
        info.attributes[key] = value
    if node.schedulable_resource:
        fill_amount(node.schedulable_resource, info.schedulableResource)


def _fill_changed_node(update: UpdateNodeInfo, info: wire.NodeInfo) -> None:
    if update.occupied_resource is not None:
        raise _unsayable(
            "occupied_resource", "occupied resources of a node (send them as foreign allocations)"
        )
    info.nodeID = update.node_id
    info.action = _NUMBERS.get(update.action, _Info.UNKNOWN_ACTION_FROM_RM)
    for key, value in update.attributes.items():
        info.attributes[key] = value
    if update.schedulable_resource is not None:
        info.schedulableResource.SetInParent()
        fill_amount(update.schedulable_resource, info.schedulableResource)


def from_node_response(message: wire.NodeResponse) -> UpdateResponse:
    """Decode the results for new nodes."""
    return UpdateResponse(
        rejected_nodes=[nodes.from_rejected(one) for one in message.rejected],
        accepted_nodes=[nodes.from_accepted(one) for one in message.accepted],
    )


def to_node_response(response: UpdateResponse) -> wire.NodeResponse | None:
    """Encode the results for new nodes; None if there are none."""
    if not (response.rejected_nodes or response.accepted_nodes):
        return None
    message = wire.NodeResponse()
    fill_all("rejected_nodes", response.rejected_nodes, nodes.fill_rejected, message.rejected)
    fill_all("accepted_nodes", response.accepted_nodes, nodes.fill_accepted, message.accepted)
    return message


ALLOCATION_REQUEST = Decoder(wire.AllocationRequest, from_allocation_request)
ALLOCATION_RESPONSE = Decoder(wire.AllocationResponse, from_allocation_response)
APPLICATION_REQUEST = Decoder(wire.ApplicationRequest, from_application_request)
APPLICATION_RESPONSE = Decoder(wire.ApplicationResponse, from_application_response)
NODE_REQUEST = Decoder(wire.NodeRequest, from_node_request)
NODE_RESPONSE = Decoder(wire.NodeResponse, from_node_response)
