"""A cluster in memory with claims to devices, and a shim that gives them to pods.

The core gives each claim one more device: tests of the predicate choose devices, these the writes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from tests.kubernetes.api_server.memory_server import Json, MemoryServer
from tests.kubernetes.resource_claims.kit import CLAIMS, AtOnce, StoredClaims, devices_of
from tests.kubernetes.shim.fake_cluster import CONFIG, DirectCore, Later
from tests.kubernetes.shim.owned_pods import OwnedCluster
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.names import NODE_CLAIMED_DEVICES, TAG_CLAIMS, TAG_DEVICES
from yunikorn_kubernetes.objects import Node, OwnerReference, Pod, PodClaimStatus
from yunikorn_kubernetes.resource_claims.claim_binder import ClaimBinder
from yunikorn_kubernetes.resource_claims.cluster_claims import ClusterClaims
from yunikorn_kubernetes.translation.pod_applications import is_terminated


class GivingDevices(Later):
    """Adds devices to the allocations of a response."""

    def __init__(self, callback: Any, numbers: itertools.count[int]) -> None:
        super().__init__(callback)
        self._numbers = numbers

    def recv_update_response(self, response: Any) -> None:
        for one in response.new_allocations:
            text = one.allocation_tags.get(TAG_CLAIMS)
            if text and TAG_DEVICES not in one.allocation_tags:
                given = [self._give(entry) for entry in json.loads(text)["claims"]]
                one.allocation_tags = {**one.allocation_tags, TAG_DEVICES: json.dumps(given)}
        super().recv_update_response(response)

    def _give(self, entry: Json) -> Json:
        allocation = entry.get("allocation") or devices_of(f"d{next(self._numbers)}")
        return {"podClaim": entry["podClaim"], "allocation": allocation}


class GivingCore(DirectCore):
    """A core whose allocations have devices."""

    numbers: itertools.count[int]

    async def register_resource_manager(self, request: Any, callback: Any) -> object:
        return self.scheduler.register_resource_manager(request, GivingDevices(callback, self.numbers))


class WatchedServer(MemoryServer):
    """A server whose claims are reported in a later turn of the event loop."""

    report: Callable[[str], object]

    def put(self, plural: str, body: Json, **more: Any) -> Json:
        """Create or change an object, and report a claim."""
        stored = super().put(plural, body, **more)
        meta = stored["metadata"]
        asyncio.get_running_loop().call_soon(self.report, f"{meta['namespace']}/{meta['name']}")
        return stored


class ClaimedCluster(OwnedCluster, StoredClaims):
    """A cluster whose pods have claims."""

    namespace = "default"

    def __init__(self, config: str = CONFIG) -> None:
        self.memory = WatchedServer()
        self.memory.report = self._claim_written
        self.is_watching_claims = True
        """False to keep changes of claims from the shim, as a watch that has ended does."""
        self._devices = itertools.count()
        super().__init__(config)

    def make_core(self) -> DirectCore:
        """Return the core of a process."""
        core = GivingCore(self.clock)
        core.numbers = self._devices
        return core

    def make_claim_binder(self) -> ClaimBinder:
        """Return what a new process writes claims with, which knows all objects."""
        self.claims = ClusterClaims(self.spread, groups=self.groups)
        for node in self.node_objects.values():
            self.know(node, "d")
        for pod in self.pod_objects.values():
            self.claims.add_pod(pod)
        for key in self.memory.objects.get(CLAIMS, {}):
            self.report(key.partition("/")[2])
        return ClaimBinder(ApiServer(self.memory), self.claims, random=AtOnce(), clock=self.clock)

    def _claim_written(self, key: str) -> None:
        if self.is_watching_claims:
            self.report(key.partition("/")[2])
            self.spread()

    def spread(self) -> None:
        """Let the shim apply what has changed, in a later turn of the event loop."""
        asyncio.get_running_loop().call_soon(self._spread, self.shim)

    def flush(self) -> None:
        """Let the shim apply what has changed now."""
        self._spread(self.shim)

    def _spread(self, shim: Any) -> None:
        if shim is not self.shim or not shim.is_running:
            return
        changes = self.claims.changes()
        shim.refresh(changes.pods)
        for name in changes.nodes:
            shim.node_changed(self.node_objects[name])

    def put_node(self, node: Node) -> Node:
        """Store a version of a node, which has devices."""
        self.know(node, "d")
        return super().put_node(node)

    def put_pod(self, pod: Pod) -> Pod:
        """Store a version of a pod."""
        if is_terminated(pod):
            self.claims.remove_pod(pod.metadata.uid)
            self.spread()
        else:
            self.claims.add_pod(pod)
        return super().put_pod(pod)

    def remove_pod(self, pod: Pod) -> None:
        """Let a pod vanish."""
        self.claims.remove_pod(pod.metadata.uid)
        self.spread()
        super().remove_pod(pod)

    # -- objects --------------------------------------------------------------------------------------

    def claiming_pod(self, name: str, *claims: str, group: str = "", **arguments: Any) -> Pod:
        """Create a pod with named claims, or with one from a template that is made for it."""
        entries: tuple[Json, ...] = tuple({"name": one, "resourceClaimName": one} for one in claims)
        if claims:
            arguments["resource_claims"] = entries
        else:
            arguments["resource_claims"] = ({"name": "gpu", "resourceClaimTemplateName": "t"},)
        made = self.grouped_pod(name, group, **arguments) if group else self.add_pod(name, **arguments)
        if claims:
            return made
        uid = made.metadata.uid
        owner = OwnerReference(kind="Pod", name=name, uid=uid, controller=True)
        self.put_claim(f"{name}-gpu", msgspec.to_builtins(owner))
        statuses = (PodClaimStatus("gpu", f"{name}-gpu"),)
        return self.put_pod(replace(made, status=replace(made.status, resource_claim_statuses=statuses)))

    def devices(self) -> dict[str, list[str]]:
        """Return the devices of every allocated claim."""
        found = {}
        for key, claim in self.memory.objects.get(CLAIMS, {}).items():
            allocation = claim.get("status", {}).get("allocation")
            if allocation is not None:
                found[key.partition("/")[2]] = [one["device"] for one in allocation["devices"]["results"]]
        return found

    def taken(self, node: str) -> list[str]:
        """Return the devices that the core must not give away although no pod in its books has them."""
        text = self.partition().nodes[node].attributes.get(NODE_CLAIMED_DEVICES, "[]")
        return sorted(set(re.findall(r'"device":"(\w+)"', text)))

    def consumers(self, claim: str) -> list[str]:
        """Return the consumers of a claim."""
        return [one["name"] for one in self.stored(claim)["status"].get("reservedFor") or ()]
