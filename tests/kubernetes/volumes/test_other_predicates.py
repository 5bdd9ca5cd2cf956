"""Predicates `volume-restrictions`, `node-volume-limits` and `volume-zone`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.volumes.kit import Cluster
from tests.kubernetes.volumes.objects import (
    ZONE,
    attachment,
    claim,
    csi_node,
    host,
    pod,
    storage_class,
    volume,
)
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence

HOSTS = host("n1", zone="a"), host("n2", zone="b")
OLD_ZONE, REGION = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"


# -- volume-restrictions ------------------------------------------------------------------------------------


def test_a_claim_for_one_pod_is_used_by_one_pod_of_the_cluster() -> None:
    cluster = Cluster(*HOSTS, volume("disk"), claim("data", bound="disk", modes=["ReadWriteOncePod"]))
    cluster.add(pod("one", "data"), pod("two", "data"))
    assert cluster.fits("two") == "n1 n2"
    cluster.place("one", "n1")
    assert cluster.refusal("two", "n2") == (
        f"volume-restrictions: {RefusalSentence.ONCE_POD}: claim lab/data"
    )
    assert cluster.fits("two") == ""
    cluster.release("one")
    assert cluster.fits("two") == "n1 n2"


def gce(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(name: str, read_only: bool = False, lun: int = 0) -> dict[str, Any]:
    return {"iscsi": {"targetPortal": "10.0.0.1", "iqn": name, "lun": lun, "readOnly": read_only}}


def rbd(image: str, read_only: bool = False, monitors: str = "m1", pool: str = "rbd") -> dict[str, Any]:
    return {
        "rbd": {"monitors": monitors.split(), "image": image, "pool": pool, "readOnly": read_only},
    }


@pytest.mark.parametrize(
    ("running", "wanted", "conflict"),
    [
        (gce("a"), gce("a"), True),
        (gce("a"), gce("b"), False),
        (gce("a", True), gce("a", True), False),
        (gce("a", True), gce("a"), True),
        (ebs("a", True), ebs("a", True), True),
        (ebs("a"), ebs("b"), False),
        (ebs("a"), gce("a"), False),
        (iscsi("q"), iscsi("q", lun=1), True),
        (iscsi("q", True), iscsi("q", True), False),
        (iscsi("q"), iscsi("r"), False),
        (rbd("i"), rbd("i"), True),
        (rbd("i", monitors="m1 m2"), rbd("i", monitors="m2 m3"), True),
        (rbd("i", monitors="m1"), rbd("i", monitors="m2"), False),
        (rbd("i", pool="p"), rbd("i"), False),
        (rbd("i", True), rbd("i", True), False),
    ],
)
def test_disks_are_shared_on_a_node_only_if_all_pods_read(
    running: dict[str, Any], wanted: dict[str, Any], conflict: bool
) -> None:
    cluster = Cluster(*HOSTS, pod("one", volumes=[running]), pod("two", volumes=[wanted]))
    cluster.place("one", "n1")
    assert cluster.fits("two") == ("n2" if conflict else "n1 n2")


# -- node-volume-limits -------------------------------------------------------------------------------------


def csi(name: str, handle: str = "") -> Any:
    return volume(name, csi={"driver": "disk.csi", "volumeHandle": handle or name})


def limited(count: int) -> Cluster:
    """Two nodes, n1 with a limit, and four pods with a bound volume each."""
    cluster = Cluster(*HOSTS, csi_node("n1", disk_csi=count), csi_node("n2", disk_csi=None))
    for number in range(4):
        cluster.add(csi(f"v{number}"), claim(f"c{number}", bound=f"v{number}"))
        cluster.add(pod(f"p{number}", f"c{number}"))
    return cluster


def test_a_node_attaches_at_most_the_volumes_that_its_driver_allows() -> None:
    cluster = limited(2)
    cluster.place("p0", "n1")
    assert cluster.fits("p1") == "n1 n2"
    cluster.place("p1", "n1")
    assert cluster.refusal("p2", "n1") == (
        f"node-volume-limits: {RefusalSentence.VOLUME_COUNT}:"
        " 2 of 2 volumes of the driver disk.csi are in use, the pod has 1"
    )
    assert cluster.fits("p2") == "n2"
    cluster.release("p0")
    assert cluster.fits("p2") == "n1 n2"


def test_a_volume_of_several_pods_counts_once() -> None:
    cluster = limited(1)
    cluster.add(pod("again", "c0"))
    cluster.place("p0", "n1")
    assert [cluster.fits("again"), cluster.fits("p1")] == ["n1 n2", "n2"]


def test_a_limit_of_zero_takes_no_volume_and_another_driver_is_not_limited() -> None:
    cluster = limited(0)
    cluster.add(
        volume("x", csi={"driver": "other", "volumeHandle": "x"}), claim("x", bound="x"), pod("o", "x")
    )
    assert [cluster.fits("p0"), cluster.fits("o")] == ["n2", "n1 n2"]


def test_volumes_that_are_yet_to_be_made_count() -> None:
    cluster = limited(1)
    cluster.add(storage_class("fast", "disk.csi"))
    for name in ("new", "more"):
        cluster.add(claim(name, storage_class="fast"), pod(name, name))
    assert cluster.fits("new") == "n1 n2"
    cluster.place("new", "n1")
    assert [cluster.fits("p0"), cluster.fits("more")] == ["n2", "n2"]


def test_volumes_that_are_still_attached_count() -> None:
    cluster = limited(2)
    cluster.place("p0", "n1")
    cluster.add(attachment("a0", "n1", "v0"))
    assert cluster.fits("p1") == "n1 n2"
    cluster.add(attachment("a3", "n1", "v3"))
    assert cluster.fits("p1") == "n2"
    cluster.volumes.update(attachment("a3", "n1", "v3"), exists=False)
    cluster.add()
    assert cluster.fits("p1") == "n1 n2"


def test_a_volume_of_an_in_tree_plugin_counts_as_that_of_the_driver() -> None:
    limit: dict[str, Any] = {"ebs_csi_aws_com": 1}
    cluster = Cluster(*HOSTS, csi_node("n1", **limit), csi_node("n2"))
    for number in range(2):
        cluster.add(volume(f"v{number}", awsElasticBlockStore={"volumeID": f"aws://eu-1a/vol-{number}"}))
        cluster.add(claim(f"c{number}", bound=f"v{number}"), pod(f"p{number}", f"c{number}"))
        cluster.add(pod(f"inline{number}", volumes=[ebs(f"vol-{number}")]))
    cluster.place("p0", "n1")
    assert [cluster.fits("p1"), cluster.fits("inline0"), cluster.fits("inline1")] == ["n2", "n1 n2", "n2"]


# -- volume-zone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, "n1 n2 plain old"),
        ({ZONE: "a"}, "n1 plain"),
        ({ZONE: "b"}, "n2 plain"),
        ({ZONE: "a__b"}, "n1 n2 plain"),
        ({ZONE: "a__"}, "n1 n2 plain old"),
        ({OLD_ZONE: "a"}, "n1 plain old"),
        ({ZONE: "a", REGION: "r"}, "plain"),
    ],
)
def test_the_zone_of_the_node_is_among_those_of_the_volume(labels: dict[str, str], expected: str) -> None:
    cluster = Cluster(*HOSTS, host("plain"), host("old", **{OLD_ZONE: "a"}))
    cluster.add(volume("disk", labels=labels), claim("data", bound="disk"), pod("job", "data"))
    assert cluster.fits("job") == expected


def test_the_zone_of_an_ephemeral_volume_does_not_count() -> None:
    cluster = Cluster(*HOSTS, volume("disk", labels={ZONE: "a"}), pod("job", ephemeral=["tmp"]))
    cluster.add(claim("job-tmp", bound="disk", owner="job"))
    assert cluster.problems("job") == ()
    assert cluster.fits("job") == "n1 n2"
