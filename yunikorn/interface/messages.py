"""Messages of the scheduler interface, in process: one class per message (`docs/decisions/archive/0021`).

Each class has the fields of release v0.11.0 and of the newer layout; the codecs of `wire` translate per
layout. Quantities are 64-bit integers by resource type (`vcore` in milli-vcores, `memory` in bytes),
durations are in milliseconds where the name says so, timestamps in nanoseconds. An empty partition name means
`default`.
"""

from __future__ import annotations

import enum

import attrs

from yunikorn.model.allocation import PreemptionMode as PreemptionMode
from yunikorn.model.allocation import TerminationType as TerminationType
from yunikorn.resources import NOTHING, Resource


class SchedulerAction(enum.IntEnum):
    """Action that the scheduler requests of a resource manager."""

    NOACTION = 0
    RESYNC = 1


class NodeAction(enum.IntEnum):
    """Action that an RM requests for a registered node."""

    UPDATE = 0
    DRAIN_NODE = 1
    DECOMMISSION = 2
    DRAIN_TO_SCHEDULABLE = 3
    UNKNOWN = 1000
    """An action that this version lacks, such as one of a newer shim: the update of the node fails."""


@attrs.define
class UserGroupInformation:
    """Owner of an application; without groups the scheduler resolves the groups of the user."""

    user: str = ""
    groups: list[str] = attrs.Factory(list)


@attrs.define
class PreemptionPolicy:
    """Preemption settings of an ask or allocation; only an explicit False excludes preemption."""

    allow_preempt_self: bool = True
    allow_preempt_other: bool = True


@attrs.define
class RegisterResourceManagerRequest:
    """Registration of a resource manager; a repeated id removes everything of the earlier registration."""

    rm_id: str
    version: str = ""
    policy_group: str = ""
    config: str = ""
    extra_config: dict[str, str] = attrs.Factory(dict)
    build_info: dict[str, str] = attrs.Factory(dict)
    preemption_modes: list[PreemptionMode] = attrs.Factory(list)
    """Modes of preemption that the RM can carry out besides `END`."""


@attrs.define
class RegisterResourceManagerResponse:
    """Response to a registration; intentionally empty."""


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
    """Removal of an application with all its asks and allocations."""

    application_id: str
    partition_name: str = ""


@attrs.define
class AllocationAsk:
    """Request for `max_allocations` allocations of `resource_ask` each; replaces an ask with the same key."""

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
    """Allocation: a new one of the scheduler, or an existing one that a recovering RM reports."""

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
    """Takes precedence over `priority`; the scheduler itself fills in `priority` only."""


@attrs.define
class AllocationRelease:
    """End of an allocation: requested by the RM, decided by the scheduler, or confirmed by either."""

    application_id: str
    uuid: str = ""
    partition_name: str = ""
    termination_type: TerminationType = TerminationType.STOPPED_BY_RM
    message: str = ""
    allocation_key: str = ""
    preemption_mode: PreemptionMode = PreemptionMode.END
    """Way in which a preempted task makes room, from the scheduler; the confirmation need not repeat it."""


@attrs.define
class AllocationAskRelease:
    """End of an ask; without a key, of all asks of the application."""

    application_id: str = ""
    allocation_key: str = ""
    partition_name: str = ""
    termination_type: TerminationType = TerminationType.STOPPED_BY_RM
    message: str = ""


@attrs.define
class AllocationReleasesRequest:
    """Releases of allocations and asks in one update."""

    allocations_to_release: list[AllocationRelease] = attrs.Factory(list)
    allocation_asks_to_release: list[AllocationAskRelease] = attrs.Factory(list)


@attrs.define
class NewNodeInfo:
    """Registration of a node; `schedulable=False` registers the node drained."""

    node_id: str
    attributes: dict[str, str] = attrs.Factory(dict)
    schedulable_resource: Resource = NOTHING
    occupied_resource: Resource = NOTHING
    existing_allocations: list[Allocation] = attrs.Factory(list)
    schedulable: bool = True


@attrs.define
class UpdateNodeInfo:
    """Change of a node; an amount of None and an empty attribute map leave the node's values unchanged."""

    node_id: str
    action: NodeAction = NodeAction.UPDATE
    attributes: dict[str, str] = attrs.Factory(dict)
    schedulable_resource: Resource | None = None
    occupied_resource: Resource | None = None


