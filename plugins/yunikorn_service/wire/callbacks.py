"""Codecs of the content of the callback stream (proto/callbacks.proto), without its envelopes.

    FromScheduler(call=7, predicates=NODE_PREDICATES.to_wire(args))

States and events of unknown kinds, such as those of a newer server, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from yunikorn.interface import messages
from yunikorn_service.wire.codec import Decoder, Wire, fill_all
from yunikorn_service.wire.generated import callbacks_pb2 as wire
from yunikorn_service.wire.generated import si_v0_11_pb2 as v0_11
from yunikorn_service.wire.message_table import ABSENT, codec, enum, many

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


def to_capabilities(methods: Iterable[str]) -> list[int]:
    """Return the capabilities of a callback with these optional methods."""
    return sorted({_CAPABILITIES[method] for method in methods})


def from_capabilities(numbers: Iterable[int]) -> tuple[str, ...]:
    """Return the optional methods for the capabilities of an RM; unknown capabilities are left out."""
    return tuple(dict.fromkeys(_OFFERED[number] for number in sorted(numbers) if number in _OFFERED))


NODE_PREDICATES = codec(messages.NodePredicatesArgs, wire.PredicatesRequest)
PREDICATES = codec(messages.PredicatesArgs, v0_11.PredicatesArgs)
"""A query for one node as in the published interface; the callback stream does not use it."""
CACHE = codec(
    messages.ReSyncSchedulerCacheArgs,
    v0_11.ReSyncSchedulerCacheArgs,
    assumed_allocations=many(codec(messages.AssumedAllocation, v0_11.AssumedAllocation)),
    forget_allocations=many(codec(messages.ForgotAllocation, v0_11.ForgotAllocation, node_id=ABSENT)),
)
CONFIGURATION = codec(messages.UpdateConfigurationRequest, v0_11.UpdateConfigurationRequest)
CONFIGURED = codec(messages.UpdateConfigurationResponse, v0_11.UpdateConfigurationResponse)
"""The result of a configuration change; like a configuration, sent in either direction."""

_STATES = frozenset(messages.ContainerSchedulingState)
_STATE = codec(
    messages.UpdateContainerSchedulingStateRequest,
    v0_11.UpdateContainerSchedulingStateRequest,
    application_id="applicartionID",
    state=enum(messages.ContainerSchedulingState),
)
_EVENT_TYPES = {
    v0_11.EventRecord.REQUEST: messages.EventRecordType.REQUEST,
    v0_11.EventRecord.APP: messages.EventRecordType.APP,
    v0_11.EventRecord.NODE: messages.EventRecordType.NODE,
    v0_11.EventRecord.QUEUE: messages.EventRecordType.QUEUE,
    v0_11.EventRecord.USERGROUP: messages.EventRecordType.USERGROUP,
}
_EVENT = codec(
    messages.EventRecord,
    v0_11.EventRecord,
    type=enum(_EVENT_TYPES),
)


def from_states(message: wire.SchedulingStates) -> list[messages.UpdateContainerSchedulingStateRequest]:
    """Decode scheduling states of asks."""
    decode = _STATE.from_wire
    return [decode(one) for one in message.states if one.state in _STATES]


def to_states(states: Iterable[messages.UpdateContainerSchedulingStateRequest]) -> wire.SchedulingStates:
    """Encode scheduling states of asks."""
    message = wire.SchedulingStates()
    fill_all("states", states, _STATE.fill, message.states)
    return message


def from_events(message: wire.Events) -> list[messages.EventRecord]:
    """Decode events."""
    decode = _EVENT.from_wire
    return [decode(one) for one in message.events if one.type in _EVENT_TYPES]


def to_events(events: Iterable[messages.EventRecord]) -> wire.Events:
    """Encode events."""
    message = wire.Events()
    fill_all("events", events, _EVENT.fill, message.events)
    return message


def _unchanged(message: Wire) -> Wire:
    return message


FROM_RESOURCE_MANAGER: Decoder[wire.FromResourceManager, wire.FromResourceManager] = Decoder(
    wire.FromResourceManager, _unchanged
)
"""Decoder of the RM's envelopes; the owner of the stream reads their content."""
FROM_SCHEDULER: Decoder[wire.FromScheduler, wire.FromScheduler] = Decoder(wire.FromScheduler, _unchanged)
