"""Workloads with claims: volumes stay with their pods, and pods wait for volumes that suit them."""

from __future__ import annotations

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import node, nodes, phase, pod, stateful_set
from tests.kubernetes.cluster.volumes import (
    Provisioner,
    claim,
    local_volume,
    storage_class,
    with_claims,
)
from tests.kubernetes.scheduling import Scheduled

LOCAL = "kubernetes.io/no-provisioner"


def volume_of(scheduled: Scheduled, name: str) -> str:
    """Wait until a claim is bound; return its volume."""
    found: str = scheduled.kubectl.wait_for(
        "PersistentVolumeClaim", name, lambda one: phase(one) == "Bound" and one["spec"]["volumeName"]
    )
    return found


def test_a_pod_waits_for_a_local_volume_that_is_large_enough(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2))
    scheduled.create(storage_class("local", provisioner=LOCAL))
    scheduled.create(local_volume("small", "local", "node-0", size="1Gi"), claim("data", "local", size="5Gi"))
    scheduled.create(pod("db", volumes=with_claims("data")))
    scheduled.pending("db")
    scheduled.create(local_volume("large", "local", "node-1", size="10Gi"))
    assert scheduled.node_of("db") == "node-1"
    assert volume_of(scheduled, "data") == "large"


def test_each_pod_gets_a_local_volume_of_its_own(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(3))
    scheduled.create(storage_class("local", provisioner=LOCAL))
    scheduled.create(*(local_volume(f"disk-{number}", "local", f"node-{number}") for number in range(3)))
    scheduled.create(_store("local", replicas=4))
    placed = scheduled.bound(3)
    assert sorted(placed.values()) == ["node-0", "node-1", "node-2"]
    assert scheduled.pending(next(iter({f"store-{number}" for number in range(4)} - set(placed))))


def test_a_stateful_set_gets_volumes_that_stay_with_its_pods(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2))
    scheduled.create(storage_class("fast"))
    with Provisioner(scheduled.kubectl):
        scheduled.create(_store("fast", replicas=2))
        before = scheduled.running(2)
        for name in before:
            _replace(scheduled, name)
        # The volumes can be reached from these nodes only.
        assert scheduled.running(2) == before


def test_an_immediate_claim_is_waited_for(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    scheduled.create(storage_class("now", late=False), claim("data", "now"))
    scheduled.create(pod("db", volumes=with_claims("data")))
    scheduled.pending("db", "data")
    with Provisioner(scheduled.kubectl):
        assert scheduled.node_of("db") == "only"


def test_a_pod_waits_for_a_claim_that_does_not_exist_yet(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    scheduled.create(storage_class("local", provisioner=LOCAL), local_volume("disk", "local", "only"))
    scheduled.create(pod("db", volumes=with_claims("data")))
    scheduled.pending("db", "data")
    scheduled.create(claim("data", "local"))
    assert scheduled.node_of("db") == "only"


def _replace(scheduled: Scheduled, name: str) -> None:
    """Delete a pod of a StatefulSet, and wait until it has a successor of the same name."""
    old = scheduled.kubectl.get("Pod", name)["metadata"]["uid"]
    scheduled.kubectl.delete("Pod", name)
    scheduled.kubectl.wait_for("Pod", name, lambda one: one["metadata"]["uid"] != old)


def _store(storage: str, *, replicas: int) -> Obj:
    """Return a StatefulSet with a claim per pod."""
    built = stateful_set("store", replicas=replicas)
    made = claim("data", storage)
    del made["metadata"]["namespace"]
    built["spec"]["volumeClaimTemplates"] = [made]
    return built
