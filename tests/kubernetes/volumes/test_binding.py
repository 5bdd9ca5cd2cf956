"""Binding of chosen volumes: what is written, what ends the wait, and what a failure leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
import pytest

from tests.kubernetes.volumes.kit import Cluster
from tests.kubernetes.volumes.objects import ZONE, claim, host, on_label, pod, storage_class, volume
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.volumes.volume_binder import VolumeBinder, VolumeBindError

AFFINITY = RefusalSentence.VOLUME_AFFINITY
NODE = "volume.kubernetes.io/selected-node"
BY_US = "pv.kubernetes.io/bound-by-controller"
REF = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "namespace": "lab",
    "name": "data",
    "uid": "uid-data",
    "resourceVersion": "1",
}


class Server:
    """Volumes and claims of an API server, with the rules of merge patches and resource versions."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        objects = cluster.volumes.objects
        self.objects: dict[str, Any] = {**objects.volumes, **objects.claims}
        self.patches: list[tuple[str, Any]] = []
        self.errors: list[ApiError] = []
        """Errors of the next patches."""

    async def get(self, resource: Any, namespace: str, name: str) -> Any:
        key = f"{namespace}/{name}" if namespace else name
        if key not in self.objects:
            raise ApiError(404, "NotFound", f"{key} not found")
        return self.objects[key]

    async def patch(self, resource: Any, namespace: str, name: str, body: Any) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        before = await self.get(resource, namespace, name)
        if body["metadata"].get("resourceVersion") != before.metadata.resource_version:
            raise ApiError(409, "Conflict", "the object has been modified")
        self.patches.append((name, body))
        return self.set(
            name, {**body, "metadata": {k: v for k, v in body["metadata"].items() if k != "resourceVersion"}}
        )

    def set(self, name: str, changes: Any) -> Any:
        """Change an object as the API server does; the reflectors have not reported it yet."""
        key = name if name in self.objects else f"lab/{name}"
        before = self.objects[key]
        found = _merged(msgspec.to_builtins(before), changes)
        found["metadata"]["resourceVersion"] = str(int(before.metadata.resource_version) + 1)
        self.objects[key] = msgspec.convert(found, type(before))
        return self.objects[key]

    def report(self, *names: str) -> None:
        """Report the present state of objects, as reflectors do."""
        for name in names:
            self.cluster.volumes.update(self.objects.get(name) or self.objects[f"lab/{name}"])

    def bind(self, name: str, to: str) -> None:
        """Complete a binding as the controllers of Kubernetes do, and report it."""
        marks = {"pv.kubernetes.io/bind-completed": "yes"}
        self.set(name, {"spec": {"volumeName": to}, "metadata": {"annotations": marks}})
        self.report(name)


def _merged(value: Any, changes: Any) -> Any:
    if not isinstance(changes, dict):
        return changes
    found = dict(value or {})
    for key, change in changes.items():
        if change is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), change)
    return found


