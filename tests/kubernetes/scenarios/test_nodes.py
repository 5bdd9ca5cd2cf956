"""Nodes come, change, are cordoned and go, with pods on them."""

from __future__ import annotations

from tests.kubernetes.cluster.objects import deployment, node, nodes, pod
from tests.kubernetes.scheduling import Scheduled


def test_a_cordoned_node_keeps_its_pods_and_gets_no_more(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    scheduled.create(pod("before"))
    scheduled.running(1)
    scheduled.change_node("only", lambda one: not one["schedulable"], {"spec": {"unschedulable": True}})
    scheduled.create(pod("after"))
    scheduled.pending("after")
    scheduled.running(1)
    scheduled.kubectl.patch("Node", "only", {"spec": {"unschedulable": None}})
    scheduled.running(2)


def test_a_new_node_is_used_at_once(scheduled: Scheduled) -> None:
    scheduled.create(deployment("web", replicas=4))
    scheduled.make_nodes(node("first", cpu="1"))
    scheduled.running(1)
    scheduled.make_nodes(node("second", cpu="3"))
    assert sorted(scheduled.running(4).values()) == ["first", "second", "second", "second"]


def test_changed_resources_of_a_node_count(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="1"))
    scheduled.create(deployment("web", replicas=5))
    scheduled.running(1)
    larger = {"status": {"allocatable": {"cpu": "3"}, "capacity": {"cpu": "3"}}}
    scheduled.kubectl.patch("Node", "only", larger, subresource="status")
    scheduled.running(3)
    smaller = {"status": {"allocatable": {"cpu": "1"}, "capacity": {"cpu": "1"}}}
    scheduled.change_node("only", lambda one: one["capacity"]["vcore"] == 1000, smaller, "status")
    # The pods continue, but their room is given to no other pod.
    scheduled.kubectl.patch("Deployment", "web", {"spec": {"replicas": 2}})
    scheduled.wait_pods(lambda pods: len(pods) == 2)
    scheduled.create(pod("one-more"))
    scheduled.pending("one-more")


def test_an_extended_resource_of_a_node_is_counted(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("plain"), node("gpus", resources={"nvidia.com/gpu": "2"}))
    gpu = [{"name": "main", "image": "pause", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    scheduled.create(deployment("train", replicas=3, containers=gpu))
    assert set(scheduled.running(2).values()) == {"gpus"}


def test_the_number_of_pods_of_a_node_is_limited(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", pods=2))
    scheduled.create(deployment("web", replicas=3, cpu="10m", memory="1Mi"))
    scheduled.running(2)
    waiting = [
        name
        for name, one in scheduled.wait_pods(lambda pods: len(pods) == 3).items()
        if "nodeName" not in one["spec"]
    ]
    assert "pods" in scheduled.pending(waiting[0])


def test_pods_of_a_deleted_node_are_placed_elsewhere(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2, cpu="2"))
    scheduled.create(deployment("web", replicas=4))
    placed = scheduled.running(4)
    scheduled.kubectl.delete("Node", "node-0")
    for name, where in placed.items():
        if where == "node-0":
            # The garbage collector of pods would do this a minute later.
            scheduled.kubectl.delete("Pod", name, grace=0)
    scheduled.make_nodes(node("new", cpu="2"))
    assert sorted(scheduled.running(4).values()) == ["new", "new", "node-1", "node-1"]


def test_a_node_that_returns_under_its_name_keeps_what_runs(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="3"))
    scheduled.create(deployment("web", replicas=2))
    before = scheduled.running(2)
    scheduled.kubectl.delete("Node", "only")
    scheduled.make_nodes(node("only", cpu="3"))
    scheduled.create(pod("third"), pod("fourth"))
    # The kubelets of the test cluster start pods of a node that has returned only a minute later.
    after = scheduled.bound(3)
    assert before.items() < after.items()
