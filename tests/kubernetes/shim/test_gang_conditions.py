"""Conditions of the members of a gang, while its placeholders collect room."""

from __future__ import annotations

import asyncio

from tests.kubernetes.api_server.virtual_time import run_virtual
from tests.kubernetes.shim.fake_cluster import FakeCluster
from tests.kubernetes.shim.test_gangs import add_member, placeholders


def test_members_say_that_they_wait_for_placeholders() -> None:
    async def main() -> None:
        cluster = FakeCluster()
        await cluster.start()
        cluster.add_node("n1", cpu="2")
        first, second = add_member(cluster, "m0"), add_member(cluster, "m1")
        for _ in range(3):
            await cluster.advance(1)
        await asyncio.sleep(15.0)
        waiting = next(pod for pod in placeholders(cluster) if not pod.spec.node_name)
        for pod in (first, second):
            (condition,) = cluster.pod_objects[pod.metadata.uid].status.conditions
            assert condition.reason == "SchedulingSkipped"
            assert "2 of 3 are" in condition.message
            assert f"{waiting.metadata.name} waits: queue root.lab" in condition.message
        await cluster.kill()

    run_virtual(main())


def test_members_say_that_placeholders_do_not_exist_yet() -> None:
    async def main() -> None:
        cluster = FakeCluster()
        await cluster.start()
        release = asyncio.Event()

        async def create(resource: object, namespace: str, body: object) -> None:
            await release.wait()

        cluster.create = create  # type: ignore[method-assign]
        first = add_member(cluster, "m0")
        await asyncio.sleep(15.0)
        (condition,) = cluster.pod_objects[first.metadata.uid].status.conditions
        assert "0 of 3 are" in condition.message
        await cluster.kill()

    run_virtual(main())
