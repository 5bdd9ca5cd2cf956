"""Pods and nodes: from a change of an object to a binding, and to the end of the pod."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from tests.kubernetes.api_server.virtual_time import run_virtual
from tests.kubernetes.shim.fake_cluster import APP, RM, FakeCluster, run_in
from yunikorn_kubernetes.api_server.calls import ApiError
from yunikorn_kubernetes.objects import (
    Container,
    Namespace,
    OwnerReference,
    ResourceRequirements,
    SchedulingGate,
)
from yunikorn_kubernetes.shim.conditions import REFRESHES_PER_SECOND, UNREPORTED

PREEMPTING = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {preemption.delay: 5s}
        queues:
          - {name: shielded, resources: {guaranteed: {vcore: 3}}}
          - {name: owner, resources: {guaranteed: {vcore: 1}}}
"""


def run(test: Callable[[FakeCluster], Coroutine[Any, Any, None]]) -> None:
    """Run a test in a new cluster."""
    run_in(FakeCluster, test)


def test_a_pod_is_bound() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1")
        cluster.add_pod("p1")
        await cluster.settle()
        assert cluster.placed() == {"p1": "n1"}
        assert "Scheduled" in cluster.reasons("p1")
        assert cluster.used() == {"vcore": 1000, "pods": 1}

    run(test)


def test_application_and_request_reach_the_core_in_one_update() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1")
        await cluster.settle()
        cluster.core.requests.clear()
        cluster.add_pod("p1")
        cluster.add_pod("p2", app="other")
        await cluster.settle()
        first = cluster.core.requests[0]
        assert len(first.new_applications) == len(first.allocations) == 2

    run(test)


def test_a_pod_that_ends_gives_its_room_back() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="1")
        first, second = cluster.add_pod("p1"), cluster.add_pod("p2")
        await cluster.settle()
        assert cluster.placed() == {"p1": "n1"}
        cluster.finish(first)
        await cluster.settle()
        assert cluster.placed()["p2"] == "n1"
        cluster.remove_pod(second)
        await cluster.settle()
        assert not cluster.shim.cluster.tasks
        assert not cluster.used()

    run(test)


def test_gates_keep_a_pod_back() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1")
        pod = cluster.add_pod("p1", scheduling_gates=(SchedulingGate(name="quota"),))
        await cluster.settle()
        cluster.put_pod(pod)
        await cluster.settle()
        assert not cluster.placed()
        assert [note for of, _, note in cluster.events if of == "p1"] == [
            "waiting for scheduling gates: quota"
        ]
        cluster.put_pod(replace(pod, spec=replace(pod.spec, scheduling_gates=())))
        await cluster.settle()
        assert cluster.placed() == {"p1": "n1"}

    run(test)


def test_a_pod_waits_for_its_namespace_whose_annotations_count() -> None:
    """The watches of pods and namespaces are independent of each other."""

    async def test(cluster: FakeCluster) -> None:
        namespaces = dict(cluster.references.namespaces)
        cluster.references.namespaces = {}
        cluster.add_node("n1")
        pod = cluster.add_pod("p1")
        await cluster.settle()
        assert not cluster.placed()
        quota = {"yunikorn.apache.org/namespace.quota": '{"cpu": "1"}'}
        named = replace(namespaces["default"].metadata, annotations=quota)
        cluster.references.namespaces = {"default": Namespace(named)}
        cluster.shim.refresh([pod.metadata.uid])
        await cluster.settle()
        assert cluster.placed() == {"p1": "n1"}
        (added,) = (one for request in cluster.core.requests for one in request.new_applications)
        assert "1000" in added.tags["namespace.resourcequota"]

    run(test)


def test_pods_of_other_schedulers_use_room() -> None:
    async def test(cluster: FakeCluster) -> None:
        foreign = cluster.add_pod("f1", "3", ours=False, node_name="n1")
        await cluster.settle()
        cluster.add_node("n1", cpu="4")
        cluster.add_pod("p1", "2")
        await cluster.settle()
        assert "p1" not in cluster.placed()
        cluster.remove_pod(foreign)
        await cluster.settle()
        assert cluster.placed()["p1"] == "n1"

    run(test)


