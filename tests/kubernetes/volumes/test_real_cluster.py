"""Volumes of a real cluster: what is chosen is bound by the controllers of Kubernetes.

Pods are placed here by the predicates alone, node by node, so that the tests need no other part of the shim.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, Kubectl, Obj
from tests.kubernetes.cluster.objects import nodes, phase, pod
from tests.kubernetes.cluster.volumes import Provisioner, claim, local_volume, storage_class, with_claims
from yunikorn_kubernetes.api_server.api_connection import ApiConnection
from yunikorn_kubernetes.api_server.api_credentials import find_credentials
from yunikorn_kubernetes.api_server.api_resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    ApiResource,
)
from yunikorn_kubernetes.api_server.back_off import seeded
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.api_server.reflector import ChangeKind, ObjectChange, Reflector
from yunikorn_kubernetes.objects import Node, Pod
from yunikorn_kubernetes.predicates.volume_binding import VolumeBinding
from yunikorn_kubernetes.volumes.cluster_volumes import ClusterVolumes, VolumeConflict
from yunikorn_kubernetes.volumes.volume_binder import VolumeBinder, VolumeBindError
from yunikorn_testing.samples import ask, node

NO_PROVISIONER = storage_class("local", provisioner="kubernetes.io/no-provisioner")
"""Class of volumes on disks of nodes, which exist already."""
PATIENCE = 60.0
"""Seconds that a test waits for a state of the cluster."""
WATCHED: Sequence[ApiResource[Any]] = (
    PODS,
    NODES,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
)


class Lab:
    """The volumes of a cluster, kept up to date by reflectors."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.volumes = ClusterVolumes()
        self.binder = VolumeBinder(server, self.volumes, random=seeded(1), timeout=PATIENCE)
        self.changed = asyncio.Event()
        self.nodes: dict[str, Node] = {}
        self.uids: dict[str, str] = {}
        """Uids of pods by name."""
        self.reflectors = [Reflector(server, one, self._note, random=seeded(2)) for one in WATCHED]

    def _note(self, change: ObjectChange[Any]) -> None:
        thing, is_gone = change.object, change.kind is ChangeKind.DELETED
        match thing:
            case Pod():
                self.uids[thing.metadata.name] = thing.metadata.uid
                if is_gone:
                    self.volumes.remove_pod(thing.metadata.uid)
                else:
                    self.volumes.add_pod(thing)
            case Node():
                self.nodes[thing.metadata.name] = thing
                self.volumes.add_node(thing)
            case _:
                self.volumes.update(thing, exists=not is_gone)
        self.changed.set()

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until a condition is true, which is asked after each change; return its value."""
        async with asyncio.timeout(PATIENCE):
            while not (found := condition()):
                self.changed.clear()
                await self.changed.wait()
        return found

    def fits(self, name: str) -> list[str]:
        """Return the nodes that `volume-binding` accepts for a pod without problems."""
        if name not in self.uids or not self.volumes.knows_pod(self.uids[name]):
            return []
        tags = self.volumes.tags(self.uids[name])
        if tags.problems:
            return []
        asked, predicate = ask(name, tags=tags.tags), VolumeBinding()
        return [
            one
            for one in sorted(self.nodes)
            if predicate.check(asked, node(one, self.volumes.all_attributes(one))) is None
        ]

    def assume(self, name: str, on: Sequence[str] = ()) -> str:
        """Choose volumes for a pod on the first node that fits, or of those in `on`; return the node."""
        for found in self.fits(name):
            if not on or found in on:
                self.volumes.assume(self.uids[name], found)
                return found
        return ""

    async def bind(self, name: str, at: str) -> None:
        """Bind the volumes of a pod, then the pod."""
        await self.binder.bind(self.uids[name])
        await self.server.bind("default", name, self.uids[name], at)

    async def place(self, name: str, on: Sequence[str] = ()) -> str:
        """Place a pod as soon as it fits, and bind it; return the node."""
        at = await self.until(lambda: self.assume(name, on))
        await self.bind(name, at)
        return str(at)


@asynccontextmanager
async def lab(cluster: Cluster) -> AsyncIterator[Lab]:
    """Return the volumes of a cluster."""
    credentials = find_credentials(str(cluster.kubeconfig), environment=os.environ)
    server = ApiServer(ApiConnection(credentials, user_agent="yunikorn/test"))
    made = Lab(server)
    tasks = [asyncio.create_task(one.run()) for one in made.reflectors]
    try:
        for one in made.reflectors:
            async with asyncio.timeout(PATIENCE):
                await one.synced.wait()
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.close()
        await _closed_connections()


async def _closed_connections() -> None:
    """Wait until the TLS connections of cancelled watches are closed, which takes an answer of the server."""
    selector: Any = getattr(asyncio.get_running_loop(), "_selector")  # noqa: B009
    async with asyncio.timeout(PATIENCE):
        while len(selector.get_map()) > 1:  # the loop's own socket remains
            await asyncio.sleep(0.02)


def run(cluster: Cluster, work: Callable[[Lab], Awaitable[None]]) -> None:
    """Run a coroutine with the volumes of a cluster."""

    async def inside() -> None:
        async with lab(cluster) as made:
            await work(made)

    asyncio.run(inside())


def using(name: str, *claims: str) -> Any:
    """Return a pod that uses claims."""
    return pod(name, volumes=with_claims(*claims))


def bound_volume(kubectl: Kubectl, name: str) -> str:
    """Wait until a claim is bound, which the controllers report after the binding; return its volume."""

    def bound(found: Obj) -> str:
        return str(found["spec"].get("volumeName", "")) if phase(found) == "Bound" else ""

    return kubectl.wait_for("PersistentVolumeClaim", name, bound)


def test_local_volumes_are_bound_to_the_claims_of_the_pods_on_their_node(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.create_all([*nodes(2), NO_PROVISIONER])
    kubectl.create_all([local_volume(f"disk-{number}", "local", f"node-{number}") for number in range(2)])
    kubectl.create_all([claim(f"data-{number}", "local") for number in range(3)])
    kubectl.create_all([using(f"job-{number}", f"data-{number}") for number in range(3)])

    async def work(made: Lab) -> None:
        # All at once: two pods get the two volumes, the third gets none.
        await made.until(lambda: all(len(made.fits(f"job-{number}")) == 2 for number in range(3)))
        places = [made.assume(f"job-{number}") for number in range(3)]
        assert places == ["node-0", "node-1", ""]
        with pytest.raises(VolumeConflict):
            made.volumes.assume(made.uids["job-2"], "node-0")
        await asyncio.gather(*(made.bind(f"job-{number}", places[number]) for number in range(2)))
        kubectl.create(local_volume("disk-2", "local", "node-1"))
        assert await made.place("job-2") == "node-1"

    run(cluster, work)
    assert [bound_volume(kubectl, f"data-{number}") for number in range(3)] == ["disk-0", "disk-1", "disk-2"]
    placed = [kubectl.get("Pod", f"job-{number}")["spec"]["nodeName"] for number in range(3)]
    assert placed == ["node-0", "node-1", "node-1"]


def test_a_volume_is_made_for_the_node_of_the_first_pod(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.create_all([*nodes(2), storage_class("fast"), claim("data", "fast"), using("job", "data")])

    async def work(made: Lab) -> None:
        assert await made.place("job", ["node-1"]) == "node-1"
        # A second pod with the claim follows the volume, which is on one node only.
        kubectl.create(using("more", "data"))
        assert await made.until(lambda: made.fits("more")) == ["node-1"]
        assert await made.place("more") == "node-1"

    with Provisioner(kubectl):
        run(cluster, work)
    made = kubectl.get("PersistentVolume", bound_volume(kubectl, "data"))
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["node-1"]


def test_a_pod_goes_elsewhere_when_its_volume_cannot_be_made(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.create_all([*nodes(2), storage_class("fast"), claim("data", "fast"), using("job", "data")])

    async def work(made: Lab) -> None:
        with pytest.raises(VolumeBindError, match="no volume could be made for claim default/data"):
            await made.place("job", ["node-0"])
        assert made.volumes.assumption(made.uids["job"]) is None
        assert await made.until(lambda: made.fits("job")) == ["node-0", "node-1"]
        assert await made.place("job", ["node-1"]) == "node-1"

    with Provisioner(kubectl, full=["node-0"]):
        run(cluster, work)
    assert bound_volume(kubectl, "data")


def test_a_pod_waits_for_claims_that_are_bound_at_once(cluster: Cluster, kubectl: Kubectl) -> None:
    now = storage_class("now", late=False)
    kubectl.create_all([*nodes(2), now, claim("data", "now"), using("job", "data")])

    async def work(made: Lab) -> None:
        problem = await made.until(
            lambda: "job" in made.uids and made.volumes.tags(made.uids["job"]).problems
        )
        assert problem == ("claim default/data is not yet bound to a volume of storage class now",)
        with Provisioner(kubectl):
            assert await made.until(lambda: made.fits("job")) == ["node-0", "node-1"]
            await made.place("job")

    run(cluster, work)


def test_the_claim_of_an_ephemeral_volume_is_made_and_bound(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.create_all([*nodes(1), storage_class("fast")])
    template = {"metadata": {}, "spec": claim("", "fast")["spec"]}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    kubectl.create(pod("job", volumes=[scratch]))

    async def work(made: Lab) -> None:
        assert await made.place("job") == "node-0"

    with Provisioner(kubectl):
        run(cluster, work)
    assert bound_volume(kubectl, "job-scratch").startswith("pvc-")


def test_many_pods_bind_volumes_at_the_same_time(cluster: Cluster, kubectl: Kubectl) -> None:
    count = 12
    kubectl.create_all([*nodes(3), storage_class("fast"), NO_PROVISIONER])
    kubectl.create_all(
        [local_volume(f"disk-{number}", "local", f"node-{number % 3}") for number in range(count)]
    )
    for number in range(count):
        kubectl.create_all([claim(f"disk-{number}", "local"), claim(f"new-{number}", "fast")])
        kubectl.create(using(f"job-{number}", f"disk-{number}", f"new-{number}"))

    async def work(made: Lab) -> None:
        await asyncio.gather(*(made.place(f"job-{number}") for number in range(count)))

    with Provisioner(kubectl):
        run(cluster, work)
    found = [bound_volume(kubectl, f"{kind}-{number}") for kind in ("disk", "new") for number in range(count)]
    assert all(found)
    assert len(set(found)) == 2 * count
