"""Choices of the pods of a group that start together, where more exist than have to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import attrs
import msgspec
import pytest

from tests.kubernetes.shim.fake_cluster import CONFIG, RM, run_in
from tests.kubernetes.shim.owned_pods import OwnedCluster
from yunikorn_kubernetes.shim.workload_gangs import SAME_CHOICE
from yunikorn_service.waiting_requests import AWAITS_VICTIMS

ZONES = CONFIG.replace(
    "    queues:\n      - name: root", "    predicates: [node-affinity]\n    queues:\n      - name: root"
)
SCHEDULED, WAITING = ("True", "Scheduled"), ("False", "Unschedulable")


class PatientCluster(OwnedCluster):
    """A cluster in which the long pause of a group that has tried everything does not end."""

    async def _pause(self, seconds: float) -> None:
        await (super()._pause(seconds) if seconds < SAME_CHOICE else asyncio.Event().wait())


def run(test: Callable[[OwnedCluster], Coroutine[Any, Any, None]], config: str = ZONES) -> None:
    """Run a test in a new cluster."""
    run_in(lambda: PatientCluster(config), test)


def node(cluster: OwnedCluster, name: str, zone: str, cpu: str) -> None:
    """Add a node of a zone."""
    added = cluster.add_node(name, cpu=cpu)
    metadata = msgspec.structs.replace(added.metadata, labels={"zone": zone})
    cluster.put_node(msgspec.structs.replace(added, metadata=metadata))


async def zoned(cluster: OwnedCluster, *pods: tuple[str, str], least: int = 2) -> None:
    """Make a PodGroup of pods with a zone and CPUs each, on a node for each zone."""
    node(cluster, "n1", "a", "1")
    node(cluster, "n2", "b", "3")
    cluster.pod_group("g", least)
    for number, (zone, cpu) in enumerate(pods):
        cluster.grouped_pod(f"g-{number}", "g", cpu=cpu, node_selector={"zone": zone})
    await cluster.settle()


async def wait(cluster: OwnedCluster, seconds: int) -> None:
    """Let time pass for the core and the shim."""
    for _ in range(seconds):
        await cluster.advance(1)
        await cluster.pass_time()


def applications(cluster: OwnedCluster) -> int:
    """Return how many applications were sent to the core."""
    return sum(len(request.new_applications) for request in cluster.core.requests)


@pytest.mark.parametrize(
    ("pods", "least", "placed"),
    [
        ([("a", "1"), ("a", "1"), ("b", "3")], 2, 2),
        ([("b", "2"), ("b", "2"), ("b", "2"), ("a", "1"), ("b", "1")], 3, 3),
        ([("b", "3"), ("b", "3"), ("b", "3")], 2, 0),
        ([("b", "3"), ("b", "2"), ("b", "2")], 2, 0),
    ],
)
def test_other_pods_of_a_group_start_where_the_first_have_no_room(
    pods: list[tuple[str, str]], least: int, placed: int
) -> None:
    async def test(cluster: OwnedCluster) -> None:
        await zoned(cluster, *pods, least=least)
        await wait(cluster, 40)
        assert len(cluster.placed()) == placed
        assert cluster.condition("g") == (SCHEDULED if placed else WAITING)

    run(test)


def test_a_group_whose_choices_have_no_room_returns_to_the_first_and_stays_there() -> None:
    async def test(cluster: OwnedCluster) -> None:
        await zoned(cluster, ("b", "4"), ("b", "5"), ("a", "2"))
        await wait(cluster, 30)
        assert applications(cluster) == 4
        node(cluster, "c", "b", "9")
        await wait(cluster, 10)
        assert len(cluster.placed()) == 2

    run(test)


def test_a_group_whose_victims_are_ending_keeps_its_pods() -> None:
    async def test(cluster: OwnedCluster) -> None:
        await zoned(cluster, ("b", "4"), ("b", "5"), ("a", "2"))
        await cluster.advance(1)
        tasks = cluster.shim.cluster.tasks
        first = next(task for task in tasks.values() if task.shown is not None)
        assert first.shown is not None
        first.shown = attrs.evolve(first.shown, kinds=(AWAITS_VICTIMS,))
        await cluster.pass_time()
        await cluster.pass_time()
        assert applications(cluster) == 1

    run(test)


def test_a_quota_holds_for_every_choice_until_a_reload_raises_it() -> None:
    async def test(cluster: OwnedCluster) -> None:
        await zoned(cluster, ("a", "1"), ("a", "1"), ("b", "3"))
        await wait(cluster, 40)
        assert not cluster.placed()
        assert cluster.condition("g") == WAITING
        cluster.core.scheduler.reload_configuration(RM, ZONES)
        await wait(cluster, 10)
        assert sorted(cluster.placed().values()) == ["n1", "n2"]

    run(test, ZONES.replace("- name: lab", "- name: lab\n            resources: {max: {vcore: 3}}"))


@pytest.mark.parametrize("seconds", range(5))
def test_a_restart_between_choices_begins_with_the_first_and_binds_no_pod_twice(seconds: int) -> None:
    async def test(cluster: OwnedCluster) -> None:
        await zoned(cluster, ("b", "2"), ("b", "2"), ("b", "2"), ("a", "1"), ("b", "1"), least=3)
        await wait(cluster, seconds)
        await cluster.restart()
        await wait(cluster, 20)
        assert len(cluster.placed()) == 3
        assert len({uid for uid, _ in cluster.bindings}) == len(cluster.bindings)

    run(test)
