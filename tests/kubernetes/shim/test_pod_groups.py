"""Gangs that pods name by a PodGroup: size, tags, priority, and conditions of the group."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from tests.kubernetes.shim.fake_cluster import CONFIG, run_in
from tests.kubernetes.shim.owned_pods import OwnedCluster
from yunikorn.interface.messages import Allocation, AllocationRelease, TerminationType, UpdateResponse
from yunikorn_kubernetes.objects import Pod

Test = Callable[[OwnedCluster], Coroutine[Any, Any, None]]
SCHEDULED = ("True", "Scheduled")
WAITING = ("False", "Unschedulable")
RACKS = CONFIG.replace(
    "    queues:\n      - name: root", "    topology: [rack]\n    queues:\n      - name: root"
)


def run(test: Test, config: str = CONFIG) -> None:
    """Run a test in a new cluster."""
    run_in(lambda: OwnedCluster(config), test)


async def pods(cluster: OwnedCluster, count: int, group: str = "g", **arguments: Any) -> list[Pod]:
    """Make pods of a PodGroup."""
    made = [cluster.grouped_pod(f"{group}-{number}", group, **arguments) for number in range(count)]
    await cluster.settle()
    return made


def racked(cluster: OwnedCluster, name: str, cpu: str) -> None:
    """Add a node of a rack."""
    added = cluster.add_node(name, cpu=cpu)
    metadata = msgspec.structs.replace(added.metadata, labels={"rack": "a"})
    cluster.put_node(msgspec.structs.replace(added, metadata=metadata))


async def rest(cluster: OwnedCluster) -> None:
    """Let all pauses end."""
    for _ in range(4):
        await cluster.pass_time()


def asks(cluster: OwnedCluster) -> list[Allocation]:
    """Return the requests that were sent to the core."""
    return [one for request in cluster.core.requests for one in request.allocations]


def tags(cluster: OwnedCluster) -> dict[str, str]:
    """Return the tags of the only application."""
    [app] = cluster.partition().applications.values()
    return dict(app.tags)


def test_pods_of_a_pod_group_start_together() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="2")
        cluster.pod_group("g", 3)
        await pods(cluster, 3)
        for _ in range(3):
            await cluster.advance(1)
        await rest(cluster)
        assert not cluster.placed()
        assert cluster.condition("g") == WAITING
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        await rest(cluster)
        assert len(cluster.placed()) == 3
        assert cluster.condition("g") == SCHEDULED

    run(test)


def test_pods_wait_for_their_pod_group() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="9")
        await pods(cluster, 2)
        await rest(cluster)
        assert not cluster.placed()
        assert "PodGroup default/g does not exist" in cluster.pod("g-0").status.conditions[0].message
        cluster.pod_group("g", 2)
        await cluster.settle()
        assert len(cluster.placed()) == 2

    run(test)


def test_the_number_of_a_pod_group_is_waited_for_without_an_end() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="9")
        cluster.pod_group("g", 3)
        await pods(cluster, 2)
        await rest(cluster)
        assert not cluster.placed()
        assert cluster.condition("g") == WAITING
        assert "2 of 3 pods exist" in cluster.groups["default/g"].status.conditions[0]["message"]

    run(test)


def test_more_pods_than_needed_follow() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="2")
        cluster.pod_group("g", 2)
        await pods(cluster, 4)
        await rest(cluster)
        assert len(cluster.placed()) == 2
        assert cluster.condition("g") == SCHEDULED
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        assert len(cluster.placed()) == 3

    run(test)


def test_pods_of_a_basic_pod_group_start_one_by_one_in_one_application() -> None:
    async def test(cluster: OwnedCluster) -> None:
        racked(cluster, "n1", cpu="1")
        cluster.pod_group("g", schedulingConstraints={"topology": [{"key": "rack"}]})
        await pods(cluster, 2)
        await rest(cluster)
        assert len(cluster.placed()) == 1
        assert json.loads(tags(cluster)["yunikorn.apache.org/gang-topology"]) == {"required": "rack"}
        assert cluster.condition("g") == SCHEDULED

    run(test, RACKS)


def test_terms_of_a_pod_group_are_passed_on() -> None:
    async def test(cluster: OwnedCluster) -> None:
        racked(cluster, "n1", cpu="9")
        constraints = {"topology": [{"key": "rack"}]}
        cluster.pod_group(
            "g",
            2,
            priority=7,
            priorityClassName="urgent",
            disruptionMode="PodGroup",
            schedulingConstraints=constraints,
        )
        await pods(cluster, 2, priority=3)
        found = tags(cluster)
        assert json.loads(found["yunikorn.apache.org/gang-topology"]) == {"required": "rack"}
        assert found["yunikorn.apache.org/gang-disruption"] == "PodGroup"
        assert "PodGroup default/g" in found["yunikorn.apache.org/workload"]
        assert {one.priority for one in asks(cluster)} == {7}

    run(test, RACKS)


def test_pod_group_with_a_level_that_the_partition_lacks_waits_and_says_so() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="9")
        cluster.pod_group("g", 2, schedulingConstraints={"topology": [{"key": "rack"}]})
        await pods(cluster, 2)
        await rest(cluster)
        assert not cluster.placed()
        assert cluster.condition("g") == WAITING

    run(test)


def test_a_pod_group_without_a_class_leaves_the_priorities_of_its_pods() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="9")
        cluster.pod_group("g", 2, priority=0)
        await pods(cluster, 2, priority=3)
        assert {one.priority for one in asks(cluster)} == {3}

    run(test)


def test_finished_members_count() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="3")
        cluster.pod_group("g", 3)
        made = await pods(cluster, 3)
        await rest(cluster)
        cluster.finish(made[0])
        await cluster.settle()
        await rest(cluster)
        assert cluster.condition("g") == SCHEDULED
        cluster.finish(made[1], "Failed")
        await cluster.settle()
        await rest(cluster)
        assert cluster.condition("g") == WAITING
        cluster.grouped_pod("again", "g")
        await cluster.settle()
        await rest(cluster)
        assert "again" in cluster.placed()
        assert cluster.condition("g") == SCHEDULED

    run(test)


def test_a_pod_group_that_no_queue_can_have_waits() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="9")
        cluster.pod_group("g", 3)
        await pods(cluster, 3, queue="root.small")
        await rest(cluster)
        assert not cluster.placed()
        assert {pod.status.phase for pod in cluster.pod_objects.values()} == {""}
        assert cluster.condition("g") == WAITING
        assert "the scheduler refuses it" in cluster.pod("g-0").status.conditions[0].message

    run(test)


def test_a_pod_beyond_the_needed_number_says_what_it_waits_for() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.pod_group("g", 2)
        await pods(cluster, 3)
        await rest(cluster)
        assert "the pod is one more" in cluster.pod("g-2").status.conditions[0].message

    run(test)


@pytest.mark.parametrize("is_bound", [True, False])
def test_a_pod_group_is_known_after_a_restart(is_bound: bool) -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.pod_group("g", 2)
        if is_bound:
            cluster.add_node("n1", cpu="3")
        await pods(cluster, 2)
        await rest(cluster)
        await cluster.restart()
        if not is_bound:
            cluster.add_node("n1", cpu="3")
            await cluster.settle()
        cluster.grouped_pod("more", "g")
        await cluster.settle()
        await rest(cluster)
        assert len(cluster.placed()) == 3
        assert cluster.condition("g") == SCHEDULED
        assert len(cluster.partition().applications) == 1

    run(test)


def test_the_core_knows_after_a_restart_how_many_members_a_gang_needs() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.pod_group("g", 2, disruptionMode="Pod")
        cluster.add_node("n1", cpu="4")
        await pods(cluster, 3)
        await cluster.restart()
        [app] = cluster.partition().applications.values()
        assert app.core is not None
        assert sum(map(app.core.has, app.allocations.values())) == 2
        cluster.grouped_pod("more", "g")
        await cluster.settle()
        assert len(cluster.placed()) == 4

    run(test)


async def preempt(cluster: OwnedCluster, pod: Pod) -> None:
    """Let the core preempt a pod."""
    task = cluster.shim.cluster.tasks[pod.metadata.uid]
    app = cluster.partition().applications[task.app_id]
    victim = next(one for one in app.allocations.values() if one.key == task.uid)
    preempted = TerminationType.PREEMPTED_BY_SCHEDULER
    release = AllocationRelease(app.id, victim.uuid, "", preempted, allocation_key=task.uid)
    cluster.shim.apply(UpdateResponse(released_allocations=[release]))
    await cluster.settle()
    await rest(cluster)


def test_conditions_are_written_once() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="9")
        cluster.pod_group("g", 8)
        await pods(cluster, 8)
        await rest(cluster)
        assert len(cluster.statuses) == 1
        await cluster.restart()
        await rest(cluster)
        assert len(cluster.statuses) == 1

    run(test)


@pytest.mark.parametrize(
    ("mode", "more", "expected"),
    [("Pod", 0, "True"), ("Pod", 1, ""), ("PodGroup", 1, "True")],
)
def test_a_preempted_member_is_a_disruption_if_the_group_needs_it(
    mode: str, more: int, expected: str
) -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="9")
        cluster.pod_group("g", 2, disruptionMode=mode)
        made = await pods(cluster, 2 + more)
        await rest(cluster)
        await preempt(cluster, made[0])
        assert cluster.condition("g", "DisruptionTarget")[0] == expected

    run(test)


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_preempted_pod_says_so_and_is_deleted_even_if_that_is_refused(is_refused: bool) -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="9")
        cluster.pod_group("g", 2)
        made = await pods(cluster, 2)
        await rest(cluster)
        cluster.refused = is_refused
        await preempt(cluster, made[0])
        left = cluster.pod_objects[made[0].metadata.uid]
        assert left.metadata.deletion_timestamp is not None
        found = [(one.type, one.status, one.reason) for one in left.status.conditions]
        expected = ("DisruptionTarget", "True", "PreemptionByScheduler")
        assert (expected in found) is not is_refused

    run(test)


@pytest.mark.parametrize(
    "metadata",
    [
        {"app": "mine"},
        {"annotations": {"yunikorn.apache.org/task-groups": "[]"}},
        {"annotations": {"yunikorn.apache.org/task-group-name": "workers"}},
    ],
)
def test_a_pod_group_has_precedence_and_says_so(metadata: dict[str, Any]) -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="1")
        cluster.pod_group("g", 2)
        await pods(cluster, 2, **metadata)
        assert not cluster.placed()
        assert "GangScheduling" in cluster.actions("g-0") or "TaskGroupsError" in cluster.actions("g-0")
        [note] = [note for name, _, note in cluster.events if name == "g-0" and "is ignored" in note]
        assert "PodGroup default/g" in note

    run(test)
