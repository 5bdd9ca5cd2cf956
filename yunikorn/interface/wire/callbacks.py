"""What goes over the stream of callbacks (proto/callbacks.proto), without its envelopes.

    FromScheduler(call=7, predicates=to_node_predicates(args))

Pure functions between protobuf and `yunikorn.interface.messages`. States and events of kinds that are not
known here, such as those of a newer server, are left out.
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
from yunikorn.interface.wire.codec import Decoder
from yunikorn.interface.wire.generated import callbacks_pb2 as wire
from yunikorn.interface.wire.generated import si_v0_11_pb2 as v0_11
from yunikorn.interface.wire.repeated_fields import fill_all, fill_one

_CAPABILITIES = {
    "predicates": wire.PREDICATES,
    "node_predicates": wire.PREDICATES,
    "update_container_scheduling_state": wire.SCHEDULING_STATES,
    "send_events": wire.EVENTS,
    "resync_scheduler_cache": wire.CACHE,
    "update_configuration": wire.CONFIGURATION,
}
"""What each optional method of a callback is on the stream: predicates are always asked for many nodes."""
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
    """What a callback with these optional methods can do."""
    return sorted({_CAPABILITIES[method] for method in methods})


def from_capabilities(numbers: Iterable[int]) -> tuple[str, ...]:
    """The optional methods that stand for what an RM can do; what is not known here is left out."""
    return tuple(dict.fromkeys(_OFFERED[number] for number in sorted(numbers) if number in _OFFERED))


# -- predicates -------------------------------------------------------------------------------------------


def from_node_predicates(message: wire.PredicatesRequest) -> NodePredicatesArgs:
    """The question which of these nodes may take a request."""
    return NodePredicatesArgs(
        message.allocation_key, message.application_id, list(message.node_ids), message.allocate
    )


def to_node_predicates(args: NodePredicatesArgs) -> wire.PredicatesRequest:
    """The question which of these nodes may take a request."""
    message = wire.PredicatesRequest()
    fill_one("", args, _fill_node_predicates, message)
    return message


def _fill_node_predicates(args: NodePredicatesArgs, message: wire.PredicatesRequest) -> None:
    message.allocation_key = args.allocation_key
    message.application_id = args.application_id
    message.node_ids.extend(args.node_ids)
    message.allocate = args.allocate


def from_refusals(message: wire.PredicatesResponse) -> dict[str, str]:
    """The nodes that may not take it, with the reasons."""
    return dict(message.refused)


def to_refusals(refused: Mapping[str, str]) -> wire.PredicatesResponse:
    """The nodes that may not take it, with the reasons; raises `TypeError` for what is no text."""
    return wire.PredicatesResponse(refused=refused)


def from_predicates(message: v0_11.PredicatesArgs) -> PredicatesArgs:
    """The question for one node, as the interface has it; the stream of callbacks does not use it."""
    return PredicatesArgs(message.allocationKey, message.nodeID, message.allocate, message.applicationID)


def to_predicates(args: PredicatesArgs) -> v0_11.PredicatesArgs:
    """The question for one node."""
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
    """How requests fare."""
    return [
        UpdateContainerSchedulingStateRequest(
            one.applicartionID, one.allocationKey, _STATES[one.state], one.reason
        )
        for one in message.states
        if one.state in _STATES
    ]


def to_states(states: Iterable[UpdateContainerSchedulingStateRequest]) -> wire.SchedulingStates:
    """How requests fare."""
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
    """What happened."""
    return [
        EventRecord(
            _EVENT_TYPES[one.type], one.objectID, one.groupID, one.reason, one.message, one.timestampNano
        )
        for one in message.events
        if one.type in _EVENT_TYPES
    ]


def to_events(events: Iterable[EventRecord]) -> wire.Events:
    """What happened."""
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
    """What the RM's cache has to assume and to forget."""
    return ReSyncSchedulerCacheArgs(
        [AssumedAllocation(one.allocationKey, one.nodeID) for one in message.assumedAllocations],
        [ForgotAllocation(one.allocationKey) for one in message.forgetAllocations],
    )


def to_cache(args: ReSyncSchedulerCacheArgs) -> v0_11.ReSyncSchedulerCacheArgs:
    """What the RM's cache has to assume and to forget."""
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
    """A new configuration."""
    return UpdateConfigurationRequest(message.configs)


def to_configuration(request: UpdateConfigurationRequest) -> v0_11.UpdateConfigurationRequest:
    """A new configuration."""
    message = v0_11.UpdateConfigurationRequest()
    fill_one("", request, _fill_configuration, message)
    return message


def _fill_configuration(
    request: UpdateConfigurationRequest, message: v0_11.UpdateConfigurationRequest
) -> None:
    message.configs = request.configs


def from_configured(message: v0_11.UpdateConfigurationResponse) -> UpdateConfigurationResponse:
    """What became of a new configuration."""
    return UpdateConfigurationResponse(message.success, message.oldConfig, message.reason)


def to_configured(response: UpdateConfigurationResponse) -> v0_11.UpdateConfigurationResponse:
    """What became of a new configuration."""
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
"""The envelopes of the RM: whoever has the stream looks into them."""
FROM_SCHEDULER = Decoder(wire.FromScheduler, _as_it_came)
