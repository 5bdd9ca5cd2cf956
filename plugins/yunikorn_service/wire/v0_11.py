"""Release v0.11.0 of the interface: registration, and everything else in one stream.

The layout has additional fields for everything that release v0.11.0 lacks (proto/si_v0_11.proto), so nothing
is lost between two ends that use this package. Unknown enum numbers are mapped to harmless values: a
termination to `UNKNOWN`, an action on a node to one that fails, an action of the scheduler to none.

The messages of applications, the answers about nodes, and preemption policies have the same fields in the
newer layout. Their codecs decode and fill its messages as well.
"""

from __future__ import annotations

import attrs

from yunikorn.interface import messages
from yunikorn_service.wire.generated import si_v0_11_pb2 as wire
from yunikorn_service.wire.message_table import Row, codec, enum, enums, group, many, optional, single

# -- applications -----------------------------------------------------------------------------------------

NEW_APPLICATION = codec(
    messages.AddApplicationRequest,
    wire.AddApplicationRequest,
    ugi=group(codec(messages.UserGroupInformation, wire.UserGroupInformation), "user", "groups"),
    execution_timeout_ms="executionTimeoutMilliSeconds",
)
REMOVED_APPLICATION = codec(messages.RemoveApplicationRequest, wire.RemoveApplicationRequest)
ACCEPTED_APPLICATION = codec(messages.AcceptedApplication, wire.AcceptedApplication)
REJECTED_APPLICATION = codec(messages.RejectedApplication, wire.RejectedApplication)
UPDATED_APPLICATION = codec(messages.UpdatedApplication, wire.UpdatedApplication)

# -- asks and allocations ---------------------------------------------------------------------------------


def _from_priority(message: wire.Priority) -> tuple[int | None, str]:
    """Decode a priority: its number or None, and its class or an empty text."""
    which = message.WhichOneof("priority")
    if which == "priorityClassName":
        return None, message.priorityClassName
    return (message.priorityValue if which else None), ""


# A priority is a number, the name of a class, or missing. The name replaces the number, over which it takes
# precedence anyway. The first row assigns the variable that the second one reads: attributes are decoded in
# their order.
_PRIORITY = Row(
    "priority",
    "(priority := {read}({f}) if {m}.HasField('priority') else {none})[0]",
    "if {a} is not None:\n    {f}.priorityValue = {a}",
    using={"read": _from_priority, "none": (None, "")},
)
_PRIORITY_OR_ZERO = attrs.evolve(
    _PRIORITY, decode=f"{_PRIORITY.decode} or 0", encode="if {a}:\n    {f}.priorityValue = {a}"
)
_PRIORITY_CLASS = Row("priority", "priority[1]", "if {a}:\n    {f}.priorityClassName = {a}")
POLICY = optional(single(codec(messages.PreemptionPolicy, wire.PreemptionPolicy)))
"""Row of a preemption policy; a message with neither field set forbids all preemption."""

ASK = codec(
    messages.AllocationAsk,
    wire.AllocationAsk,
    rarely=("execution_timeout_ms", "tags", "task_group_name"),
    execution_timeout_ms="executionTimeoutMilliSeconds",
    priority=_PRIORITY,
    priority_class_name=_PRIORITY_CLASS,
    preemption_policy=POLICY,
)
ALLOCATION = codec(
    messages.Allocation,
    wire.Allocation,
    rarely=("allocation_tags", "task_group_name"),
    priority=_PRIORITY_OR_ZERO,
    priority_class_name=_PRIORITY_CLASS,
    preemption_policy=POLICY,
)

_TERMINATION = enum(
    {
        wire.STOPPED_BY_RM: messages.TerminationType.STOPPED_BY_RM,
        wire.TIMEOUT: messages.TerminationType.TIMEOUT,
        wire.PREEMPTED_BY_SCHEDULER: messages.TerminationType.PREEMPTED_BY_SCHEDULER,
        wire.PLACEHOLDER_REPLACED: messages.TerminationType.PLACEHOLDER_REPLACED,
        wire.SCHEDULING_FAILED_ON_RM: messages.TerminationType.SCHEDULING_FAILED_ON_RM,
        wire.UNKNOWN_TERMINATION_TYPE: messages.TerminationType.UNKNOWN,
    },
    messages.TerminationType.UNKNOWN,
)
"""Termination types by their numbers, which differ from those of the newer layout."""
MODE = enum(messages.PreemptionMode, messages.PreemptionMode.END)
"""Row of a preemption mode; an unknown one is that of every RM."""
RELEASE = codec(
    messages.AllocationRelease,
    wire.AllocationRelease,
    rarely=("preemption_mode",),
    termination_type=_TERMINATION,
    preemption_mode=MODE,
)
ASK_RELEASE = codec(messages.AllocationAskRelease, wire.AllocationAskRelease, termination_type=_TERMINATION)
REJECTED_ASK = codec(messages.RejectedAllocationAsk, wire.RejectedAllocationAsk)

# -- nodes ------------------------------------------------------------------------------------------------

_NEW_NODE = codec(
    messages.NewNodeInfo,
    wire.NewNodeInfo,
    existing_allocations=many(ALLOCATION),
    schedulable=Row("drained", "not {f}", "{f} = not {a}"),
)
_UPDATED_NODE = codec(
    messages.UpdateNodeInfo,
    wire.UpdateNodeInfo,
    action=enum(messages.NodeAction, messages.NodeAction.UNKNOWN),
)
ACCEPTED_NODE = codec(messages.AcceptedNode, wire.AcceptedNode)
REJECTED_NODE = codec(messages.RejectedNode, wire.RejectedNode)

# -- whole messages ---------------------------------------------------------------------------------------

REGISTER_REQUEST = codec(
    messages.RegisterResourceManagerRequest,
    wire.RegisterResourceManagerRequest,
    preemption_modes=enums(messages.PreemptionMode),
)
REGISTER_RESPONSE = codec(messages.RegisterResourceManagerResponse, wire.RegisterResourceManagerResponse)
UPDATE_REQUEST = codec(
    messages.UpdateRequest,
    wire.UpdateRequest,
    asks=many(ASK),
    releases=group(
        codec(
            messages.AllocationReleasesRequest,
            wire.AllocationReleasesRequest,
            allocations_to_release=many(RELEASE),
            allocation_asks_to_release=many(ASK_RELEASE),
        ),
        "allocations_to_release",
        "allocation_asks_to_release",
    ),
    new_schedulable_nodes=many(_NEW_NODE),
    updated_nodes=many(_UPDATED_NODE),
    new_applications=many(NEW_APPLICATION),
    remove_applications=many(REMOVED_APPLICATION),
    allocations=many(ALLOCATION),
)
UPDATE_RESPONSE = codec(
    messages.UpdateResponse,
    wire.UpdateResponse,
    action=enum(messages.SchedulerAction, messages.SchedulerAction.NOACTION),
    new_allocations=many(ALLOCATION),
    released_allocations=many(RELEASE),
    released_allocation_asks=many(ASK_RELEASE),
    rejected_allocations=many(REJECTED_ASK),
    rejected_applications=many(REJECTED_APPLICATION),
    accepted_applications=many(ACCEPTED_APPLICATION),
    updated_applications=many(UPDATED_APPLICATION),
    rejected_nodes=many(REJECTED_NODE),
    accepted_nodes=many(ACCEPTED_NODE),
    failed_node_updates=many(codec(messages.FailedNodeUpdate, wire.FailedNodeUpdate)),
)
