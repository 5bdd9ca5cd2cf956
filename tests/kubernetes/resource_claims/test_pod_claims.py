"""Claims of pods: what they wait for, and what the core is told of them and of nodes."""

from __future__ import annotations

import datetime
import json
from typing import Any

import msgspec
import pytest

from tests.kubernetes.devices.objects import device, device_class, resource_slice
from tests.kubernetes.resource_claims.kit import ClaimCluster, consumer, devices_of, owner, pod
from yunikorn_kubernetes.devices.device_tags import read_device_allocations, read_wanted_claims
from yunikorn_kubernetes.names import NODE_CLAIMED_DEVICES, NODE_SLICES, TAG_CLAIMS, TAG_DEVICES
from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.resource_claims.claim_objects import DeviceClassObject, ResourceSliceObject
from yunikorn_kubernetes.resource_claims.cluster_claims import ClusterClaims

NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC).isoformat()


def problems(cluster: ClaimCluster, one: Pod) -> tuple[str, ...]:
    """Return the reasons why a pod waits."""
    cluster.add(one)
    return cluster.claims.tags(one).problems


def claimed(cluster: ClaimCluster) -> list[str]:
    """Return the devices of the node that the core does not account for."""
    text = cluster.claims.attributes("n1").get(NODE_CLAIMED_DEVICES, "")
    found = read_device_allocations(text) if text else ()
    return [result.device.device for one in found for result in one.allocation.results]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({"gpu": ""}, "the claim 'gpu' of the pod has not been made from its template yet"),
        ({"gpu": "none"}, "the resource claim lab/none does not exist"),
        ({"gpu": "gone"}, "the resource claim lab/gone is being deleted"),
        ({"gpu": "other"}, "the resource claim lab/other belongs neither to the pod nor to its PodGroup"),
    ],
    ids=["not made", "missing", "deleted", "of another"],
)
def test_a_pod_waits_for_its_claims(made: dict[str, str | None], message: str) -> None:
    cluster = ClaimCluster()
    cluster.claim("gone", owner("Pod", "p"), deletionTimestamp=NOW)
    cluster.claim("other", owner("Pod", "q"))
    one = pod("p", made=made)
    assert problems(cluster, one) == (message,)
    # A request that waits already is refused everywhere, with the same reason.
    assert read_wanted_claims(cluster.claims.tags(one).tags[TAG_CLAIMS]).problem == message


def test_a_template_may_make_no_claim() -> None:
    cluster = ClaimCluster()
    one = pod("p", made={"gpu": None})
    assert not problems(cluster, one)
    assert read_wanted_claims(cluster.claims.tags(one).tags[TAG_CLAIMS]).ids == ()


def test_all_problems_are_told_at_once() -> None:
    assert len(problems(ClaimCluster(), pod("p", "a", "b"))) == 2


@pytest.mark.parametrize("kind", ["Pod", "PodGroup"])
def test_a_claim_from_a_template_belongs_to_the_pod_or_its_group(kind: str) -> None:
    cluster = ClaimCluster()
    cluster.claim("c", owner(kind, "p"))
    assert not problems(cluster, pod("p", made={"gpu": "c"}, group="p"))


def test_a_claim_has_only_so_many_consumers() -> None:
    cluster = ClaimCluster()
    others = [{"resource": "pods", "name": str(number), "uid": str(number)} for number in range(255)]
    first, second = pod("p", "c"), pod("q", "c")
    cluster.claim("c", status={"allocation": devices_of("a"), "reservedFor": [*others, consumer(first)]})
    assert not problems(cluster, first)
    assert problems(cluster, second) == (
        "the resource claim lab/c is used by 256 pods, which is the maximum",
    )


def test_without_the_api_a_pod_with_claims_waits() -> None:
    claims = ClusterClaims(is_served=False)
    [problem] = claims.tags(pod("p", "c")).problems
    assert problem.startswith("the pod has resource claims (spec.resourceClaims), but the API server has no")
    assert not claims.tags(pod("q")).problems


def test_requests_from_equal_templates_are_equal() -> None:
    cluster = ClaimCluster()
    texts = set()
    for name in ("p", "q"):
        cluster.claim(f"of-{name}", owner("Pod", name))
        one = pod(name, made={"gpu": f"of-{name}"})
        assert not problems(cluster, one)
        texts.add(cluster.claims.tags(one).tags[TAG_CLAIMS])
    assert len(texts) == 1


def test_pods_with_a_node_have_their_devices() -> None:
    cluster = ClaimCluster()
    one = pod("p", "c", node="n1")
    cluster.add(one)
    cluster.claim("c", status={"allocation": devices_of("a"), "reservedFor": [consumer(one)]})
    [found] = read_device_allocations(cluster.claims.tags(one).tags[TAG_DEVICES])
    assert [result.device.device for result in found.allocation.results] == ["a"]
    assert TAG_CLAIMS not in cluster.claims.tags(one).tags
    assert not claimed(cluster)


def test_nodes_have_their_slices_and_devices_without_a_pod() -> None:
    cluster = ClaimCluster()
    slices = json.loads(cluster.claims.attributes("n1")[NODE_SLICES])
    assert [one["metadata"]["name"] for one in slices] == ["n1-a"]
    one = pod("p", "c")
    cluster.add(one)
    status = {"allocation": devices_of("a"), "reservedFor": [consumer(one)]}
    cluster.claim("c", status=status)
    # The pod waits, so that no allocation of the core has the device.
    assert claimed(cluster) == ["a"]
    cluster.claims.assume("uid-p")
    assert not claimed(cluster)
    cluster.claims.forget("uid-p")
    assert claimed(cluster) == ["a"]
    cluster.add(pod("p", "c", node="n1"))
    assert not claimed(cluster)
    cluster.claims.remove_pod("uid-p")
    assert claimed(cluster) == ["a"]
    cluster.claim("c")
    assert not claimed(cluster)


def changed(cluster: ClaimCluster, thing: Any = None) -> tuple[set[str], set[str]]:
    """Return the pods and nodes that a change concerns."""
    if thing is not None:
        cluster.claims.update(thing)
    found = cluster.claims.changes()
    return {*found.pods}, {*found.nodes}


def test_a_change_concerns_the_pods_and_nodes_that_depend_on_it() -> None:
    cluster = ClaimCluster()
    cluster.add(pod("p", "c"), pod("q", "d"))
    changed(cluster)
    cluster.claim("c")
    assert changed(cluster) == ({"uid-p"}, set())
    cluster.claim("c", status={"allocation": devices_of("a")})
    assert changed(cluster) == ({"uid-p"}, {"n1"})
    more = resource_slice("n1-b", device("c"), node="n1", count=2)
    assert changed(cluster, msgspec.convert(more, ResourceSliceObject)) == (set(), {"n1"})
    other = msgspec.convert(device_class("other"), DeviceClassObject)
    assert changed(cluster, other) == ({"uid-p", "uid-q"}, {"n1"})
    assert changed(cluster) == (set(), set())


def test_an_object_that_cannot_be_read_harms_no_other() -> None:
    cluster = ClaimCluster()
    cluster.claims.update(msgspec.convert({"metadata": {"name": "bad"}}, ResourceSliceObject))
    assert NODE_SLICES in cluster.claims.attributes("n1")
