"""Extended resources that device classes serve: by a device plugin, or by a claim that is made."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from tests.kubernetes.api_server.memory_server import Json, failure
from tests.kubernetes.devices.objects import device, device_class, resource_slice
from tests.kubernetes.resource_claims.kit import CLAIMS, ClaimCluster, run, settle
from yunikorn_kubernetes.devices.device_allocator import DeviceAllocator, NoDevices
from yunikorn_kubernetes.devices.device_objects import DeviceAllocation
from yunikorn_kubernetes.devices.device_tags import read_wanted_claims
from yunikorn_kubernetes.devices.device_usage import DeviceUsage
from yunikorn_kubernetes.devices.node_pools import SliceCatalog
from yunikorn_kubernetes.devices.slice_reading import SliceReader
from yunikorn_kubernetes.names import NODE_SLICES, TAG_CLAIMS, TAG_DEVICES
from yunikorn_kubernetes.objects import Node, Pod
from yunikorn_kubernetes.resource_claims.claim_objects import EXTENDED_CLAIM, DeviceClassObject
from yunikorn_kubernetes.resource_claims.device_amounts import PLENTY
from yunikorn_kubernetes.shim.translator import References, Translator
from yunikorn_kubernetes.volumes.cluster_volumes import ClusterVolumes

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"


def pod(*amounts: Json, init: Json | None = None, node: str = "", **status: Any) -> Pod:
    """Return a pod whose containers ask for these amounts."""
    containers = [
        {"name": f"c{number}", "resources": {"requests": one}} for number, one in enumerate(amounts)
    ]
    init_containers = [{"name": "init", "resources": {"requests": init}}] if init else []
    spec = {"schedulerName": "yunikorn", "containers": containers, "initContainers": init_containers}
    meta = {"namespace": "lab", "name": "p", "uid": "uid-p"}
    return msgspec.convert({"metadata": meta, "spec": spec | {"nodeName": node}, "status": status}, Pod)


def node(name: str, **allocatable: str) -> Node:
    """Return a node."""
    found = {key.replace("__", "/").replace("_", "."): value for key, value in allocatable.items()}
    return msgspec.convert({"metadata": {"name": name}, "status": {"allocatable": found}}, Node)


def serving(*classes: tuple[str, str], **resources: str) -> ClaimCluster:
    """Return a cluster with the node `n1` with devices, and `plugged` with a device plugin."""
    cluster = ClaimCluster(resources=dict(resources))
    for name, extended in classes or (("gpu", GPU),):
        found = device_class(name, extendedResourceName=extended)
        cluster.claims.update(msgspec.convert(found, DeviceClassObject))
    cluster.claims.add_node(node("plugged", example_com__gpu="4"))
    return cluster


def allocate(cluster: ClaimCluster, one: Pod, where: str) -> tuple[DeviceAllocation, ...] | NoDevices:
    """Return the devices that the allocator chooses on a node."""
    cluster.claims.add_pod(one)
    wanted = read_wanted_claims(cluster.claims.tags(one).tags[TAG_CLAIMS])
    assert not wanted.problem
    reader = SliceReader()
    slices = [reader.read(each) for each in json.loads(cluster.claims.attributes(where)[NODE_SLICES])]
    return DeviceAllocator(SliceCatalog(slices), wanted.classes, DeviceUsage()).allocate(
        where, {}, wanted.claims
    )


def devices(cluster: ClaimCluster, one: Pod, where: str) -> DeviceAllocation:
    """Return the devices of the only claim of a pod on a node."""
    found = allocate(cluster, one, where)
    assert not isinstance(found, NoDevices)
    return found[0]


def chosen(cluster: ClaimCluster, one: Pod, where: str) -> str:
    """Return the tag with the devices on a node."""
    allocation = devices(cluster, one, where).to_json(lambda: "share")
    return json.dumps([{"podClaim": EXTENDED_CLAIM, "allocation": allocation}])


def extended(cluster: ClaimCluster) -> list[Json]:
    """Return the claims that were made."""
    return [*cluster.memory.objects.get(CLAIMS, {}).values()]


@pytest.mark.parametrize("resource", [GPU, IMPLICIT])
def test_devices_of_the_class_serve_the_resource(resource: str) -> None:
    found = devices(serving(), pod({resource: "2"}), "n1")
    assert [one.device.device for one in found.results] == ["a", "b"]


def test_a_device_plugin_serves_it_without_devices() -> None:
    found = devices(serving(), pod({GPU: "2"}), "plugged")
    [result] = found.results
    assert result.device.driver == "device-plugins.yunikorn.apache.org"


def test_a_device_plugin_serves_only_what_it_offers() -> None:
    assert isinstance(allocate(serving(), pod({IMPLICIT: "2"}), "plugged"), NoDevices)


def test_too_few_devices_are_refused() -> None:
    assert isinstance(allocate(serving(), pod({GPU: "3"}), "n1"), NoDevices)


def test_init_containers_need_a_device_plugin() -> None:
    cluster, one = serving(), pod({"cpu": "1"}, init={GPU: "1"})
    assert isinstance(allocate(cluster, one, "n1"), NoDevices)
    assert not isinstance(allocate(cluster, one, "plugged"), NoDevices)


def test_other_pods_are_untouched() -> None:
    cluster = serving()
    one = pod({"other.com/gpu": "1", "cpu": "1"})
    cluster.claims.add_pod(one)
    assert not cluster.claims.tags(one).tags


def test_a_plugin_that_goes_takes_its_device_along() -> None:
    cluster = serving()
    assert NODE_SLICES in cluster.claims.attributes("plugged")
    cluster.claims.add_node(node("plugged", example_com__gpu="0"))
    assert "plugged" in cluster.claims.changes().nodes
    assert NODE_SLICES not in cluster.claims.attributes("plugged")
    cluster.claims.add_node(node("plugged", example_com__gpu="1"))
    cluster.claims.update(msgspec.convert(device_class("gpu"), DeviceClassObject))
    assert NODE_SLICES not in cluster.claims.attributes("plugged")


@pytest.mark.parametrize(
    ("resources", "wanted", "counted"),
    [({}, GPU, GPU), ({}, IMPLICIT, GPU), ({"gpu": "x/y"}, IMPLICIT, "x/y"), ({"gpu": "x/y"}, GPU, "x/y")],
)
def test_quotas_count_it_as_devices_of_the_class(
    resources: dict[str, str], wanted: str, counted: str
) -> None:
    cluster = serving(**resources)
    translator = Translator(References(), ClusterVolumes(), lambda below: 0, claims=cluster.claims)
    one = pod({wanted: "2"})
    cluster.claims.add_pod(one)
    found = translator.resource(one)
    assert found[counted] == 2
    assert set(found) <= {"pods", counted, GPU}
    room = translator.node_resource(node("n1", example_com__gpu="0", cpu="4"))
    assert all(amount <= room.get(name, 0) for name, amount in found.items() if name != "pods")
    assert translator.node_resource(node("plugged", example_com__gpu="4"))[GPU] == 4
    assert cluster.claims.node_amounts("n1")[counted] == PLENTY


# -- the claim that is made ------------------------------------------------------------------------------


def test_a_claim_is_made_for_the_devices() -> None:
    async def test() -> None:
        cluster, one = serving(), pod({"cpu": "1"}, {GPU: "2"})
        cluster.memory.pod("p", "lab", uid="uid-p")
        await cluster.binder.write(one, chosen(cluster, one, "n1"))
        [made] = extended(cluster)
        meta = made["metadata"]
        assert meta["name"].startswith("p-extended-resources-")
        assert meta["annotations"]["resource.kubernetes.io/extended-resource-claim"] == "true"
        assert [each["uid"] for each in meta["ownerReferences"]] == ["uid-p"]
        [request] = made["spec"]["devices"]["requests"]
        assert request["exactly"] == {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
        results = made["status"]["allocation"]["devices"]["results"]
        assert {each["request"] for each in results} == {request["name"]}
        assert [each["device"] for each in results] == ["a", "b"]
        assert [each["name"] for each in made["status"]["reservedFor"]] == ["p"]
        status = cluster.memory.objects["/api/v1", "pods"]["lab/p"]["status"]["extendedResourceClaimStatus"]
        assert status == {
            "resourceClaimName": meta["name"],
            "requestMappings": [{"containerName": "c1", "resourceName": GPU, "requestName": request["name"]}],
        }

    run(test)


def test_a_device_plugin_needs_no_claim() -> None:
    async def test() -> None:
        cluster, one = serving(), pod({GPU: "2"})
        await cluster.binder.write(one, chosen(cluster, one, "plugged"))
        assert not extended(cluster)

    run(test)


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_device_plugin_ends_the_name_of_the_claim_of_an_earlier_attempt(is_seen: bool) -> None:
    async def test() -> None:
        cluster, one = serving(), pod({GPU: "1"})
        cluster.memory.pod("p", "lab", uid="uid-p")
        stored = cluster.memory.objects["/api/v1", "pods"]
        await cluster.binder.write(one, chosen(cluster, one, "n1"))
        cluster.binder.give_back("uid-p")
        await settle()
        if is_seen:
            cluster.start()
            one = pod({GPU: "1"}, **stored["lab/p"]["status"])
        # The kubelet would wait for a claim that does not exist any more.
        await cluster.binder.write(one, chosen(cluster, one, "plugged"))
        assert "extendedResourceClaimStatus" not in stored["lab/p"]["status"]

    run(test)


def test_the_claim_is_deleted_where_its_pod_is_not_bound() -> None:
    async def test() -> None:
        cluster, one = serving(), pod({GPU: "1"})
        cluster.memory.pod("p", "lab", uid="uid-p")
        await cluster.binder.write(one, chosen(cluster, one, "n1"))
        cluster.binder.give_back("uid-p")
        await settle()
        assert not extended(cluster)

    run(test)


@pytest.mark.parametrize("writes", range(1, 4))
def test_a_new_process_deletes_what_is_left(writes: int) -> None:
    async def test() -> None:
        cluster, one = serving(), pod({GPU: "1"})
        cluster.memory.pod("p", "lab", uid="uid-p")
        text = chosen(cluster, one, "n1")
        cluster.memory.before = lambda method, path: (
            failure(503, "Unavailable")
            if method in ("PATCH", "POST") and len(cluster.memory.bodies) >= writes
            else None
        )
        binding = asyncio.ensure_future(cluster.binder.write(one, text))
        await settle()
        cluster.memory.before = lambda method, path: failure(403, "Forbidden")
        await asyncio.gather(binding, return_exceptions=True)
        cluster.memory.before = lambda method, path: None
        [made] = extended(cluster)
        cluster.report(made["metadata"]["name"])
        cluster.start()
        cluster.binder.recover()
        await settle()
        assert not extended(cluster)

    run(test)


def test_a_bound_pod_has_its_devices() -> None:
    async def test() -> None:
        cluster, one = serving(), pod({GPU: "1"})
        cluster.memory.pod("p", "lab", uid="uid-p")
        await cluster.binder.write(one, chosen(cluster, one, "n1"))
        [made] = extended(cluster)
        cluster.report(made["metadata"]["name"])
        found = {"resourceClaimName": made["metadata"]["name"], "requestMappings": []}
        bound = pod({GPU: "1"}, node="n1", extendedResourceClaimStatus=found)
        cluster.claims.add_pod(bound)
        assert '"device":"a"' in cluster.claims.tags(bound).tags[TAG_DEVICES]
        assert cluster.claims.pod_amounts(bound) == {}

    run(test)


def test_slices_of_plugins_do_not_hide_those_of_drivers() -> None:
    cluster = serving()
    cluster.claims.add_node(node("n1", example_com__gpu="1"))
    slices = json.loads(cluster.claims.attributes("n1")[NODE_SLICES])
    assert len(slices) == 2
    assert resource_slice("n1-a", device("a"), device("b"), node="n1")["metadata"] in [
        one["metadata"] for one in slices
    ]
