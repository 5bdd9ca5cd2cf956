"""Claims, pods and devices in a server in memory, as the shim sees them and writes to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from tests.kubernetes.api_server.memory_server import Json, MemoryServer
from tests.kubernetes.devices.objects import device, device_class, resource_slice, wanted
from yunikorn.clock import SECOND, ManualClock
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.objects import Node, Pod
from yunikorn_kubernetes.resource_claims.claim_binder import ClaimBinder
from yunikorn_kubernetes.resource_claims.claim_objects import (
    DeviceClassObject,
    ResourceClaimObject,
    ResourceSliceObject,
)
from yunikorn_kubernetes.resource_claims.cluster_claims import ClusterClaims
from yunikorn_kubernetes.workloads.pod_groups import PodGroup

API = "/apis/resource.k8s.io/v1"
CLAIMS = (API, "resourceclaims")
FINALIZER = "resource.kubernetes.io/delete-protection"
MARK = "yunikorn.apache.org/allocated"
OURS = "yunikorn"


class AtOnce:
    """Random numbers that make every pause as short as possible."""

    def uniform(self, a: float, b: float) -> float:
        return 0.0


def pod(
    name: str,
    *claims: str,
    made: dict[str, str | None] | None = None,
    node: str = "",
    group: str = "",
    scheduler: str = OURS,
) -> Pod:
    """Return a pod with claims by name, and others that were `made` from templates."""
    entries: list[Json] = [{"name": one, "resourceClaimName": one} for one in claims]
    entries += [{"name": one, "resourceClaimTemplateName": "template"} for one in made or ()]
    return msgspec.convert(
        {
            "metadata": {"namespace": "lab", "name": name, "uid": f"uid-{name}"},
            "spec": {
                "schedulerName": scheduler,
                "resourceClaims": entries,
                "nodeName": node,
                "schedulingGroup": {"podGroupName": group} if group else None,
            },
            "status": {
                "resourceClaimStatuses": [
                    {"name": key, "resourceClaimName": value}
                    for key, value in (made or {}).items()
                    if value != ""
                ]
            },
        },
        Pod,
    )


def owner(kind: str, name: str) -> Json:
    """Return the reference to a controller."""
    version = "scheduling.k8s.io/v1alpha2" if kind == "PodGroup" else "v1"
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def devices_of(*names: str, **fields: Any) -> Json:
    """Return an allocation of devices."""
    results = [
        {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": name} | fields for name in names
    ]
    return {"devices": {"results": results}}


def text_of(**allocations: Json) -> str:
    """Return the tag `device-allocations`, with the allocation by the pod's name of a claim."""
    return json.dumps([{"podClaim": key, "allocation": one} for key, one in allocations.items()])


def consumer(pod: Pod) -> Json:
    """Return the entry of `reservedFor` for a pod."""
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}


class StoredClaims:
    """Claims of one namespace in a server in memory, and as their watch reports them."""

    memory: MemoryServer
    claims: ClusterClaims
    namespace = "lab"

    def know(self, node: Node, *devices: str) -> None:
        """Report a node with devices, and their class."""
        name = node.metadata.name
        self.claims.update(msgspec.convert(device_class("gpu"), DeviceClassObject))
        self.claims.add_node(node)
        made = resource_slice(f"{name}-a", *map(device, devices), node=name)
        self.claims.update(msgspec.convert(made, ResourceSliceObject))

    def put_claim(
        self,
        name: str,
        *owners: Json,
        status: Json | None = None,
        requests: list[Json] | None = None,
        **metadata: Any,
    ) -> None:
        """Create a claim, to one device unless it has other requests, or change it."""
        meta = {"namespace": self.namespace, "name": name, "ownerReferences": [*owners]}
        spec = {"devices": {"requests": requests or [wanted("r")]}}
        self.memory.put(
            "resourceclaims", {"metadata": meta | metadata, "spec": spec, "status": status or {}}, api=API
        )

    def report(self, name: str) -> None:
        """Report the present state of a claim, or its end."""
        stored = self.memory.objects[CLAIMS].get(f"{self.namespace}/{name}")
        if stored is not None:
            self.claims.update(msgspec.convert(json.loads(json.dumps(stored)), ResourceClaimObject))
        else:
            self.claims.update(self.claims.claims[f"{self.namespace}/{name}"], exists=False)

    def stored(self, name: str) -> Json:
        """Return a claim as the server has it."""
        return self.memory.objects[CLAIMS][f"{self.namespace}/{name}"]


class ClaimCluster(StoredClaims):
    """A server in memory, the claims as the watches report them, and what writes them."""

    def __init__(
        self,
        groups: dict[str, PodGroup] | None = None,
        *,
        timeout: float = 600.0,
        resources: dict[str, str] | None = None,
    ) -> None:
        self.memory = MemoryServer()
        self.claims = ClusterClaims(groups=groups, resources=resources)
        self.clock = ManualClock(1_700_000_000 * SECOND)
        self.start(timeout)
        self.know(msgspec.convert({"metadata": {"name": "n1"}}, Node), "a", "b")
        self.claims.changes()

    def start(self, timeout: float = 600.0) -> None:
        """Make what writes, as a new process does."""
        self.binder = ClaimBinder(
            ApiServer(self.memory), self.claims, random=AtOnce(), clock=self.clock, timeout=timeout
        )

    def claim(self, name: str, *owners: Json, **fields: Any) -> None:
        """Create a claim, or change it; report it."""
        self.put_claim(name, *owners, uid=f"uid-of-{name}", **fields)
        self.report(name)

    def add(self, *pods: Pod) -> None:
        """Report pods."""
        for one in pods:
            self.claims.add_pod(one)

    def status(self, name: str) -> Json:
        """Return the status of a claim as the server has it, without the time."""
        found = json.loads(json.dumps(self.stored(name).get("status", {})))
        (found.get("allocation") or {}).pop("allocationTimestamp", None)
        return {key: value for key, value in found.items() if value}

    def is_untouched(self, name: str) -> bool:
        """Return True if nothing of a claim tells of an allocation."""
        meta = self.stored(name)["metadata"]
        return not (self.status(name) or meta.get("finalizers") or meta.get("annotations"))

    def writes(self) -> list[str]:
        """Return the parts of claims that were written, one for each write."""
        return [
            "status" if "status" in body else "metadata" for body in self.memory.bodies if "metadata" in body
        ]


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test in an event loop."""
    asyncio.run(test())


async def settle() -> None:
    """Let all tasks of the loop run until they wait."""
    for _ in range(60):
        await asyncio.sleep(0)
