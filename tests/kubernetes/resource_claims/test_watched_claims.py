"""Watches of pods with claims: what the end of a pod means for its node."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tests.kubernetes.api_server.memory_server import Json, MemoryServer
from tests.kubernetes.devices.objects import device, device_class, resource_slice, wanted
from tests.kubernetes.resource_claims.kit import API, AtOnce, devices_of, run, settle
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.names import NODE_CLAIMED_DEVICES
from yunikorn_kubernetes.objects import Node, Pod
from yunikorn_kubernetes.shim.shim import Shim
from yunikorn_kubernetes.shim.watches import Watches

GPU = "example.com/gpu"


class Notes:
    """Notes nodes instead of reporting them to the core."""

    def __init__(self) -> None:
        self.nodes: list[str] = []

    def pod_changed(self, pod: Pod) -> None: ...

    def refresh(self, uids: Any) -> None: ...

    def node_changed(self, node: Node) -> None:
        self.nodes.append(node.metadata.name)


def running_pod(phase: str) -> Json:
    """Return a pod that has a claim for an extended resource, and none that it names itself."""
    container = {"name": "main", "resources": {"requests": {GPU: "1"}}}
    spec = {"schedulerName": "yunikorn", "nodeName": "n1", "containers": [container]}
    status = {"phase": phase, "extendedResourceClaimStatus": {"resourceClaimName": "c"}}
    return {
        "metadata": {"namespace": "lab", "name": "p", "uid": "uid-p"},
        "spec": spec,
        "status": status,
    }


def test_a_node_changes_when_a_pod_with_extended_resources_ends() -> None:
    async def test() -> None:
        memory = MemoryServer()
        memory.put("nodes", {"metadata": {"name": "n1"}})
        memory.put("resourceslices", resource_slice("s", device("a"), node="n1"), api=API)
        memory.put("deviceclasses", device_class("gpu", extendedResourceName=GPU), api=API)
        memory.put("pods", running_pod("Running"))
        memory.put(
            "resourceclaims",
            {
                "metadata": {"namespace": "lab", "name": "c"},
                "spec": {"devices": {"requests": [wanted("r")]}},
                "status": {
                    "allocation": devices_of("a"),
                    "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}],
                },
            },
            api=API,
        )
        watches, notes = Watches(ApiServer(memory), AtOnce(), devices=True), Notes()
        running = asyncio.ensure_future(watches.run())
        await watches.synced()
        await settle()
        watches.report_to(cast(Shim, notes))
        watches.claims.changes()
        memory.put("pods", running_pod("Succeeded"))
        await settle()
        assert notes.nodes == ["n1"]
        assert NODE_CLAIMED_DEVICES in watches.claims.attributes("n1")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(test)