@attrs.define
class UpdateRequest:
    """All changes that an RM reports at once; `docs/decisions/0030` has the order of processing."""

    rm_id: str
    asks: list[AllocationAsk] = attrs.Factory(list)
    releases: AllocationReleasesRequest = attrs.Factory(AllocationReleasesRequest)
    new_schedulable_nodes: list[NewNodeInfo] = attrs.Factory(list)
    updated_nodes: list[UpdateNodeInfo] = attrs.Factory(list)
    new_applications: list[AddApplicationRequest] = attrs.Factory(list)
    remove_applications: list[RemoveApplicationRequest] = attrs.Factory(list)
    allocations: list[Allocation] = attrs.Factory(list)
    """Allocations of the newer layout: placed or resized by the RM, or foreign.

    An entry without a node is an ask for one allocation, or the new size of the allocation with its key.
    """


@attrs.define
class AcceptedApplication:
    """Notice that an application was accepted and has a queue."""

    application_id: str


@attrs.define
class RejectedApplication:
    """Notice that an application was rejected."""

    application_id: str
    reason: str


@attrs.define
class UpdatedApplication:
    """Notice that an application changed its state."""

    application_id: str
    state: str
    state_transition_timestamp: int
    message: str = ""


@attrs.define
class AcceptedNode:
    """Notice that a node was registered."""

    node_id: str


@attrs.define
class RejectedNode:
    """Notice that the registration of a node was rejected."""

    node_id: str
    reason: str


@attrs.define
class RejectedAllocationAsk:
    """Notice that an ask was rejected."""

    allocation_key: str
    application_id: str
    reason: str


@attrs.define
class FailedNodeUpdate:
    """Notice that the update of a node failed; in process only (`docs/decisions/archive/0036`)."""

    node_id: str
    reason: str


class ContainerSchedulingState(enum.IntEnum):
    """Scheduling state of a pending ask."""

    SKIPPED = 0
    SCHEDULED = 1
    RESERVED = 2
    FAILED = 3


@attrs.define
class UpdateContainerSchedulingStateRequest:
    """Notice that the scheduling state of a pending ask changed; sent to RMs that implement the callback."""

    application_id: str
    allocation_key: str
    state: ContainerSchedulingState
    reason: str = ""


@attrs.define
class UpdateResponse:
    """All changes that the scheduler reports at once."""

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
    """Query to the RM: may this node run this ask? (`SchedulerPlugin` of the scheduler interface)"""

    allocation_key: str
    node_id: str
    allocate: bool = True
    """True to allocate at once, False to reserve the node."""
    application_id: str = ""
    """Application of the ask, since keys are unique per application only; not in the published interface."""


@attrs.define
class NodePredicatesArgs:
    """The query of `PredicatesArgs` for many nodes, answered in one round trip.

    See docs/decisions/archive/0032.
    """

    allocation_key: str
    application_id: str = ""
    node_ids: list[str] = attrs.Factory(list)
    """Nodes with room for the ask, in the order in which the scheduler will try them."""
    allocate: bool = True


@attrs.define
class AssumedAllocation:
    """An allocation of the core that the RM's cache must assume."""

    allocation_key: str
    node_id: str


@attrs.define
class ForgotAllocation:
    """An assumed allocation that the RM's cache must drop."""

    allocation_key: str
    node_id: str = ""
    """Node of the allocation, since an ask may have several; not part of the published interface."""


@attrs.define
class ReSyncSchedulerCacheArgs:
    """Allocations that the RM's cache must first forget, and then assume."""

    assumed_allocations: list[AssumedAllocation] = attrs.Factory(list)
    forget_allocations: list[ForgotAllocation] = attrs.Factory(list)


@attrs.define
class UpdateConfigurationRequest:
    """A new configuration as YAML: from the RM to be used, or from the core to be saved."""

    configs: str = ""


@attrs.define
class UpdateConfigurationResponse:
    """Result of saving or using a new configuration, with the reason of a failure."""

    success: bool
    old_config: str = ""
    reason: str = ""


class EventRecordType(enum.IntEnum):
    """Kind of object that an event is about."""

    REQUEST = 0
    APP = 1
    NODE = 2
    QUEUE = 3
    USERGROUP = 4
    """Not in v0.11.0; the core has events of users and groups, too."""


@attrs.define
class EventRecord:
    """An event of the core that an RM can show to its users."""

    type: EventRecordType
    object_id: str
    """Key of the ask, id of the application or node, name of the user or group, or path of the queue."""
    group_id: str = ""
    """Application of an ask, or queue of an application."""
    reason: str = ""
    message: str = ""
    timestamp_nano: int = 0
