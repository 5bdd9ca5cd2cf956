"""Pods with volumes, from their claims to the binding, in a cluster that `yunikorn kubernetes` schedules."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import nodes, phase, pod
from tests.kubernetes.cluster.volumes import Provisioner, claim, local_volume, storage_class, with_claims
from tests.kubernetes.scheduling import Scheduled

LOCAL = storage_class("local", provisioner="kubernetes.io/no-provisioner")
FAST = storage_class("fast")


def using(name: str, *claims: str, **fields: Any) -> Obj:
    """Return a pod that uses claims."""
    return pod(name, volumes=with_claims(*claims), **fields)


def volume_of(scheduled: Scheduled, name: str) -> str:
    """Wait until a claim is bound; return its volume."""

    def bound(found: Obj) -> str:
        return str(found["spec"].get("volumeName", "")) if phase(found) == "Bound" else ""

    return scheduled.kubectl.wait_for("PersistentVolumeClaim", name, bound)


def test_pods_get_the_local_volumes_and_run_where_these_are(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(3))
    scheduled.kubectl.create_all([LOCAL, *(local_volume(f"d{n}", "local", f"node-{n}") for n in range(2))])
    scheduled.kubectl.create_all([claim(f"c{number}", "local") for number in range(3)])
    scheduled.kubectl.create_all([using(f"p{number}", f"c{number}") for number in range(3)])
    running = scheduled.running(2)
    waiting = next(name for name in ("p0", "p1", "p2") if name not in running)
    scheduled.pending(waiting, "no free volume of storage class local suits")
    for name, node in running.items():
        assert volume_of(scheduled, f"c{name[1:]}") == f"d{node[-1]}"
    scheduled.kubectl.create(local_volume("d2", "local", "node-2"))
    assert scheduled.node_of(waiting) == "node-2"


def test_volumes_are_made_for_the_nodes_of_their_pods(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(3))
    names = [f"p{number}" for number in range(6)]
    with Provisioner(scheduled.kubectl):
        scheduled.kubectl.create_all([FAST, *(claim(name, "fast") for name in names)])
        scheduled.kubectl.create_all([using(name, name) for name in names])
        running = scheduled.running(6)
    for name, node in running.items():
        made = scheduled.kubectl.get("PersistentVolume", volume_of(scheduled, name))
        (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == [node]
    assert len({volume_of(scheduled, name) for name in names}) == 6


def test_a_pod_waits_for_its_claims_and_says_so(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(1))
    scheduled.kubectl.create_all([storage_class("now", late=False), using("p", "data")])
    assert "claim default/data does not exist" in scheduled.events("FailedScheduling", regarding="p")
    with Provisioner(scheduled.kubectl):
        scheduled.kubectl.create(claim("data", "now"))
        assert scheduled.node_of("p") == "node-0"


def test_a_pod_is_placed_again_when_its_volume_cannot_be_made(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2))
    with Provisioner(scheduled.kubectl, full=["node-0"]):
        scheduled.kubectl.create_all([FAST, claim("data", "fast"), using("p", "data")])
        # The node order may choose the full node first; the pod must not stay there.
        scheduled.kubectl.create_all([claim(f"more-{number}", "fast") for number in range(3)])
        scheduled.kubectl.create_all([using(f"q{number}", f"more-{number}") for number in range(3)])
        assert set(scheduled.running(4).values()) == {"node-1"}


def test_ephemeral_volumes_and_shared_claims(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2))
    template = {"metadata": {}, "spec": claim("", "fast")["spec"]}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    with Provisioner(scheduled.kubectl):
        scheduled.kubectl.create_all([FAST, claim("shared", "fast", mode="ReadWriteMany")])
        scheduled.kubectl.create_all([using(f"p{number}", "shared") for number in range(3)])
        scheduled.kubectl.create(pod("e", volumes=[scratch]))
        running = scheduled.running(4)
    assert len({running[f"p{number}"] for number in range(3)}) == 1
    assert volume_of(scheduled, "e-scratch")


def test_a_claim_for_one_pod_is_used_by_one_pod_at_a_time(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2))
    with Provisioner(scheduled.kubectl):
        scheduled.kubectl.create_all(
            [FAST, claim("data", "fast", mode="ReadWriteOncePod"), using("p", "data")]
        )
        scheduled.node_of("p")
        scheduled.kubectl.create(using("q", "data"))
        scheduled.pending("q", "ReadWriteOncePod")
        scheduled.kubectl.delete("Pod", "p", grace=0)
        scheduled.node_of("q")
