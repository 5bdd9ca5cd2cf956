"""The stream of callbacks: messages survive encoding and decoding, unknown content is dropped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.service.wire.samples import INT64, TEXT
from yunikorn.interface.callback import OPTIONAL
from yunikorn.interface.messages import (
    AssumedAllocation,
    ContainerSchedulingState,
    EventRecord,
    EventRecordType,
    ForgotAllocation,
    NodePredicatesArgs,
    PredicatesArgs,
    ReSyncSchedulerCacheArgs,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateContainerSchedulingStateRequest,
)
from yunikorn_service.wire import callbacks
from yunikorn_service.wire.generated import callbacks_pb2 as wire
from yunikorn_service.wire.generated import si_v0_11_pb2 as v0_11


@given(st.builds(NodePredicatesArgs, TEXT, TEXT, st.lists(TEXT, max_size=3), st.booleans()))
def test_a_question_about_nodes(args: NodePredicatesArgs) -> None:
    envelope = wire.FromScheduler(call=7, predicates=callbacks.NODE_PREDICATES.to_wire(args))
    read = callbacks.FROM_SCHEDULER.decode(envelope.SerializeToString())
    assert (read.call, read.WhichOneof("content")) == (7, "predicates")
    assert callbacks.NODE_PREDICATES.from_wire(read.predicates) == args


@given(st.builds(PredicatesArgs, TEXT, TEXT, st.booleans(), TEXT))
def test_a_question_about_one_node(args: PredicatesArgs) -> None:
    assert callbacks.PREDICATES.from_wire(callbacks.PREDICATES.to_wire(args)) == args


@given(st.dictionaries(TEXT, TEXT, max_size=3))
def test_predicate_answer(refused: dict[str, str]) -> None:
    envelope = wire.FromResourceManager(call=7, predicates=wire.PredicatesResponse(refused=refused))
    read = callbacks.FROM_RESOURCE_MANAGER.decode(envelope.SerializeToString())
    assert dict(read.predicates.refused) == refused


@given(
    st.lists(
        st.builds(
            UpdateContainerSchedulingStateRequest, TEXT, TEXT, st.sampled_from(ContainerSchedulingState), TEXT
        )
    )
)
def test_scheduling_states(states: list[UpdateContainerSchedulingStateRequest]) -> None:
    assert callbacks.from_states(callbacks.to_states(states)) == states


@given(st.lists(st.builds(EventRecord, st.sampled_from(EventRecordType), TEXT, TEXT, TEXT, TEXT, INT64)))
def test_events(events: list[EventRecord]) -> None:
    assert callbacks.from_events(callbacks.to_events(events)) == events


@given(
    st.builds(
        ReSyncSchedulerCacheArgs,
        st.lists(st.builds(AssumedAllocation, TEXT, TEXT)),
        st.lists(st.builds(ForgotAllocation, TEXT)),
    )
)
def test_cache_updates(args: ReSyncSchedulerCacheArgs) -> None:
    assert callbacks.CACHE.from_wire(callbacks.CACHE.to_wire(args)) == args


@given(st.builds(UpdateConfigurationRequest, TEXT))
def test_a_configuration(request: UpdateConfigurationRequest) -> None:
    assert callbacks.CONFIGURATION.from_wire(callbacks.CONFIGURATION.to_wire(request)) == request


@given(st.builds(UpdateConfigurationResponse, st.booleans(), TEXT, TEXT))
def test_configuration_result(response: UpdateConfigurationResponse) -> None:
    assert callbacks.CONFIGURED.from_wire(callbacks.CONFIGURED.to_wire(response)) == response


def test_capabilities_are_the_methods_of_the_callback() -> None:
    every = callbacks.to_capabilities(OPTIONAL)
    assert every == [1, 2, 3, 4, 5]
    # Over the network the predicate call for many nodes is used.
    assert set(callbacks.from_capabilities(every)) == set(OPTIONAL) - {"predicates"}
    assert callbacks.from_capabilities([0, 99, wire.EVENTS, wire.EVENTS]) == ("send_events",)


def test_unknown_states_and_events_of_a_newer_server_are_omitted() -> None:
    states = wire.SchedulingStates(
        states=[
            v0_11.UpdateContainerSchedulingStateRequest(allocationKey="new", state=99),
            v0_11.UpdateContainerSchedulingStateRequest(allocationKey="old", state=3),
        ]
    )
    assert [one.allocation_key for one in callbacks.from_states(states)] == ["old"]
    events = wire.Events(events=[v0_11.EventRecord(type=99), v0_11.EventRecord(type=1, objectID="app")])
    assert [one.object_id for one in callbacks.from_events(events)] == ["app"]
