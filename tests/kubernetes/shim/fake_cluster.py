"""A cluster in memory: objects, a core that is called directly, and a shim between them.

The objects change as those of an API server do: a binding of a bound pod is a conflict, an unbound pod is
gone at once when it is deleted, and a bound one after its containers have ended. Every change reaches the
shim as a watch would report it, in a later turn of the event loop.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import itertools
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from tests.whole_readings import read_at_once
from yunikorn.clock import SECOND, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest, UpdateRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_kubernetes.api_server.calls import ApiError
from yunikorn_kubernetes.api_server.pod_binding import BindOutcome, BindResult, PodRef
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.objects import (
    Condition,
    Container,
    Namespace,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from yunikorn_kubernetes.resource_claims.claim_binder import ClaimBinder
from yunikorn_kubernetes.shim.shim import Registration, Shim
from yunikorn_kubernetes.shim.translator import References, Translator
from yunikorn_kubernetes.shim_settings import ServiceSettings
from yunikorn_kubernetes.volumes.claims import VolumeTags
from yunikorn_kubernetes.volumes.cluster_volumes import ClusterVolumes
from yunikorn_kubernetes.volumes.volume_binder import VolumeBinder
from yunikorn_kubernetes.workloads.workload_readings import WorkloadReadings
from yunikorn_service.async_scheduler import AsyncScheduler

RM = "kubernetes"
CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: lab
          - name: small
            resources: {max: {vcore: 1}}
"""
START = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
QUEUE = "yunikorn.apache.org/queue"
APP = "yunikorn.apache.org/app-id"
DEFAULTS = ServiceSettings()
TURNS = 40
"""Turns of the event loop in which everything that was begun comes to rest."""


@functools.cache
def registry() -> Registry:
    """Return the plugins, which all cores of the tests share."""
    return Registry.load()


