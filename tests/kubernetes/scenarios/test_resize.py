"""Running pods change their resources in place: the room of their nodes and queues changes with them."""

from __future__ import annotations

import pytest

from tests.kubernetes.cluster import ApiFault
from tests.kubernetes.cluster.objects import node, pod
from tests.kubernetes.scheduling import QUEUES, Scheduled


def resize(scheduled: Scheduled, name: str, cpu: str) -> None:
    """Change the CPUs that a pod requests."""
    change = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
    scheduled.kubectl.patch("Pod", name, change, subresource="resize", style="strategic")


def used(scheduled: Scheduled) -> int:
    """Return the millicores of our pods on the only node, as REST shows them."""
    [found] = scheduled.rest("/ws/v1/partition/default/nodes")
    return int(found["allocated"].get("vcore", 0))


def test_a_pod_that_grows_leaves_less_room(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="4"))
    scheduled.create(pod("grows", cpu="1"))
    scheduled.running(1)
    resize(scheduled, "grows", "3")
    # Whatever is created now is placed beside three CPUs: the pods are seen in this order.
    scheduled.create(pod("large", cpu="2"), pod("small", cpu="1"))
    assert scheduled.node_of("small") == "only"
    scheduled.pending("large")
    assert used(scheduled) == 4000


def test_a_pod_that_shrinks_makes_room(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="4"))
    scheduled.create(pod("shrinks", cpu="3"), pod("waits", cpu="3"))
    scheduled.running(1)
    waiting = "waits" if scheduled.bound(1).keys() == {"shrinks"} else "shrinks"
    scheduled.pending(waiting)
    resize(scheduled, "shrinks" if waiting == "waits" else "waits", "1")
    assert scheduled.node_of(waiting) == "only"
    assert used(scheduled) == 4000


def test_a_pod_keeps_its_room_until_its_container_has_shrunk(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="4"))
    slow = {"tests.yunikorn/resizes-after": "1h"}
    scheduled.create(pod("shrinks", cpu="3", annotations=slow))
    scheduled.running(1)
    resize(scheduled, "shrinks", "1")
    scheduled.create(pod("waits", cpu="2"))
    scheduled.pending("waits")
    scheduled.kubectl.patch(
        "Pod", "shrinks", {"metadata": {"annotations": {"tests.yunikorn/resizes-after": "0s"}}}
    )
    assert scheduled.node_of("waits") == "only"


def pending_resize(scheduled: Scheduled, name: str, reason: str) -> None:
    """Report, as the kubelet does, that a resize is not carried out."""
    told = {"type": "PodResizePending", "status": "True", "reason": reason, "message": "not now"}
    scheduled.kubectl.patch(
        "Pod", name, {"status": {"conditions": [told]}}, subresource="status", style="strategic"
    )


def test_a_resize_that_is_not_feasible_uses_no_room(scheduled: Scheduled) -> None:
    """The API server refuses what no node has; the kubelet, what its node cannot have now or ever."""
    scheduled.make_nodes(node("only", cpu="4"))
    scheduled.create(pod("greedy", cpu="1", annotations={"tests.yunikorn/resizes-after": "1h"}))
    scheduled.running(1)
    with pytest.raises(ApiFault, match="enough allocatable"):
        resize(scheduled, "greedy", "100")
    resize(scheduled, "greedy", "4")
    scheduled.create(pod("other", cpu="3"))
    scheduled.pending("other")
    # A deferred resize is carried out once there is room, so it keeps the room.
    pending_resize(scheduled, "greedy", "Deferred")
    scheduled.create(pod("another", cpu="3"))
    scheduled.pending("another")
    scheduled.kubectl.delete("Pod", "another")
    pending_resize(scheduled, "greedy", "Infeasible")
    assert scheduled.node_of("other") == "only"
    assert used(scheduled) == 4000


def test_a_resize_beyond_the_quota_stops_others_of_the_queue(scheduled: Scheduled) -> None:
    limited = QUEUES.replace('"*"}', '"*", queues: [{name: limited, resources: {max: {vcore: 3}}}]}')
    with scheduled.queues(limited):
        scheduled.make_nodes(node("only"))
        scheduled.create(pod("grows", cpu="1", application="resized", queue="root.limited"))
        scheduled.running(1)
        resize(scheduled, "grows", "4")
        scheduled.create(pod("waits", cpu="1", application="resized", queue="root.limited"))
        scheduled.pending("waits", "root.limited")
        resize(scheduled, "grows", "2")
        assert scheduled.node_of("waits") == "only"
