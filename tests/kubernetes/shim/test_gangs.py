"""Gangs: placeholder pods, their replacement, timeouts, restarts; and Atomic gangs without placeholders."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from tests.kubernetes.shim.fake_cluster import CONFIG, DEFAULTS, START, FakeCluster, run_in
from yunikorn_kubernetes.api_server.calls import ApiError
from yunikorn_kubernetes.objects import OwnerReference, Pod
from yunikorn_kubernetes.shim.gangs import AT_ONCE
from yunikorn_kubernetes.shim_settings import ServiceSettings

GROUPS = "yunikorn.apache.org/task-groups"
GROUP = "yunikorn.apache.org/task-group-name"
PARAMETERS = "yunikorn.apache.org/schedulingPolicyParameters"
USER = "yunikorn.apache.org/user.info"


GUARANTEED = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {preemption.delay: 1s}
        queues: [{name: lab}, {name: owner, resources: {guaranteed: {vcore: 1}}}]
"""


def run(
    test: Callable[[FakeCluster], Coroutine[Any, Any, None]],
    config: str = CONFIG,
    settings: ServiceSettings = DEFAULTS,
) -> None:
    """Run a test in a new cluster."""
    run_in(lambda: FakeCluster(config, settings), test)


def add_member(
    cluster: FakeCluster,
    name: str,
    members: int = 3,
    style: str = "Soft",
    app: str = "gang",
    timeout: int = 60,
    controller: str = "",
) -> Pod:
    """Create a member of a gang of equal members of one CPU."""
    groups = [{"name": "workers", "minMember": members, "minResource": {"cpu": "1"}}]
    parameters = f"gangSchedulingStyle={style} placeholderTimeoutInSeconds={timeout}"
    annotations = {GROUPS: json.dumps(groups), GROUP: "workers", PARAMETERS: parameters}
    owners = (OwnerReference(kind="Job", name=controller, uid=controller, controller=True),)
    return cluster.add_pod(name, app=app, annotations=annotations, owners=owners if controller else ())


def placeholders(cluster: FakeCluster) -> list[Pod]:
    """Return the placeholder pods."""
    return [pod for pod in cluster.pod_objects.values() if pod.metadata.name.startswith("tg-")]


def members(cluster: FakeCluster) -> list[str]:
    """Return the names of the bound pods that are no placeholders."""
    return sorted(name for name in cluster.placed() if not name.startswith("tg-"))


def test_placeholders_reserve_room_and_are_replaced() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="4")
        first = add_member(cluster, "m0")
        await cluster.settle()
        found = placeholders(cluster)
        assert all(pod.spec.node_name == "n1" for pod in found)
        assert all(pod.metadata.owner_references[0].uid == first.metadata.uid for pod in found)
        assert members(cluster) == ["m0"]
        assert len(found) == 2
        for number in (1, 2):
            add_member(cluster, f"m{number}")
        await cluster.settle()
        assert members(cluster) == ["m0", "m1", "m2"]
        assert not placeholders(cluster)
        assert cluster.used() == {"vcore": 3000, "pods": 3}
        assert {"CreatingPlaceholders", "GangReservationComplete"} <= cluster.actions("m0")

    run(test)


def test_members_wait_until_all_placeholders_are_bound() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        add_member(cluster, "m0")
        await cluster.settle()
        assert sorted(pod.spec.node_name for pod in placeholders(cluster)) == ["", "n1", "n1"]
        assert not members(cluster)
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        assert members(cluster) == ["m0"]

    run(test)


def test_a_soft_gang_continues_without_placeholders() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        add_member(cluster, "m0")
        await cluster.settle()
        await cluster.advance(70)
        cluster.end_deleted()
        await cluster.settle()
        assert not placeholders(cluster)
        assert members(cluster) == ["m0"]
        assert cluster.used() == {"vcore": 1000, "pods": 1}

    run(test)


def test_a_hard_gang_fails() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        pod = add_member(cluster, "m0", style="Hard")
        await cluster.settle()
        await cluster.advance(70)
        status = cluster.pod_objects[pod.metadata.uid].status
        assert (status.phase, status.reason) == ("Failed", "ResourceReservationTimeout")
        assert not placeholders(cluster)
        assert not cluster.shim.cluster.tasks
        assert not cluster.used()

    run(test)


