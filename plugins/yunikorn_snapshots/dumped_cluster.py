"""A cluster as a state dump of Apache YuniKorn has it, as messages of its resource manager."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from yunikorn.interface.constants import (
    DOMAIN_K8S,
    FORCE_TAG,
    GROUP_META,
    KEY_NAMESPACE,
    NODE_PARTITION,
)
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    NewNodeInfo,
    UserGroupInformation,
)
from yunikorn.model.queue import RECOVERY
from yunikorn.resources import Resource, multiply, subtract, sum_of
from yunikorn.text import number_of
from yunikorn_snapshots.dumped_configuration import configuration_text, opened, partitions_of_dump
from yunikorn_snapshots.dumped_state import (
    DumpedApplication,
    DumpedNode,
    DumpedQueue,
    DumpedRequest,
    DumpedState,
    read_state_dump,
)
from yunikorn_snapshots.other_clusters import OtherCluster, Report

ENDED = frozenset({"Completed", "Failed", "Expired", "Rejected"})
NAMESPACE_TAG = "namespace"
"""Tag of an application that placement rules read."""
ALWAYS_LACKING = (
    "run times: a state dump does not say how long anything takes",
    "times of placements: an allocation is as old as its request",
    "conditions of requests on nodes, which the resource manager answers",
    "groups of users without applications, and the resolver of groups",
    "tags of applications except the namespace, and styles and time limits of gangs",
    "policies that protect single requests from preemption",
    "the order of requests that have the same time",
)
"""Parts that no state dump has."""


def cluster_of_dump(content: bytes, config: str = "") -> OtherCluster:
    """Return the cluster of a state dump, under another configuration if one is given.

    Raises `SnapshotError`.
    """
    state = read_state_dump(content)
    loading = ""
    if not config:
        partitions = partitions_of_dump(state)
        config, loading = configuration_text(partitions), configuration_text(opened(partitions))
    reports: list[tuple[int, Report]] = []
    kept = [app for app in state.applications if app.state not in ENDED]
    for app in kept:
        reports.extend(_application(app))
    for at in state.nodes:
        for node in at.nodes_info:
            reports.extend(_foreign(node, at.partition_name))
    earliest = min((time for time, _ in reports), default=state.timestamp)
    for at in state.nodes:
        reports.extend((earliest, _node(node, at.partition_name)) for node in at.nodes_info)
    lacks = [*ALWAYS_LACKING, *_also_lacking(state, kept)]
    reservations = list(_reservations(state, kept))
    return OtherCluster(
        state.resource_manager, state.timestamp, config, reports, lacks, reservations, loading=loading
    )


def _reservations(state: DumpedState, kept: Sequence[DumpedApplication]) -> Iterator[tuple[str, str, str]]:
    """Yield application, key and node of each reservation: nodes name them by key only."""
    owners = {one.allocation_key: app.application_id for app in kept for one in app.requests}
    for at in state.nodes:
        for node in at.nodes_info:
            for key in node.reservations:
                if key in owners:
                    yield owners[key], key, node.node_id


def _node(node: DumpedNode, partition: str) -> NewNodeInfo:
    # Since 1.7, what is occupied is the sum of the allocations of others.
    others = sum_of(one.resource for one in node.foreign_allocations)
    left = subtract(node.occupied, others)
    occupied = Resource({name: amount for name, amount in left.items() if amount > 0})
    attributes = {**node.attributes, NODE_PARTITION: partition}
    return NewNodeInfo(
        node.node_id, attributes, Resource(node.capacity), occupied, schedulable=node.schedulable
    )


def _foreign(node: DumpedNode, partition: str) -> Iterator[tuple[int, Report]]:
    for one in node.foreign_allocations:
        yield one.allocation_time, _allocation(one, partition)


def _application(app: DumpedApplication) -> Iterator[tuple[int, Report]]:
    size = sum_of(multiply(group.min_resource, group.count) for group in app.placeholder_data)
    tags = _tags(app)
    yield (
        app.submission_time,
        AddApplicationRequest(
            app.application_id,
            app.queue_name,
            app.partition,
            UserGroupInformation(app.user, list(app.groups)),
            tags,
            placeholder_ask=size,
        ),
    )
    # The time of a request is that of its pod, which may be older than its application.
    for one in (*_in_order(app.allocations), *_in_order(app.requests)):
        at = max(one.allocation_time or one.request_time, app.submission_time)
        yield at, _allocation(one, app.partition, app.application_id)


def _in_order(requests: Sequence[DumpedRequest]) -> list[DumpedRequest]:
    """Return requests in an order that does not depend on that of the dump, which has none."""
    return sorted(requests, key=lambda one: (one.request_time, one.allocation_key))


def _tags(app: DumpedApplication) -> dict[str, str]:
    every = (one.allocation_tags for one in (*app.requests, *app.allocations))
    spaces = {tags[SPACE] for tags in every if SPACE in tags}
    tags = {NAMESPACE_TAG: spaces.pop()} if len(spaces) == 1 else {}
    return {**tags, FORCE_TAG: "true"} if app.queue_name == RECOVERY else tags


SPACE = f"{DOMAIN_K8S}{GROUP_META}{KEY_NAMESPACE}"
"""Tag of a request with the namespace of its pod."""


def _allocation(one: DumpedRequest, partition: str, app_id: str = "") -> Allocation:
    return Allocation(
        one.allocation_key,
        app_id,
        node_id=one.node_id,
        resource_per_alloc=Resource(one.resource),
        partition_name=partition,
        priority=int(one.priority),
        allocation_tags=one.allocation_tags,
        task_group_name=one.task_group_name,
        placeholder=one.placeholder,
        originator=one.originator,
    )


def _also_lacking(state: DumpedState, kept: Sequence[DumpedApplication]) -> Iterator[str]:
    """Yield what this dump has, and a snapshot of it does not."""
    counts = {
        "preemption in progress": sum(one.preempted for app in kept for one in app.allocations),
        "queue that drains": sum(queue.status == "Draining" for queue in _queues(state.queues)),
        "application that fails": sum(app.state == "Failing" for app in kept),
    }
    for what, count in counts.items():
        if count:
            yield f"the state of {number_of(count, what)}, taken for a usual one"


def _queues(queues: Iterable[DumpedQueue]) -> Iterator[DumpedQueue]:
    for queue in queues:
        yield queue
        yield from _queues(queue.children)
