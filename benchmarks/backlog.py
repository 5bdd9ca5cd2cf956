"""Backlog: pending tasks that fit on no node, although all nodes have some free resources.

Measures the cost of scheduling cycles that place nothing, on average and at worst, and the time from a
release to the allocation of the next task.
"""

from __future__ import annotations

import gc
import time

import attrs

from benchmarks.failure import BenchmarkFailure
from benchmarks.harness import Harness
from benchmarks.quantiles import latencies, quantile
from benchmarks.workload import RM, Workload, app_name, node_name
from yunikorn.interface.messages import (
    Allocation,
    AllocationAsk,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    TerminationType,
    UpdateRequest,
)
from yunikorn.resources import Resource, add

IDLE_ROUNDS = 600
STEP_S = 0.1
"""Virtual time between two idle cycles in seconds. All cycles take a minute, so that reservations (after 2 s)
and preemption (after 30 s) are included."""


@attrs.frozen
class Scraps:
    """Content of the nodes: one running task, and free resources that are too small for all pending tasks.

    With one size, a node has room for 10, runs a task of 6, and tasks of 6 are pending. With K sizes, node i
    has free memory for the sizes below j = i mod K and free vcore for the sizes from j: for each size half
    the nodes have the memory, and the other half have the vcore.
    """

    running: Resource
    left: list[Resource]
    asked: list[Resource]

    @classmethod
    def of(cls, workload: Workload) -> Scraps:
        """Return the content of nodes for the sizes of a workload."""
        sizes = workload.sizes
        if sizes == 1:
            task = Resource(memory=6, vcore=6)
            return cls(task, [Resource(memory=4, vcore=4)], [task])
        left = [Resource(memory=10 * size + 9, vcore=sizes - size) for size in range(sizes)]
        return cls(Resource(memory=10 * sizes, vcore=sizes), left, workload.asked)

    def node(self, number: int, workload: Workload) -> NewNodeInfo:
        """Return a node with a running task of one of the applications."""
        name = node_name(number)
        running = Allocation(
            f"r{number}",
            app_name(number % workload.applications),
            uuid=f"r{number}",
            node_id=name,
            resource_per_alloc=self.running,
        )
        capacity = add(self.running, self.left[number % len(self.left)])
        return NewNodeInfo(name, {}, capacity, existing_allocations=[running])


def idle_and_release(workload: Workload) -> dict[str, float]:
    """Measure the first cycle, which places nothing, idle cycles, and the time from release to allocation."""
    scraps = Scraps.of(workload)
    harness = Harness(workload.configuration(), installed=workload.plugins)
    harness.update(UpdateRequest(RM, new_applications=workload.application_requests()))
    nodes = [scraps.node(number, workload) for number in range(workload.nodes)]
    harness.update(UpdateRequest(RM, new_schedulable_nodes=nodes))
    for app in range(workload.applications):
        tasks = range(app, workload.tasks, workload.applications)
        asks = [
            AllocationAsk(f"t{task}", app_name(app), resource_ask=scraps.asked[task % workload.sizes])
            for task in tasks
        ]
        harness.update(UpdateRequest(RM, asks=asks))
    gc.collect()
    start = time.perf_counter()
    harness.scheduler.schedule()
    first = time.perf_counter() - start
    if harness.rm.received:
        raise BenchmarkFailure(f"{harness.rm.received} tasks were placed where there is no room for any")
    return {"first_round_s": first, **_idle(harness), **_releases(harness, workload)}


def _idle(harness: Harness) -> dict[str, float]:
    """Return the seconds of the median idle cycle, and of the worst one including due timers."""
    clock, scheduler = harness.clock, harness.scheduler
    decided, whole = [], []
    for _ in range(IDLE_ROUNDS):
        clock.advance(STEP_S)
        start = time.perf_counter()
        scheduler.fire_timers()
        fired = time.perf_counter()
        scheduler.schedule()
        end = time.perf_counter()
        decided.append(end - fired)
        whole.append(end - start)
    if harness.rm.received:
        raise BenchmarkFailure("an idle round placed a task")
    if harness.rm.releases_to_confirm:
        raise BenchmarkFailure("an idle round ended a task")
    return {"idle_s": quantile(decided, 0.5), "worst_s": max(whole)}


def _releases(harness: Harness, workload: Workload) -> dict[str, float]:
    took = []
    for number in range(min(workload.samples, workload.nodes, workload.tasks)):
        gone = AllocationRelease(
            app_name(number % workload.applications),
            uuid=f"r{number}",
            termination_type=TerminationType.STOPPED_BY_RM,
        )
        request = UpdateRequest(RM, releases=AllocationReleasesRequest([gone]))
        before = harness.rm.received
        start = time.perf_counter()
        harness.scheduler.update(request)
        harness.scheduler.schedule(1)
        if harness.rm.received != before + 1:
            raise BenchmarkFailure(f"the release of r{number} made room, but no task was placed")
        took.append(harness.rm.last - start)
        harness.settle()
    harness.check()
    return latencies("release", took)
