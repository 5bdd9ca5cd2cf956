"""Codecs of the content of the callback stream (proto/callbacks.proto), without its envelopes.

    FromScheduler(call=7, predicates=to_node_predicates(args))

All codecs are pure functions between protobuf and `yunikorn.interface.messages`. States and events of unknown
kinds, such as those of a newer server, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
from yunikorn.wire.codec import Decoder
from yunikorn.wire.generated import callbacks_pb2 as wire
from yunikorn.wire.generated import si_v0_11_pb2 as v0_11
from yunikorn.wire.repeated_fields import fill_all, fill_one

_CAPABILITIES = {
    "predicates": wire.PREDICATES,
    "node_predicates": wire.PREDICATES,
    "update_container_scheduling_state": wire.SCHEDULING_STATES,
    "send_events": wire.EVENTS,
    "resync_scheduler_cache": wire.CACHE,
    "update_configuration": wire.CONFIGURATION,
}
"""Capability of each optional method; the stream has predicates for many nodes only."""
_OFFERED = {number: method for method, number in _CAPABILITIES.items()}
_STATES = {state.value: state for state in ContainerSchedulingState}
_EVENT_TYPES = {
    v0_11.EventRecord.REQUEST: EventRecordType.REQUEST,
    v0_11.EventRecord.APP: EventRecordType.APP,
    v0_11.EventRecord.NODE: EventRecordType.NODE,
    v0_11.EventRecord.QUEUE: EventRecordType.QUEUE,
    v0_11.EventRecord.USERGROUP: EventRecordType.USERGROUP,
}
_EVENT_NUMBERS = {kind: number for number, kind in _EVENT_TYPES.items()}


def to_capabilities(methods: Iterable[str]) -> list[int]:
    """Return the capabilities of a callback with these optional methods."""
    return sorted({_CAPABILITIES[method] for method in methods})


def from_capabilities(numbers: Iterable[int]) -> tuple[str, ...]:
    """Return the optional methods for the capabilities of an RM; unknown capabilities are left out."""
    return tuple(dict.fromkeys(_OFFERED[number] for number in sorted(numbers) if number in _OFFERED))


# -- predicates -------------------------------------------------------------------------------------------


def from_node_predicates(message: wire.PredicatesRequest) -> NodePredicatesArgs:
    """Decode a query for many nodes."""
    return NodePredicatesArgs(
        message.allocation_key, message.application_id, list(message.node_ids), message.allocate
    )


def to_node_predicates(args: NodePredicatesArgs) -> wire.PredicatesRequest:
    """Encode a query for many nodes."""
    message = wire.PredicatesRequest()
    fill_one("", args, _fill_node_predicates, message)
    return message


def _fill_node_predicates(args: NodePredicatesArgs, message: wire.PredicatesRequest) -> None:
    message.allocation_key = args.allocation_key
    message.application_id = args.application_id
    message.node_ids.extend(args.node_ids)
    message.allocate = args.allocate


def from_refusals(message: wire.PredicatesResponse) -> dict[str, str]:
    """Decode the refusing nodes, with their reasons."""
    return dict(message.refused)


def to_refusals(refused: Mapping[str, str]) -> wire.PredicatesResponse:
    """Encode the refusing nodes, with their reasons; raise `TypeError` for a reason that is no text."""
    return wire.PredicatesResponse(refused=refused)


def from_predicates(message: v0_11.PredicatesArgs) -> PredicatesArgs:
    """Decode a query for one node as in the published interface; the callback stream does not use it."""
    return PredicatesArgs(message.allocationKey, message.nodeID, message.allocate, message.applicationID)


def to_predicates(args: PredicatesArgs) -> v0_11.PredicatesArgs:
    """Encode a query for one node as in the published interface."""
    message = v0_11.PredicatesArgs()
    fill_one("", args, _fill_predicates, message)
    return message


def _fill_predicates(args: PredicatesArgs, message: v0_11.PredicatesArgs) -> None:
    message.allocationKey = args.allocation_key
    message.nodeID = args.node_id
    message.allocate = args.allocate
    message.applicationID = args.application_id


# -- how requests fare --------------------------------------------------------------------------------------


def from_states(message: wire.SchedulingStates) -> list[UpdateContainerSchedulingStateRequest]:
    """Decode scheduling states of asks."""
    return [
        UpdateContainerSchedulingStateRequest(
            one.applicartionID, one.allocationKey, _STATES[one.state], one.reason
        )
        for one in message.states
        if one.state in _STATES
    ]


def to_states(states: Iterable[UpdateContainerSchedulingStateRequest]) -> wire.SchedulingStates:
    """Encode scheduling states of asks."""
    message = wire.SchedulingStates()
    fill_all("states", states, _fill_state, message.states)
    return message


def _fill_state(
    one: UpdateContainerSchedulingStateRequest, message: v0_11.UpdateContainerSchedulingStateRequest
) -> None:
    message.applicartionID = one.application_id
    message.allocationKey = one.allocation_key
    message.state = one.state
    message.reason = one.reason


# -- events -----------------------------------------------------------------------------------------------


def from_events(message: wire.Events) -> list[EventRecord]:
    """Decode events."""
    return [
        EventRecord(
            _EVENT_TYPES[one.type], one.objectID, one.groupID, one.reason, one.message, one.timestampNano
        )
        for one in message.events
        if one.type in _EVENT_TYPES
    ]


def to_events(events: Iterable[EventRecord]) -> wire.Events:
    """Encode events."""
    message = wire.Events()
    fill_all("events", events, _fill_event, message.events)
    return message


def _fill_event(event: EventRecord, message: v0_11.EventRecord) -> None:
    message.type = _EVENT_NUMBERS[event.type]
    message.objectID = event.object_id
    message.groupID = event.group_id
    message.reason = event.reason
    message.message = event.message
    message.timestampNano = event.timestamp_nano


# -- the RM's cache ---------------------------------------------------------------------------------------


def from_cache(message: v0_11.ReSyncSchedulerCacheArgs) -> ReSyncSchedulerCacheArgs:
    """Decode the changes of the RM's cache."""
    return ReSyncSchedulerCacheArgs(
        [AssumedAllocation(one.allocationKey, one.nodeID) for one in message.assumedAllocations],
        [ForgotAllocation(one.allocationKey) for one in message.forgetAllocations],
    )


