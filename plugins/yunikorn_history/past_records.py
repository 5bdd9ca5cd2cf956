"""Records of a history as queries return them, and as REST and the commands show them.

Times are milliseconds since 1970, durations milliseconds. Amounts are those of the core; *service* is
amounts times milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from yunikorn_plugins.run_time_groups import GROUPS as GROUPS
from yunikorn_service.fields import NONE, always, optional

Amounts = Mapping[str, int]
Means = Mapping[str, float]


@attrs.frozen(kw_only=True)
class PastState:
    """A state of an application, and since when."""

    time: int = always("time (ms since 1970)")
    state: str = always("state")
    reason: str = optional("reason", "")


@attrs.frozen(kw_only=True)
class PastApplication:
    """An application, from one submission to its end."""

    id: int = always("number of this submission in the history")
    rm_id: str = optional("id of the resource manager", "", name="rmID")
    partition: str = always("name of the partition")
    application_id: str = always("id of the application", name="applicationID")
    queue: str = always("full path of the queue")
    user: str = always("user")
    groups: tuple[str, ...] = optional("groups of the user, the primary group first", ())
    template: str = optional("id without what differs from run to run", "")
    tags: Mapping[str, str] = optional("tags that the history keeps", NONE)
    gang: str = optional("style of gang scheduling", "")
    gang_timeout: int | None = optional("timeout of the placeholders (ms)", None)
    submitted: int = always("time of the submission (ms since 1970)")
    started: int | None = optional("time of the first allocation (ms since 1970)", None)
    ended: int | None = optional("time of the end (ms since 1970)", None)
    state: str = always("latest state")
    reason: str = optional("reason of the latest state", "")
    states: tuple[PastState, ...] = optional("all states, oldest first", ())
    waits: Mapping[str, int] = optional("time with a waiting request, by cause (ms)", NONE)
    longest_wait: str = optional("cause of the longest wait", "")
    tasks: int = always("number of allocations", 0)
    preempted: int = optional("number of those that were preempted", 0)
    service: Amounts = optional("service of ended allocations", NONE)
    lost_service: Amounts = optional("service of preempted allocations", NONE)
    placeholder_service: Amounts = optional("service of ended placeholders", NONE)


@attrs.frozen(kw_only=True)
class PastSize:
    """Size of an allocation before it was resized."""

    until: int = always("time of the change (ms since 1970)")
    resource: Amounts = always("size")


@attrs.frozen(kw_only=True)
class PastTask:
    """An allocation."""

    id: int = always("number of the allocation in the history")
    application: int = always("number of the application's submission in the history")
    application_id: str = always("id of the application", name="applicationID")
    queue: str = always("full path of the queue")
    user: str = always("user")
    allocation_key: str = always("key of the request")
    node_id: str = always("id of the node", name="nodeID")
    resource: Amounts = always("latest size", NONE)
    sizes: tuple[PastSize, ...] = optional("earlier sizes", ())
    task_group: str = optional("task group", "")
    priority: int = optional("priority", 0)
    requested: int = always("time of the request (ms since 1970)")
    placed: int = always("time of the allocation (ms since 1970)")
    ended: int | None = optional("time of the end (ms since 1970)", None)
    exit: str = optional("reason of the end, such as `STOPPED_BY_RM`; absent while it runs", "")
    message: str = optional("message of the end", "")
    preempted_by: tuple[str, ...] = optional(
        "application and key of the request for which it was preempted, or the cause", ()
    )
    placeholder: bool = optional("true for a placeholder", False)
    recovered: bool = optional("true if the resource manager reported it after a restart", False)
    preempted: bool = optional("true if it was preempted", False)
    originator: bool = optional("true for the allocation that began the application", False)
    is_end_estimated: bool = optional("true if it ended at this time at the latest", False)


USUAL_GROUPS = ("user", "template")


@attrs.frozen(kw_only=True)
class PastRunTimes:
    """Run times of the ended tasks of a user, queue, template or size."""

    user: str = optional("user", "")
    queue: str = optional("full path of the queue", "")
    template: str = optional("id of the application without what differs from run to run", "")
    resource: Amounts = optional("size", NONE)
    tasks: int = always("number of tasks")
    p50: int = always("run time that half of the tasks did not exceed (ms)")
    p90: int = always("run time that 90 % did not exceed (ms)")
    p95: int = always("run time that 95 % did not exceed (ms)")
    p99: int = always("run time that 99 % did not exceed (ms)")


@attrs.frozen(kw_only=True)
class SeriesPoint:
    """Use and waits of a queue, user, node or partition in a minute, hour or day."""

    time: int = always("beginning (ms since 1970)")
    bucket: str = always("`minute`, `hour` or `day`")
    name: str = optional("queue, user or node; absent for the partition", "")
    rm_id: str = optional("id of the resource manager; absent for all, from version 1", "", name="rmID")
    partition: str = optional("name of the partition; absent for all, from version 1", "")
    n: int = always("number of samples", 0)
    used: Means = always("mean of what was allocated", NONE)
    pending: Means = optional("mean of what was requested and not allocated", NONE)
    guaranteed: Amounts = optional("latest guarantee", NONE)
    max: Amounts = optional("latest quota", NONE)
    capacity: Amounts = optional("latest size of the node or partition", NONE)
    mean: Mapping[str, Means] = optional(
        "mean `capacity` and `guaranteed`, of those that are not the latest ones", NONE
    )
    running: float = optional("mean number of running applications", 0)
    waiting: float = optional("mean number of waiting applications", 0)
    started: int = optional("number of tasks that were placed", 0)
    waits: Mapping[str, int] = optional("number of these by time from request to placement (up to, ms)", NONE)
    preempted: int = optional("number of tasks that were preempted", 0)
    drained: float = optional("part of the samples in which the node was not schedulable", 0)
    nodes: float = optional("number of nodes", 0)
    idle: Mapping[str, Amounts] = optional(
        "service of what was free while requests waited, by cause of the wait", NONE
    )


@attrs.frozen(kw_only=True)
class UsagePoint:
    """Exact service of a user in a leaf queue in an hour or day."""

    time: int = always("beginning (ms since 1970)")
    bucket: str = always("`hour` or `day`")
    rm_id: str = optional("id of the resource manager", "", name="rmID")
    partition: str = always("name of the partition", "")
    queue: str = always("full path of the queue")
    user: str = always("user")
    groups: tuple[str, ...] = optional("groups of the user, the primary group first", ())
    tags: Mapping[str, str] = optional("tags that the history keeps", NONE)
    service: Amounts = always("service of all allocations", NONE)
    placeholder: Amounts = optional("part of placeholders", NONE)
    lost: Amounts = optional("part of other allocations that were preempted later", NONE)
    started: int = optional("number of tasks that were placed", 0)
    ended: int = optional("number of tasks that ended", 0)
    preempted: int = optional("number of tasks that were preempted", 0)


@attrs.frozen(kw_only=True)
class PastNodeChange:
    """Change of a node."""

    time: int = always("time (ms since 1970)")
    kind: str = always("kind")
    text: str = optional("details", "")


@attrs.frozen(kw_only=True)
class PastNode:
    """A node, from its addition to its removal."""

    id: int = always("number of the node in the history")
    node_id: str = always("id of the node", name="nodeID")
    rm_id: str = optional("id of the resource manager", "", name="rmID")
    partition: str = always("name of the partition")
    joined: int = always("time of the addition (ms since 1970)")
    left: int | None = optional("time of the removal (ms since 1970)", None)
    capacity: Amounts = always("latest size", NONE)
    attributes: Mapping[str, str] = optional("attributes", NONE)
    changes: tuple[PastNodeChange, ...] = optional("changes, oldest first", ())


@attrs.frozen(kw_only=True)
class PastConfig:
    """A configuration, and since when it was in use."""

    id: int = always("number of the configuration in the history")
    time: int = always("time (ms since 1970)")
    rm_id: str = optional("resource manager with a configuration of its own", "", name="rmID")
    policy_group: str = optional("policy group", "")
    checksum: str = always("checksum of the text")
    source: str = optional("file, ConfigMap, REST or resource manager", "")
    by: str = optional("who changed it", "")
    text: str = optional("text; absent in lists", "")


@attrs.frozen(kw_only=True)
class PastAction:
    """A change that an operator made or was refused."""

    id: int = always("number of the action in the history")
    time: int = always("time (ms since 1970)")
    operator: str = optional("name of the credential", "")
    role: str = optional("role of the credential", "")
    address: str = optional("address of the client", "")
    what: str = always("action, such as `stop queue`")
    target: Any = optional("what it was about", None)
    outcome: str = always("`done`, `failed` or `refused`")
    before: Any = optional("value before", None)
    after: Any = optional("value after", None)
    reason: str = optional("reason", "")


@attrs.frozen(kw_only=True)
class PastFault:
    """Failure of a plugin, and how often it occurred."""

    id: int = always("number of the failure in the history")
    plugin: str = always("plugin")
    message: str = always("message")
    first: int = always("time of the first occurrence (ms since 1970)")
    latest: int = always("time of the latest occurrence (ms since 1970)")
    count: int = always("number of occurrences")


@attrs.frozen(kw_only=True)
class PastMatch:
    """A record that a search has found."""

    kind: str = always("`application`, `queue`, `user`, `node`, `task`, `configuration`, `action` or `fault`")
    name: str = always("name; of an action, what it was; of a fault, the plugin")
    id: int = always("number in the history; of a task, that of the application's submission")
    text: str = optional("application of a task; who made a change; message of a fault", "")
    time: int | None = optional("time of a configuration, action or fault (ms since 1970)", None)


@attrs.frozen(kw_only=True)
class PastRun:
    """A run of the scheduler; between the end of one and the start of the next, nothing was observed."""

    id: int = always("number of the run")
    started: int = always("time of the start (ms since 1970)")
    seen: int = always("latest time at which it was alive (ms since 1970)")
    ended: int | None = optional("time of the end (ms since 1970)", None)
    version: str = always("version of the scheduler")
    host: str = always("name of the machine")


@attrs.frozen(kw_only=True)
class HistoryGap:
    """Time in which events were lost, because the database was away for too long."""

    id: int = always("number of the gap")
    since: int = always("beginning (ms since 1970)")
    until: int = always("end (ms since 1970)")
    lost: int = always("number of events")
