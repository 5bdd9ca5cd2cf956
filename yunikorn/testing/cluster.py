"""A small cluster: a resource manager that does as it is told, and a real scheduler on a steppable clock."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from yunikorn.clock import SECOND, ManualClock
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
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.objects.application import Application
from yunikorn.objects.partition import Partition
from yunikorn.objects.timeouts import Timeouts
from yunikorn.registry import Registry
from yunikorn.scheduling.explain import Explanation
from yunikorn.scheduling.plugin_failures import PluginFailure
from yunikorn.suggestions import suggest
from yunikorn.testing.samples import ApplicationSample, AskSample, NodeSample

RM_ID = "test"
TO_CONFIRM = (TerminationType.PREEMPTED_BY_SCHEDULER, TerminationType.TIMEOUT)
"""What counts as gone only when the resource manager says that it is."""


@attrs.frozen
class Placement:
    """A decision: a request has its place."""

    application: str
    ask: str
    node: str
    uuid: str


class Cluster:
    """A scheduler with one resource manager; nothing happens but what a test calls for.

    Raises `yunikorn.errors.ConfigError` with every problem when the configuration cannot be used.
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
        """The scheduler, for what this class has no method for."""
        self.placements: list[Placement] = []
        """All decisions ever taken, in their order."""
        self.preempted: list[Placement] = []
        """What was told to make way, oldest first; it has ended by the end of `run`."""
        self.events: list[EventRecord] = []
        """All events, oldest first."""
        self.rejected: dict[str, str] = {}
        """Why applications, requests (by key) and nodes were refused, by id."""
        self._running: dict[str, Placement] = {}
        self._leaving: list[AllocationRelease] = []
        self.scheduler.register_resource_manager(RegisterResourceManagerRequest(RM_ID, config=config), self)
        self.partition = next(iter(self.scheduler.partitions(RM_ID))).name
        """The partition in which everything happens: the first of the configuration."""
        self.add(*nodes)

    # -- what the scheduler says ----------------------------------------------------------------------

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Called by the scheduler: keep the books of what runs."""
        for allocation in response.new_allocations:
            placement = _placement(allocation)
            self.placements.append(placement)
            self._running[placement.uuid] = placement
        for release in response.released_allocations:
            if release.termination_type in TO_CONFIRM:
                self._leaving.append(release)
                if release.termination_type == TerminationType.PREEMPTED_BY_SCHEDULER:
                    self.preempted.append(self._running[release.uuid])
            else:
                self._running.pop(release.uuid, None)
        for app in response.rejected_applications:
            self.rejected[app.application_id] = app.reason
        for request in response.rejected_allocations:
            self.rejected[request.allocation_key] = request.reason
        for node in response.rejected_nodes:
            self.rejected[node.node_id] = node.reason

    def send_events(self, events: list[EventRecord]) -> None:
        """Called by the scheduler: remember what happened."""
        self.events.extend(events)

    # -- what a test says -----------------------------------------------------------------------------

    def add(self, *nodes: NodeSample) -> None:
        """Nodes join; raises `AssertionError` when one is refused."""
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
                raise AssertionError(f"node {node.id} was refused: {self.rejected[node.id]}")

    def change(self, node: NodeSample) -> None:
        """The node of this id has this capacity, these attributes and this much occupied from now on."""
        info = UpdateNodeInfo(node.id, NodeAction.UPDATE, dict(node.attributes), node.capacity, node.occupied)
        self._update(UpdateRequest(RM_ID, updated_nodes=[info]))

    def remove(self, node_id: str) -> None:
        """A node is gone, with all that ran on it."""
        self._update(UpdateRequest(RM_ID, updated_nodes=[UpdateNodeInfo(node_id, NodeAction.DECOMMISSION)]))

    def submit(self, app: ApplicationSample, *asks: AskSample) -> None:
        """An application is submitted, with its requests; a refused one is in `rejected`."""
        request = AddApplicationRequest(
            app.id,
            app.queue_name,
            self.partition,
            UserGroupInformation(app.user, list(app.groups)),
            dict(app.tags),
        )
        self._update(UpdateRequest(RM_ID, new_applications=[request], asks=self._asks(app.id, asks)))

    def request(self, app_id: str, *asks: AskSample) -> None:
        """An application that is there asks for more."""
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
                tags=dict(ask.tags),
            )
            for ask in asks
        ]

    def finish(self, app_id: str, *keys: str) -> int:
        """What runs of an application ends: all, or of these requests only; returns how many ended."""
        ending = [one for one in self.running(app_id) if not keys or one.ask in keys]
        for one in ending:
            del self._running[one.uuid]
        self._release([AllocationRelease(app_id, one.uuid, self.partition) for one in ending])
        return len(ending)

    def withdraw(self, app_id: str) -> None:
        """An application is taken away with all that it has."""
        self._update(
            UpdateRequest(RM_ID, remove_applications=[RemoveApplicationRequest(app_id, self.partition)])
        )

    def reload(self, config: str) -> bool:
        """Another configuration; returns whether it was another. Raises `ConfigError`."""
        return self.scheduler.reload_configuration(RM_ID, config)

    def _release(self, releases: list[AllocationRelease]) -> None:
        if releases:
            self._update(UpdateRequest(RM_ID, releases=AllocationReleasesRequest(releases, [])))

    def _update(self, request: UpdateRequest) -> None:
        self.scheduler.update(request)

    # -- making decisions and time happen -------------------------------------------------------------

    def run(self, most: int | None = None) -> list[Placement]:
        """Have the scheduler decide until it has nothing more to do, or `most` times; what it decided.

        What it preempts ends at once.
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
        """Let time pass; timers fire on the way, decisions wait for `run`."""
        end = self.clock.now() + round(seconds * SECOND)
        while (due := self.scheduler.next_timer()) is not None and due <= end:
            self.clock.set(max(due, self.clock.now()))
            self.scheduler.fire_timers()
        self.clock.set(end)

    # -- looking in -----------------------------------------------------------------------------------

    def running(self, app_id: str | None = None) -> list[Placement]:
        """What runs now, in the order in which it was placed; of one application if it is named."""
        return [one for one in self._running.values() if app_id in (None, one.application)]

    def state(self, app_id: str) -> str:
        """The state of an application, `Running` for example; raises `AssertionError` for an unknown one."""
        return self._find(app_id).state

    def queue_of(self, app_id: str) -> str:
        """The queue in which an application is, empty for one that was refused."""
        queue = self._find(app_id).queue
        return "" if queue is None else queue.path

    def why(self, app_id: str) -> dict[str, Explanation]:
        """Why each waiting request of an application waits, by its key; nothing for one that has ended."""
        if self._find(app_id).id not in self._objects().applications:
            return {}
        return self.scheduler.explain(RM_ID, self.partition, app_id)

    @property
    def failures(self) -> list[PluginFailure]:
        """What plugins did wrong so far, or reported by `context.report`."""
        return list(self.scheduler.failures)

    def _objects(self) -> Partition:
        at = self.scheduler.partition(RM_ID, self.partition)
        if at is None:
            raise AssertionError(f"partition {self.partition} is no more")
        return at.partition

    def _find(self, app_id: str) -> Application:
        applications = {**self._objects().ended, **self._objects().applications}
        if app_id not in applications:
            raise AssertionError(f"there is no application '{app_id}'{suggest(app_id, applications)}")
        return applications[app_id]

    def close(self) -> None:
        """Shut the scheduler down; its plugins are closed."""
        self.scheduler.close()


def _placement(allocation: Allocation) -> Placement:
    return Placement(
        allocation.application_id, allocation.allocation_key, allocation.node_id, allocation.uuid
    )
