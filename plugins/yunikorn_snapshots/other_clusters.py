"""Clusters that other schedulers run, as messages of a resource manager, and a scheduler made from these.

`scheduler_of` passes the messages to a new scheduler at their times, so that requests and applications have
the ages that they have in the cluster. It makes no decision.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TypeAlias

import attrs

from yunikorn.clock import ManualClock
from yunikorn.errors import ConfigError
from yunikorn.framework.registry import Registry
from yunikorn.interface.constants import FOREIGN_TAG
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    NewNodeInfo,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.scheduling.existing_allocations import ORDINARY
from yunikorn.text import number_of
from yunikorn_snapshots.snapshot_errors import SnapshotError
from yunikorn_snapshots.snapshot_file import SnapshotHeader
from yunikorn_snapshots.snapshots import take_snapshot

SHOWN = 10
"""Largest number of rejections that a message shows."""
Report: TypeAlias = NewNodeInfo | AddApplicationRequest | Allocation


@attrs.frozen
class OtherCluster:
    """State of a cluster at one time, as messages of its resource manager."""

    rm: str
    """Id of the resource manager."""
    time: int
    """Time of the state (ns)."""
    config: str
    """Text of the configuration."""
    reports: list[tuple[int, Report]]
    """Nodes, applications and allocations with their times (ns); one without a node is a request."""
    lacks: list[str] = attrs.field(factory=list)
    """Parts of the state that the source does not have."""
    reservations: list[tuple[str, str, str]] = attrs.field(factory=list)
    """Application, key of the request and node of each reservation."""
    predicates: tuple[str, ...] = ()
    """Predicates that hold for the nodes whatever the configuration says."""
    loading: str = ""
    """Configuration under which applications return into their queues; empty if it is `config`."""


class RejectionRecorder:
    """Callback of the resource manager: keeps the reasons of rejections by object."""

    def __init__(self, predicates: tuple[str, ...] = ()) -> None:
        """Begin with no rejections; the predicates are in force."""
        self.predicates_in_force = predicates
        self.applications: dict[str, str] = {}
        self.nodes: list[str] = []
        self.requests: list[str] = []

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Take rejections; called by the scheduler."""
        for app in response.rejected_applications:
            self.applications[app.application_id] = app.reason
        for node in response.rejected_nodes:
            self.nodes.append(f"node {node.node_id}: {node.reason}")
        for ask in response.rejected_allocations:
            if ask.application_id not in self.applications:
                self.requests.append(f"request {ask.allocation_key} of {ask.application_id}: {ask.reason}")


def scheduler_of(cluster: OtherCluster, registry: Registry) -> tuple[Scheduler, list[str]]:
    """Return a scheduler with the state of a cluster, on a clock at its time, and what it lacks.

    It lacks applications that its configuration rejects; their allocations only occupy nodes. Raises
    `SnapshotError` if anything else is rejected, or if the configuration cannot be used.
    """
    reports = sorted(((min(at, cluster.time), one) for at, one in cluster.reports), key=_time)
    clock = ManualClock(reports[0][0] if reports else cluster.time)
    scheduler, recorder = Scheduler(registry, clock), RejectionRecorder(cluster.predicates)
    try:
        request = RegisterResourceManagerRequest(cluster.rm, config=cluster.loading or cluster.config)
        scheduler.register_resource_manager(request, recorder)
        for at, together in groupby(reports, _time):
            clock.set(at)
            found = [one for _, one in together]
            scheduler.update(_first_update(cluster.rm, found))
            # Only now it is known which applications were rejected.
            scheduler.update(_second_update(cluster.rm, found, recorder))
        clock.set(cluster.time)
        if cluster.loading:
            scheduler.reload_configuration(cluster.rm, cluster.config)
    except ConfigError as error:
        raise SnapshotError(f"its configuration cannot be used: {error}") from error
    # Without its node, an allocation is rejected as well.
    if unusable := recorder.nodes or recorder.requests:
        raise SnapshotError(f"{len(unusable)} of its objects cannot be used: {_first(unusable)}")
    _reserve(scheduler, cluster)
    return scheduler, cluster.lacks + _without(recorder.applications)


def snapshot_of(cluster: OtherCluster, registry: Registry, path: Path) -> SnapshotHeader:
    """Write a snapshot of such a cluster; return its header, which names what the snapshot lacks."""
    scheduler, lacks = scheduler_of(cluster, registry)
    return take_snapshot(scheduler, path, [f"lacks {one}" for one in lacks])


def _reserve(scheduler: Scheduler, cluster: OtherCluster) -> None:
    """Reserve nodes as they are reserved there, at most one for requests of the same kind."""
    for app_id, key, node_id in cluster.reservations:
        for at in scheduler.partitions(cluster.rm):
            app, node = at.partition.applications.get(app_id), at.partition.nodes.get(node_id)
            ask = None if app is None else app.asks.get(key)
            if node is not None and ask is not None and ask.pending and ask.ask_class.reserving_ask is None:
                at.cycle.reservations.reserve(ask, node)


def _time(report: tuple[int, Report]) -> int:
    return report[0]


def _first_update(rm: str, reports: list[Report]) -> UpdateRequest:
    """Return the update with nodes and applications."""
    return UpdateRequest(
        rm,
        new_schedulable_nodes=[one for one in reports if isinstance(one, NewNodeInfo)],
        new_applications=[one for one in reports if isinstance(one, AddApplicationRequest)],
    )


def _second_update(rm: str, reports: list[Report], recorder: RejectionRecorder) -> UpdateRequest:
    """Return the update with requests and allocations; those of rejected applications only occupy nodes."""
    update = UpdateRequest(rm)
    for one in reports:
        if not isinstance(one, Allocation):
            continue
        if one.application_id not in recorder.applications:
            update.allocations.append(one)
        elif one.node_id:
            tags = {**one.allocation_tags, FOREIGN_TAG: ORDINARY}
            update.allocations.append(attrs.evolve(one, application_id="", allocation_tags=tags))
    return update


def _first(found: list[str]) -> str:
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more


def _without(rejected: dict[str, str]) -> list[str]:
    if not rejected:
        return []
    reasons = _first([f"{name}: {reason}" for name, reason in rejected.items()])
    count = number_of(len(rejected), "application")
    return [f"{count} that its configuration rejects, whose allocations only occupy nodes: {reasons}"]
