"""The newer layout of the interface, with a stream per subject, as used by current shims.

A request of an RM becomes updates of the core: several ones where their order matters, since the core applies
the parts of one update in a fixed order (`docs/decisions/0030`). A response of the core is split into three
kinds of responses.

This layout cannot express everything. The following parts of a response are left out: the action (RESYNC),
the queue and the UUID of an allocation, and failed updates of nodes. The end of an ask is sent like the end
of an allocation. A request that cannot be expressed is refused with `MalformedMessage`: the other layout can
express it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from yunikorn.interface import messages
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.codec import Decoder, MalformedMessage, fill_all
from yunikorn_service.wire.generated import si_current_pb2 as wire
from yunikorn_service.wire.message_table import ABSENT, Row, codec, enum, group, many, write_only

_Info = wire.NodeInfo


def _unsayable(path: str, what: str) -> MalformedMessage:
    return MalformedMessage(path, f"the newer layout cannot express {what}: use Update, of release v0.11.0")


def _refused(condition: str, what: str, row: Row = ABSENT) -> Row:
    """Return a row, by default without a field, that refuses messages for which the condition is true."""
    check = f"if {condition}:\n    raise {{unsayable}}('{{attribute}}', '{what}')"
    return attrs.evolve(row, check=check, using={**row.using, "unsayable": _unsayable})


# -- asks, allocations and releases -------------------------------------------------------------------------

_NO_CLASS = _refused("{a}", "a priority class")
_ASK = codec(
    messages.AllocationAsk,
    wire.Allocation,
    resource_ask="resourcePerAlloc",
    max_allocations=_refused("{a} != 1", "an ask for more or fewer than one allocation"),
    priority=Row(encode="{f} = {a} or 0"),
    priority_class_name=_NO_CLASS,
    execution_timeout_ms=_refused("{a} > 0", "a maximum run time of allocations"),
    tags="allocationTags",
    preemption_policy=v0_11.POLICY,
)
_ALLOCATION = codec(
    messages.Allocation,
    wire.Allocation,
    rarely=("allocation_tags", "task_group_name"),
    uuid=ABSENT,
    queue_name=ABSENT,
    preemption_policy=v0_11.POLICY,
    priority_class_name=_NO_CLASS,
)
_TERMINATION = enum(messages.TerminationType, messages.TerminationType.UNKNOWN)
"""The numbers of this layout are the values of `TerminationType`."""
_RELEASE = codec(
    messages.AllocationRelease,
    wire.AllocationRelease,
    rarely=("preemption_mode",),
    uuid=ABSENT,
    termination_type=_TERMINATION,
    preemption_mode=v0_11.MODE,
)
_ASK_RELEASE = codec(messages.AllocationAskRelease, wire.AllocationRelease, termination_type=_TERMINATION)
_REQUESTED_RELEASE = codec(
    messages.AllocationRelease,
    wire.AllocationRelease,
    uuid=_refused("{a} and not {e}.allocation_key", "a release by UUID (use the allocation key)"),
    termination_type=_TERMINATION,
    preemption_mode=v0_11.MODE,
)
_REQUESTED_ASK_RELEASE = codec(
    messages.AllocationAskRelease,
    wire.AllocationRelease,
    allocation_key=_refused(
        "not ({e}.application_id and {a})", "a release of asks without application and key", Row()
    ),
    termination_type=_TERMINATION,
)


def _fill_existing(nodes: Iterable[messages.NewNodeInfo], into: Any) -> None:
    """Encode the allocations of new nodes, which this layout sends separately, each with its node."""
    for index, node in enumerate(nodes):
        path, name = f"new_schedulable_nodes[{index}].existing_allocations", node.node_id
        existing = [attrs.evolve(one, node_id=one.node_id or name) for one in node.existing_allocations]
        fill_all(path, existing, _ALLOCATION.fill, into)


_ALLOCATION_REQUEST = codec(
    messages.UpdateRequest,
    wire.AllocationRequest,
    partial=True,
    rm_id="rmID",
    asks=write_only(many(_ASK, "allocations")),
    releases=group(
        codec(
            messages.AllocationReleasesRequest,
            wire.AllocationReleasesRequest,
            allocations_to_release=many(_REQUESTED_RELEASE),
            allocation_asks_to_release=write_only(many(_REQUESTED_ASK_RELEASE, "allocationsToRelease")),
        ),
        "allocations_to_release",
        "allocation_asks_to_release",
    ),
    new_schedulable_nodes=Row("allocations", None, "{fill}({a}, {f})", using={"fill": _fill_existing}),
    allocations=many(_ALLOCATION),
)


def _from_allocation_request(message: wire.AllocationRequest) -> list[messages.UpdateRequest]:
    """Decode asks, allocations and releases; the releases follow in an update of their own.

    Entries without a node are decoded as allocations, too. A key identifies one allocation in this layout, so
    the core decides by its own state if such an entry is an ask or a new size.
    """
    request = _ALLOCATION_REQUEST.from_wire(message)
    releases = request.releases
    if not (request.allocations and releases.allocations_to_release):
        return [request]
    request.releases = messages.AllocationReleasesRequest()
    return [request, messages.UpdateRequest(request.rm_id, releases=releases)]


def to_allocation_request(request: messages.UpdateRequest) -> wire.AllocationRequest | None:
    """Encode asks, allocations (also of new nodes) and releases; None if there are none.

    Raises `MalformedMessage`.
    """
    releases = request.releases
    if (
        request.asks
        or request.allocations
        or releases.allocations_to_release
        or releases.allocation_asks_to_release
        or any(node.existing_allocations for node in request.new_schedulable_nodes)
    ):
        return _ALLOCATION_REQUEST.to_wire(request)
    return None


ALLOCATION_REQUEST = Decoder(wire.AllocationRequest, _from_allocation_request)
ALLOCATION_RESPONSE = codec(
    messages.UpdateResponse,
    wire.AllocationResponse,
    partial=True,
    new_allocations=many(_ALLOCATION, "new"),
    released_allocations=many(_RELEASE, "released"),
    released_allocation_asks=write_only(many(_ASK_RELEASE, "released")),
    rejected_allocations=many(codec(messages.RejectedAllocationAsk, wire.RejectedAllocation)),
)

# -- applications -----------------------------------------------------------------------------------------

_APPLICATION_REQUEST = codec(
    messages.UpdateRequest,
    wire.ApplicationRequest,
    partial=True,
    rm_id="rmID",
    new_applications=many(v0_11.NEW_APPLICATION, "new"),
    remove_applications=many(v0_11.REMOVED_APPLICATION, "remove"),
)
APPLICATION_REQUEST = Decoder(
    wire.ApplicationRequest, lambda message: [_APPLICATION_REQUEST.from_wire(message)]
)
APPLICATION_RESPONSE = codec(
    messages.UpdateResponse,
    wire.ApplicationResponse,
    partial=True,
    rejected_applications=many(v0_11.REJECTED_APPLICATION, "rejected"),
    accepted_applications=many(v0_11.ACCEPTED_APPLICATION, "accepted"),
    updated_applications=many(v0_11.UPDATED_APPLICATION, "updated"),
)


def to_application_request(request: messages.UpdateRequest) -> wire.ApplicationRequest | None:
    """Encode new and removed applications; None if there are none. Raises `MalformedMessage`."""
    if request.new_applications or request.remove_applications:
        return _APPLICATION_REQUEST.to_wire(request)
    return None


# -- nodes ------------------------------------------------------------------------------------------------

_ACTIONS = {
    _Info.UPDATE: messages.NodeAction.UPDATE,
    _Info.DRAIN_NODE: messages.NodeAction.DRAIN_NODE,
    _Info.DECOMISSION: messages.NodeAction.DECOMMISSION,
    _Info.DRAIN_TO_SCHEDULABLE: messages.NodeAction.DRAIN_TO_SCHEDULABLE,
}
_NUMBERS = {action: number for number, action in _ACTIONS.items()}
_CREATING = (_Info.CREATE, _Info.CREATE_DRAIN)
_OCCUPIED = "occupied resources of a node (send them as foreign allocations)"
_NEW_NODE = codec(
    messages.NewNodeInfo,
    wire.NodeInfo,
    occupied_resource=_refused("{a}", _OCCUPIED),
    existing_allocations=ABSENT,
    schedulable=Row(
        "action",
        "{f} == {create}",
        "{f} = {create} if {a} else {drained}",
        using={"create": _Info.CREATE, "drained": _Info.CREATE_DRAIN},
    ),
)
_CHANGED_NODE = codec(
    messages.UpdateNodeInfo,
    wire.NodeInfo,
    action=Row(
        decode="{actions}({f}, {unknown})",
        encode="{f} = {numbers}({a}, 0)",
        using={"actions": _ACTIONS.get, "unknown": messages.NodeAction.UNKNOWN, "numbers": _NUMBERS.get},
    ),
    occupied_resource=_refused("{a} is not None", _OCCUPIED),
)
_NODE_REQUEST = codec(
    messages.UpdateRequest,
    wire.NodeRequest,
    partial=True,
    rm_id="rmID",
    new_schedulable_nodes=write_only(many(_NEW_NODE, "nodes")),
    updated_nodes=write_only(many(_CHANGED_NODE, "nodes")),
)


def _from_node_request(message: wire.NodeRequest) -> list[messages.UpdateRequest]:
    """Decode nodes in their order, as several updates if a new node follows a changed one.

    The core applies the new nodes of an update before the changes. Within one update a known node is removed
    before it is registered again, as in the other layout.
    """
    request = _NODE_REQUEST.from_wire(message)
    requests = [request]
    for info in message.nodes:
        if info.action not in _CREATING:
            request.updated_nodes.append(_CHANGED_NODE.from_wire(info))
            continue
        if request.updated_nodes:
            request = messages.UpdateRequest(message.rmID)
            requests.append(request)
        request.new_schedulable_nodes.append(_NEW_NODE.from_wire(info))
    return requests


def to_node_request(request: messages.UpdateRequest) -> wire.NodeRequest | None:
    """Encode new and changed nodes; None if there are none. Raises `MalformedMessage`."""
    if request.new_schedulable_nodes or request.updated_nodes:
        return _NODE_REQUEST.to_wire(request)
    return None


NODE_REQUEST = Decoder(wire.NodeRequest, _from_node_request)
NODE_RESPONSE = codec(
    messages.UpdateResponse,
    wire.NodeResponse,
    partial=True,
    rejected_nodes=many(v0_11.REJECTED_NODE, "rejected"),
    accepted_nodes=many(v0_11.ACCEPTED_NODE, "accepted"),
)
