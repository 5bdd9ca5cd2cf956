"""JSON objects that describe the state of the scheduler, with the names and units of YuniKorn 1.9.

Amounts are 64-bit integers: memory in bytes, vcore in milli-vcores, everything else a count. Times are Unix
times in nanoseconds unless the description says otherwise. Percentages are truncated.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn_rest.encoding import EncodedList
from yunikorn_service.fields import NONE, always, optional

Amounts = Mapping[str, int]
"""Amounts by resource type."""
Texts = Mapping[str, str]


# -- cluster and partitions ------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Cluster:
    """A partition of the cluster, with the resource manager that it belongs to."""

    partition: str = always("name of the partition")
    start_time: int = optional("time at which the scheduler started (ns)", 0)
    rm_build_information: tuple[Texts, ...] = optional(
        "for each resource manager the build information of its registration, and its id as `rmId`", ()
    )
    cluster_name: str = always("always `kubernetes`", "kubernetes")


@attrs.frozen(kw_only=True)
class PartitionCapacity:
    """Size and use of a partition."""

    capacity: Amounts = optional("sum of the capacities of all nodes", NONE)
    used_capacity: Amounts = optional("sum of all allocations", NONE)
    utilization: Amounts = optional("percentage of the capacity, for types that are used", NONE)


@attrs.frozen(kw_only=True)
class NodeSortingPolicy:
    """Order in which nodes are tried."""

    type: str = optional("name of the node sort policy", "")
    resource_weights: Mapping[str, float] = optional("weight of each resource type", NONE)


@attrs.frozen(kw_only=True)
class Partition:
    """A partition."""

    cluster_id: str = always("id of the resource manager")
    name: str = always("name without the id of the resource manager")
    state: str = optional("`Active`, `Draining` or `Stopped`", "")
    capacity: PartitionCapacity = always("size and use", PartitionCapacity())
    node_sorting_policy: NodeSortingPolicy = always("order of the nodes", NodeSortingPolicy())
    preemption_enabled: bool = always("true if requests may preempt allocations", False)
    quota_preemption_enabled: bool = always("true if usage above a lowered quota is preempted", False)
    total_nodes: int = always("number of nodes", 0)
    total_containers: int = always("number of allocations", 0)
    applications: Mapping[str, int] = always(
        "number of applications by state, ended ones included, and their sum as `total`", NONE
    )
    last_state_transition_time: int = optional("time of the latest change of `state` (ns)", 0)
    design_applications: Mapping[str, int] = optional(
        "the same numbers with `Starting` as a state of its own, while an application is Starting", NONE
    )


# -- queues ----------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Template:
    """Settings of dynamic queues below a queue."""

    max_applications: int = optional("maximum number of running applications", 0)
    properties: Texts = optional("properties", NONE)
    max_resource: Amounts = optional("quota", NONE)
    guaranteed_resource: Amounts = optional("guarantee", NONE)


@attrs.frozen(kw_only=True)
class Queue:
    """A queue."""

    queuename: str = always("full path")
    status: str = optional("`Active`, `Draining` or `Stopped`", "")
    partition: str = always("name of the partition; only on the root queue of the whole tree", "")
    pending_resource: Amounts = optional("requested and not allocated", NONE)
    max_resource: Amounts = optional("quota; of the root queue the size of the cluster", NONE)
    guaranteed_resource: Amounts = optional("guarantee", NONE)
    allocated_resource: Amounts = optional("sum of the allocations", NONE)
    preempting_resource: Amounts = optional("sum of the allocations that are being preempted", NONE)
    headroom: Amounts = optional("what quotas of the queue and its parents leave", NONE)
    abs_used_capacity: Amounts = optional("percentage of the quota, for types in use and in the quota", NONE)
    is_leaf: bool = always("true if the queue holds applications", False)
    is_managed: bool = always("true if the queue is in the configuration, false if placement made it", False)
    properties: Texts = optional("properties in force", NONE)
    parent: str = optional("full path of the parent", "")
    template: Template | None = optional("settings of dynamic queues below", None)
    children: tuple[Queue, ...] = optional("child queues", ())
    child_names: tuple[str, ...] = optional("full paths of the child queues", ())
    max_running_apps: int = optional("maximum number of running applications", 0)
    running_apps: int = optional("number of running applications in and below the queue", 0)
    current_priority: int = always("highest priority of a pending request; -2147483648 without one", 0)
    allocating_accepted_apps: tuple[str, ...] = optional(
        "ids of accepted applications that count as running", ()
    )
    sorting_policy: str = optional("name of the policy that sorts the members of the queue", "")
    priority_sorting: bool = always("true if priorities come first in the order", False)
    preemption_enabled: bool = always("true if allocations of the queue may be preempted", False)
    is_preemption_fence: bool = always("true if requests inside cannot preempt outside", False)
    preemption_delay: str = optional("time that a request waits before it may preempt, as `30s`", "")
    is_priority_fence: bool = always("true if priorities are hidden from the parent", False)
    priority_offset: int = optional("added to the priority that the parent sees", 0)
    quota_preemption_delay: str = optional("time before usage above a lowered quota is preempted", "")
    unsched_ask_backoff: int = optional("number of requests without a node that end in a back-off", 0)
    ask_backoff_delay: str = optional("time of a back-off, as `30s`", "")
    quota_policy: str = optional("name of the policy that sets the quota", "")
    quota_reason: str = optional("reason that this policy gives", "")
    configured_max_resource: Amounts = optional("quota of the configuration, where a policy sets it", NONE)


# -- applications ----------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Allocation:
    """A running task, or a placeholder."""

    allocation_key: str = always("key of the request that led to the allocation")
    allocation_tags: Texts = optional("tags", NONE)
    request_time: int = optional("creation time of the request, or of the replaced placeholder (ns)", 0)
    allocation_time: int = optional("time of the decision (ns)", 0)
    allocation_delay: int = optional("time from request to allocation (ns)", 0)
    resource: Amounts = optional("size", NONE)
    priority: str = optional("priority", "")
    node_id: str = optional("id of the node", "")
    application_id: str = optional("id of the application", "")
    placeholder: bool = optional("true for a placeholder of a gang", False)
    placeholder_used: bool = optional("true if the allocation replaced a placeholder", False)
    task_group_name: str = optional("task group", "")
    preempted: bool = optional("true if the allocation is being preempted", False)
    originator: bool = optional("true for the driver of the application", False)


@attrs.frozen(kw_only=True)
class ForeignAllocation:
    """Use of a node by a task that is not scheduled here."""

    allocation_key: str = always("key")
    allocation_tags: Texts = optional("tags", NONE)
    allocation_time: int = optional("time of the report (ns)", 0)
    resource: Amounts = optional("size", NONE)
    priority: str = optional("priority", "")
    node_id: str = optional("id of the node", "")
    preemptable: bool = optional("true if the task does not belong to the node itself", False)


@attrs.frozen(kw_only=True)
class LogEntry:
    """A reason why a request was not allocated."""

    message: str = optional("reason", "")
    last_occurrence: int = optional("latest time (ns)", 0)
    count: int = optional("number of attempts, for reasons of nodes with each node of an attempt", 0)


@attrs.frozen(kw_only=True)
class Ask:
    """A pending request."""

    allocation_key: str = always("key")
    allocation_tags: Texts = optional("tags", NONE)
    request_time: int = optional("creation time (ns)", 0)
    resource: Amounts = optional("size of each allocation", NONE)
    pending_count: int = optional("number of allocations still wanted, if more than one", 0)
    priority: str = optional("priority", "")
    required_node_id: str = optional("the only node that may run the task", "")
    application_id: str = optional("id of the application", "")
    placeholder: bool = optional("true for a placeholder of a gang", False)
    task_group_name: str = optional("task group", "")
    allocation_log: tuple[LogEntry, ...] = optional(
        "why attempts to place it or an equivalent request failed, or why it is not tried", ()
    )
    triggered_preemption: bool = optional("true if allocations were preempted for the request", False)
    originator: bool = optional("true for the driver of the application", False)
    scheduling_attempted: bool = optional("true if the request was tried and did not fit", False)
    triggered_scale_up: bool = optional("true if the resource manager was told that no node fits", False)


@attrs.frozen(kw_only=True)
class StateChange:
    """State of an application from a time on."""

    time: int = optional("time (ns)", 0)
    application_state: str = optional("state as in YuniKorn 1.9", "")


@attrs.frozen(kw_only=True)
class PlaceholderData:
    """Placeholders of a task group."""

    task_group_name: str = optional("task group", "")
    count: int = optional("number of placeholders ever requested", 0)
    min_resource: Amounts = optional("size of each", NONE)
    replaced: int = optional("number replaced by real allocations", 0)
    timedout: int = optional("number that ended unused", 0)


Usage = Mapping[str, Amounts]
"""Amounts times seconds, by instance type of the nodes."""


@attrs.frozen(kw_only=True)
class ResourceHistory:
    """Resource use of an application over its life: amounts times seconds, by instance type of the nodes."""

    resource_usage: Usage = optional("use by allocations that ended as intended", NONE)
    preempted_resource: Usage = optional("use by preempted allocations", NONE)
    placeholder_resource: Usage = optional("use by placeholders", NONE)


@attrs.frozen(kw_only=True)
class Application:
    """An application."""

    application_id: str = always("id", name="applicationID")
    used_resource: Amounts = optional("sum of the allocations", NONE)
    max_used_resource: Amounts = optional("highest sum of the allocations so far, per type", NONE)
    pending_resource: Amounts = optional("requested and not allocated", NONE)
    partition: str = always("name of the partition")
    queue_name: str = always("full path of the queue")
    submission_time: int = optional("time of the submission (ns)", 0)
    finished_time: int = optional("time of the end (ns)", 0)
    requests: tuple[Ask, ...] | EncodedList = optional("pending requests", ())
    allocations: tuple[Allocation, ...] | EncodedList = optional("allocations", ())
    application_state: str = optional("state as in YuniKorn 1.9, in which `Starting` is `Running`", "")
    user: str = optional("user", "")
    groups: tuple[str, ...] = optional("groups of the user", ())
    rejected_message: str = optional("reason of a rejection", "")
    state_log: tuple[StateChange, ...] = optional("states as in YuniKorn 1.9, oldest first", ())
    placeholder_data: tuple[PlaceholderData, ...] = optional("placeholders by task group", ())
    has_reserved: bool = optional("true if a request has reserved a node", False)
    reservations: tuple[str, ...] = optional("keys of requests that have reserved a node", ())
    max_request_priority: int = optional("highest priority of a pending request; -2147483648 without one", 0)
    start_time: int = optional("time of the first allocation (Unix time in milliseconds)", 0)
    resource_history: ResourceHistory = always("use over the life of the application", ResourceHistory())
    backoff_deadline: str = optional("end of a back-off (RFC 3339)", "")
    awaited: str = optional("policy whose answer the acceptance of the application waits for", "")
    design_state: str = optional("state (docs/states.md), if it differs from `applicationState`", "")
    design_state_log: tuple[StateChange, ...] = optional(
        "states (docs/states.md), oldest first, if they differ from `stateLog`", ()
    )


# -- nodes -----------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Node:
    """A node."""

    node_id: str = always("id", name="nodeID")
    host_name: str = optional("attribute `si/hostname`", "")
    rack_name: str = optional("attribute `si/rackname`", "")
    attributes: Texts = always("attributes", NONE)
    capacity: Amounts = optional("size", NONE)
    allocated: Amounts = optional("sum of the allocations", NONE)
    occupied: Amounts = optional("use by tasks that are not scheduled here", NONE)
    available: Amounts = optional("what is left", NONE)
    utilized: Amounts = optional("percentage of the capacity that is allocated", NONE)
    allocations: tuple[Allocation, ...] = optional("allocations", ())
    foreign_allocations: tuple[ForeignAllocation, ...] = optional("tasks not scheduled here, by key", ())
    schedulable: bool = always("false if the node is drained", False)
    drained_by: tuple[str, ...] = optional("`resourceManager`, `operator`, or both", ())
    domains: Texts = optional("name of the domain of each level of the topology", NONE)
    is_reserved: bool = always("true if a request has reserved the node", False)
    reservations: tuple[str, ...] = optional("keys of the requests that have reserved the node", ())


@attrs.frozen(kw_only=True)
class Bucket:
    """Nodes whose use of a resource type is in a range."""

    bucket_name: str = optional("range, as `0-10%`", "")
    num_of_nodes: int = optional("number of nodes", 0)
    node_names: tuple[str, ...] = optional("ids of the nodes", ())


@attrs.frozen(kw_only=True)
class TypeUtilization:
    """Nodes by their use of one resource type."""

    type: str = optional("resource type", "")
    utilization: tuple[Bucket, ...] = optional("ten ranges, lowest first", ())


@attrs.frozen(kw_only=True)
class NodeUtilization:
    """Use of the nodes of a partition."""

    cluster_id: str = always("id of the resource manager")
    partition: str = always("name of the partition")
    utilizations: tuple[TypeUtilization, ...] = always("one entry for each resource type", ())


# -- users and groups ------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class QueueUsage:
    """Use of a queue by a user or group."""

    queue_path: str = always("full path of the queue")
    resource_usage: Amounts = optional("sum of the allocations", NONE)
    running_applications: tuple[str, ...] = optional("ids of the applications that count as running", ())
    max_resources: Amounts = optional("limit on the allocations", NONE)
    max_applications: int = optional("limit on the number of running applications", 0)
    children: tuple[QueueUsage, ...] = optional("the queues below", ())


@attrs.frozen(kw_only=True)
class UserUsage:
    """Use of the cluster by a user."""

    user_name: str = always("user")
    groups: Texts = optional("by application id the group whose limit applies", NONE)
    queues: QueueUsage | None = optional("the root queue, with the queues below", None)


@attrs.frozen(kw_only=True)
class GroupUsage:
    """Use of the cluster by a group with a limit."""

    group_name: str = always("group; `*` is all groups without a limit of their own")
    applications: tuple[str, ...] = optional("ids of the applications to which the limit applies", ())
    queues: QueueUsage | None = optional("the root queue, with the queues below", None)


# -- placement -------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class RuleFilter:
    """Users and groups to whom a placement rule applies."""

    type: str = always("`allow` or `deny`")
    user_list: tuple[str, ...] = optional("users", ())
    group_list: tuple[str, ...] = optional("groups", ())
    user_exp: str = optional("regular expression for users", "")
    group_exp: str = optional("regular expression for groups", "")


@attrs.frozen(kw_only=True)
class Rule:
    """A placement rule."""

    name: str = always("name")
    parameters: Texts = optional("parameters, all as text", NONE)
    filter: RuleFilter | None = optional("users and groups to whom the rule applies", None)
    parent_rule: Rule | None = optional("rule that chooses the parent queue", None)


# -- history and health ----------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class AppHistory:
    """Number of running applications at a time."""

    timestamp: int = always("time (ns)")
    total_applications: str = always("number of running applications")


@attrs.frozen(kw_only=True)
class ContainerHistory:
    """Number of allocations at a time."""

    timestamp: int = always("time (ns)")
    total_containers: str = always("number of allocations")


@attrs.frozen(kw_only=True)
class HealthCheck:
    """Result of one check."""

    name: str = optional("name", "", name="Name")
    succeeded: bool = always("true if all is well", True, name="Succeeded")
    description: str = optional("subject of the check", "", name="Description")
    diagnosis_message: str = optional("finding", "", name="DiagnosisMessage")


@attrs.frozen(kw_only=True)
class Health:
    """Result of the health check."""

    healthy: bool = always("true if all checks succeeded", True, name="Healthy")
    health_checks: tuple[HealthCheck, ...] = optional("all checks", (), name="HealthChecks")


# -- errors and validation -------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Error:
    """An error."""

    status_code: int = always("status of the answer", name="status_code")
    message: str = optional("message", "")
    description: str = optional("same as the message", "")


@attrs.frozen(kw_only=True)
class ConfigProblem:
    """A problem of a configuration."""

    message: str = always("description")
    path: str = optional("key, as `partitions[0].queues[1].name`", "")
    line: int = optional("line, from 1", 0)
    column: int = optional("column, from 1", 0)


@attrs.frozen(kw_only=True)
class Validation:
    """Result of the validation of a configuration."""

    allowed: bool = always("true if the configuration is valid")
    reason: str = optional("all problems in one text", "")
    problems: tuple[ConfigProblem, ...] = optional("the problems", ())
    checksum: str = optional("checksum of a valid configuration", "")


# -- credentials -----------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class WhoAmI:
    """Credentials of a client."""

    name: str = always("name of the credentials")
    role: str = always("`view`, `operate` or `admin`")
    groups: tuple[str, ...] = always("groups, for the admin ACLs of queues", ())


@attrs.frozen(kw_only=True)
class LogLevels:
    """Log levels."""

    levels: Texts = always("level in force by area; `yunikorn` is that of areas without their own")
