"""Devices in the quotas of queues: the worst case, what was chosen, and claims that several pods use."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.kubernetes.devices.objects import alternative, device, device_class, resource_slice, wanted
from tests.kubernetes.resource_claims.kit import ClaimCluster, devices_of, owner, pod, text_of
from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.resource_claims.claim_objects import DeviceClassObject, ResourceSliceObject
from yunikorn_kubernetes.resource_claims.device_amounts import PLENTY

GPU = "deviceclass/gpu"


def any_of(*alternatives: Any) -> dict[str, Any]:
    """Return a request with alternatives."""
    return {"name": "r", "firstAvailable": [*alternatives]}


def half(count: int) -> dict[str, Any]:
    """Return an alternative of halves of devices."""
    return alternative("halves", count=count, deviceClassName="half")


def with_claim(*requests: Any, cluster: ClaimCluster | None = None) -> tuple[ClaimCluster, Pod]:
    """Return a cluster and a pod with a claim of its own."""
    made = cluster or ClaimCluster()
    made.claim("c", owner("Pod", "p"), requests=[*requests])
    one = pod("p", made={"gpu": "c"})
    made.add(one)
    return made, one


@pytest.mark.parametrize(
    ("requests", "amounts"),
    [
        ([wanted("r", count=3)], {GPU: 3}),
        ([wanted("r", count=3), wanted("s")], {GPU: 4}),
        ([any_of(alternative("whole", count=2), half(3))], {GPU: 2, "deviceclass/half": 3}),
        ([any_of(alternative("two", count=2), alternative("one"))], {GPU: 2}),
        ([wanted("r", adminAccess=True)], {}),
        ([wanted("r", allocationMode="All")], {GPU: 4}),
        ([wanted("r", 'device.attributes["x"].y == 1', allocationMode="All")], {GPU: 4}),
        ([{"name": "r", "exactly": {}}], {}),
    ],
    ids=["count", "sum", "alternatives", "one class", "admin", "all", "error", "unreadable"],
)
def test_the_worst_case_counts_before_devices_are_chosen(requests: Any, amounts: dict[str, int]) -> None:
    cluster = ClaimCluster()
    large = resource_slice("n2", *(device(name) for name in "abcd"), node="n2")
    cluster.claims.update(msgspec.convert(large, ResourceSliceObject))
    _, one = with_claim(*requests, cluster=cluster)
    assert cluster.claims.pod_amounts(one) == amounts


def test_all_devices_are_those_that_selectors_admit() -> None:
    cluster = ClaimCluster()
    made = resource_slice(
        "n2", device("a", kind="x"), device("b", kind="y"), device("c", kind="x"), node="n2"
    )
    cluster.claims.update(msgspec.convert(made, ResourceSliceObject))
    selector = 'device.attributes["gpu.example.com"].?kind.orValue("") == "x"'
    cluster.claims.update(msgspec.convert(device_class("gpu", selector), DeviceClassObject))
    _, one = with_claim(wanted("r", allocationMode="All"), cluster=cluster)
    assert cluster.claims.pod_amounts(one) == {GPU: 2}


def test_the_chosen_devices_count_afterwards() -> None:
    cluster, one = with_claim(any_of(alternative("whole", count=2), half(3)))
    chosen = devices_of("a", "b", request="r/halves")
    assert cluster.claims.pod_amounts(one, text_of(gpu=chosen)) == {"deviceclass/half": 2}
    cluster.claim(
        "c",
        owner("Pod", "p"),
        requests=[any_of(alternative("whole"), half(3))],
        status={"allocation": devices_of("a", request="r/whole")},
    )
    assert cluster.claims.pod_amounts(one) == {GPU: 1}


def test_administrators_take_nothing() -> None:
    cluster, one = with_claim()
    chosen = devices_of("a", adminAccess=True)
    assert cluster.claims.pod_amounts(one, text_of(gpu=chosen)) == {}


def test_classes_can_share_a_resource() -> None:
    resources = {"gpu": "nvidia.com/gpu", "half": "nvidia.com/gpu"}
    cluster = ClaimCluster(resources=resources)
    _, one = with_claim(wanted("r"), any_of(alternative("whole", count=2), half(3)), cluster=cluster)
    assert cluster.claims.pod_amounts(one) == {"nvidia.com/gpu": 4}
    assert cluster.claims.node_amounts("n1") == {"nvidia.com/gpu": PLENTY}


def test_nodes_without_devices_have_none() -> None:
    cluster = ClaimCluster()
    assert cluster.claims.node_amounts("n1") == {GPU: PLENTY}
    assert cluster.claims.node_amounts("n2") == {}


def test_pods_of_others_do_not_count() -> None:
    cluster, _ = with_claim()
    assert cluster.claims.pod_amounts(pod("p", made={"gpu": "c"}, scheduler="other")) == {}


def test_a_claim_of_several_pods_counts_once() -> None:
    cluster = ClaimCluster()
    cluster.claim("c")
    pods = {name: pod(name, "c") for name in "pqr"}
    cluster.add(*pods.values())

    def payers() -> list[str]:
        return [name for name, one in pods.items() if cluster.claims.pod_amounts(one)]

    assert payers() == ["p"]
    # Of the pods that wait, the first counts; one that has devices counts before those that wait.
    cluster.claims.assume("uid-q")
    assert payers() == ["q"]
    cluster.claims.assume("uid-r")
    assert payers() == ["q"]
    cluster.claims.changes()
    cluster.claims.remove_pod(pods.pop("q").metadata.uid)
    assert payers() == ["r"]
    assert "uid-r" in cluster.claims.changes().pods
    cluster.claims.remove_pod(pods.pop("r").metadata.uid)
    assert payers() == ["p"]
