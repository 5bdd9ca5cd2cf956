"""Messages that cannot be translated are refused with the place and a helpful reason."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.interface.messages import (
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.resources import Resource
from yunikorn_service.wire import current, v0_11
from yunikorn_service.wire.codec import MalformedMessage
from yunikorn_service.wire.generated import si_v0_11_pb2 as wire

HUGE = 2**63


def refused(request: Any) -> str:
    """Return the reason why an update cannot be written in the layout of v0.11.0."""
    with pytest.raises(MalformedMessage) as found:
        v0_11.UPDATE_REQUEST.encode(request)
    return str(found.value)


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        (AllocationAsk("k", resource_ask=Resource(vcore=HUGE)), "asks[1].resource_ask: Value out of range"),
        (AllocationAsk("k", max_allocations=2**31), "asks[1].max_allocations: Value out of range"),
        (AllocationAsk("k", priority=-HUGE), "asks[1].priority: Value out of range"),
        (AllocationAsk("k", execution_timeout_ms=HUGE), "asks[1].execution_timeout_ms: Value out of range"),
        (AllocationAsk("k\ud800"), "asks[1].allocation_key: 'utf-8' codec can't encode"),
        (AllocationAsk("k", tags={"a": 1}), "asks[1].tags: a dict is not allowed here"),  # type: ignore[dict-item]
        (AllocationAsk("k", priority="high"), "asks[1].priority: a str is not allowed here"),  # type: ignore[arg-type]
        (None, "asks[1]: a NoneType is not allowed here"),
    ],
)
def test_invalid_entry_is_reported_with_its_field(entry: Any, place: str) -> None:
    assert refused(UpdateRequest("rm", asks=[AllocationAsk("first"), entry])).startswith(place)


def test_nested_path_of_an_error_is_reported() -> None:
    node = NewNodeInfo("n1", existing_allocations=[Allocation("k", "app", priority=2**40)])
    reported = refused(UpdateRequest("rm", new_schedulable_nodes=[NewNodeInfo("n0"), node]))
    assert reported.startswith(
        "new_schedulable_nodes[1].existing_allocations[0].priority: Value out of range"
    )


def test_errors_outside_of_lists_are_reported() -> None:
    assert refused(UpdateRequest(5)).startswith("rm_id: a int is not allowed here")  # type: ignore[arg-type]


def test_invalid_response_is_rejected() -> None:
    response = UpdateResponse(new_allocations=[Allocation("k", "app", resource_per_alloc=Resource(a=HUGE))])
    for translate in (v0_11.UPDATE_RESPONSE.encode, current.ALLOCATION_RESPONSE.encode):
        with pytest.raises(MalformedMessage) as found:
            translate(response)
        assert found.value.path == "new_allocations[0].resource_per_alloc"


@pytest.mark.parametrize("data", [b"\x0a\xff\xff", b"\xff" * 20, b"\x2a\x02\xff\xfe"])
def test_undecodable_bytes_are_reported(data: bytes) -> None:
    with pytest.raises(MalformedMessage, match=f"these {len(data)} bytes are not a valid UpdateRequest: "):
        v0_11.UPDATE_REQUEST.decode(data)


def test_control_characters_in_messages_are_escaped() -> None:
    error = MalformedMessage("tags[\x1b[2J]", "no\n")
    assert str(error) == r"tags[\x1b[2J]: no\n"


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_rejected(data: bytes) -> None:
    for decoder in (
        v0_11.UPDATE_REQUEST,
        v0_11.UPDATE_RESPONSE,
        current.ALLOCATION_REQUEST,
        current.NODE_REQUEST,
    ):
        with contextlib.suppress(MalformedMessage):
            decoder.decode(data)


# -- not expressible in the newer layout -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "place", "what"),
    [
        (
            UpdateRequest("rm", asks=[AllocationAsk("k", max_allocations=2)]),
            "asks[0]",
            "more or fewer than one",
        ),
        (
            UpdateRequest("rm", asks=[AllocationAsk("k", priority_class_name="high")]),
            "asks[0]",
            "priority class",
        ),
        (
            UpdateRequest("rm", allocations=[Allocation("k", "app", priority_class_name="high")]),
            "allocations[0]",
            "priority class",
        ),
        (
            UpdateRequest("rm", asks=[AllocationAsk("k", execution_timeout_ms=1)]),
            "asks[0]",
            "a maximum run time of allocations",
        ),
        (
            UpdateRequest("rm", releases=AllocationReleasesRequest([AllocationRelease("app", uuid="k#1")])),
            "releases.allocations_to_release[0]",
            "by UUID",
        ),
        (
            UpdateRequest("rm", releases=AllocationReleasesRequest([], [AllocationAskRelease("app")])),
            "releases.allocation_asks_to_release[0]",
            "asks without",
        ),
    ],
)
def test_fields_of_the_old_layout_only_are_rejected_by_the_newer_one(
    request_: UpdateRequest, place: str, what: str
) -> None:
    with pytest.raises(MalformedMessage) as found:
        current.to_allocation_request(request_)
    assert found.value.path.startswith(place)
    assert what in str(found.value)
    assert "use Update, of release v0.11.0" in str(found.value)
    v0_11.UPDATE_REQUEST.to_wire(request_)


@pytest.mark.parametrize(
    "request_",
    [
        UpdateRequest("rm", new_schedulable_nodes=[NewNodeInfo("n1", occupied_resource=Resource(vcore=1))]),
        UpdateRequest("rm", updated_nodes=[UpdateNodeInfo("n1", occupied_resource=Resource(vcore=1))]),
    ],
)
def test_foreign_usage_is_sent_as_foreign_allocations(request_: UpdateRequest) -> None:
    with pytest.raises(MalformedMessage, match="send them as foreign allocations"):
        current.to_node_request(request_)


# -- amounts ----------------------------------------------------------------------------------------------


def test_numbers_up_to_64_bits_are_preserved() -> None:
    amount = Resource(low=-HUGE, high=HUGE - 1)
    message = v0_11.UPDATE_REQUEST.to_wire(
        UpdateRequest("rm", asks=[AllocationAsk("k", resource_ask=amount)])
    )
    assert message.asks[0].resourceAsk.resources["low"].value == -HUGE
    assert v0_11.UPDATE_REQUEST.from_wire(message).asks[0].resource_ask == amount


def test_a_user_without_a_name_is_not_sent() -> None:
    assert (
        UserGroupInformation()
        == v0_11.UPDATE_REQUEST.from_wire(
            wire.UpdateRequest(newApplications=[wire.AddApplicationRequest(applicationID="app")])
        )
        .new_applications[0]
        .ugi
    )
