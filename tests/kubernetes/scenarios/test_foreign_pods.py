"""Pods of other schedulers use room on nodes, but are never touched."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import container, deployment, node, phase, pod
from tests.kubernetes.scheduling import Scheduled


def foreign(name: str, node_name: str = "", **arguments: Any) -> Obj:
    """Return a pod of another scheduler."""
    more: Obj = {"nodeName": node_name} if node_name else {}
    return pod(name, scheduler="default-scheduler", **arguments, **more)


def used(scheduled: Scheduled, name: str = "only") -> int:
    """Return the millicores of foreign pods on a node, as REST shows them."""
    [found] = [one for one in scheduled.rest("/ws/v1/partition/default/nodes") if one["nodeID"] == name]
    return int(found.get("occupied", {}).get("vcore", 0))


def test_pods_of_another_scheduler_use_room_until_they_end(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="4"))
    other = scheduled.kubectl.create(foreign("other", cpu="3"))
    scheduled.kubectl.bind(other, "only")
    scheduled.running(1)
    scheduled.create(deployment("web", replicas=2))
    scheduled.running(2)
    assert used(scheduled) == 3000
    scheduled.kubectl.delete("Pod", "other")
    scheduled.running(2, labels="app=web")
    assert used(scheduled) == 0


def test_a_foreign_pod_that_has_ended_uses_no_room(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="2"))
    scheduled.create(foreign("other", "only", cpu="2"))
    scheduled.running(1)
    scheduled.create(pod("ours", cpu="2"))
    scheduled.pending("ours")
    finished = {"metadata": {"annotations": {"tests.yunikorn/succeeds-after": "0s"}}}
    scheduled.kubectl.patch("Pod", "other", finished)
    assert scheduled.node_of("ours") == "only"


def test_a_foreign_pod_without_node_is_left_alone(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="1"))
    scheduled.create(foreign("other"), pod("ours"))
    scheduled.running(1)
    other = scheduled.kubectl.get("Pod", "other")
    assert phase(other) == "Pending"
    assert "nodeName" not in other["spec"]
    assert not other["status"].get("conditions")


def test_static_pods_of_a_node_use_room(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="2"))
    owner = scheduled.kubectl.get("Node", "only")
    static = foreign("kube-proxy-only", "only", cpu="1500m")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "digest"}
    static["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "name": "only",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
    ]
    scheduled.create(static, pod("large", cpu="1"), pod("small", cpu="500m"))
    assert scheduled.node_of("small") == "only"
    scheduled.pending("large")
    assert used(scheduled) == 1500


def test_pods_on_a_node_that_is_unknown_are_counted_when_it_comes(scheduled: Scheduled) -> None:
    """Such pods remain when a node is deleted, and come first in the watch when it is new."""
    scheduled.create(foreign("other", "late", cpu="2"), pod("ours", nodeName="late"))
    scheduled.make_nodes(node("late", cpu="4"))
    scheduled.running(2)
    scheduled.create(deployment("web", replicas=2))
    scheduled.running(1, labels="app=web")
    assert used(scheduled, "late") == 2000


def test_host_ports_of_foreign_pods_are_taken(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    port = [container(cpu="1", ports=[{"containerPort": 80, "hostPort": 8080}])]
    scheduled.create(foreign("other", "only", containers=port))
    scheduled.running(1)
    scheduled.create(pod("ours", containers=port))
    scheduled.pending("ours", "8080")
    scheduled.kubectl.delete("Pod", "other")
    assert scheduled.node_of("ours") == "only"
