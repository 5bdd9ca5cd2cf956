"""Release v0.11.0 of the interface: registration, and everything else in one stream.

Each message has `from_...` and `to_...`, pure functions between protobuf and `yunikorn.interface.messages`,
and a `Codec` of both. The layout has additional fields for everything that release v0.11.0 lacks
(proto/si_v0_11.proto), so nothing is lost between two ends that use this package. Unknown enum numbers are
mapped to harmless values: a termination to `UNKNOWN`, an action on a node to one that fails, an action of the
scheduler to none.

`to_...` raises `MalformedMessage` for a value that does not fit the wire, such as an amount beyond 64 bits.
"""

from __future__ import annotations

from yunikorn.interface.messages import (
    AllocationReleasesRequest,
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    SchedulerAction,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.wire import allocations, applications, nodes
from yunikorn.wire.codec import Codec
from yunikorn.wire.generated import si_v0_11_pb2 as wire
from yunikorn.wire.repeated_fields import fill_all, fill_one

# -- registration -----------------------------------------------------------------------------------------


def from_register_request(message: wire.RegisterResourceManagerRequest) -> RegisterResourceManagerRequest:
    """Decode the registration of a resource manager."""
    return RegisterResourceManagerRequest(
        message.rmID,
        message.version,
        message.policyGroup,
        message.config,
        dict(message.extraConfig),
        dict(message.buildInfo),
    )


def to_register_request(request: RegisterResourceManagerRequest) -> wire.RegisterResourceManagerRequest:
    """Encode the registration of a resource manager."""
    message = wire.RegisterResourceManagerRequest()
    fill_one("", request, _fill_register, message)
    return message


def _fill_register(
    request: RegisterResourceManagerRequest, message: wire.RegisterResourceManagerRequest
) -> None:
    message.rmID = request.rm_id
    message.version = request.version
    message.policyGroup = request.policy_group
    message.config = request.config
    for key, value in request.extra_config.items():
        message.extraConfig[key] = value
    for key, value in request.build_info.items():
        message.buildInfo[key] = value


def from_register_response(_: wire.RegisterResourceManagerResponse) -> RegisterResourceManagerResponse:
    """Decode the response to a registration."""
    return RegisterResourceManagerResponse()


def to_register_response(_: RegisterResourceManagerResponse) -> wire.RegisterResourceManagerResponse:
    """Encode the response to a registration."""
    return wire.RegisterResourceManagerResponse()


# -- from the RM ------------------------------------------------------------------------------------------


def from_update_request(message: wire.UpdateRequest) -> UpdateRequest:
    """Decode an update of an RM."""
    releases = message.releases
    return UpdateRequest(
        message.rmID,
        [allocations.from_ask(one) for one in message.asks],
        AllocationReleasesRequest(
            [allocations.from_release(one) for one in releases.allocationsToRelease],
            [allocations.from_ask_release(one) for one in releases.allocationAsksToRelease],
        ),
        [nodes.from_new(one) for one in message.newSchedulableNodes],
        [nodes.from_update(one) for one in message.updatedNodes],
        [applications.from_new(one) for one in message.newApplications],
        [applications.from_removed(one) for one in message.removeApplications],
        [allocations.from_allocation(one) for one in message.allocations],
    )


def to_update_request(request: UpdateRequest) -> wire.UpdateRequest:
    """Encode an update of an RM."""
    message = wire.UpdateRequest()
    fill_one("", request, _fill_rm, message)
    fill_all("asks", request.asks, allocations.fill_ask, message.asks)
    releases = request.releases
    if releases.allocations_to_release or releases.allocation_asks_to_release:
        fill_all(
            "releases.allocations_to_release",
            releases.allocations_to_release,
            allocations.fill_release,
            message.releases.allocationsToRelease,
        )
        fill_all(
            "releases.allocation_asks_to_release",
            releases.allocation_asks_to_release,
            allocations.fill_ask_release,
            message.releases.allocationAsksToRelease,
        )
    fill_all(
        "new_schedulable_nodes", request.new_schedulable_nodes, nodes.fill_new, message.newSchedulableNodes
    )
    fill_all("updated_nodes", request.updated_nodes, nodes.fill_update, message.updatedNodes)
    fill_all("new_applications", request.new_applications, applications.fill_new, message.newApplications)
    fill_all(
        "remove_applications",
        request.remove_applications,
        applications.fill_removed,
        message.removeApplications,
    )
    fill_all("allocations", request.allocations, allocations.fill_allocation, message.allocations)
    return message


def _fill_rm(request: UpdateRequest, message: wire.UpdateRequest) -> None:
    message.rmID = request.rm_id


# -- from the scheduler -----------------------------------------------------------------------------------


def from_update_response(message: wire.UpdateResponse) -> UpdateResponse:
    """Decode a response of the scheduler."""
    return UpdateResponse(
        SchedulerAction.RESYNC if message.action == wire.UpdateResponse.RESYNC else SchedulerAction.NOACTION,
        [allocations.from_allocation(one) for one in message.newAllocations],
        [allocations.from_release(one) for one in message.releasedAllocations],
        [allocations.from_ask_release(one) for one in message.releasedAllocationAsks],
        [allocations.from_refused_ask(one) for one in message.rejectedAllocations],
        [applications.from_rejected(one) for one in message.rejectedApplications],
        [applications.from_accepted(one) for one in message.acceptedApplications],
        [applications.from_updated(one) for one in message.updatedApplications],
        [nodes.from_rejected(one) for one in message.rejectedNodes],
        [nodes.from_accepted(one) for one in message.acceptedNodes],
        [nodes.from_failed(one) for one in message.failedNodeUpdates],
    )


def to_update_response(response: UpdateResponse) -> wire.UpdateResponse:
    """Encode a response of the scheduler."""
    message = wire.UpdateResponse(action=response.action)
    fill_all("new_allocations", response.new_allocations, allocations.fill_allocation, message.newAllocations)
    fill_all(
        "released_allocations",
        response.released_allocations,
        allocations.fill_release,
        message.releasedAllocations,
    )
    fill_all(
        "released_allocation_asks",
        response.released_allocation_asks,
        allocations.fill_ask_release,
        message.releasedAllocationAsks,
    )
    fill_all(
        "rejected_allocations",
        response.rejected_allocations,
        allocations.fill_refused_ask,
        message.rejectedAllocations,
    )
    _fill_applications(response, message)
    fill_all("rejected_nodes", response.rejected_nodes, nodes.fill_rejected, message.rejectedNodes)
    fill_all("accepted_nodes", response.accepted_nodes, nodes.fill_accepted, message.acceptedNodes)
    fill_all(
        "failed_node_updates", response.failed_node_updates, nodes.fill_failed, message.failedNodeUpdates
    )
    return message


def _fill_applications(response: UpdateResponse, message: wire.UpdateResponse) -> None:
    fill_all(
        "rejected_applications",
        response.rejected_applications,
        applications.fill_rejected,
        message.rejectedApplications,
    )
    fill_all(
        "accepted_applications",
        response.accepted_applications,
        applications.fill_accepted,
        message.acceptedApplications,
    )
    fill_all(
        "updated_applications",
        response.updated_applications,
        applications.fill_updated,
        message.updatedApplications,
    )


REGISTER_REQUEST = Codec(wire.RegisterResourceManagerRequest, from_register_request, to_register_request)
REGISTER_RESPONSE = Codec(wire.RegisterResourceManagerResponse, from_register_response, to_register_response)
UPDATE_REQUEST = Codec(wire.UpdateRequest, from_update_request, to_update_request)
UPDATE_RESPONSE = Codec(wire.UpdateResponse, from_update_response, to_update_response)
