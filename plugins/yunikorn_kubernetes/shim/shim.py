"""The shim of one cluster: a resource manager of the core, moved by changes of objects and by responses.

Nothing polls. Changes of one turn of the event loop reach the core as one update, and a response is applied
in the turn in which it arrives. All methods are called in one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

import attrs

from yunikorn.clock import Clock
from yunikorn.errors import CONTAINED, YunikornError
from yunikorn.interface.messages import (
    EventRecord,
    EventRecordType,
    RegisterResourceManagerRequest,
    UpdateContainerSchedulingStateRequest,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.objects import Node, Pod
from yunikorn_kubernetes.resource_claims.claim_binder import ClaimBinder
from yunikorn_kubernetes.shim.application_flow import ApplicationFlow
from yunikorn_kubernetes.shim.batches import Batches
from yunikorn_kubernetes.shim.conditions import Conditions
from yunikorn_kubernetes.shim.deletions import Deletions
from yunikorn_kubernetes.shim.failures import PodFailures
from yunikorn_kubernetes.shim.gangs import Placeholders
from yunikorn_kubernetes.shim.node_flow import NodeFlow
from yunikorn_kubernetes.shim.pod_flow import PodFlow
from yunikorn_kubernetes.shim.pod_group_conditions import PodGroupConditions
from yunikorn_kubernetes.shim.responses import Responses
from yunikorn_kubernetes.shim.shim_cluster import ShimCluster
from yunikorn_kubernetes.shim.shim_states import RUNNING, SCHEDULER, fire
from yunikorn_kubernetes.shim.task_flow import TaskFlow
from yunikorn_kubernetes.shim.translator import Translator
from yunikorn_kubernetes.shim.workload_gangs import TIMEOUT, WorkloadGangs
from yunikorn_kubernetes.translation.pod_applications import is_placeholder, is_terminated
from yunikorn_kubernetes.volumes.volume_binder import VolumeBinder
from yunikorn_kubernetes.workloads.workload_readings import WorkloadReadings
from yunikorn_service.async_scheduler import AsyncScheduler

_log = logging.getLogger("yunikorn.kubernetes")

PREDICATES = (
    "node-unschedulable",
    "node-name",
    "taint-toleration",
    "node-affinity",
    "node-ports",
    "volume-restrictions",
    "node-volume-limits",
    "volume-binding",
    "volume-zone",
    "pod-topology-spread",
    "inter-pod-affinity",
    "dynamic-resources",
)
"""Predicates in force for the nodes of a cluster, in the order of kube-scheduler."""


@attrs.frozen
class Registration:
    """Data of the registration with the core."""

    rm_id: str
    policy_group: str = ""
    config: str = ""
    """Text of the configuration; empty if the core has configurations of its own."""
    extra_config: Mapping[str, str] = attrs.Factory(dict)
    version: str = ""


class World(Protocol):
    """Objects of the cluster at one moment, for a recovery."""

    def nodes(self) -> Iterable[Node]:
        """Return all nodes."""
        ...

    def pods(self) -> Iterable[Pod]:
        """Return all pods."""
        ...

    def flush(self) -> None:
        """Report now what a change of other objects means, and what would be reported in a later turn."""
        ...


class Shim:
    """Resource manager for one Kubernetes cluster."""

    def __init__(
        self,
        core: AsyncScheduler,
        writes: QueuedWrites,
        events: PodEvents,
        volumes: VolumeBinder,
        translation: Translator,
        clock: Clock,
        registration: Callable[[], Registration],
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        readings: WorkloadReadings | None = None,
        gang_timeout: float = TIMEOUT,
        claim_binder: ClaimBinder | None = None,
    ) -> None:
        """Create a shim that is not registered; `registration` is asked at each registration.

        Without `readings`, no gang is taken from the owner of its pods; without `claim_binder`, pods have no
        claims to devices.
        """
        self._core, self._registration, self._events = core, registration, events
        self.rm_id = registration().rm_id
        self.state = SCHEDULER.initial
        self._wake = asyncio.Event()
        self._world: World | None = None
        self._resync_wanted = False
        self._backlog: list[Callable[[], object]] | None = None
        """Changes that arrive during a recovery; None otherwise."""
        self.batches = Batches(self.rm_id, self._wake.set)
        self.cluster = ShimCluster(self.batches, translation)
        self._deletions = Deletions(writes, clock, sleep)
        self._failures = PodFailures(writes, events, sleep)
        self.conditions = Conditions(self.cluster, core, writes, events, self.rm_id, sleep)
        self._tasks = TaskFlow(
            self.cluster,
            writes,
            volumes,
            self._deletions,
            events,
            self.conditions,
            lambda task: self._applications.task_bound(task),
            claim_binder,
        )
        self._claim_binder = claim_binder
        self._placeholders = Placeholders(
            self.cluster,
            writes,
            self._deletions,
            events,
            clock,
            lambda app, reason: self._applications.placeholders_failed(app, reason),
        )
        self._applications = ApplicationFlow(
            self.cluster,
            self._tasks,
            self._placeholders,
            self._failures,
            events,
            self.conditions,
            lambda app_id, reason: self.workloads.refused(app_id, reason),
        )
        self._nodes = NodeFlow(self.cluster, self._applications, self._tasks, events)
        readings = readings if readings is not None else WorkloadReadings.of_nothing()
        self.workloads = WorkloadGangs(
            self.cluster,
            readings,
            writes,
            events,
            self._look_at,
            PodGroupConditions({} if readings.groups is None else readings.groups, writes, clock),
            timeout=gang_timeout,
        )
        self._pods = PodFlow(self.cluster, self._applications, self._tasks, writes, events, self.workloads)
        self._responses = Responses(
            self.cluster, self._applications, self._tasks, self._nodes, self._deletions, self._want_resync
        )

    @property
    def label(self) -> str:
        """Name of the shim in messages."""
        return f"resource manager {self.rm_id}"

    def on_state_change(self, before: str, reason: str) -> None:
        """Log a change of the state."""
        _log.info("%s: %s -> %s", self.label, before, self.state)

    # -- start and end ------------------------------------------------------------------------------

    async def start(self, world: World) -> None:
        """Register with the core, and report the whole cluster; the core decides from then on.

        `world` is read again whenever the core requests a new report. Raises `YunikornError` if the core
        refuses the registration.
        """
        self._world = world
        fire(SCHEDULER, self, "RegisterScheduler")
        try:
            await self._register()
        except YunikornError:
            fire(SCHEDULER, self, "RegisterSchedulerFailed")
            raise
        fire(SCHEDULER, self, "RegisterSchedulerSucceed")
        fire(SCHEDULER, self, "RecoverScheduler")
        await self._recover(world)
        fire(SCHEDULER, self, "RecoverSchedulerSucceed")

    async def _register(self) -> None:
        given = self._registration()
        request = RegisterResourceManagerRequest(
            given.rm_id, given.version, given.policy_group, given.config, dict(given.extra_config)
        )
        await self._core.register_resource_manager(request, ShimCallback(self))

    async def _recover(self, world: World) -> None:
        """Report nodes, then pods in the order of `in_order_of_recovery`, as one update.

        Changes that arrive meanwhile follow, so that no object is set back to an earlier version.
        """
        if self._claim_binder is not None:
            self._claim_binder.recover()
        backlog: list[Callable[[], object]] = []
        self._backlog = backlog
        nodes, known = [*world.nodes()], [*world.pods()]
        self._applications.recover_from(pod for pod in known if is_terminated(pod))
        self.workloads.recover_from(known)
        pods = in_order_of_recovery(pod for pod in known if not is_terminated(pod))
        for node in nodes:
            _contained(partial(self._nodes.changed, node), f"node {node.metadata.name}")
        for number, pod in enumerate(pods, 1):
            _contained(partial(self._pods.changed, pod), f"pod {pod.metadata.namespace}/{pod.metadata.name}")
            if number % RECOVERED_AT_ONCE == 0:
                await asyncio.sleep(0)
        request = self.batches.take()
        self._backlog = None
        for change in backlog:
            _contained(change, "a change during the recovery")
        if request is not None:
            await self._core.update(request)

    async def run(self) -> None:
        """Send changes to the core until this is cancelled; `conditions.run` has to run, too."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._resync_wanted:
                await self._report_again()
            while (request := self._next_batch()) is not None:
                await self._core.update(request)

    def _next_batch(self) -> UpdateRequest | None:
        if self._world is not None:
            # The end of a pod, and that its devices are taken until they are given back, belong together.
            self._world.flush()
        return self.batches.take()

    def _want_resync(self) -> None:
        self._resync_wanted = True
        self._wake.set()

    async def _report_again(self) -> None:
        """Begin a new session with the core, which has lost responses or wants a new report."""
        assert self._world is not None
        self._resync_wanted = False
        _log.warning("the core requests a new report of the cluster")
        self._tasks.close()
        self._placeholders.close()
        self.cluster.clear()
        self._pods.clear()
        self.workloads.clear()
        self.batches.take()
        await self._register()
        await self._recover(self._world)

    def close(self) -> None:
        """End all work in the background."""
        self._tasks.close()
        self._deletions.close()
        self._failures.close()
        self._placeholders.close()
        self.workloads.close()

    # -- changes of the cluster ---------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """True once the cluster has been reported."""
        return self.state == RUNNING

    def _apply(self, change: Callable[[], object]) -> None:
        if self._backlog is None:
            change()
        else:
            self._backlog.append(change)

    def pod_changed(self, pod: Pod) -> None:
        """Apply a new or changed pod."""
        self._apply(lambda: self._pods.changed(pod))

    def pod_removed(self, pod: Pod) -> None:
        """Apply the deletion of a pod."""
        self._apply(lambda: self._pods.removed(pod))

    def pod_group_changed(self, group: str) -> None:
        """Apply that a PodGroup, `namespace/name`, was created or deleted."""
        self._apply(lambda: self.workloads.group_changed(group))

    def _look_at(self, pods: Iterable[Pod]) -> None:
        given = [*pods]
        self._apply(lambda: self._pods.look_at(given))

    def node_changed(self, node: Node) -> None:
        """Apply a new or changed node."""
        self._apply(lambda: self._nodes.changed(node))

    def node_removed(self, node: Node) -> None:
        """Apply the deletion of a node."""
        self._apply(lambda: self._nodes.removed(node.metadata.name))

    def refresh(self, uids: Iterable[str]) -> None:
        """Recompute the requests of these pods, after a change of objects that they refer to."""
        given = [*uids]
        self._apply(lambda: self._pods.refresh_all(given))

    # -- notices of the core ------------------------------------------------------------------------

    def apply(self, response: UpdateResponse) -> None:
        """Apply a response of the core."""
        self._responses.apply(response)

    def show(self, events: Iterable[EventRecord]) -> None:
        """Show events of the core about requests as events of their pods."""
        for event in events:
            if event.type == EventRecordType.REQUEST:
                task = self.cluster.tasks.get(event.object_id)
                if task is not None and event.message:
                    self._events.pod(task.pod, "Informational", "Informational", event.message)


