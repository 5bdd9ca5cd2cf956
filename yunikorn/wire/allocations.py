"""Codecs of asks, allocations and releases in release v0.11.0."""

from __future__ import annotations

from yunikorn.interface.messages import (
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    RejectedAllocationAsk,
    TerminationType,
)
from yunikorn.wire.generated import si_v0_11_pb2 as v0_11
from yunikorn.wire.wire_amounts import fill_amount, fill_policy, from_amount, from_policy

TERMINATIONS = {
    TerminationType.STOPPED_BY_RM: v0_11.STOPPED_BY_RM,
    TerminationType.TIMEOUT: v0_11.TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER: v0_11.PREEMPTED_BY_SCHEDULER,
    TerminationType.PLACEHOLDER_REPLACED: v0_11.PLACEHOLDER_REPLACED,
    TerminationType.UNKNOWN: v0_11.UNKNOWN_TERMINATION_TYPE,
}
"""Numbers of v0.11.0, which differ from those of the newer layout."""
_MEANT = {number: kind for kind, number in TERMINATIONS.items()}


def termination_of(number: int) -> TerminationType:
    """Return the termination type of a number; an unknown number means `UNKNOWN`."""
    return _MEANT.get(number, TerminationType.UNKNOWN)


# -- asks -------------------------------------------------------------------------------------------------


def from_ask(message: v0_11.AllocationAsk) -> AllocationAsk:
    """Decode an ask."""
    priority, class_name = from_priority(message.priority) if message.HasField("priority") else (None, "")
    return AllocationAsk(
        message.allocationKey,
        message.applicationID,
        message.partitionName,
        from_amount(message.resourceAsk),
        message.maxAllocations,
        priority,
        class_name,
        message.executionTimeoutMilliSeconds,
        dict(message.tags) if message.tags else {},
        message.taskGroupName,
        message.placeholder,
        message.originator,
        from_policy(message.preemptionPolicy) if message.HasField("preemptionPolicy") else None,
    )


def fill_ask(ask: AllocationAsk, message: v0_11.AllocationAsk) -> None:
    """Encode an ask. A priority class replaces the number, over which it takes precedence anyway."""
    message.allocationKey = ask.allocation_key
    message.applicationID = ask.application_id
    message.partitionName = ask.partition_name
    if ask.resource_ask:
        fill_amount(ask.resource_ask, message.resourceAsk)
    message.maxAllocations = ask.max_allocations
    if ask.priority is not None:
        message.priority.priorityValue = ask.priority
    if ask.priority_class_name:
        message.priority.priorityClassName = ask.priority_class_name
    if ask.execution_timeout_ms:
        message.executionTimeoutMilliSeconds = ask.execution_timeout_ms
    if ask.tags:
        tags = message.tags
        for key, value in ask.tags.items():
            tags[key] = value
    if ask.task_group_name:
        message.taskGroupName = ask.task_group_name
    message.placeholder = ask.placeholder
    message.originator = ask.originator
    if ask.preemption_policy is not None:
        fill_policy(ask.preemption_policy, message.preemptionPolicy)


def from_priority(message: v0_11.Priority) -> tuple[int | None, str]:
    """Decode a priority: its number or None, and its class or an empty text."""
    which = message.WhichOneof("priority")
    if which == "priorityClassName":
        return None, message.priorityClassName
    return (message.priorityValue if which else None), ""


# -- allocations ------------------------------------------------------------------------------------------


def from_allocation(message: v0_11.Allocation) -> Allocation:
    """Decode an allocation."""
    priority, class_name = from_priority(message.priority) if message.HasField("priority") else (0, "")
    return Allocation(
        message.allocationKey,
        message.applicationID,
        message.UUID,
        message.nodeID,
        from_amount(message.resourcePerAlloc),
        message.queueName,
        message.partitionName,
        priority or 0,
        dict(message.allocationTags) if message.allocationTags else {},
        message.taskGroupName,
        message.placeholder,
        message.originator,
        from_policy(message.preemptionPolicy) if message.HasField("preemptionPolicy") else None,
        class_name,
    )


def fill_allocation(placed: Allocation, message: v0_11.Allocation) -> None:
    """Encode an allocation. A priority class replaces the number, as for asks."""
    message.allocationKey = placed.allocation_key
    message.applicationID = placed.application_id
    message.UUID = placed.uuid
    message.nodeID = placed.node_id
    if placed.resource_per_alloc:
        fill_amount(placed.resource_per_alloc, message.resourcePerAlloc)
    message.queueName = placed.queue_name
    message.partitionName = placed.partition_name
    if placed.priority:
        message.priority.priorityValue = placed.priority
    if placed.priority_class_name:
        message.priority.priorityClassName = placed.priority_class_name
    if placed.allocation_tags:
        tags = message.allocationTags
        for key, value in placed.allocation_tags.items():
            tags[key] = value
    if placed.task_group_name:
        message.taskGroupName = placed.task_group_name
    message.placeholder = placed.placeholder
    message.originator = placed.originator
    if placed.preemption_policy is not None:
        fill_policy(placed.preemption_policy, message.preemptionPolicy)


# -- releases and refusals --------------------------------------------------------------------------------


def from_release(message: v0_11.AllocationRelease) -> AllocationRelease:
    """Decode the release of an allocation."""
    return AllocationRelease(
        message.applicationID,
        message.UUID,
        message.partitionName,
        termination_of(message.terminationType),
        message.message,
        message.allocationKey,
    )


def fill_release(release: AllocationRelease, message: v0_11.AllocationRelease) -> None:
    """Encode the release of an allocation."""
    message.applicationID = release.application_id
    message.UUID = release.uuid
    message.partitionName = release.partition_name
    message.terminationType = TERMINATIONS[release.termination_type]
    message.message = release.message
    message.allocationKey = release.allocation_key


def from_ask_release(message: v0_11.AllocationAskRelease) -> AllocationAskRelease:
    """Decode the release of an ask."""
    return AllocationAskRelease(
        message.applicationID,
        message.allocationkey,
        message.partitionName,
        termination_of(message.terminationType),
        message.message,
    )


def fill_ask_release(release: AllocationAskRelease, message: v0_11.AllocationAskRelease) -> None:
    """Encode the release of an ask."""
    message.applicationID = release.application_id
    message.allocationkey = release.allocation_key
    message.partitionName = release.partition_name
    message.terminationType = TERMINATIONS[release.termination_type]
    message.message = release.message


def from_refused_ask(message: v0_11.RejectedAllocationAsk) -> RejectedAllocationAsk:
    """Decode the rejection of an ask."""
    return RejectedAllocationAsk(message.allocationKey, message.applicationID, message.reason)


def fill_refused_ask(one: RejectedAllocationAsk, message: v0_11.RejectedAllocationAsk) -> None:
    """Encode the rejection of an ask."""
    message.allocationKey = one.allocation_key
    message.applicationID = one.application_id
    message.reason = one.reason