def test_a_failed_binding_is_tried_elsewhere() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.failing["bind"] = [ApiError(500, "InternalError", "no luck")]
        cluster.add_node("n1")
        cluster.add_pod("p1")
        await cluster.settle()
        assert not cluster.placed()
        cluster.add_node("n2")
        await cluster.settle()
        assert cluster.placed() == {"p1": "n2"}
        assert "PodBindFailure" in cluster.reasons("p1")
        assert cluster.used() == {"vcore": 1000, "pods": 1}

    run(test)


def test_a_lost_answer_to_a_binding_does_no_harm() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.failing["bind answer"] = [ApiError(0, "NoAnswer", "lost", maybe_executed=True)]
        cluster.add_node("n1")
        cluster.add_node("n2")
        cluster.add_pod("p1")
        await cluster.settle()
        assert len(cluster.bindings) == 1
        node = cluster.placed()["p1"]
        assert [len(one.allocations) for one in cluster.partition().nodes.values()] == (
            [1, 0] if node == "n1" else [0, 1]
        )

    run(test)


def test_a_pod_bound_by_others_is_an_existing_allocation() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="1")
        blocked = cluster.add_pod("p1", "2")
        await cluster.settle()
        cluster.add_node("n2", unschedulable=True)
        cluster.bind_by_others(blocked, "n2")
        await cluster.settle()
        assert [len(one.allocations) for one in cluster.partition().nodes.values()] == [0, 1]
        assert cluster.bindings == [(blocked.metadata.uid, "n2")]

    run(test)


def test_pods_of_a_node_that_is_gone_are_counted_when_it_returns() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="1")
        cluster.add_pod("p1")
        await cluster.settle()
        cluster.remove_node("n1")
        await cluster.settle()
        assert not cluster.used()
        cluster.add_node("n1", cpu="1")
        cluster.add_pod("p2")
        await cluster.settle()
        assert cluster.placed() == {"p1": "n1"}
        assert cluster.used() == {"vcore": 1000, "pods": 1}

    run(test)


def test_a_restart_counts_what_is_bound() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        for number in range(3):
            cluster.add_pod(f"p{number}")
        await cluster.settle()
        before = cluster.placed()
        await cluster.restart()
        assert cluster.placed() == before
        assert cluster.used() == {"vcore": 2000, "pods": 2}
        assert cluster.partition().queue("root.lab").pending == {"vcore": 1000, "pods": 1}

    run(test)


def test_a_rejected_application_fails_its_pods() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1")
        pod = cluster.add_pod("p1", queue="root.small.nowhere")
        await cluster.settle()
        status = cluster.pod_objects[pod.metadata.uid].status
        assert (status.phase, status.reason) == ("Failed", "ApplicationRejected")
        assert "root.small.nowhere" in status.message
        assert not cluster.shim.cluster.tasks
        assert not cluster.shim.cluster.applications

    run(test)


def test_an_application_begins_again_after_its_completion() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1")
        pod = cluster.add_pod("p1")
        await cluster.settle()
        cluster.remove_pod(pod)
        await cluster.settle()
        await cluster.advance(31)
        assert not cluster.shim.cluster.applications
        cluster.add_pod("p2")
        await cluster.settle()
        assert cluster.placed() == {"p2": "n1"}

    run(test)


def test_a_waiting_pod_says_why() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="1")
        pods = [cluster.add_pod(f"p{number}", "2") for number in range(3)]
        await cluster.settle()
        for _ in range(3):
            await cluster.advance(1)
        for pod in pods:
            (condition,) = cluster.pod_objects[pod.metadata.uid].status.conditions
            assert (condition.type, condition.status) == ("PodScheduled", "False")
            assert condition.reason == "Unschedulable"
            assert "queue root.lab" in condition.message
            assert "vcore" in condition.message

    run(test)


