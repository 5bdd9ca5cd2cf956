"""The JSON form of messages equals that of the protobuf library; all its errors are named at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given

from tests.service.wire.samples import RESPONSES, UPDATES
from yunikorn.errors import Problem
from yunikorn.interface.messages import UpdateRequest, UpdateResponse
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.generated import callbacks_pb2
from yunikorn_service.wire.generated import si_v0_11_pb2 as wire
from yunikorn_service.wire.json_form import from_json, to_json


def strict(problem: Problem) -> None:
    """Fail the test on any problem."""
    raise AssertionError(problem)


def faults(document: object, kind: Any = wire.UpdateRequest) -> list[str]:
    """Return the errors of a document."""
    found: list[Problem] = []
    from_json(document, kind, "update", found.append)
    return [f"{one.path}: {one.message}" for one in found]


@given(UPDATES)
def test_update_round_trips(request: UpdateRequest) -> None:
    text = json.dumps(to_json(v0_11.UPDATE_REQUEST.to_wire(request)))
    assert (
        v0_11.UPDATE_REQUEST.from_wire(from_json(json.loads(text), wire.UpdateRequest, "", strict)) == request
    )
    message = v0_11.UPDATE_REQUEST.to_wire(request)
    assert to_json(message) == json_format.MessageToDict(message)


@given(RESPONSES)
def test_json_form_is_readable_by_the_library(response: UpdateResponse) -> None:
    message = v0_11.UPDATE_RESPONSE.to_wire(response)
    document = json.loads(json.dumps(to_json(message)))
    assert to_json(message) == json_format.MessageToDict(message)
    assert json_format.ParseDict(document, wire.UpdateResponse()) == message
    assert from_json(document, wire.UpdateResponse, "", strict) == message


def test_unknown_enum_numbers_stay_numbers() -> None:
    message = wire.UpdateRequest(updatedNodes=[wire.UpdateNodeInfo(action=77)])
    assert to_json(message) == {"updatedNodes": [{"action": 77}]} == json_format.MessageToDict(message)


def test_numbers_and_names_are_accepted_and_null_is_absent() -> None:
    document = {
        "rmID": None,
        "asks": [
            {
                "resourceAsk": {"resources": {"a": {"value": 5}, "b": {"value": "5"}, "c": {"value": 5.0}}},
                "maxAllocations": "3",
            }
        ],
        "updatedNodes": [{"action": 1}, {"action": "DECOMISSION"}, {"action": 77}],
    }
    message = from_json(document, wire.UpdateRequest, "", strict)
    (ask,) = message.asks
    assert {name: one.value for name, one in ask.resourceAsk.resources.items()} == {"a": 5, "b": 5, "c": 5}
    assert (ask.maxAllocations, [one.action for one in message.updatedNodes]) == (3, [1, 2, 77])


def test_json_and_proto_field_names_are_accepted() -> None:
    for name in ("rm_id", "rmId"):
        assert from_json({name: "x"}, callbacks_pb2.Open, "", strict).rm_id == "x"


def test_all_errors_are_reported_together() -> None:
    document = {
        "rmID": 5,
        "askes": [],
        "asks": [
            {"allocationKey": "k", "maxAllocations": 1.5, "placeholder": "yes"},
            "k2",
            {"resourceAsk": {"resources": {"vcore": 500}}, "tags": ["a"]},
            {"executionTimeoutMilliSeconds": 2**63, "maxAllocations": -(2**31) - 1},
        ],
        "updatedNodes": {"nodeID": "n1"},
        "releases": {"allocationsToRelease": [{"terminationType": "TIMED_OUT"}, {"terminationType": True}]},
    }
    assert faults(document) == [
        "update.rmID: expected text, got 5",
        "update.askes: UpdateRequest has no such field, did you mean 'asks'?; it has: asks, releases,"
        " newSchedulableNodes, updatedNodes, rmID, newApplications, removeApplications, allocations",
        "update.asks[0].maxAllocations: expected a whole number, got 1.5",
        "update.asks[0].placeholder: expected true or false, got 'yes'",
        "update.asks[1]: expected an object (AllocationAsk), got 'k2'",
        "update.asks[2].resourceAsk.resources.vcore: expected an object (Quantity), got 500",
        "update.asks[2].tags: expected an object, got a list",
        "update.asks[3].executionTimeoutMilliSeconds: 9223372036854775808 is out of range: from"
        " -9223372036854775808 to 9223372036854775807",
        "update.asks[3].maxAllocations: -2147483649 is out of range: from -2147483648 to 2147483647",
        "update.updatedNodes: expected a list, got an object",
        "update.releases.allocationsToRelease[0].terminationType: TerminationType has no 'TIMED_OUT', did you"
        " mean 'TIMEOUT'?; it has: STOPPED_BY_RM, TIMEOUT, PREEMPTED_BY_SCHEDULER, PLACEHOLDER_REPLACED,"
        " UNKNOWN_TERMINATION_TYPE, SCHEDULING_FAILED_ON_RM",
        "update.releases.allocationsToRelease[1].terminationType: expected a name or a number, got true",
    ]


@pytest.mark.parametrize("value", ["", "-", "1e3", "0x1", "١", "1" * 40, "1.0", float("inf"), float("nan")])
def test_invalid_numbers_are_rejected(value: object) -> None:
    assert "expected a whole number, got" in faults({"asks": [{"maxAllocations": value}]})[0]


def test_both_members_of_a_oneof_are_rejected() -> None:
    document = {"asks": [{"priority": {"priorityValue": 1, "priorityClassName": "high"}}]}
    assert faults(document) == [
        "update.asks[0].priority.priorityClassName: priorityValue is also given: only one of them is allowed"
    ]
    assert faults({"rmId": "a", "rm_id": "b"}, callbacks_pb2.Open) == [
        "update.rm_id: rmId is also given: only one of them is allowed"
    ]


def test_lone_surrogates_are_rejected() -> None:
    assert faults({"rmID": "\ud800"}) == [
        "update.rmID: the text contains a surrogate (half a character), which cannot be encoded"
    ]


def test_null_in_a_list_or_map_is_no_entry() -> None:
    assert faults({"asks": [None]}) == ["update.asks[0]: expected an object (AllocationAsk), got null"]