def _contained(change: Callable[[], object], what: str) -> None:
    """Apply a change of one object, whose bug must not keep all others from being scheduled."""
    try:
        change()
    except CONTAINED:
        _log.exception("bug: %s was not handled", what)


RECOVERED_AT_ONCE = 500
"""Pods that are reported in a recovery before the event loop may do other work."""


def in_order_of_recovery(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods in the order of their creation, and placeholders behind all others.

    The first pod of an application determines its owner, which a placeholder does not have. The API server
    reports whole seconds: of pods of one second, those that own placeholders come first.
    """
    found = [*pods]
    owners = {one.uid for pod in found if is_placeholder(pod) for one in pod.metadata.owner_references}

    def order(pod: Pod) -> tuple[bool, float, bool, str, str]:
        meta = pod.metadata
        created = meta.creation_timestamp.timestamp() if meta.creation_timestamp is not None else 0.0
        return (is_placeholder(pod), created, meta.uid not in owners, meta.namespace, meta.name)

    return sorted(found, key=order)


class ShimCallback:
    """Callback of the core; its methods are called in the event loop, in the order of the core's calls."""

    predicates_in_force = PREDICATES
    """Predicates that apply although no configuration names them."""

    def __init__(self, shim: Shim) -> None:
        self._shim = shim
        self._is_over = False

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Apply a response."""
        self._shim.apply(response)

    def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
        """Show why a pod waits."""
        self._shim.conditions.state_changed(request)

    def send_events(self, events: list[EventRecord]) -> None:
        """Show events of the core."""
        self._shim.show(events)