def test_a_condition_follows_what_stops_the_pod() -> None:
    """Texts follow a change of the reasons within seconds, and numbers within minutes."""

    async def main() -> None:
        cluster = FakeCluster(PREEMPTING)
        await cluster.start()
        cluster.add_node("n1", cpu="3")
        shielded = [cluster.add_pod(f"s{number}", queue="root.shielded") for number in range(3)]
        await cluster.settle()
        owner = cluster.add_pod("o1", queue="root.owner", app="other")
        await cluster.settle()

        def message() -> str:
            (condition,) = cluster.pod_objects[owner.metadata.uid].status.conditions
            return condition.message

        for _ in range(3):
            await cluster.advance(1)
        assert "may preempt only after the preemption delay" in message()
        for _ in range(5):
            await cluster.advance(10)
        await asyncio.sleep(3.0)
        assert "preemption found no suitable victims" in message()
        assert cluster.reasons("o1").count("PodUnschedulable") == 2
        assert "of 1 nodes" in message()
        cluster.add_node("n2", cpu="0")
        await cluster.settle()
        await asyncio.sleep(60.0)
        assert "of 1 nodes" in message()
        await asyncio.sleep(400.0)
        assert "of 2 nodes" in message()
        assert cluster.reasons("o1").count("PodUnschedulable") == 2
        assert all(cluster.placed()[pod.metadata.name] for pod in shielded)
        await cluster.kill()

    run_virtual(main())


def test_a_pod_with_a_reserved_node_says_why_it_waits() -> None:
    """A busy core reserves a node before it looks for pods that found none."""

    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="1")
        cluster.add_pod("p1")
        await cluster.settle()
        pod = cluster.add_pod("p2")
        await cluster.settle()
        cluster.clock.advance(5)
        cluster.core.scheduler.schedule()
        await cluster.advance(1)
        await cluster.advance(1)
        assert [ask.key for node in cluster.partition().nodes.values() for ask in node.reservations]
        (condition,) = cluster.pod_objects[pod.metadata.uid].status.conditions
        assert condition.reason == "Unschedulable"
        assert "waits for room on its reserved node: n1" in condition.message

    run(test)


def test_a_pod_of_a_daemon_set_waits_for_its_node_only() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="1")
        cluster.add_pod("p1")
        await cluster.settle()
        field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        owner = OwnerReference(kind="DaemonSet", name="agent", uid="agent", controller=True)
        cluster.add_pod("agent", app="agents", affinity=affinity, owners=(owner,))
        for _ in range(3):
            await cluster.advance(1)
        (condition,) = cluster.pod("agent").status.conditions
        assert condition.reason == "SchedulingSkipped"
        assert "its required node does not accept it: n1" in condition.message

    run(test)


def test_a_pod_that_the_core_does_not_report_says_why_it_waits() -> None:
    async def main() -> None:
        cluster = FakeCluster()
        await cluster.start()
        cluster.add_node("n1", cpu="1")
        cluster.add_pod("p1", "2")
        # Nothing is reported as long as the core finds no time for it.
        await cluster.settle()
        assert not cluster.pod("p1").status.conditions
        await asyncio.sleep(UNREPORTED + 1.0)
        (condition,) = cluster.pod("p1").status.conditions
        assert condition.reason == "SchedulingSkipped"
        assert "larger than the whole cluster" in condition.message
        for _ in range(3):
            await cluster.advance(1)
        (condition,) = cluster.pod("p1").status.conditions
        assert condition.reason == "Unschedulable"
        await cluster.kill()

    run_virtual(main())


