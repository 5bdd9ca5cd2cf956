"""Test cluster: a real scheduler on a manual clock, a minimal resource manager, and a factory of clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias

import attrs

from yunikorn.accounting.partition import Partition
from yunikorn.api import Plugin
from yunikorn.clock import SECOND, ManualClock
from yunikorn.explain.explanations import Explanation
from yunikorn.framework.plugin_failures import PluginFailure
from yunikorn.framework.registry import Registry
from yunikorn.interface.constants import NODE_PARTITION
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationRelease,
    AllocationReleasesRequest,
    EventRecord,
    NewNodeInfo,
    NodeAction,
    PreemptionMode,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.model.context import Timeouts
from yunikorn.text import suggest
from yunikorn_testing.offering import registry_with
from yunikorn_testing.samples import ApplicationSample, AskSample, NodeSample

RM_ID = "test"
TO_CONFIRM = (
    TerminationType.PREEMPTED_BY_SCHEDULER,
    TerminationType.TIMEOUT,
    TerminationType.PLACEHOLDER_REPLACED,
)
"""Terminations that are final only after the resource manager confirms them."""


@attrs.frozen
class Placement:
    """Allocation of a request on a node."""

    application: str
    ask: str
    node: str
    uuid: str
    mode: str = "end"
    """Way in which the allocation made room, if it was preempted: `end`, `requeue` or `suspend`."""


class Cluster:
    """Scheduler with one resource manager, which acts only when a test calls a method.

    Raises `yunikorn.errors.ConfigError` with all problems if the configuration is invalid.
    """

    def __init__(
        self,
        config: str,
        registry: Registry,
        nodes: Iterable[NodeSample] = (),
        timeouts: Timeouts | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.scheduler = Scheduler(registry, self.clock, timeouts)
        """Scheduler, for operations without a method of this class."""
        self.placements: list[Placement] = []
        """All allocations made so far, in order."""
        self.preempted: list[Placement] = []
        """Preempted allocations, oldest first; each has ended when `run` returns."""
        self.events: list[EventRecord] = []
        self.rejected: dict[str, str] = {}
        """Reasons of rejections, by id of the application or node or by key of the request."""
        self._running: dict[str, Placement] = {}
        self._leaving: list[AllocationRelease] = []
        request = RegisterResourceManagerRequest(RM_ID, config=config, preemption_modes=[*PreemptionMode])
        self.scheduler.register_resource_manager(request, self)
        self.partition = next(iter(self.scheduler.partitions(RM_ID))).name
        """Name of the partition that all methods use: the first of the configuration."""
        self.add(*nodes)

    # -- callbacks of the scheduler -------------------------------------------------------------------

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Record the running allocations; called by the scheduler."""
        for allocation in response.new_allocations:
            placement = _placement(allocation)
            self.placements.append(placement)
            self._running[placement.uuid] = placement
        for release in response.released_allocations:
            if release.termination_type in TO_CONFIRM:
                self._leaving.append(release)
                if release.termination_type == TerminationType.PREEMPTED_BY_SCHEDULER:
                    mode = release.preemption_mode.name.lower()
                    self.preempted.append(attrs.evolve(self._running[release.uuid], mode=mode))
            else:
                self._running.pop(release.uuid, None)
        for app in response.rejected_applications:
            self.rejected[app.application_id] = app.reason
        for request in response.rejected_allocations:
            self.rejected[request.allocation_key] = request.reason
        for node in response.rejected_nodes:
            self.rejected[node.node_id] = node.reason

    def send_events(self, events: list[EventRecord]) -> None:
        """Record events; called by the scheduler."""
        self.events.extend(events)

    # -- operations of the resource manager -----------------------------------------------------------

    def add(self, *nodes: NodeSample) -> None:
        """Add nodes. Raises `AssertionError` if a node is rejected."""
        infos = [
            NewNodeInfo(
                node.id,
                {NODE_PARTITION: self.partition, **node.attributes},
                node.capacity,
                node.occupied,
            )
            for node in nodes
        ]
        if infos:
            self._update(UpdateRequest(RM_ID, new_schedulable_nodes=infos))
        for node in nodes:
            if node.id in self.rejected:
                raise AssertionError(f"node {node.id} was rejected: {self.rejected[node.id]}")

    def change(self, node: NodeSample) -> None:
        """Update the capacity, attributes and occupied resources of the node with the same id."""
        info = UpdateNodeInfo(node.id, NodeAction.UPDATE, dict(node.attributes), node.capacity, node.occupied)
        self._update(UpdateRequest(RM_ID, updated_nodes=[info]))

    def remove(self, node_id: str) -> None:
        """Remove a node with its allocations."""
        self._update(UpdateRequest(RM_ID, updated_nodes=[UpdateNodeInfo(node_id, NodeAction.DECOMMISSION)]))

    def submit(self, app: ApplicationSample, *asks: AskSample) -> None:
        """Submit an application with its requests; rejections are recorded in `rejected`."""
        request = AddApplicationRequest(
            app.id,
            app.queue_name,
            self.partition,
            UserGroupInformation(app.user, list(app.groups)),
            dict(app.tags),
            placeholder_ask=app.gang_size,
            gang_scheduling_style=app.gang,
        )
        self._update(UpdateRequest(RM_ID, new_applications=[request], asks=self._asks(app.id, asks)))

    def request(self, app_id: str, *asks: AskSample) -> None:
        """Add requests to an application."""
        self._update(UpdateRequest(RM_ID, asks=self._asks(app_id, asks)))

    def _asks(self, app_id: str, asks: Iterable[AskSample]) -> list[AllocationAsk]:
        return [
            AllocationAsk(
                ask.key,
                app_id,
                self.partition,
                ask.resource,
                ask.count,
                ask.priority,
                execution_timeout_ms=ask.execution_timeout // 1_000_000,
                tags=dict(ask.tags),
                task_group_name=ask.task_group,
                placeholder=ask.placeholder,
                originator=ask.originator,
            )
            for ask in asks
        ]

    def finish(self, app_id: str, *keys: str) -> int:
        """End allocations of an application, all or those of the requests `keys`; return their number."""
        ending = [one for one in self.running(app_id) if not keys or one.ask in keys]
        for one in ending:
            del self._running[one.uuid]
        self._release([AllocationRelease(app_id, one.uuid, self.partition) for one in ending])
        return len(ending)

    def withdraw(self, app_id: str) -> None:
        """Remove an application with its requests and allocations."""
        self._update(
            UpdateRequest(RM_ID, remove_applications=[RemoveApplicationRequest(app_id, self.partition)])
        )

    def reload(self, config: str) -> bool:
        """Load a configuration; return False if it equals the current one. Raises `ConfigError`."""
        return self.scheduler.reload_configuration(RM_ID, config)

    def _release(self, releases: list[AllocationRelease]) -> None:
        if releases:
            self._update(UpdateRequest(RM_ID, releases=AllocationReleasesRequest(releases, [])))

    def _update(self, request: UpdateRequest) -> None:
        self.scheduler.update(request)

    # -- scheduling and time --------------------------------------------------------------------------

    def run(self, most: int | None = None) -> list[Placement]:
        """Schedule until there is nothing left to do, or up to `most` allocations; return the allocations.

        Preempted allocations, and placeholders that are replaced, end at once.
        """
        before = len(self.placements)
        while most is None or len(self.placements) - before < most:
            left = None if most is None else most - (len(self.placements) - before)
            decided = self.scheduler.schedule(left)
            leaving, self._leaving = self._leaving, []
            for release in leaving:
                self._running.pop(release.uuid, None)
            self._release(leaving)
            if not decided and not leaving:
                break
        return self.placements[before:]

    def advance(self, seconds: float) -> None:
        """Advance the clock and fire due timers, without scheduling."""
        end = self.clock.now() + round(seconds * SECOND)
        while (due := self.scheduler.next_timer()) is not None and due <= end:
            self.clock.set(max(due, self.clock.now()))
            self.scheduler.fire_timers()
        self.clock.set(end)

    # -- inspection -----------------------------------------------------------------------------------

    def running(self, app_id: str | None = None) -> list[Placement]:
        """Return the running allocations in order of placement; of one application if `app_id` is given."""
        return [one for one in self._running.values() if app_id in (None, one.application)]

    def state(self, app_id: str) -> str:
        """Return the state of an application, such as `Running`. Raises `AssertionError` if it is unknown."""
        return self._find(app_id).state

    def queue_of(self, app_id: str) -> str:
        """Return the path of an application's queue; empty if the application was rejected."""
        queue = self._find(app_id).queue
        return "" if queue is None else queue.path

    def why(self, app_id: str) -> dict[str, Explanation]:
        """Return why requests of an application are pending, by key; empty for an ended application."""
        if self._find(app_id).id not in self._objects().applications:
            return {}
        return self.scheduler.explain(RM_ID, self.partition, app_id)

    @property
    def failures(self) -> list[PluginFailure]:
        """Failures of plugins so far, including those reported with `context.report`."""
        return list(self.scheduler.failures)

    def _objects(self) -> Partition:
        at = self.scheduler.partition(RM_ID, self.partition)
        if at is None:
            raise AssertionError(f"partition {self.partition} was removed")
        return at.partition

    def _find(self, app_id: str) -> Application:
        applications = {**self._objects().ended, **self._objects().applications}
        if app_id not in applications:
            raise AssertionError(f"there is no application '{app_id}'{suggest(app_id, applications)}")
        return applications[app_id]

    def close(self) -> None:
        """Shut down the scheduler, which closes its plugins."""
        self.scheduler.close()