def test_a_restart_creates_only_missing_placeholders() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        add_member(cluster, "m0")
        await cluster.settle()
        before = {pod.metadata.uid for pod in placeholders(cluster)}
        cluster.remove_pod(next(pod for pod in placeholders(cluster) if not pod.spec.node_name))
        await cluster.restart()
        after = {pod.metadata.uid for pod in placeholders(cluster)}
        assert len(after) == 3
        assert len(after & before) == 2
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        assert members(cluster) == ["m0"]

    run(test)


@pytest.mark.parametrize("other", ["assistant", "volunteer"], ids=["before tg-", "behind tg-"])
def test_pods_of_one_second_keep_owner_and_originator_over_a_restart(other: str) -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        first, second = add_member(cluster, "worker"), add_member(cluster, other)
        await cluster.settle()
        for pod in [*cluster.pod_objects.values()]:
            annotations = dict(pod.metadata.annotations)
            if pod.metadata.uid in (first.metadata.uid, second.metadata.uid):
                annotations[USER] = json.dumps({"user": "jane"})
            meta = replace(pod.metadata, creation_timestamp=START, annotations=annotations)
            cluster.put_pod(replace(pod, metadata=meta))
        await cluster.restart()
        assert cluster.partition().applications["gang"].user == "jane"
        assert cluster.shim.cluster.applications["gang"].originator == first.metadata.uid
        assert [task.name for task in cluster.shim.cluster.tasks.values() if task.originator] == ["worker"]

    run(test)


def test_a_restart_after_the_timeout_creates_none() -> None:
    async def test(cluster: FakeCluster) -> None:
        await cluster.kill()
        cluster.add_node("n1", cpu="2")
        add_member(cluster, "m0")
        hard = add_member(cluster, "h0", style="Hard", app="hard")
        cluster.clock.advance(120)
        await cluster.restart()
        assert not placeholders(cluster)
        assert members(cluster) == ["m0"]
        assert cluster.pod_objects[hard.metadata.uid].status.reason == "ResourceReservationTimeout"

    run(test)


@pytest.mark.parametrize("error", [ApiError(403, "Forbidden", "quota exceeded"), KeyError("bug")])
def test_placeholders_that_cannot_be_created_are_done_without(error: Exception) -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.failing["create"] = [error]
        cluster.add_node("n1", cpu="4")
        add_member(cluster, "m0")
        await cluster.settle()
        cluster.end_deleted()
        await cluster.settle()
        assert members(cluster) == ["m0"]
        assert not placeholders(cluster)
        assert "PlaceholderCreateFailed" in cluster.actions("m0")

    run(test)


def test_a_hard_gang_fails_if_placeholders_cannot_be_created() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.failing["create"] = [ApiError(403, "Forbidden", "quota exceeded")]
        cluster.add_node("n1", cpu="4")
        add_member(cluster, "m0", style="Hard")
        await cluster.settle()
        cluster.end_deleted()
        await cluster.settle()
        status = cluster.pod("m0").status
        assert (status.phase, status.reason) == ("Failed", "ApplicationFailed")
        assert "quota exceeded" in status.message
        assert not placeholders(cluster)
        assert not cluster.used()
        # The same id begins again, as a retry of the job would.
        await cluster.advance(60)
        cluster.remove_pod(cluster.pod("m0"))
        add_member(cluster, "m0", style="Hard")
        await cluster.settle()
        assert members(cluster) == ["m0"]
        assert len(placeholders(cluster)) == 2

    run(test)


def test_placeholders_of_a_large_gang_are_created_in_portions() -> None:
    async def test(cluster: FakeCluster) -> None:
        add_member(cluster, "m0", members=3 * AT_ONCE + 1)
        await cluster.settle()
        assert len(placeholders(cluster)) == 3 * AT_ONCE + 1
        assert cluster.most_creating == AT_ONCE

    run(test)


def test_a_gang_that_no_cluster_can_run_is_not_begun() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="4")
        add_member(cluster, "m0", members=2**31 - 1)
        await cluster.settle()
        assert members(cluster) == ["m0"]
        assert not placeholders(cluster)
        assert cluster.actions("m0").isdisjoint({"CreatingPlaceholders", "TaskGroupMatch"})
        (note,) = (note for of, _, note in cluster.events if of == "m0" and "taskGroups" in note)
        assert "minMember: expected a number of members from 1 to 150000, got 2147483647" in note

    run(test)


def test_a_member_of_an_unknown_group_says_so() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="4")
        pod = add_member(cluster, "m0", members=1)
        pod.metadata.annotations[GROUP] = "wrokers"
        await cluster.settle()
        assert members(cluster) == ["m0"]
        (note,) = (note for of, _, note in cluster.events if of == "m0" and "task group" in note)
        assert note == "the gang of application gang has no task group wrokers, only workers"

    run(test)