def test_a_restart_during_a_preemption_ends_nothing_more() -> None:
    async def main() -> None:
        cluster = FakeCluster(PREEMPTING.replace("vcore: 3", "vcore: 1"))
        await cluster.start()
        cluster.add_node("n1", cpu="2")
        cluster.add_node("n2", cpu="2")
        for number in range(4):
            cluster.add_pod(f"s{number}", queue="root.shielded")
        await cluster.settle()
        cluster.add_pod("o1", queue="root.owner", app="other")

        def ending() -> list[str]:
            pods = cluster.pod_objects.values()
            return [pod.metadata.name for pod in pods if pod.metadata.deletion_timestamp is not None]

        await cluster.settle()
        await cluster.advance(40)
        assert len(ending()) == 1
        for number in range(3):
            # The latest pod would be the next victim.
            cluster.add_node(f"more-{number}", cpu="1")
            cluster.add_pod(f"late-{number}", queue="root.shielded", node_name=f"more-{number}")
            await cluster.settle()
            await cluster.restart()
            await cluster.advance(40)
            assert len(ending()) == 1
        cluster.end_deleted()
        await cluster.settle()
        assert "o1" in cluster.placed()
        await cluster.kill()

    asyncio.run(main())


def test_thousands_of_conditions_are_refreshed_slowly() -> None:
    async def main() -> None:
        cluster = FakeCluster()
        await cluster.start()
        cluster.add_node("n1", cpu="1")
        for number in range(1000):
            cluster.add_pod(f"p{number}", "2", app=f"app-{number % 2}")
        await cluster.settle()
        for _ in range(3):
            await cluster.advance(1)
        assert len(cluster.conditions) == 1000
        cluster.conditions.clear()
        cluster.add_node("n2", cpu="8", unschedulable=True)
        cluster.remove_node("n1")
        await cluster.settle()
        loop = asyncio.get_running_loop()
        began = loop.time()
        while len(cluster.conditions) < 500:
            await asyncio.sleep(1.0)
        assert 500 / REFRESHES_PER_SECOND <= loop.time() - began < 120
        # Both applications have their turns.
        assert len({cluster.pod_objects[pod.uid].metadata.labels[APP] for pod in cluster.conditions}) == 2
        await cluster.kill()

    run_virtual(main())


def test_a_pod_that_cannot_be_scheduled_as_it_is_says_why() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1")
        pod = cluster.add_pod("p1", annotations={"yunikorn.apache.org/queue": "root.other"})
        await cluster.settle()
        (condition,) = cluster.pod_objects[pod.metadata.uid].status.conditions
        assert (condition.status, condition.reason) == ("False", "Unschedulable")
        assert "contradictory queue" in condition.message
        assert cluster.placed() == {}

    run(test)


def test_an_operator_fails_an_application() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        bound = [cluster.add_pod(f"b{number}") for number in range(2)]
        waiting = cluster.add_pod("w1")
        await cluster.settle()
        cluster.core.scheduler.fail_application(RM, "default", "app", "no longer wanted")
        await cluster.settle()
        status = cluster.pod_objects[waiting.metadata.uid].status
        assert (status.phase, status.reason) == ("Failed", "ApplicationFailed")
        assert status.message == "no longer wanted"
        assert all(cluster.pod_objects[pod.metadata.uid].metadata.deletion_timestamp for pod in bound)
        # The room is in use until the containers have ended.
        late = cluster.add_pod("late", app="other")
        await cluster.settle()
        assert not cluster.pod_objects[late.metadata.uid].spec.node_name
        cluster.end_deleted()
        await cluster.settle()
        assert cluster.placed() == {"late": "n1"}
        assert cluster.used() == {"vcore": 1000, "pods": 1}

    run(test)


def test_an_application_that_failed_begins_again_with_new_pods() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        cluster.add_pod("first")
        await cluster.settle()
        cluster.core.scheduler.fail_application(RM, "default", "app", "no longer wanted")
        cluster.add_pod("second")
        await cluster.settle()
        cluster.end_deleted()
        await cluster.settle()
        assert cluster.placed() == {"second": "n1"}

    run(test)


def test_a_resized_pod_changes_its_allocation() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="4")
        pod = cluster.add_pod("p1")
        await cluster.settle()
        current = cluster.pod_objects[pod.metadata.uid]
        containers = (Container(resources=ResourceRequirements(requests={"cpu": "3"})),)
        cluster.put_pod(replace(current, spec=replace(current.spec, containers=containers)))
        await cluster.settle()
        assert cluster.used() == {"vcore": 3000, "pods": 1}

    run(test)
