"""Pods with owners in the cluster in memory: objects of any kind, and pods as their controllers make them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from tests.kubernetes.shim.fake_cluster import APP, CONFIG, FakeCluster, run_in
from yunikorn.framework.registry import Registry
from yunikorn_kubernetes.api_server.calls import ApiError
from yunikorn_kubernetes.objects import OwnerReference, Pod, SchedulingGroup
from yunikorn_kubernetes.workloads.chosen_readers import choose_readers
from yunikorn_kubernetes.workloads.pod_groups import PodGroup, PodGroupStatus
from yunikorn_kubernetes.workloads.workload_readings import WorkloadReadings

DEFAULTS = Registry.load(third_party=False)
INDEX = "batch.kubernetes.io/job-completion-index"


class OwnedCluster(FakeCluster):
    """A cluster whose pods have owners; pauses of the shim end when `pass_time` is called."""

    def __init__(
        self, config: str = CONFIG, kinds: tuple[str, ...] = ("all",), registry: Registry | None = None
    ) -> None:
        self.owners: dict[tuple[str, str], dict[str, Any]] = {}
        """Objects by kind and name."""
        self.reads: list[str] = []
        """Name of every object that was read."""
        self.errors: dict[str, list[ApiError]] = {}
        """Errors of the next reads by kind."""
        self.groups: dict[str, PodGroup] = {}
        self.statuses: list[Any] = []
        """Conditions of every write to a PodGroup."""
        self.kinds = kinds
        self.registry = registry or DEFAULTS
        self.reports: list[tuple[str, str, str]] = []
        """Failures of readers: plugin, operation and cause."""
        self.time = 0
        """Clock (ns) by which the calls of readers are measured."""
        self.bypassed: set[str] = set()
        """Queues in which nothing is recognised."""
        self._numbers = itertools.count(1)
        self._pauses: list[asyncio.Future[None]] = []
        super().__init__(config)

    def make_readings(self) -> WorkloadReadings:
        """Return new readings, as a new process has."""
        return WorkloadReadings(
            choose_readers(self.registry, self.kinds, self._note_failure, lambda: self.time),
            self._read,
            namespaces=self.references.namespaces,
            groups=self.groups,
            bypasses=self.bypassed.__contains__,
            sleep=self._pause,
        )

    def _note_failure(self, plugin: str, operation: str, cause: BaseException | str) -> None:
        self.reports.append((plugin, operation, str(cause)))

    async def start(self) -> None:
        """Read the owners, then start the shim."""
        await self.shim.workloads.prepare(self.pods())
        await super().start()

    async def _pause(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._pauses.append(future)
        await future

    async def pass_time(self) -> None:
        """End all pauses that have begun."""
        pauses, self._pauses = self._pauses, []
        for future in pauses:
            if not future.done():
                future.set_result(None)
        await self.settle()

    async def _read(self, reference: OwnerReference, plural: str, namespace: str) -> dict[str, Any] | None:
        await asyncio.sleep(0)
        self.reads.append(reference.name)
        if self.errors.get(reference.kind):
            raise self.errors[reference.kind].pop(0)
        return self.owners.get((reference.kind, reference.name))

    # -- PodGroups ------------------------------------------------------------------------------------

    def pod_group(self, name: str, least: int | None = None, uid: str = "", **spec: Any) -> None:
        """Create a PodGroup that needs `least` pods, or one with the policy `basic`."""
        policy = {"basic": {}} if least is None else {"gang": {"minCount": least}}
        meta = {"name": name, "namespace": "default", "uid": uid or f"{next(self._numbers):08d}-group"}
        body = {"metadata": meta, "spec": {"schedulingPolicy": policy, **spec}}
        self.groups[f"default/{name}"] = msgspec.convert(body, PodGroup)
        self.shim.pod_group_changed(f"default/{name}")

    def grouped_pod(self, name: str, group: str, **arguments: Any) -> Pod:
        """Create a pod of a PodGroup."""
        return self.add_pod(name, **{"app": "", **arguments}, scheduling_group=SchedulingGroup(group))

    async def update_status(
        self, resource: object, namespace: str, name: str, body: Any, *, delay: float = 0.0
    ) -> bool:
        """Merge fields into the status of a PodGroup."""
        await (self._pause(delay) if delay else asyncio.sleep(0))
        patch, place = body(), f"{namespace}/{name}"
        if patch is not None:
            group = self.groups[place]
            assert patch["metadata"]["uid"] == group.metadata.uid
            self.statuses.append(patch["status"]["conditions"])
            self.groups[place] = replace(group, status=msgspec.convert(patch["status"], PodGroupStatus))
        return True

    def condition(self, group: str, kind: str = "PodGroupScheduled") -> tuple[str, str]:
        """Return status and reason of a condition of a PodGroup; empty texts without it."""
        conditions = self.groups[f"default/{group}"].status.conditions
        found = next((one for one in conditions if one["type"] == kind), {"status": "", "reason": ""})
        return found["status"], found["reason"]

    # -- objects --------------------------------------------------------------------------------------

    def own(
        self,
        kind: str,
        name: str,
        spec: Mapping[str, Any],
        *,
        api: str = "batch/v1",
        owner: OwnerReference | None = None,
        **more: Any,
    ) -> OwnerReference:
        """Make an object, or replace its fields; return the reference to it as the controller of others."""
        known = self.owners.get((kind, name))
        uid = known["metadata"]["uid"] if known is not None else f"{next(self._numbers):08d}-{kind}"
        references = (
            []
            if owner is None
            else [
                {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
                | {"controller": True}
            ]
        )
        self.owners[kind, name] = {
            "metadata": {"name": name, "namespace": "default", "uid": uid, "ownerReferences": references},
            "spec": dict(spec),
            **more,
        }
        return OwnerReference(api_version=api, kind=kind, name=name, uid=uid, controller=True)

    def owned_pod(
        self, name: str, owner: OwnerReference, labels: Mapping[str, str] | None = None, **arguments: Any
    ) -> Pod:
        """Create a pod of a controller that names no application."""
        return self.add_pod(name, owners=(owner,), labels={APP: "", **(labels or {})}, **arguments)

    def job(self, name: str, pods: int, completions: int | None = None, **more: Any) -> OwnerReference:
        """Make an Indexed Job."""
        spec = {"parallelism": pods, "completions": completions or pods, "completionMode": "Indexed"}
        return self.own("Job", name, spec, **more)

    def job_pod(self, job: OwnerReference, index: int, suffix: str = "", **arguments: Any) -> Pod:
        """Create a pod of an Indexed Job."""
        return self.owned_pod(f"{job.name}-{index}{suffix}", job, {INDEX: str(index)}, **arguments)


Test = Callable[[OwnedCluster], Awaitable[None]]


def run(test: Test, registry: Registry | None = None) -> None:
    """Run a test in a cluster without nodes."""
    run_in(lambda: OwnedCluster(registry=registry), test)


async def room(cluster: OwnedCluster, pods: int) -> set[str]:
    """Add a node for this number of pods; return the names of all pods that are bound then."""
    cluster.add_node(f"node-{len(cluster.node_objects)}", cpu=str(pods))
    await cluster.settle()
    return {*cluster.placed()}