def test_gangs_can_be_switched_off() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.settings = ServiceSettings()
        await cluster.restart()
        cluster.add_node("n1", cpu="3")
        add_member(cluster, "m0")
        await cluster.settle()
        assert len(placeholders(cluster)) == 2
        cluster.settings = ServiceSettings(disable_gang_scheduling=True)
        await cluster.restart()
        cluster.end_deleted()
        for number, style in enumerate(("Soft", "Hard", "Atomic")):
            add_member(cluster, f"o{number}", style=style, app=f"off-{number}")
            await cluster.settle()
        assert not placeholders(cluster)
        assert members(cluster) == ["m0", "o0", "o1"]
        requests = cluster.core.requests
        sent = [one for each in requests for one in each.allocations if not one.placeholder]
        assert {one.allocation_key for one in sent} == {*cluster.pod_objects}
        assert {one.task_group_name for one in sent} == {""}
        added = [one for each in requests for one in each.new_applications]
        assert {one.gang_scheduling_style for one in added} == {""}
        assert not any("GangScheduling" in cluster.reasons(f"o{number}") for number in range(3))

    run(test, settings=ServiceSettings(disable_gang_scheduling=True))


@pytest.mark.parametrize("error", [ApiError(500, "InternalError", "no"), KeyError("bug")])
def test_a_deletion_that_fails_is_repeated(error: Exception) -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="4")
        cluster.failing["delete"] = [error] * 3
        for number in range(3):
            add_member(cluster, f"m{number}")
        await cluster.settle()
        assert members(cluster) == ["m0", "m1", "m2"]

    run(test)


def test_an_atomic_gang_needs_no_placeholders() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        for number in range(3):
            add_member(cluster, f"m{number}", style="Atomic")
        await cluster.settle()
        assert not cluster.placed()
        for _ in range(3):
            await cluster.advance(1)
        for number in range(3):
            # A cluster autoscaler adds nodes for the whole gang.
            (condition,) = cluster.pod(f"m{number}").status.conditions
            assert condition.reason == "Unschedulable"
            assert "no room for its whole gang at once" in condition.message
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        assert members(cluster) == ["m0", "m1", "m2"]
        assert len(cluster.pod_objects) == 3
        await cluster.restart()
        assert cluster.used() == {"vcore": 3000, "pods": 3}

    run(test)


@pytest.mark.parametrize("style", ["Soft", "Hard", "Atomic"])
def test_the_rest_of_a_gang_that_ran_starts_after_a_restart(style: str) -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="3")
        first = [add_member(cluster, f"m{number}", style=style, timeout=3600) for number in range(3)]
        await cluster.settle()
        assert members(cluster) == ["m0", "m1", "m2"]
        rest = add_member(cluster, "m3", style=style, timeout=3600)
        await cluster.settle()
        await cluster.kill()
        for pod in first:
            cluster.finish(cluster.pod(pod.metadata.name))
        await cluster.restart()
        assert cluster.pod(rest.metadata.name).spec.node_name == "n1"
        assert not placeholders(cluster)

    run(test)


@pytest.mark.parametrize("style", ["Soft", "Hard", "Atomic"])
def test_the_next_run_of_a_gang_begins_while_the_last_one_completes(style: str) -> None:
    """The core completes an application half a minute after its last pod."""

    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        for job in ("one", "two", "three"):
            for number in range(2):
                add_member(cluster, f"{job}-{number}", members=2, style=style, controller=job)
                await cluster.settle()
                # Without the other member an Atomic gang waits; placeholders hold the room of the others.
                held = len(placeholders(cluster)) if style != "Atomic" else 1 - number
                assert held == 1 - number
            assert {f"{job}-0", f"{job}-1"} <= set(members(cluster))
            assert cluster.used() == {"vcore": 2000, "pods": 2}
            for number in range(2):
                cluster.finish(cluster.pod(f"{job}-{number}"))
            await cluster.settle()
        # A pod of the same controller replaces a member of the last run.
        add_member(cluster, "three-2", members=2, style=style, controller="three")
        await cluster.settle()
        assert "three-2" in members(cluster)
        assert not placeholders(cluster)
        assert cluster.used() == {"vcore": 1000, "pods": 1}

    run(test)


