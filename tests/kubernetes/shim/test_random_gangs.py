"""Random changes of gangs of Jobs and PodGroups: none is stuck or counted twice, and each starts whole."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.kubernetes.shim.owned_pods import OwnedCluster
from yunikorn_kubernetes.objects import OwnerReference, Pod

STEPS = 40


class Work:
    """A Job or a PodGroup with the pods that its controller makes."""

    def __init__(self, cluster: OwnedCluster, name: str, size: int, *, is_group: bool) -> None:
        self.cluster, self.name, self.size, self.is_group = cluster, name, size, is_group
        self.made = 0
        self.has_started = False
        self.pods: list[Pod] = []
        self.job: OwnerReference | None = None
        self.resize(size)

    def resize(self, size: int) -> None:
        """Change the number of pods of a Job; that of a PodGroup cannot change."""
        if self.is_group:
            if not self.made:
                self.cluster.pod_group(self.name, self.size)
            return
        self.size = size
        self.job = self.cluster.job(self.name, size)

    def add(self) -> None:
        """Make a pod that is missing."""
        if len(self.alive()) < self.size:
            self.made += 1
            name = f"{self.name}-{self.made}"
            if self.job is None:
                self.pods.append(self.cluster.grouped_pod(name, self.name))
            else:
                self.pods.append(self.cluster.job_pod(self.job, self.made))

    def alive(self) -> list[Pod]:
        """Return the pods that exist and have not ended."""
        found = [self.cluster.pod_objects.get(pod.metadata.uid) for pod in self.pods]
        return [pod for pod in found if pod is not None and pod.status.phase not in ("Failed", "Succeeded")]

    async def check_start(self) -> None:
        """Check that a PodGroup has as many pods with a node as it needs when its first pod has one."""
        if self.is_group and not self.has_started and any(pod.spec.node_name for pod in self.alive()):
            await self.cluster.settle()
            self.has_started = True
            assert sum(bool(pod.spec.node_name) for pod in self.alive()) >= self.size


async def change(random: Random, cluster: OwnedCluster, works: list[Work]) -> None:
    """Make one random change.

    A member that is gone between the decision and the binding leaves fewer: all bindings end first.
    """
    work = random.choice(works)
    kind = random.choice(["add", "add", "add", "remove", "finish", "resize", "node", "settle", "settle"])
    if kind in ("remove", "resize"):
        await cluster.settle()
    for one in works:
        await one.check_start()
    pods = work.alive()
    if kind == "add":
        work.add()
    elif kind == "remove" and pods:
        cluster.remove_pod(random.choice(pods))
    elif kind == "finish":
        bound = [pod for pod in pods if pod.spec.node_name]
        if bound:
            cluster.finish(random.choice(bound), random.choice(["Failed", "Succeeded"]))
    elif kind == "resize":
        work.resize(random.randint(1, 4))
        for pod in pods[work.size :]:
            if not pod.spec.node_name:
                cluster.remove_pod(pod)
    elif kind == "node":
        cluster.add_node(f"n{len(cluster.node_objects)}", cpu=str(random.randint(1, 3)))
    elif kind == "settle":
        for _ in range(random.randint(0, 6)):
            await asyncio.sleep(0)
    if random.random() < 0.04:
        await cluster.settle()
        await cluster.restart()
    if random.random() < 0.04:
        await cluster.pass_time()


@pytest.mark.parametrize("seed", range(20))
def test_random_changes_leave_no_gang_behind(seed: int) -> None:
    async def test() -> None:
        random = Random(seed)
        cluster = OwnedCluster()
        await cluster.start()
        works = [
            Work(cluster, f"work{number}", random.randint(1, 4), is_group=number % 2 == 1)
            for number in range(3)
        ]
        try:
            for _ in range(STEPS):
                await change(random, cluster, works)
                for work in works:
                    await work.check_start()
            await cluster.settle()
            for work in works:
                for _ in range(4):
                    work.add()
            cluster.add_node("large", cpu="99")
            for _ in range(4):
                await cluster.settle()
                await cluster.pass_time()
            alive = [pod for work in works for pod in work.alive()]
            waiting = [pod.metadata.name for pod in alive if not pod.spec.node_name]
            assert waiting == []
            assert cluster.used() == ({"vcore": 1000 * len(alive), "pods": len(alive)} if alive else {})
            assert {*cluster.shim.cluster.tasks} == {pod.metadata.uid for pod in alive}
            assert len(cluster.bindings) == len({uid for uid, _ in cluster.bindings})
            await cluster.restart()
            assert cluster.used() == ({"vcore": 1000 * len(alive), "pods": len(alive)} if alive else {})
        finally:
            await cluster.kill()

    asyncio.run(test())
