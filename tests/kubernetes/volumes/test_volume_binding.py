"""Predicate `volume-binding`: bound volumes, free volumes, volumes that are yet to be made, and the books."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.volumes.kit import Cluster
from tests.kubernetes.volumes.objects import (
    MANY,
    ZONE,
    capacity,
    claim,
    csi_node,
    driver,
    host,
    on_label,
    pod,
    storage_class,
    volume,
)
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence

LOCAL = storage_class("local")
HOSTS = host("n1", zone="a"), host("n2", zone="b"), host("n3", zone="b")


def fits(*things: Any) -> str:
    """Return the nodes of HOSTS on which the pod `job` fits."""
    return Cluster(LOCAL, *HOSTS, *things).fits("job")


# -- bound volumes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (None, "n1 n2 n3"),
        ({}, "n1 n2 n3"),
        ({"required": {"nodeSelectorTerms": []}}, ""),
        ({"required": {"nodeSelectorTerms": [{}]}}, ""),
        (on_label(ZONE, "b"), "n2 n3"),
        (on_label(ZONE, "a", "b"), "n1 n2 n3"),
        (on_label("rack", "7"), ""),
    ],
)
def test_a_bound_volume_restricts_the_pod_to_the_nodes_of_its_affinity(affinity: Any, expected: str) -> None:
    disk = volume("disk", phase="Bound", claim="lab/data/uid-data", nodeAffinity=affinity)
    assert fits(disk, claim("data", bound="disk"), pod("job", "data")) == expected


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ({"operator": "In", "values": ["7", "9"]}, "n1"),
        ({"operator": "NotIn", "values": ["7"]}, "n2 n3"),
        ({"operator": "Exists"}, "n1 n2"),
        ({"operator": "DoesNotExist"}, "n3"),
        ({"operator": "Gt", "values": ["7"]}, "n2"),
        ({"operator": "Lt", "values": ["8"]}, "n1"),
        ({"operator": "Gt", "values": ["many"]}, ""),
        ({"operator": "Like", "values": ["7"]}, ""),
        ({"operator": "In", "values": []}, ""),
    ],
)
def test_the_terms_of_an_affinity_have_the_operators_of_kubernetes(
    requirement: dict[str, Any], expected: str
) -> None:
    cluster = Cluster(host("n1", rack="7"), host("n2", rack="8"), host("n3"))
    terms = [{"matchExpressions": [{"key": "rack", **requirement}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}}
    cluster.add(volume("disk", nodeAffinity=affinity), claim("data", bound="disk"), pod("job", "data"))
    assert cluster.fits("job") == expected


def test_a_volume_of_a_migrated_plugin_has_the_topology_of_its_driver_where_the_plugin_is_migrated() -> None:
    zone = "topology.ebs.csi.aws.com/zone"
    cluster = Cluster(
        host("old", zone="a"),
        host("new", **{zone: "a"}),
        host("far", **{zone: "b", "zone": "a"}),
        csi_node("new", migrated="kubernetes.io/aws-ebs,kubernetes.io/cinder"),
        csi_node("far", migrated="kubernetes.io/aws-ebs"),
        volume("disk", nodeAffinity=on_label(ZONE, "a"), awsElasticBlockStore={"volumeID": "vol-1"}),
        claim("data", bound="disk"),
        pod("job", "data"),
    )
    assert cluster.fits("job") == "old new"


# -- free volumes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("free", "wanted", "expected"),
    [
        ({}, {}, "n1"),
        ({"size": "5Gi"}, {}, "n1"),
        ({"size": "4Gi"}, {}, ""),
        ({"phase": "Released"}, {}, ""),
        ({"storage_class": "other"}, {}, ""),
        ({"modes": [MANY]}, {}, ""),
        ({"modes": [MANY, "ReadWriteOnce"]}, {}, "n1"),
        ({"volumeMode": "Block"}, {}, ""),
        ({"volumeMode": "Block"}, {"volumeMode": "Block"}, "n1"),
        ({}, {"volumeAttributesClassName": "gold"}, ""),
        ({"volumeAttributesClassName": "gold"}, {"volumeAttributesClassName": "gold"}, "n1"),
        ({}, {"selector": {"matchLabels": {"disk": "ssd"}}}, ""),
        ({"labels": {"disk": "ssd"}}, {"selector": {"matchLabels": {"disk": "ssd"}}}, "n1"),
        ({}, {"selector": {}}, "n1"),
        ({"claim": "lab/data/uid-data"}, {}, "n1"),
        ({"claim": "lab/data"}, {}, "n1"),
        ({"claim": "lab/data/uid-of-an-earlier-claim"}, {}, ""),
        ({"claim": "lab/other"}, {}, ""),
        ({"claim": "lab/data", "modes": [MANY], "phase": "Bound"}, {}, "n1"),
        ({"claim": "lab/data", "size": "4Gi"}, {}, ""),
    ],
)
def test_a_waiting_claim_needs_a_free_volume_that_suits(
    free: dict[str, Any], wanted: dict[str, Any], expected: str
) -> None:
    assert fits(volume("disk", host="n1", **free), claim("data", **wanted), pod("job", "data")) == expected


def test_a_volume_that_is_bound_to_the_claim_is_the_only_one() -> None:
    ours = volume("ours", host="n2", claim="lab/data")
    assert fits(volume("free", host="n1"), ours, claim("data"), pod("job", "data")) == "n2"


def test_volumes_of_several_hosts_are_free_on_each() -> None:
    shared = volume("net", nodeAffinity=on_label(ZONE, "b"))
    assert fits(shared, claim("data"), pod("job", "data")) == "n2 n3"


def test_each_claim_of_a_pod_gets_a_volume_of_its_own() -> None:
    disks = [volume(f"d{number}", host=name) for number, name in enumerate(["n1", "n2", "n2"])]
    pods = claim("one"), claim("two"), pod("job", "one", "two")
    assert fits(*disks, *pods) == "n2"


def test_a_claim_takes_no_volume_that_another_claim_of_the_pod_needs() -> None:
    disks = volume("a", host="n1", labels={"disk": "ssd"}), volume("b", host="n1")
    ssd = claim("ssd", selector={"matchLabels": {"disk": "ssd"}})
    cluster = Cluster(LOCAL, *HOSTS, *disks, claim("any"), ssd, pod("job", "any", "ssd"))
    assert cluster.fits("job") == "n1"
    assert cluster.volumes.assume("job", "n1").bindings == {"lab/any": "b", "lab/ssd": "a"}


# -- volumes that are yet to be made ----------------------------------------------------------------------


def fast(**more: Any) -> Any:
    return storage_class("fast", "disk.csi", **more)


def wanting(size: str = "5Gi", **more: Any) -> tuple[Any, ...]:
    return claim("data", size, storage_class="fast", **more), pod("job", "data")


def test_a_class_with_a_provisioner_makes_volumes_everywhere() -> None:
    assert fits(fast(), *wanting()) == "n1 n2 n3"


def test_a_class_makes_volumes_in_its_topologies_only() -> None:
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b", "c"]}]}, {"matchLabelExpressions": []}]
    assert fits(fast(allowedTopologies=terms), *wanting()) == "n2 n3"


def test_a_claim_whose_volume_is_being_made_stays_on_its_node() -> None:
    selected = {"volume.kubernetes.io/selected-node": "n2"}
    assert fits(fast(), *wanting(annotations=selected)) == "n2"


@pytest.mark.parametrize(
    ("things", "expected"),
    [
        ([], "n1 n2 n3"),
        ([driver("disk.csi")], "n1 n2 n3"),
        ([driver("disk.csi", capacity=True)], ""),
        ([driver("disk.csi", capacity=True), capacity("c", "5Gi", host="n1")], "n1"),
        ([driver("disk.csi", capacity=True), capacity("c", "4Gi", host="n1")], ""),
        ([driver("disk.csi", capacity=True), capacity("c", "9Gi", largest="4Gi", host="n1")], ""),
        ([driver("disk.csi", capacity=True), capacity("c", "1Gi", largest="5Gi", zone="b")], "n2 n3"),
        ([driver("disk.csi", capacity=True), capacity("c", "9Gi", storage_class="slow", zone="b")], ""),
        ([driver("disk.csi", capacity=True), capacity("c", "9Gi")], ""),
        ([driver("disk.csi"), capacity("c", "1Gi", host="n1")], "n1 n2 n3"),
    ],
)
def test_a_driver_may_limit_new_volumes_by_its_capacity(things: list[Any], expected: str) -> None:
    assert fits(fast(), *things, *wanting()) == expected


def test_reasons_name_what_is_missing() -> None:
    cluster = Cluster(LOCAL, fast(), driver("disk.csi", capacity=True), *HOSTS)
    cluster.add(volume("disk", host="n1"), *(claim(f"c{number}") for number in range(3)))
    cluster.add(claim("new", storage_class="fast"), claim("data", bound="disk"))
    cluster.add(pod("two", "c0", "c1"), pod("one", "c2"), pod("made", "new"), pod("bound", "data"))
    assert [
        cluster.refusal("one", "n2"),
        cluster.refusal("two", "n1"),
        cluster.refusal("made", "n1"),
        cluster.refusal("bound", "n2"),
    ] == [
        f"volume-binding: {RefusalSentence.NO_VOLUME}: no free volume of storage class local suits",
        f"volume-binding: {RefusalSentence.NO_VOLUME}: too few free volumes of storage class local suit",
        f"volume-binding: {RefusalSentence.NO_STORAGE}: not enough storage capacity of storage class fast",
        f"volume-binding: {RefusalSentence.VOLUME_AFFINITY}:"
        " the node affinity of volume disk excludes the node",
    ]


# -- books ------------------------------------------------------------------------------------------------


def two_disks() -> Cluster:
    cluster = Cluster(LOCAL, *HOSTS, volume("d1", host="n1"), volume("d2", host="n2"))
    for number in range(4):
        cluster.add(claim(f"c{number}"), pod(f"p{number}", f"c{number}"))
    return cluster


def test_no_two_placed_pods_get_one_volume() -> None:
    cluster = two_disks()
    assert cluster.fits("p0") == "n1 n2"
    cluster.place("p0", "n1")
    assert cluster.fits("p1") == "n2"
    cluster.place("p1", "n2")
    assert cluster.fits("p2") == ""
    cluster.release("p0")
    assert cluster.fits("p2") == "n1"


def test_the_volume_stays_taken_while_it_is_being_bound() -> None:
    cluster = two_disks()
    cluster.place("p0", "n1")
    assert cluster.volumes.assume("p0", "n1").bindings == {"lab/c0": "d1"}
    cluster.add()
    assert [cluster.fits("p0"), cluster.fits("p1")] == ["n1", "n2"]
    cluster.add(volume("d1", host="n1", claim="lab/c0/uid-c0"))
    assert cluster.fits("p1") == "n2"
    cluster.add(volume("d1", host="n1", claim="lab/c0/uid-c0", phase="Bound"), claim("c0", bound="d1"))
    assert cluster.fits("p1") == "n2"
    cluster.release("p0")
    assert [cluster.fits("p0"), cluster.fits("p1")] == ["n1", "n2"]


def test_a_failed_binding_gives_the_volume_back() -> None:
    cluster = two_disks()
    cluster.place("p0", "n1")
    cluster.volumes.assume("p0", "n1")
    cluster.add()
    cluster.volumes.forget("p0")
    cluster.release("p0")
    cluster.add()
    assert [cluster.fits("p0"), cluster.fits("p1")] == ["n1 n2", "n1 n2"]


def test_volumes_of_several_hosts_are_counted_over_all_nodes() -> None:
    cluster = Cluster(LOCAL, *HOSTS, volume("net", nodeAffinity=on_label(ZONE, "b")), volume("d2", host="n2"))
    for number in range(3):
        cluster.add(claim(f"c{number}"), pod(f"p{number}", f"c{number}"))
    cluster.place("p0", "n3")
    assert cluster.fits("p1") == "n2"
    cluster.place("p1", "n2")
    assert cluster.fits("p2") == ""
    cluster.release("p0")
    # The other pod may have either volume, hence both nodes are open.
    assert cluster.fits("p2") == "n2 n3"


def test_pods_that_share_a_waiting_claim_go_to_one_node_until_its_volume_is_chosen() -> None:
    cluster = Cluster(LOCAL, *HOSTS, *(volume(f"d{n}", modes=[MANY]) for n in range(2)))
    cluster.add(claim("data", modes=[MANY]), pod("one", "data"), pod("two", "data"))
    cluster.place("one", "n2")
    assert cluster.fits("two") == "n2"
    assert cluster.volumes.assume("one", "n2").bindings == {"lab/data": "d0"}
    cluster.add()
    assert cluster.fits("two") == "n1 n2 n3"


def test_pods_that_share_a_claim_whose_volume_is_made_go_to_one_node() -> None:
    cluster = Cluster(fast(), *HOSTS, claim("data", storage_class="fast"))
    cluster.add(pod("one", "data"), pod("two", "data"))
    cluster.place("one", "n2")
    assert cluster.fits("two") == "n2"
    assert cluster.volumes.assume("one", "n2").provisions == ("lab/data",)
    cluster.add()
    cluster.release("one")
    assert cluster.fits("two") == "n2"
    cluster.volumes.forget("one")
    cluster.add()
    assert cluster.fits("two") == "n1 n2 n3"
