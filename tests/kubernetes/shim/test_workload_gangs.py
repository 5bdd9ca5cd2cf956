"""Gangs taken from the owner of pods: complete at once, late, changed, restarted; and what is no gang."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.kubernetes.shim.fake_cluster import run_in
from tests.kubernetes.shim.owned_pods import INDEX, OwnedCluster
from yunikorn_kubernetes.api_server.calls import ApiError
from yunikorn_kubernetes.objects import Namespace, ObjectMeta, Pod

Test = Callable[[OwnedCluster], Coroutine[Any, Any, None]]


def run(test: Test, **arguments: Any) -> None:
    """Run a test in a new cluster."""
    run_in(lambda: OwnedCluster(**arguments), test)


def bound(cluster: OwnedCluster) -> set[str]:
    """Return the names of the bound pods."""
    return {*cluster.placed()}


def message(cluster: OwnedCluster, name: str) -> str:
    """Return the condition of a pod."""
    return next((one.message for one in cluster.pod(name).status.conditions), "")


def applications(cluster: OwnedCluster) -> dict[str, list[str]]:
    """Return the names of the allocated pods by application in the core."""
    names = {pod.metadata.uid: pod.metadata.name for pod in cluster.pod_objects.values()}
    return {
        app.id: sorted(names[one.key] for one in app.allocations.values())
        for app in cluster.partition().applications.values()
    }


async def job_pods(cluster: OwnedCluster, *indexes: int, name: str = "train", size: int = 3) -> list[Pod]:
    """Make an Indexed Job with some of its pods."""
    job = cluster.job(name, size)
    made = [cluster.job_pod(job, index) for index in indexes]
    await cluster.settle()
    return made


def test_pods_of_an_indexed_job_start_together() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="2")
        await job_pods(cluster, 0, 1, 2)
        assert not cluster.placed()
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        assert bound(cluster) == {"train-0", "train-1", "train-2"}
        assert applications(cluster) == {"job-default-train-00000001": ["train-0", "train-1", "train-2"]}

    run(test)


@pytest.mark.parametrize("label", ["yunikorn-default-autogen", "default-uniqueautogen"])
def test_an_id_of_the_admission_controller_is_none(label: str) -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="1")
        job = cluster.job("train", 2)
        for index in range(2):
            cluster.add_pod(f"train-{index}", app=label, owners=(job,), labels={INDEX: str(index)})
        await cluster.settle()
        assert not cluster.placed()

    run(test)


def test_pods_that_come_late_are_waited_for() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="9")
        job = cluster.job("train", 3)
        for index in range(2):
            cluster.job_pod(job, index)
            await cluster.settle()
        assert not cluster.placed()
        cluster.job_pod(job, 2)
        await cluster.settle()
        assert len(bound(cluster)) == 3

    run(test)


def test_members_of_one_role_may_have_different_sizes() -> None:
    async def test(cluster: OwnedCluster) -> None:
        job = cluster.job("train", 3)
        for index, cpu in enumerate(("1", "1", "2")):
            cluster.job_pod(job, index, cpu=cpu)
        for number in range(2):
            await cluster.settle()
            assert not cluster.placed()
            cluster.add_node(f"n{number}", cpu="2")
        await cluster.settle()
        places = cluster.placed()
        assert places["train-0"] == places["train-1"] != places["train-2"]

    run(test)


def test_a_gang_is_as_large_as_the_pods_that_exist_in_time() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="1")
        await job_pods(cluster, 0, 1)
        await cluster.pass_time()
        await cluster.settle()
        assert not cluster.placed()
        assert "GangIncomplete" in cluster.reasons("train-0")
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        assert bound(cluster) == {"train-0", "train-1"}

    run(test)


def test_a_condition_says_what_the_pods_wait_for() -> None:
    async def test(cluster: OwnedCluster) -> None:
        await job_pods(cluster, 0, 1)
        await cluster.pass_time()
        assert "gang of 3 pods of Job default/train" in message(cluster, "train-1")
        assert "2 of 3 pods exist" in message(cluster, "train-1")

    run(test)


def test_a_condition_names_the_gang_without_room() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="2")
        await job_pods(cluster, 0, 1, 2)
        for _ in range(3):
            await cluster.advance(1)
        for index in range(3):
            text = message(cluster, f"train-{index}")
            assert text.startswith(
                "gang of 3 pods of Job default/train (Indexed, and parallelism and completions are 3); "
            )
            assert "no room for its whole gang at once" in text

    run(test)


@pytest.mark.parametrize(
    "spec",
    [
        {"parallelism": 2, "completions": 2},
        {"parallelism": 2, "completions": 4, "completionMode": "Indexed"},
        {"parallelism": "two", "completions": 2, "completionMode": "Indexed"},
        {"parallelism": 1, "completions": 1, "completionMode": "Indexed"},
        None,
    ],
)
def test_pods_of_a_job_that_is_no_clear_gang_start_one_by_one(spec: Any) -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="1")
        job = cluster.own("Job", "work", spec or {})
        if spec is None:
            del cluster.owners["Job", "work"]
        for index in range(2):
            cluster.job_pod(job, index)
        await cluster.settle()
        assert bound(cluster) == {"work-0"}
        assert applications(cluster) == {"yunikorn-default-autogen": ["work-0"]}

    run(test)


@pytest.mark.parametrize(
    "arguments",
    [
        {"app": "mine"},
        {"labels": {"kueue.x-k8s.io/podset": "main"}},
        {"annotations": {"yunikorn.apache.org/workload-gang": "false"}},
        {"annotations": {"yunikorn.apache.org/task-group-name": "workers"}},
    ],
)
def test_pods_that_speak_for_themselves_are_left_alone(arguments: dict[str, Any]) -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="1")
        job = cluster.job("train", 2)
        given = {"app": "", **arguments}
        labels = {INDEX: "0", **given.pop("labels", {})}
        cluster.add_pod("train-0", owners=(job,), labels=labels, **given)
        await cluster.settle()
        assert bound(cluster) == {"train-0"}
        assert not cluster.reads

    run(test)


@pytest.mark.parametrize("place", ["settings", "namespace"])
def test_kinds_can_be_switched_off(place: str) -> None:
    async def test(cluster: OwnedCluster) -> None:
        if place == "namespace":
            key = "yunikorn.apache.org/namespace.workloadKinds"
            meta = ObjectMeta(name="default", annotations={key: "JobSet, RayCluster"})
            cluster.references.namespaces["default"] = Namespace(meta)  # type: ignore[index]
        cluster.add_node("n1", cpu="1")
        await job_pods(cluster, 0)
        assert bound(cluster) == {"train-0"}
        assert not cluster.reads

    run(test, kinds=("none",) if place == "settings" else ("all",))


def test_queues_can_be_left_out() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="9")
        cluster.bypassed.add("root.lab")
        cluster.job_pod(cluster.job("train", 2), 0)
        await cluster.settle()
        assert bound(cluster) == {"train-0"}

    run(test)


def test_a_job_that_kueue_admits_is_left_alone() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="1")
        job = cluster.job("train", 2)
        cluster.owners["Job", "train"]["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "lab"}
        cluster.job_pod(job, 0)
        await cluster.settle()
        assert bound(cluster) == {"train-0"}

    run(test)


def test_a_replacement_never_waits_for_the_gang() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="3")
        job = cluster.job("train", 3)
        pods = [cluster.job_pod(job, index) for index in range(3)]
        await cluster.settle()
        cluster.finish(pods[0])
        cluster.finish(pods[1], "Failed")
        await cluster.settle()
        cluster.job_pod(job, 1, "-again")
        await cluster.settle()
        assert "train-1-again" in bound(cluster)
        assert cluster.used() == {"vcore": 2000, "pods": 2}

    run(test)


@pytest.mark.parametrize("kept", ["bound", "finished"])
def test_a_replacement_does_not_wait_after_a_restart(kept: str) -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="3")
        job = cluster.job("train", 3)
        pods = [cluster.job_pod(job, index) for index in range(3)]
        await cluster.settle()
        await cluster.kill()
        cluster.remove_pod(pods[1])
        cluster.job_pod(job, 1, "-again")
        if kept == "finished":
            cluster.finish(pods[0])
            cluster.finish(pods[2])
        await cluster.restart()
        assert "train-1-again" in bound(cluster)
        [(_, names)] = applications(cluster).items()
        assert "train-1-again" in names

    run(test)


def test_a_replacement_does_not_wait_where_all_others_ended_before_the_restart() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="3")
        pods = await job_pods(cluster, 0, 1, 2)
        await cluster.kill()
        for pod in pods:
            cluster.finish(pod, "Failed")
        await cluster.restart()
        cluster.job_pod(cluster.job("train", 3), 1, "-again")
        await cluster.settle()
        assert "train-1-again" in bound(cluster)

    run(test)


def test_a_restart_keeps_the_applications_of_bound_pods() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="3")
        await job_pods(cluster, 0, 1, 2)
        before = applications(cluster)
        await cluster.restart()
        assert applications(cluster) == before
        assert cluster.used() == {"vcore": 3000, "pods": 3}

    run(test)


def test_a_gang_that_waits_is_whole_after_a_restart() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="2")
        await job_pods(cluster, 0, 1, 2)
        await cluster.restart()
        assert not cluster.placed()
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        assert len(bound(cluster)) == 3

    run(test)


def test_a_job_that_shrinks_while_it_waits_is_a_smaller_gang() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="2")
        pods = await job_pods(cluster, 0, 1, 2)
        cluster.job("train", 2)
        cluster.remove_pod(pods[2])
        await cluster.settle()
        assert bound(cluster) == {"train-0", "train-1"}
        assert cluster.used() == {"vcore": 2000, "pods": 2}

    run(test)


def test_a_job_that_grows_before_it_is_complete_is_a_larger_gang() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="3")
        job = cluster.job("train", 2)
        cluster.job_pod(job, 0)
        await cluster.settle()
        cluster.job("train", 4)
        cluster.job_pod(job, 1)
        await cluster.settle()
        for index in (2, 3):
            cluster.job_pod(job, index)
        await cluster.settle()
        assert not cluster.placed()
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        assert len(bound(cluster)) == 4

    run(test)


def test_a_member_that_is_made_again_completes_the_gang() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="2")
        pods = await job_pods(cluster, 0, 1, 2)
        cluster.remove_pod(pods[0])
        await cluster.settle()
        assert not cluster.placed()
        cluster.job_pod(cluster.job("train", 3), 0, "-again")
        cluster.add_node("n2", cpu="1")
        await cluster.settle()
        assert bound(cluster) == {"train-0-again", "train-1", "train-2"}

    run(test)


def test_sizes_of_a_deleted_owner_stay() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="3")
        job = cluster.job("train", 3)
        cluster.job_pod(job, 0)
        await cluster.settle()
        del cluster.owners["Job", "train"]
        for index in (1, 2):
            cluster.job_pod(job, index)
            await cluster.settle()
        assert len(bound(cluster)) == 3

    run(test)


def test_an_owner_of_the_same_name_is_another_one() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="1")
        job = cluster.job("train", 2)
        cluster.owners["Job", "train"]["metadata"]["uid"] = "another"
        cluster.job_pod(job, 0)
        await cluster.settle()
        assert bound(cluster) == {"train-0"}

    run(test)


def test_an_owner_is_read_again_when_the_server_does_not_answer() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="3")
        cluster.errors["Job"] = [ApiError(503, "ServiceUnavailable", "no")]
        await job_pods(cluster, 0, 1, 2)
        assert not cluster.placed()
        await cluster.pass_time()
        assert len(bound(cluster)) == 3

    run(test)


def test_an_owner_that_must_not_be_read_makes_no_gang() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="1")
        cluster.errors["Job"] = [ApiError(403, "Forbidden", "no")] * 3
        await job_pods(cluster, 0, 1, 2)
        assert len(bound(cluster)) == 1

    run(test)


def test_a_gang_that_no_queue_can_have_starts_one_by_one() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="9")
        job = cluster.job("train", 3)
        for index in range(3):
            cluster.job_pod(job, index, queue="root.small")
        await cluster.settle()
        # The queue has room for one pod at a time.
        assert len(bound(cluster)) == 1
        assert "GangRefused" in cluster.reasons("train-0")
        for number in range(3):
            (name,) = bound(cluster) - {f"train-{one}" for one in range(number)}
            cluster.finish(cluster.pod(name))
            await cluster.settle()
        assert len(bound(cluster)) == 3

    run(test)


def test_the_next_job_of_the_same_name_is_a_gang_of_its_own() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="2")
        pods = await job_pods(cluster, 0, 1, size=2)
        for pod in pods:
            cluster.remove_pod(pod)
        del cluster.owners["Job", "train"]
        await cluster.settle()
        job = cluster.job("train", 2)
        cluster.job_pod(job, 0)
        await cluster.settle()
        assert not cluster.placed()
        cluster.job_pod(job, 1)
        await cluster.settle()
        assert len(bound(cluster)) == 2

    run(test)


def test_all_pods_of_a_job_that_are_deleted_start_together_again() -> None:
    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="2")
        for _ in range(2):
            pods = await job_pods(cluster, 0, 1, size=2)
            assert len(bound(cluster)) == 2
            for pod in pods:
                cluster.remove_pod(pod)
            await cluster.settle()
        await job_pods(cluster, 0, size=2)
        assert not cluster.placed()

    run(test)


def test_a_shrunk_gang_gets_no_placement_of_the_gang_before() -> None:
    """The core places the gang while the shim takes it back."""

    async def test(cluster: OwnedCluster) -> None:
        cluster.add_node("n1", cpu="2")
        pods = await job_pods(cluster, 0, 1, 2)
        cluster.job("train", 2)
        cluster.add_node("n2", cpu="4")
        for _ in range(3):
            await asyncio.sleep(0)
        cluster.remove_pod(pods[2])
        await cluster.settle()
        await cluster.pass_time()
        assert bound(cluster) == {"train-0", "train-1"}
        assert cluster.used() == {"vcore": 2000, "pods": 2}

    run(test)
