"""The scheduler interface's messages, in process: one class per noun (decision 21).

Each is the union of release v0.11.0 and the newer layout; codecs translate per wire form. Quantities
are 64-bit integers per type (`vcore` in milli-cores, `memory` in bytes), durations in milliseconds
where the name says so, timestamps in nanoseconds. An empty partition name means `default`.
"""

from __future__ import annotations

import enum

import attrs

from yunikorn.objects.termination import TerminationType as TerminationType
from yunikorn.resources import NOTHING, Resource


class SchedulerAction(enum.IntEnum):
    """What the RM must do."""

    NOACTION = 0
    RESYNC = 1


class NodeAction(enum.IntEnum):
    """What the RM asks for a node it has registered."""

    UPDATE = 0
    DRAIN_NODE = 1
    DECOMMISSION = 2
    DRAIN_TO_SCHEDULABLE = 3
    UNKNOWN = 1000
    """An action that is not known here, such as one of a newer shim: the update fails (decision 33)."""


@attrs.define
class UserGroupInformation:
    """The owner of an application; without groups the scheduler resolves them."""

    user: str = ""
    groups: list[str] = attrs.Factory(list)


@attrs.define
class PreemptionPolicy:
    """What preemption may do with an allocation and for it; only an explicit False is a hard no."""

    allow_preempt_self: bool = True
    allow_preempt_other: bool = True


@attrs.define
class RegisterResourceManagerRequest:
    """An RM introduces itself; the same id again cleans up everything of the earlier one."""

    rm_id: str
    version: str = ""
    policy_group: str = ""
    config: str = ""
    extra_config: dict[str, str] = attrs.Factory(dict)
    build_info: dict[str, str] = attrs.Factory(dict)


@attrs.define
class RegisterResourceManagerResponse:
    """Intentionally empty."""


@attrs.define
class AddApplicationRequest:
    """A new application."""

    application_id: str
    queue_name: str = ""
    partition_name: str = ""
    ugi: UserGroupInformation = attrs.Factory(UserGroupInformation)
    tags: dict[str, str] = attrs.Factory(dict)
    execution_timeout_ms: int = 0
    placeholder_ask: Resource = NOTHING
    gang_scheduling_style: str = ""


@attrs.define
class RemoveApplicationRequest:
    """An application goes, with all its asks and allocations."""

    application_id: str
    partition_name: str = ""


@attrs.define
class AllocationAsk:
    """A request for `max_allocations` allocations of `resource_ask` each; the same key again replaces it."""

    allocation_key: str
    application_id: str = ""
    partition_name: str = ""
    resource_ask: Resource = NOTHING
    max_allocations: int = 1
    priority: int | None = None
    priority_class_name: str = ""
    execution_timeout_ms: int = 0
    tags: dict[str, str] = attrs.Factory(dict)
    task_group_name: str = ""
    placeholder: bool = False
    originator: bool = False
    preemption_policy: PreemptionPolicy | None = None


@attrs.define
class Allocation:
    """A request that has its place: new from the scheduler, or existing, from a recovering RM."""

    allocation_key: str
    application_id: str
    uuid: str = ""
    node_id: str = ""
    resource_per_alloc: Resource = NOTHING
    queue_name: str = ""
    partition_name: str = ""
    priority: int = 0
    allocation_tags: dict[str, str] = attrs.Factory(dict)
    task_group_name: str = ""
    placeholder: bool = False
    originator: bool = False
    preemption_policy: PreemptionPolicy | None = None
    priority_class_name: str = ""
    """Goes before `priority`; the scheduler says numbers only."""


@attrs.define
class AllocationRelease:
    """An allocation ends: asked for by the RM, decided by the scheduler, or confirmed by either."""

    application_id: str
    uuid: str = ""
    partition_name: str = ""
    termination_type: TerminationType = TerminationType.STOPPED_BY_RM
    message: str = ""
    allocation_key: str = ""


@attrs.define
class AllocationAskRelease:
    """An ask ends; without a key all asks of the application."""

    application_id: str = ""
    allocation_key: str = ""
    partition_name: str = ""
    termination_type: TerminationType = TerminationType.STOPPED_BY_RM
    message: str = ""


@attrs.define
class AllocationReleasesRequest:
    """What the RM releases in one update."""

    allocations_to_release: list[AllocationRelease] = attrs.Factory(list)
    allocation_asks_to_release: list[AllocationAskRelease] = attrs.Factory(list)


@attrs.define
class NewNodeInfo:
    """A node joins; `schedulable=False` registers it drained."""

    node_id: str
    attributes: dict[str, str] = attrs.Factory(dict)
    schedulable_resource: Resource = NOTHING
    occupied_resource: Resource = NOTHING
    existing_allocations: list[Allocation] = attrs.Factory(list)
    schedulable: bool = True


@attrs.define
class UpdateNodeInfo:
    """A node changes; None leaves an amount as it is, an empty map leaves the attributes."""

    node_id: str
    action: NodeAction = NodeAction.UPDATE
    attributes: dict[str, str] = attrs.Factory(dict)
    schedulable_resource: Resource | None = None
    occupied_resource: Resource | None = None