def test_a_gang_that_is_deleted_and_made_again_begins_at_once() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="1")
        for _ in range(3):
            first = add_member(cluster, "m0", members=2)
            await cluster.settle()
            assert len(placeholders(cluster)) == 2
            cluster.remove_pod(first)
            for pod in placeholders(cluster):
                # As the garbage collector does.
                cluster.remove_pod(pod)
        add_member(cluster, "m0", members=2)
        await cluster.settle()
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        assert members(cluster) == ["m0"]
        assert cluster.used() == {"vcore": 2000, "pods": 2}

    run(test)


def test_a_new_gang_with_the_id_of_an_earlier_one_starts_as_a_whole() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        for name, job in (("a0", "one"), ("a1", "one"), ("b0", "two")):
            made = add_member(cluster, name, members=2, style="Atomic")
            owners = (OwnerReference(kind="Job", name=job, uid=job, controller=True),)
            cluster.put_pod(replace(made, metadata=replace(made.metadata, owner_references=owners)))
            if name == "a1":
                await cluster.settle()
                assert members(cluster) == ["a0", "a1"]
                for ended in members(cluster):
                    cluster.finish(cluster.pod(ended))
                await cluster.kill()
        await cluster.restart()
        assert not cluster.pod("b0").spec.node_name

    run(test)


def test_bad_task_groups_are_reported_and_ignored() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        cluster.add_pod("m0", annotations={GROUPS: "[{}]", GROUP: "workers"})
        await cluster.settle()
        assert members(cluster) == ["m0"]
        assert "TaskGroupsError" in cluster.actions("m0")

    run(test)


def test_a_gang_whose_originator_goes_leaves_nothing() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        first = add_member(cluster, "m0")
        await cluster.settle()
        cluster.remove_pod(first)
        for pod in placeholders(cluster):  # as the garbage collector does
            cluster.remove_pod(pod)
        await cluster.settle()
        await cluster.advance(31)
        assert not cluster.shim.cluster.tasks
        assert not cluster.shim.cluster.applications
        assert not cluster.used()

    run(test)


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
def test_the_next_pod_owns_the_placeholders_after_the_first_is_gone(restarts: bool) -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        first = add_member(cluster, "m0", style="Hard", timeout=3600)
        heir = add_member(cluster, "m1", style="Hard", timeout=3600)
        add_member(cluster, "m2", style="Hard", timeout=3600)
        await cluster.settle()
        old = placeholders(cluster)
        assert len(old) == 3
        if restarts:
            await cluster.kill()
        cluster.remove_pod(first)
        cluster.remove_pod(old[0])
        if restarts:
            await cluster.restart()
        for pod in old[1:]:  # as the garbage collector does
            cluster.remove_pod(pod)
        await cluster.settle()
        assert len(placeholders(cluster)) == 3
        owners = {pod.metadata.owner_references[0].uid for pod in placeholders(cluster)}
        assert owners == {heir.metadata.uid}
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        assert members(cluster) == ["m1", "m2"]

    run(test)


def test_a_pod_that_comes_after_the_originator_is_gone_owns_new_placeholders() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="1")
        first = add_member(cluster, "m0", style="Hard", timeout=3600)
        await cluster.settle()
        cluster.remove_pod(first)
        old = placeholders(cluster)
        for pod in old[1:]:
            cluster.remove_pod(pod)
        await cluster.settle()
        heir = add_member(cluster, "m1", style="Hard", timeout=3600)
        await cluster.settle()
        cluster.remove_pod(old[0])
        await cluster.settle()
        owners = [pod.metadata.owner_references[0].uid for pod in placeholders(cluster)]
        assert owners == [heir.metadata.uid] * 3
        cluster.add_node("n2", cpu="2")
        await cluster.settle()
        assert members(cluster) == ["m1"]

    run(test)


def test_effort_of_a_replacement_does_not_grow_with_the_gang() -> None:
    """Calls in the flow of applications per member of a gang; each member once took a look at all others."""

    def calls_per_member(size: int) -> float:
        calls = 0

        def count(frame: Any, event: str, _: object) -> None:
            nonlocal calls
            calls += event == "call" and frame.f_code.co_filename.endswith("application_flow.py")

        async def test(cluster: FakeCluster) -> None:
            cluster.add_node("n1", cpu="100")
            sys.setprofile(count)
            for number in range(size):
                add_member(cluster, f"m{number}", size)
            for _ in range(10):
                await cluster.settle()
            sys.setprofile(None)
            assert len(members(cluster)) == size

        run(test)
        return calls / size

    assert calls_per_member(60) < 1.2 * calls_per_member(30)
