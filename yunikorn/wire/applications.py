"""Codecs of applications, for both layouts of the wire, which have the same fields here."""

from __future__ import annotations

from yunikorn.interface.messages import (
    AcceptedApplication,
    AddApplicationRequest,
    RejectedApplication,
    RemoveApplicationRequest,
    UpdatedApplication,
    UserGroupInformation,
)
from yunikorn.wire.generated import si_current_pb2 as current
from yunikorn.wire.generated import si_v0_11_pb2 as v0_11
from yunikorn.wire.wire_amounts import fill_amount, from_amount


def from_new(message: v0_11.AddApplicationRequest | current.AddApplicationRequest) -> AddApplicationRequest:
    """Decode a new application."""
    ugi = message.ugi
    return AddApplicationRequest(
        message.applicationID,
        message.queueName,
        message.partitionName,
        UserGroupInformation(ugi.user, list(ugi.groups)),
        dict(message.tags),
        message.executionTimeoutMilliSeconds,
        from_amount(message.placeholderAsk),
        message.gangSchedulingStyle,
    )


def fill_new(
    new: AddApplicationRequest, message: v0_11.AddApplicationRequest | current.AddApplicationRequest
) -> None:
    """Encode a new application."""
    message.applicationID = new.application_id
    message.queueName = new.queue_name
    message.partitionName = new.partition_name
    if new.ugi.user or new.ugi.groups:
        message.ugi.user = new.ugi.user
        message.ugi.groups.extend(new.ugi.groups)
    for key, value in new.tags.items():
        message.tags[key] = value
    message.executionTimeoutMilliSeconds = new.execution_timeout_ms
    if new.placeholder_ask:
        fill_amount(new.placeholder_ask, message.placeholderAsk)
    message.gangSchedulingStyle = new.gang_scheduling_style


def from_removed(
    message: v0_11.RemoveApplicationRequest | current.RemoveApplicationRequest,
) -> RemoveApplicationRequest:
    """Decode the removal of an application."""
    return RemoveApplicationRequest(message.applicationID, message.partitionName)


def fill_removed(
    gone: RemoveApplicationRequest,
    message: v0_11.RemoveApplicationRequest | current.RemoveApplicationRequest,
) -> None:
    """Encode the removal of an application."""
    message.applicationID = gone.application_id
    message.partitionName = gone.partition_name


def from_accepted(message: v0_11.AcceptedApplication | current.AcceptedApplication) -> AcceptedApplication:
    """Decode the acceptance of an application."""
    return AcceptedApplication(message.applicationID)


def fill_accepted(
    one: AcceptedApplication, message: v0_11.AcceptedApplication | current.AcceptedApplication
) -> None:
    """Encode the acceptance of an application."""
    message.applicationID = one.application_id


def from_rejected(message: v0_11.RejectedApplication | current.RejectedApplication) -> RejectedApplication:
    """Decode the rejection of an application."""
    return RejectedApplication(message.applicationID, message.reason)


def fill_rejected(
    one: RejectedApplication, message: v0_11.RejectedApplication | current.RejectedApplication
) -> None:
    """Encode the rejection of an application."""
    message.applicationID = one.application_id
    message.reason = one.reason


def from_updated(message: v0_11.UpdatedApplication | current.UpdatedApplication) -> UpdatedApplication:
    """Decode the state change of an application."""
    return UpdatedApplication(
        message.applicationID, message.state, message.stateTransitionTimestamp, message.message
    )


def fill_updated(
    one: UpdatedApplication, message: v0_11.UpdatedApplication | current.UpdatedApplication
) -> None:
    """Encode the state change of an application."""
    message.applicationID = one.application_id
    message.state = one.state
    message.stateTransitionTimestamp = one.state_transition_timestamp
    message.message = one.message