def _placement(allocation: Allocation) -> Placement:
    return Placement(
        allocation.application_id, allocation.allocation_key, allocation.node_id, allocation.uuid
    )


Faults = Literal["fail", "expected"]

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
"""
"""Default configuration of a cluster: one queue, `root.default`, open to all users."""


class Clusters:
    """Factory of clusters that closes all of them at the end of a test."""

    def __init__(self) -> None:
        self._made: list[tuple[Cluster, Faults]] = []

    def __call__(
        self,
        config: str | Path = QUEUES,
        *nodes: NodeSample,
        plugins: Sequence[type[Plugin] | ModuleType] | None = None,
        registry: Registry | None = None,
        failures: Faults = "fail",
    ) -> Cluster:
        """Return a cluster with these nodes; `config` is the text of a configuration, or the path of a file.

        By default the cluster uses the installed plugins. With `plugins` it uses the default plugins and
        these, without installation. `failures="expected"` is for tests in which a plugin fails on purpose.
        """
        if registry is None:
            registry = Registry.load() if plugins is None else registry_with(*plugins)
        elif plugins is not None:
            raise TypeError("give either plugins or a registry, not both")
        text = config.read_text("utf-8") if isinstance(config, Path) else config
        cluster = Cluster(text, registry, nodes)
        self._made.append((cluster, failures))
        return cluster

    def close(self) -> None:
        """Close all clusters. Raises `AssertionError` if a plugin failed unexpectedly."""
        for cluster, _ in self._made:
            cluster.close()
        found = [
            f"{failure.message} ({failure.count} times)"
            for cluster, expected in self._made
            if expected == "fail"
            for failure in cluster.failures
            if not failure.last
        ]
        self._made.clear()
        if found:
            raise AssertionError(
                "\n".join(["plugins failed; the scheduler contained the failures and continued:", *found])
            )


MakeScheduler: TypeAlias = Clusters
"""Type of the fixture `scheduler`."""