async def settle() -> None:
    """Let all tasks of the loop run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)


Steps = Callable[[Server], Awaitable[None]]


class AtOnce:
    """Random numbers that make every pause as short as possible."""

    def uniform(self, a: float, b: float) -> float:
        return 0.0


def bind(
    cluster: Cluster,
    steps: Steps,
    *,
    prepare: Callable[[Server], None] = lambda _: None,
    timeout: float = 30.0,
) -> tuple[Server, str]:
    """Bind the volumes of the pod `job` while `steps` run; return the server, and the error or an empty text.

    `prepare` changes the server before, which the reflectors do not report.
    """
    server = Server(cluster)
    prepare(server)

    async def work() -> str:
        cluster.volumes.assume("job", "n1")
        binder = VolumeBinder(cast(ApiServer, server), cluster.volumes, random=AtOnce(), timeout=timeout)
        binding = asyncio.create_task(binder.bind("job"))
        await settle()
        await steps(server)
        try:
            await binding
        except VolumeBindError as error:
            return str(error)
        return ""

    return server, asyncio.run(work())


def static(**more: Any) -> Cluster:
    """A pod with a claim, and a local volume for it."""
    return Cluster(
        storage_class(),
        host("n1", zone="a"),
        volume("disk", host="n1", **more),
        claim("data"),
        pod("job", "data"),
    )


def dynamic() -> Cluster:
    """A pod with a claim of a class that makes volumes."""
    fast = storage_class("fast", "disk.csi")
    return Cluster(fast, host("n1", zone="a"), claim("data", storage_class="fast"), pod("job", "data"))


async def complete_static(server: Server) -> None:
    server.report("disk")
    await settle()
    server.bind("data", "disk")


async def complete_dynamic(server: Server) -> None:
    server.report("data")
    await settle()
    server.cluster.add(volume("made", storage_class="fast", claim="lab/data/uid-data", phase="Bound"))
    server.bind("data", "made")


def test_a_free_volume_gets_the_claim_and_the_wait_ends_with_the_binding() -> None:
    cluster = static()
    server, error = bind(cluster, complete_static)
    changes = {"resourceVersion": "1", "annotations": {BY_US: "yes"}}
    assert (error, server.patches) == ("", [("disk", {"metadata": changes, "spec": {"claimRef": REF}})])
    assert cluster.volumes.assumption("job") is None


def test_a_volume_that_is_reserved_for_the_claim_by_hand_gets_the_uid_only() -> None:
    server, error = bind(static(claim="lab/data"), complete_static)
    assert (error, server.patches) == (
        "",
        [("disk", {"metadata": {"resourceVersion": "1"}, "spec": {"claimRef": REF}})],
    )


def test_a_volume_that_refers_to_the_claim_already_is_not_written() -> None:
    server, error = bind(static(claim="lab/data/uid-data"), complete_static)
    assert (error, server.patches) == ("", [])


def test_a_claim_whose_volume_is_made_gets_the_node() -> None:
    server, error = bind(dynamic(), complete_dynamic)
    changes = {"resourceVersion": "1", "annotations": {NODE: "n1"}}
    assert (error, server.patches) == ("", [("data", {"metadata": changes})])


def test_a_pod_without_open_claims_is_bound_at_once() -> None:
    cluster = Cluster(host("n1"), volume("disk"), claim("data", bound="disk"), pod("job", "data"))

    async def nothing(server: Server) -> None:
        pass

    server, error = bind(cluster, nothing)
    assert (error, server.patches) == ("", [])


# -- writes that fail ------------------------------------------------------------------------------------


def test_a_conflict_is_resolved_with_the_present_object() -> None:
    def change(server: Server) -> None:
        server.set("disk", {"metadata": {"labels": {"checked": "yes"}}})

    server, error = bind(static(), complete_static, prepare=change)
    assert error == ""
    assert [body["metadata"]["resourceVersion"] for _, body in server.patches] == ["2"]
    assert server.objects["disk"].metadata.labels == {"checked": "yes"}


def test_a_claim_that_has_changed_is_written_with_its_present_version() -> None:
    def change(server: Server) -> None:
        server.set("data", {"metadata": {"labels": {"team": "a"}}})

    server, error = bind(dynamic(), complete_dynamic, prepare=change)
    assert (error, [body["metadata"]["resourceVersion"] for _, body in server.patches]) == ("", ["2"])


def test_outages_are_waited_for() -> None:
    def fail(server: Server) -> None:
        server.errors = [ApiError(0, "NoAnswer", "no answer"), ApiError(503, "", "overload")]

    server, error = bind(static(), complete_static, prepare=fail)
    assert (error, len(server.patches)) == ("", 1)


async def nothing(server: Server) -> None:
    """Do nothing."""


def taken(server: Server) -> None:
    server.set("disk", {"spec": {"claimRef": {"namespace": "lab", "name": "other", "uid": "u"}}})


def replaced(server: Server) -> None:
    server.set("data", {"metadata": {"uid": "another"}})


def selected(server: Server) -> None:
    server.set("data", {"metadata": {"annotations": {NODE: "n7"}}})


def forbidden(server: Server) -> None:
    server.errors = [ApiError(403, "Forbidden", "403 you may not")]


def gone(server: Server) -> None:
    server.objects.clear()


@pytest.mark.parametrize(
    ("make", "prepare", "expected"),
    [
        (static, taken, "volume disk was given to claim lab/other"),
        (static, forbidden, "volume disk cannot be written: 403 you may not"),
        (static, gone, "volume disk does not exist any more"),
        (dynamic, gone, "claim lab/data does not exist any more"),
        (dynamic, replaced, "claim lab/data was replaced by another of the same name"),
        (dynamic, selected, "the volume of claim lab/data is being made for node n7"),
    ],
)
def test_a_write_that_cannot_succeed_ends_the_binding(
    make: Callable[[], Cluster], prepare: Callable[[Server], None], expected: str
) -> None:
    cluster = make()
    server, error = bind(cluster, nothing, prepare=prepare)
    assert (error, server.patches) == (expected, [])
    assert cluster.volumes.assumption("job") is None


# -- the wait --------------------------------------------------------------------------------------------


def test_versions_from_before_the_write_are_ignored() -> None:
    async def steps(server: Server) -> None:
        server.cluster.volumes.update(volume("disk", host="n1", labels={"late": "yes"}))
        server.cluster.volumes.update(claim("data"))
        await settle()
        await complete_static(server)

    assert bind(static(), steps)[1] == ""


async def volume_deleted(server: Server) -> None:
    server.cluster.volumes.update(server.objects["disk"], exists=False)


async def claim_deleted(server: Server) -> None:
    server.report("disk")
    server.cluster.volumes.update(server.objects["lab/data"], exists=False)


async def pod_deleted(server: Server) -> None:
    server.cluster.volumes.remove_pod("job")


async def node_deleted(server: Server) -> None:
    server.cluster.volumes.remove_node("n1")


async def given_back(server: Server) -> None:
    server.set("disk", {"spec": {"claimRef": None}})
    server.report("disk")


async def moved(server: Server) -> None:
    server.set("disk", {"spec": {"nodeAffinity": on_label(ZONE, "b")}})
    server.report("disk")


async def provisioning_failed(server: Server) -> None:
    server.report("data")
    await settle()
    server.set("data", {"metadata": {"annotations": {NODE: None}}})
    server.report("data")


async def made_elsewhere(server: Server) -> None:
    server.cluster.add(volume("made", storage_class="fast", nodeAffinity=on_label(ZONE, "b")))
    server.bind("data", "made")


@pytest.mark.parametrize(
    ("make", "steps", "expected"),
    [
        (static, volume_deleted, "volume disk does not exist any more"),
        (static, claim_deleted, "claim lab/data does not exist any more"),
        (static, pod_deleted, "the pod does not exist any more"),
        (dynamic, node_deleted, "node n1 does not exist any more"),
        (static, given_back, "volume disk was taken from claim lab/data"),
        (static, moved, f"{AFFINITY}: the node affinity of volume disk excludes the node"),
        (dynamic, provisioning_failed, "no volume could be made for claim lab/data on node n1"),
        (dynamic, made_elsewhere, f"{AFFINITY}: the node affinity of volume made excludes the node"),
    ],
)
def test_a_change_that_excludes_the_binding_ends_the_wait(
    make: Callable[[], Cluster], steps: Steps, expected: str
) -> None:
    cluster = make()
    assert bind(cluster, steps)[1] == expected
    assert cluster.volumes.assumption("job") is None


@pytest.mark.parametrize(
    ("make", "waiting"),
    [(static, "the change of volume disk"), (dynamic, "the change of claim lab/data")],
)
def test_the_wait_ends_after_the_configured_time(make: Callable[[], Cluster], waiting: str) -> None:
    error = bind(make(), nothing, timeout=0.05)[1]
    assert error == f"the volumes were not bound within 0.05 s: still waiting for {waiting}"


def test_a_volume_that_was_written_stays_reserved_for_the_claim_after_a_failure() -> None:
    cluster = static()
    cluster.add(host("n2"), volume("more", host="n2"), claim("late"), pod("late", "late"))

    async def steps(server: Server) -> None:
        server.report("disk")
        await settle()
        cluster.volumes.remove_node("n1")

    assert bind(cluster, steps)[1] == "node n1 does not exist any more"
    cluster.volumes.add_node(cluster.nodes["n1"])
    assert [cluster.fits("job"), cluster.fits("late")] == ["n1", "n2"]


def test_a_cancelled_binding_leaves_the_next_choice_alone() -> None:
    cluster = static()
    server = Server(cluster)

    async def work() -> None:
        binder = VolumeBinder(cast(ApiServer, server), cluster.volumes, random=AtOnce(), timeout=30.0)
        cluster.volumes.assume("job", "n1")
        first = asyncio.create_task(binder.bind("job"))
        await settle()
        first.cancel()
        cluster.volumes.assume("job", "n1")
        second = asyncio.create_task(binder.bind("job"))
        await asyncio.gather(first, return_exceptions=True)
        assert cluster.volumes.assumption("job")
        await settle()
        await complete_static(server)
        await second

    asyncio.run(work())
    assert cluster.volumes.assumption("job") is None


def test_a_pod_with_open_claims_is_not_bound_without_a_choice() -> None:
    cluster = static()
    binder = VolumeBinder(cast(ApiServer, Server(cluster)), cluster.volumes, random=AtOnce())
    with pytest.raises(VolumeBindError, match="no volumes have been chosen"):
        asyncio.run(binder.bind("job"))