def to_cache(args: ReSyncSchedulerCacheArgs) -> v0_11.ReSyncSchedulerCacheArgs:
    """Encode the changes of the RM's cache."""
    message = v0_11.ReSyncSchedulerCacheArgs()
    fill_all("assumed_allocations", args.assumed_allocations, _fill_assumed, message.assumedAllocations)
    fill_all("forget_allocations", args.forget_allocations, _fill_forgotten, message.forgetAllocations)
    return message


def _fill_assumed(one: AssumedAllocation, message: v0_11.AssumedAllocation) -> None:
    message.allocationKey = one.allocation_key
    message.nodeID = one.node_id


def _fill_forgotten(one: ForgotAllocation, message: v0_11.ForgotAllocation) -> None:
    message.allocationKey = one.allocation_key


# -- configuration, in both directions ----------------------------------------------------------------------


def from_configuration(message: v0_11.UpdateConfigurationRequest) -> UpdateConfigurationRequest:
    """Decode a new configuration."""
    return UpdateConfigurationRequest(message.configs)


def to_configuration(request: UpdateConfigurationRequest) -> v0_11.UpdateConfigurationRequest:
    """Encode a new configuration."""
    message = v0_11.UpdateConfigurationRequest()
    fill_one("", request, _fill_configuration, message)
    return message


def _fill_configuration(
    request: UpdateConfigurationRequest, message: v0_11.UpdateConfigurationRequest
) -> None:
    message.configs = request.configs


def from_configured(message: v0_11.UpdateConfigurationResponse) -> UpdateConfigurationResponse:
    """Decode the result of a configuration change."""
    return UpdateConfigurationResponse(message.success, message.oldConfig, message.reason)


def to_configured(response: UpdateConfigurationResponse) -> v0_11.UpdateConfigurationResponse:
    """Encode the result of a configuration change."""
    message = v0_11.UpdateConfigurationResponse()
    fill_one("", response, _fill_configured, message)
    return message


def _fill_configured(
    response: UpdateConfigurationResponse, message: v0_11.UpdateConfigurationResponse
) -> None:
    message.success = response.success
    message.oldConfig = response.old_config
    message.reason = response.reason


def _as_it_is(message: wire.FromResourceManager) -> wire.FromResourceManager:
    return message


def _as_it_came(message: wire.FromScheduler) -> wire.FromScheduler:
    return message


FROM_RESOURCE_MANAGER = Decoder(wire.FromResourceManager, _as_it_is)
"""Decoder of the RM's envelopes; the owner of the stream reads their content."""
FROM_SCHEDULER = Decoder(wire.FromScheduler, _as_it_came)
