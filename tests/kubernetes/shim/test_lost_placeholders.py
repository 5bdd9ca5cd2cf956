"""Placeholder pods that are gone while their gang still collects room."""

from __future__ import annotations

import pytest

from tests.kubernetes.shim.fake_cluster import FakeCluster
from tests.kubernetes.shim.test_gangs import GUARANTEED, add_member, members, placeholders, run


@pytest.mark.parametrize(("is_drained", "is_node_first"), [(True, False), (False, True), (False, False)])
def test_a_placeholder_that_the_cluster_deletes_is_created_again(
    is_drained: bool, is_node_first: bool
) -> None:
    """Pods and nodes are watched apart: the end of either one may be seen first."""

    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="1")
        cluster.add_node("n2", cpu="1")
        first = add_member(cluster, "m0")
        await cluster.settle()
        if is_node_first:
            cluster.remove_node("n1")
        for pod in [pod for pod in placeholders(cluster) if pod.spec.node_name == "n1"]:
            (cluster.disrupt_pod if is_drained else cluster.remove_pod)(pod)
        if not is_node_first:
            cluster.remove_node("n1")
        await cluster.settle()
        found = placeholders(cluster)
        assert sorted(pod.spec.node_name for pod in found) == ["", "", "n2"]
        assert {pod.metadata.owner_references[0].uid for pod in found} == {first.metadata.uid}
        cluster.add_node("n3", cpu="2")
        await cluster.settle()
        assert members(cluster) == ["m0"]
        assert cluster.used() == {"vcore": 3000, "pods": 3}

    run(test)


def test_a_placeholder_that_a_person_deletes_is_not_created_again() -> None:
    """The person wants its room; the timeout decides on the gang."""

    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        add_member(cluster, "m0")
        await cluster.settle()
        for pod in [pod for pod in placeholders(cluster) if pod.spec.node_name]:
            cluster.remove_pod(pod)
        await cluster.settle()
        assert [pod.spec.node_name for pod in placeholders(cluster)] == ["n1"]
        assert cluster.used() == {"vcore": 1000, "pods": 1}
        await cluster.advance(70)
        cluster.end_deleted()
        await cluster.settle()
        assert not placeholders(cluster)
        assert members(cluster) == ["m0"]
        assert cluster.used() == {"vcore": 1000, "pods": 1}

    run(test)


def test_a_preempted_placeholder_is_created_again_and_members_wait() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        for number in range(3):
            add_member(cluster, f"m{number}")
        await cluster.settle()
        cluster.add_pod("owner", app="owner", queue="root.owner")
        await cluster.settle()
        await cluster.advance(15)
        cluster.end_deleted()
        await cluster.settle()
        assert cluster.placed()["owner"] == "n1"
        assert members(cluster) == ["owner"]
        assert sorted(pod.spec.node_name for pod in placeholders(cluster)) == ["", "", "n1"]
        cluster.add_node("n2", cpu="2")
        await cluster.settle()
        assert members(cluster) == ["m0", "m1", "m2", "owner"]
        assert not placeholders(cluster)

    run(test, GUARANTEED)


def test_a_placeholder_that_fails_is_not_created_again() -> None:
    """The next one would fail as well; the timeout decides."""

    async def test(cluster: FakeCluster) -> None:
        cluster.add_node("n1", cpu="2")
        add_member(cluster, "m0")
        await cluster.settle()
        cluster.finish(next(pod for pod in placeholders(cluster) if pod.spec.node_name), "Failed")
        await cluster.settle()
        assert [pod.status.phase for pod in placeholders(cluster)].count("Failed") == 1
        assert len(placeholders(cluster)) == 3
        await cluster.advance(70)
        cluster.end_deleted()
        await cluster.settle()
        assert members(cluster) == ["m0"]

    run(test)