@attrs.define
class UpdateRequest:
    """Everything an RM has to say at once; handled in the order of decision 30."""

    rm_id: str
    asks: list[AllocationAsk] = attrs.Factory(list)
    releases: AllocationReleasesRequest = attrs.Factory(AllocationReleasesRequest)
    new_schedulable_nodes: list[NewNodeInfo] = attrs.Factory(list)
    updated_nodes: list[UpdateNodeInfo] = attrs.Factory(list)
    new_applications: list[AddApplicationRequest] = attrs.Factory(list)
    remove_applications: list[RemoveApplicationRequest] = attrs.Factory(list)
    allocations: list[Allocation] = attrs.Factory(list)
    """The newer layout: what the RM placed itself, resized, or knows to be foreign; without a node it is an
    ask for one allocation, or a new size of the one with this key."""


@attrs.define
class AcceptedApplication:
    """The application has its queue."""

    application_id: str


@attrs.define
class RejectedApplication:
    """The application was refused."""

    application_id: str
    reason: str


@attrs.define
class UpdatedApplication:
    """The application changed its state."""

    application_id: str
    state: str
    state_transition_timestamp: int
    message: str = ""


@attrs.define
class AcceptedNode:
    """The node was registered."""

    node_id: str


@attrs.define
class RejectedNode:
    """The node's registration was refused."""

    node_id: str
    reason: str


@attrs.define
class RejectedAllocationAsk:
    """The ask was refused."""

    allocation_key: str
    application_id: str
    reason: str


@attrs.define
class FailedNodeUpdate:
    """An update of a node that could not be carried out (in process only, decision 36)."""

    node_id: str
    reason: str


class ContainerSchedulingState(enum.IntEnum):
    """How a waiting request fares."""

    SKIPPED = 0
    SCHEDULED = 1
    RESERVED = 2
    FAILED = 3


@attrs.define
class UpdateContainerSchedulingStateRequest:
    """A call to the RM, if it implements it: a request fares otherwise than before (decision 37)."""

    application_id: str
    allocation_key: str
    state: ContainerSchedulingState
    reason: str = ""


@attrs.define
class UpdateResponse:
    """Everything the scheduler has to say at once."""

    action: SchedulerAction = SchedulerAction.NOACTION
    new_allocations: list[Allocation] = attrs.Factory(list)
    released_allocations: list[AllocationRelease] = attrs.Factory(list)
    released_allocation_asks: list[AllocationAskRelease] = attrs.Factory(list)
    rejected_allocations: list[RejectedAllocationAsk] = attrs.Factory(list)
    rejected_applications: list[RejectedApplication] = attrs.Factory(list)
    accepted_applications: list[AcceptedApplication] = attrs.Factory(list)
    updated_applications: list[UpdatedApplication] = attrs.Factory(list)
    rejected_nodes: list[RejectedNode] = attrs.Factory(list)
    accepted_nodes: list[AcceptedNode] = attrs.Factory(list)
    failed_node_updates: list[FailedNodeUpdate] = attrs.Factory(list)


# -- what goes through the callback besides responses ----------------------------------------------------


@attrs.define
class PredicatesArgs:
    """A question to the RM: may this node take this request? (seed: scheduler interface, SchedulerPlugin)"""

    allocation_key: str
    node_id: str
    allocate: bool = True
    """True to place it there now, False to keep the node for it."""
    application_id: str = ""
    """Whose request it is, since keys are unique in an application only (ours, not the seed's)."""


@attrs.define
class NodePredicatesArgs:
    """The same question for many nodes at once, so that one round trip answers it (decision 32)."""

    allocation_key: str
    application_id: str = ""
    node_ids: list[str] = attrs.Factory(list)
    """Nodes that have room for the request, in the order in which they will be tried."""
    allocate: bool = True


@attrs.define
class AssumedAllocation:
    """The core has placed a request: the RM's cache may count on it."""

    allocation_key: str
    node_id: str


@attrs.define
class ForgotAllocation:
    """What was assumed does not hold any more."""

    allocation_key: str
    node_id: str = ""
    """Where it was, since an ask may have several allocations (ours, not the seed's)."""


@attrs.define
class ReSyncSchedulerCacheArgs:
    """What the RM's cache has to forget, and then what it has to assume."""

    assumed_allocations: list[AssumedAllocation] = attrs.Factory(list)
    forget_allocations: list[ForgotAllocation] = attrs.Factory(list)


@attrs.define
class UpdateConfigurationRequest:
    """A new configuration, as YAML: from the RM to be used, or from the core to be saved."""

    configs: str = ""


@attrs.define
class UpdateConfigurationResponse:
    """Whether a new configuration was saved or is in use, and why not."""

    success: bool
    old_config: str = ""
    reason: str = ""


class EventRecordType(enum.IntEnum):
    """What kind of thing an event is about."""

    REQUEST = 0
    APP = 1
    NODE = 2
    QUEUE = 3
    USERGROUP = 4
    """Not in v0.11.0: the core has events of users and groups, too."""


@attrs.define
class EventRecord:
    """Something that happened, for the RM to show its users."""

    type: EventRecordType
    object_id: str
    """The ask's key, the application's, node's or user's identifier, or the queue's path."""
    group_id: str = ""
    """The application of an ask, the queue of an application."""
    reason: str = ""
    message: str = ""
    timestamp_nano: int = 0
