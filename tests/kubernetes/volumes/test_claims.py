"""Claims that keep a pod from being scheduled, and what the shim sends again when objects change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.volumes.kit import Cluster
from tests.kubernetes.volumes.objects import (
    attachment,
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
from yunikorn_kubernetes.names import TAG_VOLUME_CANDIDATES
from yunikorn_kubernetes.volumes.cluster_volumes import ClusterVolumes, VolumeConflict

NOW = storage_class("now", "disk.csi", mode="Immediate")
USUAL = pod("job", "data")
OWN = pod("job", ephemeral=["tmp"])


@pytest.mark.parametrize(
    ("things", "problems"),
    [
        ([USUAL], ["claim lab/data does not exist"]),
        ([OWN], ["waiting for Kubernetes to make the claim lab/job-tmp of an ephemeral volume"]),
        (
            [OWN, claim("job-tmp", bound="disk"), volume("disk")],
            ["claim lab/job-tmp was not made for the pod: delete the claim, or rename the pod or its volume"],
        ),
        ([OWN, claim("job-tmp", bound="disk", owner="job"), volume("disk")], []),
        ([USUAL, claim("data", bound="disk"), volume("disk")], []),
        (
            [USUAL, claim("data", bound="disk", deleting=True), volume("disk")],
            ["claim lab/data is being deleted"],
        ),
        (
            [USUAL, claim("data", bound="disk", phase="Lost")],
            ["claim lab/data is lost: its volume disk does not exist any more"],
        ),
        ([USUAL, claim("data", bound="disk")], ["volume disk of claim lab/data does not exist"]),
        ([USUAL, claim("data", volumeName="disk")], ["claim lab/data is not yet bound to volume disk"]),
        (
            [USUAL, claim("data", storage_class=None)],
            ["claim lab/data has no storage class and is not yet bound to a volume"],
        ),
        ([USUAL, claim("data")], ["storage class local of claim lab/data does not exist"]),
        (
            [USUAL, NOW, claim("data", storage_class="now")],
            ["claim lab/data is not yet bound to a volume of storage class now"],
        ),
        ([USUAL, storage_class(), claim("data")], []),
        ([pod("job", "data", "more"), storage_class(), claim("data")], ["claim lab/more does not exist"]),
    ],
)
def test_problems_of_claims(things: list[Any], problems: list[str]) -> None:
    assert list(Cluster(*things).problems("job")) == problems


def test_a_pod_without_volumes_that_matter_has_no_tags() -> None:
    cluster = Cluster(pod("job", volumes=[{"emptyDir": {}}]))
    assert cluster.volumes.tags("job").tags == {}
    assert cluster.volumes.tags("unknown").tags == {}


# -- changes ----------------------------------------------------------------------------------------------


def watched() -> ClusterVolumes:
    """Return a cluster with local, shared and made volumes, of which everything has been sent."""
    cluster = Cluster(
        storage_class(),
        storage_class("fast", "disk.csi"),
        NOW,
        host("n1", zone="a"),
        host("n2", zone="b"),
        csi_node("n1", disk_csi=5),
        volume("disk", csi={"driver": "disk.csi", "volumeHandle": "disk"}, claim="lab/bound/uid-bound"),
        claim("bound", bound="disk"),
        claim("local"),
        claim("fast", storage_class="fast"),
        claim("now", storage_class="now"),
    )
    for name in ("bound", "local", "fast", "now", "missing"):
        cluster.add(pod(name, name))
        cluster.volumes.tags(name)
    cluster.volumes.changes()
    return cluster.volumes


@pytest.mark.parametrize(
    ("thing", "pods", "nodes"),
    [
        (volume("v", host="n1"), "", "n1"),
        (volume("v", nodeAffinity=on_label("zone", "a")), "local", ""),
        (volume("v", storage_class="other"), "", ""),
        (volume("v", phase="Pending", host="n1"), "", ""),
        (volume("v", claim="lab/local", host="n2"), "local", ""),
        (claim("missing", storage_class="now"), "missing", ""),
        (claim("unused"), "", ""),
        (claim("now", bound="disk"), "now", ""),
        (driver("disk.csi", capacity=True), "fast", ""),
        (storage_class("fast", "other.csi"), "fast", ""),
        (capacity("c", "9Gi", host="n2"), "", "n2"),
        (capacity("c", "9Gi", zone="a"), "", "n1"),
        (csi_node("n1", disk_csi=6), "", "n1"),
        (csi_node("n1", disk_csi=5), "", ""),
        (attachment("a", "n1", "disk"), "", "n1"),
        (attachment("a", "n2", "disk"), "", ""),
        (host("n2", zone="c"), "", ""),
        (pod("twin", "fast"), "fast", ""),
    ],
)
def test_only_what_depends_on_a_change_is_sent_again(thing: Any, pods: str, nodes: str) -> None:
    volumes = watched()
    match thing.__class__.__name__:
        case "Pod":
            volumes.add_pod(thing)
        case "Node":
            volumes.add_node(thing)
        case _:
            volumes.update(thing)
    changes = volumes.changes()
    assert (" ".join(changes.pods), " ".join(changes.nodes)) == (pods, nodes)
    assert not volumes.changes()


def test_pods_of_one_storage_class_share_the_text_of_the_free_volumes() -> None:
    volumes = ClusterVolumes()
    volumes.update(storage_class())
    for number in range(3):
        volumes.update(volume(f"net{number}"))
        volumes.update(claim(f"c{number}"))
        volumes.add_pod(pod(f"p{number}", f"c{number}"))
    texts = [volumes.tags(f"p{number}").tags[TAG_VOLUME_CANDIDATES] for number in range(3)]
    assert texts[0] is texts[1] is texts[2]
    volumes.update(volume("net1"), exists=False)
    assert {TAG_VOLUME_CANDIDATES in one.tags for one in volumes.changes().pods.values()} == {True}
    assert "net1" not in volumes.tags("p0").tags[TAG_VOLUME_CANDIDATES]


def test_nothing_is_kept_of_pods_and_nodes_that_are_gone() -> None:
    volumes = watched()
    volumes.update(volume("v", host="n1"))
    volumes.assume("local", "n1")
    for name in ("bound", "local", "fast", "now", "missing"):
        volumes.remove_pod(name)
    volumes.remove_node("n1")
    volumes.remove_node("n2")
    assert not volumes.changes()
    volumes.remove_pod("local")
    volumes.add_pod(pod("local", "local"))
    volumes.add_node(host("n1"))
    assert volumes.assume("local", "n1").bindings == {"lab/local": "v"}


# -- assumptions ------------------------------------------------------------------------------------------


def test_the_smallest_volume_that_suits_is_chosen_and_a_volume_is_made_only_without_one() -> None:
    cluster = Cluster(storage_class("fast", "disk.csi"), host("n1"))
    for number, size in enumerate(("20Gi", "6Gi", "8Gi", "3Gi")):
        cluster.add(volume(f"v{number}", size, host="n1", storage_class="fast"))
    sizes = {"a": "7Gi", "b": "5Gi", "c": "30Gi"}
    cluster.add(
        *(claim(name, size, storage_class="fast") for name, size in sizes.items()), pod("job", *sizes)
    )
    found = cluster.volumes.assume("job", "n1")
    assert found.bindings == {"lab/a": "v2", "lab/b": "v1"}
    assert found.provisions == ("lab/c",)


def test_an_assumption_fails_cleanly_where_another_pod_was_faster() -> None:
    cluster = Cluster(storage_class(), host("n1"), volume("v", host="n1"))
    for name in ("one", "two"):
        cluster.add(claim(name), pod(name, name))
    assert cluster.volumes.assume("one", "n1")
    with pytest.raises(VolumeConflict, match="no free volume of storage class local suits"):
        cluster.volumes.assume("two", "n1")
    with pytest.raises(VolumeConflict, match="node n9 does not exist any more"):
        cluster.volumes.assume("two", "n9")
    cluster.volumes.forget("one")
    assert cluster.volumes.assume("two", "n1").bindings == {"lab/two": "v"}


def test_a_choice_does_not_hide_changes_from_those_that_are_reported() -> None:
    volumes = ClusterVolumes()
    for thing in (storage_class(), volume("v"), claim("data")):
        volumes.update(thing)
    volumes.add_node(host("n1"))
    volumes.add_pod(pod("job", "data"))
    volumes.tags("job")
    volumes.update(volume("v", claim="lab/data/uid-data", phase="Bound"))
    volumes.update(claim("data", bound="v"))
    assert not volumes.assume("job", "n1")
    assert list(volumes.changes().pods) == ["job"]


def test_a_pod_whose_claims_are_bound_or_that_is_unknown_has_nothing_to_bind() -> None:
    cluster = Cluster(host("n1"), volume("v"), claim("data", bound="v"), pod("job", "data"))
    assert not cluster.volumes.assume("job", "n1")
    assert not cluster.volumes.assume("unknown", "n1")


def test_a_claim_that_was_bound_elsewhere_after_the_decision_is_a_conflict() -> None:
    cluster = Cluster(
        host("n1"), host("n2"), volume("v", host="n2"), claim("data", bound="v"), pod("job", "data")
    )
    with pytest.raises(VolumeConflict, match="the node affinity of volume v excludes the node"):
        cluster.volumes.assume("job", "n1")


def test_an_assumption_names_the_problem_of_a_claim() -> None:
    cluster = Cluster(host("n1"), pod("job", "data"))
    with pytest.raises(VolumeConflict, match="claim lab/data does not exist"):
        cluster.volumes.assume("job", "n1")
