"""Waits that EASY backfilling would give to rigid jobs, as a yardstick for those of a simulation.

The cluster is one pool of cores here: without nodes, queues, users and priorities. Jobs start in the order
of submission. The first one that has no room gets the earliest time at which it will fit by the limits of
what runs, and later ones start if they end before by their limits, or use only cores that are left then.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

import attrs

from yunikorn.clock import SECOND
from yunikorn.model.gang import ATOMIC
from yunikorn.quantities import VCORE
from yunikorn_lab.simulation.statistics import Summary, Waits
from yunikorn_lab.simulation.workload import FOREVER, Workload, WorkloadApplication
from yunikorn_plugins.run_time_estimators import LIMIT_TAG, parse_seconds

MOST_JOBS = 20_000
"""Number of jobs from which on the yardstick is left out."""
DEPTH = 200
"""Number of waiting jobs that are looked at after the first."""


@attrs.frozen(slots=True)
class RigidJob:
    """A job that needs all its cores from its start to its end."""

    submit: int
    cores: int
    time: int
    limit: int
    """Run time as estimated (ns): the limit, if there is one."""

    @classmethod
    def of(cls, app: WorkloadApplication) -> RigidJob | None:
        """Return the job of an application; None if its tasks may run apart, or need no cores."""
        times = {group.own_time for group in app.tasks}
        alone = app.gang == ATOMIC or (not app.gang and app.size == 1)
        parts = [group for group in app.tasks if group.delay or group.least < group.count]
        cores = sum(group.count * group.resources.get(VCORE, 0) for group in app.tasks)
        if not alone or app.after or parts or len(times) != 1 or FOREVER in times or not cores:
            return None
        (time,) = times
        texts = [tags.get(LIMIT_TAG, "") for tags in (*(group.tags for group in app.tasks), app.tags)]
        limits = [parse_seconds(text) for text in texts]
        limit = max((round(each * SECOND) for each in limits if each is not None), default=time)
        return cls(app.submit, cores, time, limit)


def easy_waits(workload: Workload) -> Summary | None:
    """Return the waits of the jobs of a workload under EASY; None if the workload is of another kind.

    Other kinds have tasks that start one by one or never end, predecessors, nodes that change or differ in
    speed, several partitions, or more than `MOST_JOBS` applications.
    """
    nodes = workload.nodes
    places = {node.partition or "default" for node in nodes} | {
        app.partition or "default" for app in workload.applications
    }
    is_plain = not workload.events and {node.speed for node in nodes} == {1.0} and len(places) == 1
    if not is_plain or len(workload.applications) > MOST_JOBS:
        return None
    jobs: list[RigidJob] = []
    cores = sum(node.resources.get(VCORE, 0) for node in nodes)
    for app in workload.applications:
        job = RigidJob.of(app)
        if job is None:
            return None
        if job.cores <= cores:
            jobs.append(job)
    waits = Waits()
    for job, start in EasyMachine(cores).starts(sorted(jobs, key=lambda one: one.submit)):
        waits.add(start - job.submit)
    return waits.summary()


class EasyMachine:
    """A pool of cores that runs jobs."""

    def __init__(self, cores: int) -> None:
        self._free = cores
        self._waiting: list[RigidJob] = []
        self._running: list[tuple[int, int, int, int]] = []
        """Heap of the ends of jobs, with a number, their ends as estimated, and their cores."""
        self._count = 0

    def starts(self, jobs: Iterable[RigidJob]) -> Iterator[tuple[RigidJob, int]]:
        """Yield jobs, which are in order of submission, with their starts (ns)."""
        for job in jobs:
            while self._running and self._running[0][0] <= job.submit:
                yield from self._end()
            self._waiting.append(job)
            yield from self._start(job.submit)
        while self._waiting:
            yield from self._end()

    def _end(self) -> Iterator[tuple[RigidJob, int]]:
        now = self._running[0][0]
        while self._running and self._running[0][0] == now:
            self._free += heapq.heappop(self._running)[3]
        return self._start(now)

    def _start(self, now: int) -> Iterator[tuple[RigidJob, int]]:
        waiting = self._waiting
        while waiting and waiting[0].cores <= self._free:
            yield self._run(waiting.pop(0), now)
        if not waiting or not self._free:
            return
        shadow, spare = self._shadow(waiting[0].cores, now)
        place = 1
        while place < min(len(waiting), DEPTH) and self._free:
            job = waiting[place]
            ends_before = now + job.limit <= shadow
            if job.cores <= self._free and (ends_before or job.cores <= spare):
                if not ends_before:
                    spare -= job.cores
                yield self._run(waiting.pop(place), now)
            else:
                place += 1

    def _run(self, job: RigidJob, now: int) -> tuple[RigidJob, int]:
        self._free -= job.cores
        self._count += 1
        heapq.heappush(self._running, (now + job.time, self._count, now + job.limit, job.cores))
        return job, now

    def _shadow(self, cores: int, now: int) -> tuple[int, int]:
        """Return when so many cores are free by the estimates, and how many are left then."""
        free = self._free
        for _, _, end, given in sorted(self._running, key=lambda one: max(one[2], now)):
            free += given
            if free >= cores:
                return max(end, now), free - cores
        raise AssertionError("a job is larger than the machine")
