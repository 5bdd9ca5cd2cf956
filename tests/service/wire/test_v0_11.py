"""Release v0.11.0: messages survive encoding and decoding, and unknown fields do no harm."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.service.wire.samples import ASKS, REGISTRATIONS, RESPONSES, UPDATES
from yunikorn.interface.messages import (
    Allocation,
    AllocationAsk,
    NewNodeInfo,
    NodeAction,
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    SchedulerAction,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.resources import Resource
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.generated import si_v0_11_pb2 as wire


@given(REGISTRATIONS)
def test_registration_round_trips(request: RegisterResourceManagerRequest) -> None:
    assert v0_11.REGISTER_REQUEST.decode(v0_11.REGISTER_REQUEST.encode(request)) == request


def test_registration_response_is_empty() -> None:
    assert v0_11.REGISTER_RESPONSE.encode(RegisterResourceManagerResponse()) == b""
    assert v0_11.REGISTER_RESPONSE.decode(b"") == RegisterResourceManagerResponse()


@given(UPDATES)
def test_update_round_trips(request: UpdateRequest) -> None:
    assert v0_11.UPDATE_REQUEST.decode(v0_11.UPDATE_REQUEST.encode(request)) == request


@given(RESPONSES)
def test_response_round_trips(response: UpdateResponse) -> None:
    assert v0_11.UPDATE_RESPONSE.decode(v0_11.UPDATE_RESPONSE.encode(response)) == response


def ask(message: wire.AllocationAsk) -> AllocationAsk:
    """Return the text of an update's only ask."""
    (found,) = v0_11.UPDATE_REQUEST.from_wire(wire.UpdateRequest(asks=[message])).asks
    return found


@given(ASKS)
def test_priority_class_is_sent_before_a_priority_number(given_: AllocationAsk) -> None:
    given_.priority, given_.priority_class_name = 7, "urgent"
    (message,) = v0_11.UPDATE_REQUEST.to_wire(UpdateRequest("rm", asks=[given_])).asks
    assert message.priority.WhichOneof("priority") == "priorityClassName"
    given_.priority = None
    assert ask(message) == given_


def test_an_allocation_may_have_a_priority_class_as_well() -> None:
    running = Allocation("k", "app", "u", priority_class_name="urgent")
    request = UpdateRequest("rm", new_schedulable_nodes=[NewNodeInfo("n", existing_allocations=[running])])
    message = v0_11.UPDATE_REQUEST.to_wire(request)
    (sent,) = message.newSchedulableNodes[0].existingAllocations
    assert sent.priority.priorityClassName == "urgent"
    assert v0_11.UPDATE_REQUEST.from_wire(message) == request


def test_explicit_zero_priority_differs_from_none() -> None:
    assert ask(wire.AllocationAsk(priority=wire.Priority(priorityValue=0))).priority == 0
    assert ask(wire.AllocationAsk(priority=wire.Priority())).priority is None
    assert ask(wire.AllocationAsk()).priority is None


def test_missing_fields_of_an_ask_have_the_wire_defaults() -> None:
    # Unlike our own class, where a count of 0 is refused (docs/decisions/archive/0028).
    assert ask(wire.AllocationAsk()) == AllocationAsk("", max_allocations=0)


def test_empty_amount_of_a_node_update_differs_from_none() -> None:
    def reported(message: wire.UpdateNodeInfo) -> UpdateNodeInfo:
        return v0_11.UPDATE_REQUEST.from_wire(wire.UpdateRequest(updatedNodes=[message])).updated_nodes[0]

    assert reported(wire.UpdateNodeInfo()).schedulable_resource is None
    assert reported(wire.UpdateNodeInfo(schedulableResource=wire.Resource())).schedulable_resource == {}


def test_a_type_that_is_zero_stays_in_the_amount() -> None:
    amount = Resource(vcore=0, memory=5)
    request = UpdateRequest("rm", asks=[AllocationAsk("k", resource_ask=amount)])
    assert v0_11.UPDATE_REQUEST.decode(v0_11.UPDATE_REQUEST.encode(request)).asks[0].resource_ask == amount


def test_large_amounts_are_translated() -> None:
    amount = Resource({f"example.com/a-resource-with-a-long-name-{index}": index for index in range(100)})
    request = UpdateRequest("rm", asks=[AllocationAsk("k", resource_ask=amount)])
    assert v0_11.UPDATE_REQUEST.decode(v0_11.UPDATE_REQUEST.encode(request)) == request


# -- unknown fields ----------------------------------------------------------------------------------------


def test_unknown_termination_is_unspecified() -> None:
    message = wire.UpdateRequest()
    message.releases.allocationsToRelease.add(terminationType=77)
    message.releases.allocationAsksToRelease.add(terminationType=78)
    releases = v0_11.UPDATE_REQUEST.from_wire(message).releases
    assert releases.allocations_to_release[0].termination_type is TerminationType.UNKNOWN
    assert releases.allocation_asks_to_release[0].termination_type is TerminationType.UNKNOWN


def test_unknown_node_action_is_invalid() -> None:
    message = wire.UpdateRequest(updatedNodes=[wire.UpdateNodeInfo(nodeID="n1", action=9)])
    assert v0_11.UPDATE_REQUEST.from_wire(message).updated_nodes[0].action is NodeAction.UNKNOWN


def test_unknown_scheduler_action_is_none() -> None:
    message = wire.UpdateResponse(action=9)
    assert v0_11.UPDATE_RESPONSE.from_wire(message).action is SchedulerAction.NOACTION


def test_unknown_fields_are_skipped() -> None:
    data = v0_11.UPDATE_REQUEST.encode(UpdateRequest("rm", asks=[AllocationAsk("k")]))
    # Field 500 with the number 1, as a newer shim might send it.
    assert v0_11.UPDATE_REQUEST.decode(data + b"\xa0\x1f\x01").asks == [AllocationAsk("k")]


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (TerminationType.STOPPED_BY_RM, 0),
        (TerminationType.TIMEOUT, 1),
        (TerminationType.PREEMPTED_BY_SCHEDULER, 2),
        (TerminationType.PLACEHOLDER_REPLACED, 3),
        (TerminationType.SCHEDULING_FAILED_ON_RM, 1005),
    ],
)
def test_terminations_have_the_numbers_of_the_release(kind: TerminationType, number: int) -> None:
    message = wire.UpdateRequest()
    message.releases.allocationsToRelease.add(terminationType=number)
    found = v0_11.UPDATE_REQUEST.from_wire(message)
    assert found.releases.allocations_to_release[0].termination_type is kind
    assert v0_11.UPDATE_REQUEST.to_wire(found).releases.allocationsToRelease[0].terminationType == number
