"""Demo resource manager inside the service, which submits jobs to a few nodes."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator

import attrs

from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    RegisterResourceManagerRequest,
    SchedulerAction,
    TerminationType,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.resources import Resource, multiply
from yunikorn_service.async_scheduler import AsyncScheduler

_log = logging.getLogger("yunikorn.demo")

RM_ID = "demo"
GROUP = "demo"
NODES = 4
"""Number of nodes, two per rack."""
NODE = Resource(vcore=8_000, memory=32 << 30)
MOST_UNFINISHED = 20
"""Maximum number of unfinished jobs; together they need more than the nodes have."""
TICK = 1.0
"""Seconds between two ticks."""

CONFIG = """\
partitions:
  - name: default
    periods: {retention: 15m}
    topology: [rack]
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: analytics
            resources:
              guaranteed: {vcore: 16, memory: 64Gi}
          - name: web
            resources:
              guaranteed: {vcore: 8, memory: 32Gi}
              max: {vcore: 24, memory: 96Gi}
"""


@attrs.frozen
class DemoJob:
    """A job of the demo: an application with equal tasks."""

    name: str
    queue: str
    user: str
    tasks: int
    vcore: int
    """Milli-vcores per task."""
    ticks: int
    """Duration of each task in ticks."""
    level: str = ""
    """Level of the topology of which one domain must have all tasks, which start together; "" for none."""

    @property
    def task_size(self) -> Resource:
        """Resources of each task."""
        return Resource(vcore=self.vcore, memory=self.vcore * (2 << 20))


def jobs() -> Iterator[DemoJob]:
    """Yield jobs without end, the same in every run; now and then, they need more than all nodes have."""
    shapes = itertools.cycle(
        [
            ("analytics", "ann", 6, 2_000, 9),
            ("web", "bob", 3, 1_000, 5),
            ("analytics", "cleo", 2, 4_000, 12),
            ("web", "bob", 8, 1_000, 4),
            ("analytics", "ann", 10, 1_500, 7),
        ]
    )
    for number, (queue, user, tasks, vcore, ticks) in enumerate(shapes, 1):
        yield DemoJob(f"{queue}-{number}", f"root.{queue}", user, tasks, vcore, ticks)
        if number % 5 == 0:
            yield DemoJob(f"training-{number}", "root.analytics", "dora", 4, 3_000, 10, level="rack")


class Demo:
    """Resource manager of the demo: runs its allocations, and releases each after its duration.

    A job whose tasks have ended is not removed: the scheduler completes it, and lists it for a while.
    """

    def __init__(self, core: AsyncScheduler, tick: float = TICK) -> None:
        self._core = core
        self._tick = tick
        self._jobs = jobs()
        self._now = 0
        self._running: dict[str, tuple[Allocation, int]] = {}
        """Running allocations by uuid, with the tick at which each ends."""
        self._known: dict[str, DemoJob] = {}
        self._left: dict[str, int] = {}
        """Number of unfinished tasks by job."""
        self._lost: list[tuple[Allocation, AllocationRelease]] = []
        """Tasks that the scheduler ends: each is confirmed, and submitted again."""
        self._again = False
        self.done = 0
        """Number of finished jobs."""

    @property
    def running(self) -> int:
        """Number of running tasks."""
        return len(self._running)

    async def run(self) -> None:
        """Register the demo, then run ticks until the task is cancelled."""
        await self.begin()
        while True:
            await asyncio.sleep(self._tick)
            if self._again:
                await self.begin()
            await self.step()

    async def begin(self) -> None:
        """Register, and report the nodes."""
        self._again = False
        self._running, self._known, self._left, self._lost = {}, {}, {}, []
        request = RegisterResourceManagerRequest(RM_ID, version="demo", policy_group=GROUP)
        await self._core.register_resource_manager(request, self)
        nodes = [
            NewNodeInfo(f"node-{n}", {"rack": f"r{(n + 1) // 2}"}, schedulable_resource=NODE)
            for n in range(1, NODES + 1)
        ]
        await self._core.update(UpdateRequest(RM_ID, new_schedulable_nodes=nodes))

    async def step(self) -> None:
        """Run one tick: release finished tasks, submit lost ones again, and a job every other tick."""
        self._now += 1
        update = UpdateRequest(RM_ID, releases=AllocationReleasesRequest(self._over()))
        for name in [name for name, left in self._left.items() if not left]:
            del self._left[name], self._known[name]
            self.done += 1
            _log.info("%s is completed", name)
        for lost, release in self._lost:
            update.releases.allocations_to_release.append(release)
            update.asks.append(self._ask(self._known[lost.application_id], f"{lost.uuid}-again", 1))
        self._lost = []
        if self._now % 2 and len(self._left) < MOST_UNFINISHED:
            self._submit(next(self._jobs), update)
        await self._core.update(update)

    def _over(self) -> list[AllocationRelease]:
        ended = []
        for uuid, (placed, until) in list(self._running.items()):
            if until <= self._now:
                del self._running[uuid]
                self._left[placed.application_id] -= 1
                ended.append(AllocationRelease(placed.application_id, uuid))
        return ended

    def _submit(self, job: DemoJob, update: UpdateRequest) -> None:
        _log.info("%s submits %s: %d tasks of %d vcore", job.user, job.name, job.tasks, job.vcore // 1000)
        self._known[job.name], self._left[job.name] = job, job.tasks
        application = AddApplicationRequest(
            job.name, job.queue, ugi=UserGroupInformation(job.user, [job.user])
        )
        if job.level:
            application.gang_scheduling_style = "Atomic"
            application.placeholder_ask = multiply(job.task_size, job.tasks)
            application.tags["yunikorn.apache.org/gang-topology"] = job.level
        update.new_applications.append(application)
        update.asks.append(self._ask(job, f"{job.name}-task", job.tasks))

    def _ask(self, job: DemoJob, key: str, count: int) -> AllocationAsk:
        group = "workers" if job.level else ""
        return AllocationAsk(
            key, job.name, resource_ask=job.task_size, max_allocations=count, task_group_name=group
        )

    # -- the callback, in the event loop ------------------------------------------------------------------

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Start new allocations, and drop released ones."""
        if response.action is SchedulerAction.RESYNC:
            self._again = True
        for placed in response.new_allocations:
            job = self._known.get(placed.application_id)
            if job is not None:
                self._running[placed.uuid] = placed, self._now + job.ticks
                _log.info("%s runs on %s", placed.uuid, placed.node_id)
        for gone in response.released_allocations:
            if gone.termination_type is not TerminationType.STOPPED_BY_RM:
                lost = self._running.pop(gone.uuid, None)
                if lost is not None:
                    release = AllocationRelease(
                        gone.application_id, gone.uuid, termination_type=gone.termination_type
                    )
                    self._lost.append((lost[0], release))
                _log.info("%s was released: %s", gone.uuid, gone.message or gone.termination_type.name)
        for refused in response.rejected_applications:
            _log.warning("%s was rejected: %s", refused.application_id, refused.reason)
            self._known.pop(refused.application_id, None)
            self._left.pop(refused.application_id, None)