class DirectCore:
    """A core in the calling thread; callbacks are called in later turns of the event loop, in order."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.scheduler = Scheduler(registry(), clock)
        self.requests: list[UpdateRequest] = []

    async def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: Any
    ) -> object:
        return self.scheduler.register_resource_manager(request, Later(callback))

    async def update(self, request: UpdateRequest) -> None:
        self.requests.append(request)
        self.scheduler.update(request)
        await asyncio.sleep(0)
        self.scheduler.schedule()

    async def read(self, reading: Any) -> Any:
        return read_at_once(self.scheduler, reading)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.set(self.clock.now() + round(seconds * SECOND))
        self.scheduler.fire_timers()
        self.scheduler.schedule()


class Later:
    """Calls the methods of a callback in later turns of the event loop, in their order."""

    def __init__(self, callback: Any) -> None:
        self._callback = callback
        self.predicates_in_force = ()

    def recv_update_response(self, response: Any) -> None:
        asyncio.get_running_loop().call_soon(self._callback.recv_update_response, response)

    def update_container_scheduling_state(self, request: Any) -> None:
        asyncio.get_running_loop().call_soon(self._callback.update_container_scheduling_state, request)

    def send_events(self, events: Any) -> None:
        asyncio.get_running_loop().call_soon(self._callback.send_events, events)


class NoVolumes:
    """Volumes of pods that have none; `fail` is called with the verb of each call that may fail."""

    def __init__(self, fail: Callable[[str], None]) -> None:
        self._fail = fail

    @property
    def volumes(self) -> NoVolumes:
        return self

    def tags(self, uid: str) -> VolumeTags:
        return VolumeTags()

    def attributes(self, node: str) -> dict[str, str]:
        return {}

    def assume(self, uid: str, node: str) -> None:
        self._fail("assume")

    async def bind(self, uid: str) -> None:
        self._fail("bind volumes")

    def forget(self, uid: str) -> None: ...


class FakeCluster:
    """Objects of a cluster, with the shim and the core that schedule it."""

    def __init__(
        self, config: str = CONFIG, settings: ServiceSettings = DEFAULTS, *, images: bool = False
    ) -> None:
        self.clock = ManualClock(round(START.timestamp()) * SECOND)
        self.config, self.settings, self.images = config, settings, images
        self.pod_objects: dict[str, Pod] = {}
        """Pods by uid."""
        self.node_objects: dict[str, Node] = {}
        self.bindings: list[tuple[str, str]] = []
        """Uid and node of every binding that the server has carried out."""
        self.conditions: list[PodRef] = []
        """Pods whose conditions were written, in that order."""
        self.events: list[tuple[str, str, str]] = []
        """Object, reason and note of every event."""
        self.event_actions: list[tuple[str, str]] = []
        """Object and action of every event."""
        self.creating, self.most_creating = 0, 0
        """Number of pods that are being created, and the largest such number."""
        self.failing: dict[str, list[Exception]] = {}
        """Errors of the next calls by verb: assume, bind volumes, bind, delete, create, patch."""
        self.refused = False
        """True while the server refuses changes of the status of pods."""
        self.is_watching = True
        """False to keep changes from the shim, as an API server that cannot be reached does."""
        self._unseen: list[tuple[str, Any]] = []
        self._uids = itertools.count(1)
        self.references = References(namespaces={"default": Namespace(ObjectMeta(name="default"))})
        self.start_process()

    def start_process(self) -> None:
        """Replace core and shim by new ones, as a restart of the process does."""
        self.core = self.make_core()
        claim_binder = self.make_claim_binder()
        numbers = itertools.count()
        volumes = NoVolumes(self._fail)
        self.shim = Shim(
            cast(AsyncScheduler, self.core),
            cast(QueuedWrites, self),
            cast(PodEvents, Notices(self)),
            cast(VolumeBinder, volumes),
            Translator(
                self.references,
                cast(ClusterVolumes, volumes),
                lambda below: next(numbers) * 7 // 3 % below,
                self.settings,
                None if claim_binder is None else claim_binder.claims,
                images=self.images,
            ),
            self.clock,
            lambda: Registration(RM, config=self.config),
            sleep=lambda _: asyncio.sleep(0),
            readings=self.make_readings(),
            claim_binder=claim_binder,
        )
        self._running: asyncio.Future[Any] | None = None

    def make_core(self) -> DirectCore:
        """Return the core of a process."""
        return DirectCore(self.clock)

    def make_claim_binder(self) -> ClaimBinder | None:
        """Return what writes claims to devices."""
        return None

    def make_readings(self) -> WorkloadReadings:
        """Return the readings of the owners of pods."""
        return WorkloadReadings.of_nothing()

    # -- the process ----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the shim, and wait until all is at rest."""
        await self.shim.start(self)
        self._running = asyncio.gather(self.shim.run(), self.shim.conditions.run())
        await self.settle()

    async def kill(self) -> None:
        """End the process without any notice: its calls under way end where they are."""
        self.shim.close()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def restart(self) -> None:
        """Kill the process, and start another one."""
        await self.kill()
        self._unseen.clear()
        self.start_process()
        await self.start()

    async def settle(self) -> None:
        """Wait until all is at rest."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let time pass in the core."""
        self.core.advance(seconds)
        await self.settle()

    def nodes(self) -> Iterable[Node]:
        """Return all nodes, for a recovery."""
        return [*self.node_objects.values()]

    def pods(self) -> Iterable[Pod]:
        """Return all pods, for a recovery."""
        return [*self.pod_objects.values()]

    def flush(self) -> None:
        """Report what changes mean for other objects: nothing without claims."""

    # -- objects --------------------------------------------------------------------------------------

    def add_node(self, name: str, cpu: str = "4", **changes: Any) -> Node:
        """Add a node, or replace it by another one of its name."""
        node = Node(
            metadata=ObjectMeta(name=name, uid=f"node-uid-{next(self._uids)}"),
            spec=NodeSpec(**changes),
            status=NodeStatus(allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"}),
        )
        return self.put_node(node)

    def put_node(self, node: Node) -> Node:
        """Store a version of a node."""
        self.node_objects[node.metadata.name] = node
        self._report("node_changed", node)
        return node

    def remove_node(self, name: str) -> None:
        """Delete a node; its pods stay, as they do until the garbage collector has seen them."""
        self._report("node_removed", self.node_objects.pop(name))

    def add_pod(
        self,
        name: str,
        cpu: str = "1",
        *,
        app: str = "app",
        queue: str = "root.lab",
        ours: bool = True,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        owners: tuple[OwnerReference, ...] = (),
        **spec: Any,
    ) -> Pod:
        """Create a pod."""
        number = next(self._uids)
        created = START + datetime.timedelta(seconds=number)
        own = {APP: app, QUEUE: queue} if ours else {}
        pod = Pod(
            metadata=ObjectMeta(
                name=name,
                namespace="default",
                uid=f"uid-{number}-{name}",
                creation_timestamp=created,
                labels={**own, **(labels or {})},
                annotations=annotations or {},
                owner_references=owners,
            ),
            spec=PodSpec(
                scheduler_name="yunikorn" if ours else "default-scheduler",
                containers=(Container(resources=ResourceRequirements(requests={"cpu": cpu})),),
                **spec,
            ),
        )
        return self.put_pod(pod)

    def put_pod(self, pod: Pod) -> Pod:
        """Store a version of a pod."""
        self.pod_objects[pod.metadata.uid] = pod
        self._report("pod_changed", pod)
        return pod

    def finish(self, pod: Pod, phase: str = "Succeeded") -> None:
        """Let the containers of a pod end."""
        current = self.pod_objects[pod.metadata.uid]
        self.put_pod(replace(current, status=replace(current.status, phase=phase)))

    def remove_pod(self, pod: Pod) -> None:
        """Let a pod vanish."""
        current = self.pod_objects.pop(pod.metadata.uid, None)
        if current is not None:
            self._report("pod_removed", current)

    def disrupt_pod(self, pod: Pod) -> None:
        """Delete a pod as the cluster does to drain its node."""
        current = self.pod_objects[pod.metadata.uid]
        conditions = (
            *current.status.conditions,
            Condition("DisruptionTarget", "True", "EvictionByEvictionAPI"),
        )
        self.put_pod(replace(current, status=replace(current.status, conditions=conditions)))
        self.remove_pod(pod)

    def end_deleted(self) -> None:
        """Let the kubelets end the pods that are being deleted."""
        for pod in [*self.pod_objects.values()]:
            if pod.metadata.deletion_timestamp is not None:
                self.remove_pod(pod)

    def bind_by_others(self, pod: Pod, node: str) -> None:
        """Bind a pod as another scheduler would."""
        current = self.pod_objects[pod.metadata.uid]
        self.bindings.append((pod.metadata.uid, node))
        self.put_pod(replace(current, spec=replace(current.spec, node_name=node)))

    def _report(self, method: str, found: Any) -> None:
        if self.is_watching:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return
            shim = self.shim
            loop.call_soon(lambda: getattr(shim, method)(found) if shim is self.shim else None)
        else:
            self._unseen.append((method, found))

    def watch_again(self) -> None:
        """Report the changes that the shim has not seen."""
        self.is_watching = True
        unseen, self._unseen = self._unseen, []
        for method, found in unseen:
            self._report(method, found)

    # -- the API server as the shim writes to it ------------------------------------------------------

    def _fail(self, verb: str) -> None:
        if self.failing.get(verb):
            raise self.failing[verb].pop(0)

    async def bind(self, pod: PodRef, node: str) -> BindResult:
        """Bind a pod."""
        await asyncio.sleep(0)
        try:
            self._fail("bind")
        except ApiError as error:
            return BindResult(BindOutcome.FAILED, message=str(error))
        current = self.pod_objects.get(pod.uid)
        if current is None or current.metadata.deletion_timestamp is not None:
            return BindResult(BindOutcome.GONE)
        if current.spec.node_name:
            return BindResult(BindOutcome.ELSEWHERE, current.spec.node_name)
        self.bindings.append((pod.uid, node))
        bound = replace(current, spec=replace(current.spec, node_name=node))
        self.put_pod(replace(bound, status=replace(bound.status, phase="Running")))
        try:
            self._fail("bind answer")
        except ApiError as error:
            return BindResult(BindOutcome.FAILED, message=str(error))
        return BindResult(BindOutcome.BOUND, node)

    async def delete_pod(self, pod: PodRef) -> None:
        """Delete a pod; one that runs ends later, see `end_deleted`."""
        await asyncio.sleep(0)
        self._fail("delete")
        current = self.pod_objects.get(pod.uid)
        if current is None:
            return
        if not current.spec.node_name or current.spec.termination_grace_period_seconds == 0:
            self.remove_pod(current)
        else:
            meta = replace(current.metadata, deletion_timestamp=START)
            self.put_pod(replace(current, metadata=meta))

    async def create(self, resource: object, namespace: str, body: Any) -> None:
        """Create a pod."""
        self.creating += 1
        self.most_creating = max(self.most_creating, self.creating)
        await asyncio.sleep(0)
        self.creating -= 1
        self._fail("create")
        pod = msgspec.convert(body, Pod)
        number = next(self._uids)
        meta = replace(
            pod.metadata,
            namespace=namespace,
            uid=f"uid-{number}-{pod.metadata.name}",
            creation_timestamp=START + datetime.timedelta(seconds=number),
        )
        self.put_pod(replace(pod, metadata=meta))

    def set_condition(self, pod: PodRef, reason: str, message: str) -> None:
        """Write a condition of a pod."""
        self.conditions.append(pod)
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        self._merge(pod, {"conditions": [condition]})

    def forget(self, uid: str) -> None:
        """End the writes for a pod: none is ever left."""

    async def set_status(self, pod: PodRef, status: Any) -> None:
        """Change the status of a pod."""
        await asyncio.sleep(0)
        self._fail("patch")
        if not self.refused:
            self._merge(pod, status)

    def _merge(self, pod: PodRef, status: Any) -> None:
        current = self.pod_objects.get(pod.uid)
        if current is not None:
            merged = {**msgspec.to_builtins(current.status), **status}
            self.put_pod(replace(current, status=msgspec.convert(merged, type(current.status))))

    # -- what is asserted -------------------------------------------------------------------------------

    def placed(self) -> dict[str, str]:
        """Return the node of every bound pod by name."""
        return {
            pod.metadata.name: pod.spec.node_name for pod in self.pod_objects.values() if pod.spec.node_name
        }

    def pod(self, name: str) -> Pod:
        """Return the current version of a pod by name."""
        return next(pod for pod in self.pod_objects.values() if pod.metadata.name == name)

    def reasons(self, name: str) -> list[str]:
        """Return the reasons of the events of an object."""
        return [reason for of, reason, _ in self.events if of == name]

    def actions(self, name: str) -> set[str]:
        """Return the actions of the events of an object."""
        return {action for of, action in self.event_actions if of == name}

    def used(self, queue: str = "root.lab") -> dict[str, int]:
        """Return the resources in use in a queue of the core."""
        return {name: value for name, value in self.partition().queue(queue).allocated.items() if value}

    def partition(self) -> Any:
        """Return the books of the core."""
        found = self.core.scheduler.partition(RM)
        assert found is not None
        return found.partition


Cluster = TypeVar("Cluster", bound=FakeCluster)


def run_in(cluster: Callable[[], Cluster], test: Callable[[Cluster], Awaitable[None]]) -> None:
    """Run a test in a new cluster, in an event loop."""

    async def main() -> None:
        made = cluster()
        await made.start()
        try:
            await test(made)
        finally:
            await made.kill()

    asyncio.run(main())


class Notices:
    """Events of the cluster."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    def pod(self, pod: Pod, reason: str, action: str, note: str, *, warning: bool = False) -> None:
        self._cluster.events.append((pod.metadata.name, reason, note))
        self._cluster.event_actions.append((pod.metadata.name, action))

    def node(self, name: str, uid: str, reason: str, note: str, *, warning: bool = False) -> None:
        self._cluster.events.append((name, reason, note))
