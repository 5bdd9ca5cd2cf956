"""Pods with gates, init containers, sidecars, overhead and resources of the whole pod."""

from __future__ import annotations

import pytest

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import container, node, pod
from tests.kubernetes.scheduling import Scheduled


def test_a_gated_pod_waits_until_its_gates_are_removed(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    scheduled.create(pod("gated", schedulingGates=[{"name": "example.com/a"}, {"name": "example.com/b"}]))
    notes = scheduled.events("Scheduling", regarding="gated")
    assert any("example.com/a,example.com/b" in note for note in notes)
    scheduled.create(pod("other"))
    scheduled.running(1)
    one_left = {"spec": {"schedulingGates": [{"name": "example.com/b"}]}}
    scheduled.kubectl.patch("Pod", "gated", one_left)
    scheduled.create(pod("another"))
    scheduled.running(2)
    assert "nodeName" not in scheduled.kubectl.get("Pod", "gated")["spec"]
    scheduled.kubectl.patch("Pod", "gated", {"spec": {"schedulingGates": None}})
    assert scheduled.node_of("gated") == "only"


def test_a_gated_pod_can_be_directed_while_it_waits(scheduled: Scheduled) -> None:
    """Node selectors may be added to gated pods, as controllers of queues do."""
    scheduled.make_nodes(node("plain"), node("chosen", labels={"pool": "chosen"}))
    scheduled.create(pod("gated", schedulingGates=[{"name": "example.com/a"}]))
    scheduled.events("Scheduling", regarding="gated")
    scheduled.kubectl.patch("Pod", "gated", {"spec": {"nodeSelector": {"pool": "chosen"}}})
    scheduled.kubectl.patch("Pod", "gated", {"spec": {"schedulingGates": None}})
    assert scheduled.node_of("gated") == "chosen"


@pytest.mark.parametrize(
    ("spec", "millicores"),
    [
        ({"containers": [container("a", cpu="1"), container("b", cpu="500m")]}, 1500),
        ({"initContainers": [container("init", cpu="3")], "containers": [container(cpu="1")]}, 3000),
        (
            {
                "initContainers": [
                    container("sidecar", cpu="1", restartPolicy="Always"),
                    container("init", cpu="1"),
                ],
                "containers": [container(cpu="2")],
            },
            3000,
        ),
        (
            {
                "initContainers": [
                    container("sidecar", cpu="1", restartPolicy="Always"),
                    container("init", cpu="3"),
                ],
                "containers": [container(cpu="1")],
            },
            4000,
        ),
        ({"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "3"}}}, 3000),
    ],
    ids=["sum", "init", "sidecar", "init-beside-sidecar", "pod-level"],
)
def test_a_pod_needs_the_room_of_its_largest_moment(spec: Obj, millicores: int, scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu=f"{millicores - 1}m"))
    scheduled.create(pod("p", **spec))
    scheduled.pending("p", "vcore")
    exact = {"cpu": f"{millicores}m"}
    scheduled.kubectl.patch(
        "Node", "only", {"status": {"allocatable": exact, "capacity": exact}}, subresource="status"
    )
    assert scheduled.node_of("p") == "only"


def test_the_overhead_of_a_runtime_class_counts(scheduled: Scheduled) -> None:
    scheduled.kubectl.request(
        "POST",
        "/apis/node.k8s.io/v1/runtimeclasses",
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "sandboxed"},
            "handler": "sandboxed",
            "overhead": {"podFixed": {"cpu": "500m"}},
        },
    )
    try:
        scheduled.make_nodes(node("small", cpu="1400m"), node("large", cpu="1500m"))
        scheduled.create(pod("p", runtimeClassName="sandboxed", cpu="1"))
        assert scheduled.node_of("p") == "large"
    finally:
        scheduled.kubectl.request("DELETE", "/apis/node.k8s.io/v1/runtimeclasses/sandboxed")


def test_a_pod_without_requests_needs_only_its_place(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("full", cpu="1", memory="1Gi"))
    scheduled.create(pod("large", cpu="1", memory="1Gi"))
    scheduled.running(1)
    scheduled.create(pod("free", cpu="", memory=""))
    scheduled.running(2)


def test_a_pod_waits_for_its_resource_claims(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    claims = [{"name": "gpu", "resourceClaimName": "none"}]
    scheduled.create(pod("p", resourceClaims=claims))
    scheduled.pending("p", "the resource claim default/none does not exist")
