"""The newer layout: streams to updates and back, their order, and values it cannot express."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from tests.service.wire.samples import (
    ALLOCATIONS,
    NEW_APPLICATIONS,
    NEW_NODES,
    RELEASES,
    REMOVED_APPLICATIONS,
    RESPONSES,
    UPDATED_NODES,
    few,
)
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    NodeAction,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.resources import NOTHING, Resource
from yunikorn_service.wire import current
from yunikorn_service.wire.codec import Codec
from yunikorn_service.wire.generated import si_current_pb2 as wire

Info = wire.NodeInfo


def plain(allocation: Allocation) -> Allocation:
    """Return an allocation as this layout expresses it: without UUID and queue."""
    return attrs.evolve(allocation, uuid="", queue_name="")


# -- asks and allocations ---------------------------------------------------------------------------------


@given(st.lists(ALLOCATIONS, min_size=1, max_size=3))
def test_allocations_round_trip_except_uuid_and_queue(allocations: list[Allocation]) -> None:
    message = current.to_allocation_request(UpdateRequest("rm", allocations=allocations))
    assert message is not None
    (request,) = current.ALLOCATION_REQUEST.decode(message.SerializeToString())
    assert request == UpdateRequest("rm", allocations=[plain(one) for one in allocations])


@given(st.lists(RELEASES, min_size=1, max_size=3))
def test_releases_round_trip_by_key(releases: list[AllocationRelease]) -> None:
    releases = [attrs.evolve(one, allocation_key=one.allocation_key or "k") for one in releases]
    message = current.to_allocation_request(UpdateRequest("rm", releases=AllocationReleasesRequest(releases)))
    assert message is not None
    (request,) = current.ALLOCATION_REQUEST.from_wire(message)
    assert request.releases.allocations_to_release == [attrs.evolve(one, uuid="") for one in releases]


def test_releases_follow_allocations_in_a_separate_update() -> None:
    message = wire.AllocationRequest(rmID="rm", allocations=[wire.Allocation(allocationKey="a", nodeID="n1")])
    message.releases.allocationsToRelease.add(applicationID="app", allocationKey="a")
    first, second = current.ALLOCATION_REQUEST.from_wire(message)
    assert [one.allocation_key for one in first.allocations] == ["a"]
    assert first.releases == AllocationReleasesRequest()
    assert [one.allocation_key for one in second.releases.allocations_to_release] == ["a"]
    assert (first.rm_id, second.rm_id) == ("rm", "rm")


def test_an_ask_is_an_allocation_without_a_node() -> None:
    ask = AllocationAsk("k", "app", "default", Resource(vcore=1), priority=3, tags={"a": "b"})
    message = current.to_allocation_request(UpdateRequest("rm", asks=[ask]))
    assert message is not None
    assert message.allocations[0].nodeID == ""
    (request,) = current.ALLOCATION_REQUEST.from_wire(message)
    assert request.allocations == [
        Allocation(
            "k",
            "app",
            resource_per_alloc=ask.resource_ask,
            partition_name="default",
            priority=3,
            allocation_tags={"a": "b"},
        )
    ]


def test_release_of_an_ask_equals_release_of_an_allocation() -> None:
    gone = AllocationAskRelease("app", "k", "default", TerminationType.TIMEOUT, "too late")
    message = current.to_allocation_request(
        UpdateRequest("rm", releases=AllocationReleasesRequest([], [gone]))
    )
    assert message is not None
    reported = current.ALLOCATION_RESPONSE.to_wire(UpdateResponse(released_allocation_asks=[gone]))
    wanted = AllocationRelease("app", "", "default", TerminationType.TIMEOUT, "too late", "k")
    (request,) = current.ALLOCATION_REQUEST.from_wire(message)
    assert request.releases.allocations_to_release == [wanted]
    assert current.ALLOCATION_RESPONSE.from_wire(reported).released_allocations == [wanted]


def test_allocations_of_a_new_node_are_separate_entries_that_name_it() -> None:
    node = NewNodeInfo("n1", existing_allocations=[Allocation("k", "app")])
    request = UpdateRequest("rm", new_schedulable_nodes=[node])
    beside = current.to_allocation_request(request)
    assert beside is not None
    assert [(one.allocationKey, one.nodeID) for one in beside.allocations] == [("k", "n1")]


def test_missing_or_unknown_termination_is_unknown() -> None:
    message = wire.AllocationRequest()
    message.releases.allocationsToRelease.add()
    message.releases.allocationsToRelease.add(terminationType=99)
    (request,) = current.ALLOCATION_REQUEST.from_wire(message)
    kinds = [one.termination_type for one in request.releases.allocations_to_release]
    assert kinds == [TerminationType.UNKNOWN, TerminationType.UNKNOWN]


# -- applications -----------------------------------------------------------------------------------------


@given(few(NEW_APPLICATIONS), few(REMOVED_APPLICATIONS))
def test_applications_round_trip(
    new: list[AddApplicationRequest], gone: list[RemoveApplicationRequest]
) -> None:
    request = UpdateRequest("rm", new_applications=new, remove_applications=gone)
    message = current.to_application_request(request)
    if message is None:
        assert (new, gone) == ([], [])
    else:
        assert current.APPLICATION_REQUEST.decode(message.SerializeToString()) == [request]


# -- nodes ------------------------------------------------------------------------------------------------


@given(few(NEW_NODES), few(UPDATED_NODES))
def test_nodes_round_trip_except_separate_entries(
    new: list[NewNodeInfo], changed: list[UpdateNodeInfo]
) -> None:
    new = [attrs.evolve(one, occupied_resource=NOTHING, existing_allocations=[]) for one in new]
    changed = [attrs.evolve(one, occupied_resource=None) for one in changed]
    request = UpdateRequest("rm", new_schedulable_nodes=new, updated_nodes=changed)
    message = current.to_node_request(request)
    if message is None:
        assert (new, changed) == ([], [])
    else:
        assert current.NODE_REQUEST.decode(message.SerializeToString()) == [request]


def test_node_actions_keep_their_order() -> None:
    message = wire.NodeRequest(rmID="rm")
    for node_id, action in [
        ("n1", Info.CREATE),
        ("n2", Info.CREATE_DRAIN),
        ("n1", Info.DECOMISSION),
        ("n2", Info.DRAIN_TO_SCHEDULABLE),
        ("n1", Info.CREATE),
        ("n1", Info.DRAIN_NODE),
        ("n1", Info.UPDATE),
    ]:
        message.nodes.add(nodeID=node_id, action=action)
    first, second = current.NODE_REQUEST.from_wire(message)
    assert [(one.node_id, one.schedulable) for one in first.new_schedulable_nodes] == [
        ("n1", True),
        ("n2", False),
    ]
    assert [(one.node_id, one.action) for one in first.updated_nodes] == [
        ("n1", NodeAction.DECOMMISSION),
        ("n2", NodeAction.DRAIN_TO_SCHEDULABLE),
    ]
    assert [one.node_id for one in second.new_schedulable_nodes] == ["n1"]
    assert [one.action for one in second.updated_nodes] == [NodeAction.DRAIN_NODE, NodeAction.UPDATE]


def test_missing_or_unknown_action_is_invalid() -> None:
    message = wire.NodeRequest(nodes=[Info(nodeID="n1"), Info(nodeID="n2", action=99)])
    (request,) = current.NODE_REQUEST.from_wire(message)
    assert [one.action for one in request.updated_nodes] == [NodeAction.UNKNOWN, NodeAction.UNKNOWN]


# -- responses --------------------------------------------------------------------------------------------


@given(RESPONSES)
def test_response_is_distributed_without_loss(response: UpdateResponse) -> None:
    codecs: tuple[Codec[UpdateResponse, Any], ...] = (
        current.ALLOCATION_RESPONSE,
        current.APPLICATION_RESPONSE,
        current.NODE_RESPONSE,
    )
    reported = UpdateResponse()
    for codec in codecs:
        if data := codec.encode(response):
            part = codec.decode(data)
            assert part != UpdateResponse()
            for name in attrs.fields_dict(UpdateResponse):
                if name != "action":
                    getattr(reported, name).extend(getattr(part, name))
    ends = [attrs.evolve(one, uuid="") for one in response.released_allocations]
    ends += [
        AllocationRelease(
            one.application_id, "", one.partition_name, one.termination_type, one.message, one.allocation_key
        )
        for one in response.released_allocation_asks
    ]
    assert reported == attrs.evolve(
        response,
        action=reported.action,
        new_allocations=[plain(one) for one in response.new_allocations],
        released_allocations=ends,
        released_allocation_asks=[],
        failed_node_updates=[],
    )


def test_empty_responses_are_not_sent() -> None:
    empty = UpdateResponse()
    assert current.ALLOCATION_RESPONSE.encode(empty) == b""
    assert current.APPLICATION_RESPONSE.encode(empty) == b""
    assert current.NODE_RESPONSE.encode(empty) == b""
    assert current.to_allocation_request(UpdateRequest("rm")) is None
    assert current.to_application_request(UpdateRequest("rm")) is None
    assert current.to_node_request(UpdateRequest("rm")) is None


def test_message_with_only_an_rm_id_is_an_update() -> None:
    # So that an unknown RM receives the refusal.
    assert current.ALLOCATION_REQUEST.from_wire(wire.AllocationRequest(rmID="rm")) == [UpdateRequest("rm")]
    assert current.APPLICATION_REQUEST.from_wire(wire.ApplicationRequest(rmID="rm")) == [UpdateRequest("rm")]
    assert current.NODE_REQUEST.from_wire(wire.NodeRequest(rmID="rm")) == [UpdateRequest("rm")]
