"""Churn: a cluster at 90% utilisation in which one task ends and one arrives per millisecond."""

from __future__ import annotations

import gc
import random
import time

from benchmarks.failure import BenchmarkFailure
from benchmarks.harness import Harness
from benchmarks.quantiles import latencies
from benchmarks.workload import RM, Workload, app_name
from yunikorn.interface.messages import AllocationRelease, AllocationReleasesRequest, UpdateRequest

TICK = 0.001
"""Virtual time between two tasks in seconds."""


def decision_latency(workload: Workload) -> dict[str, float]:
    """Measure the time from an update, with one release and one ask, to the allocation in the callback.

    `samples` is the number of ticks. A task that is not placed at once is placed by a later release and not
    measured; more than 1% of such tasks is a failure.
    """
    harness = Harness.ready(workload)
    for update in workload.ask_updates():
        harness.update(update)
    harness.settle()
    workload.verify(harness.rm.placed)
    gc.collect()
    began = time.perf_counter()
    took = _ticks(harness, workload)
    total = time.perf_counter() - began
    harness.check()
    if len(took) * 100 < workload.samples * 99:
        raise BenchmarkFailure(f"only {len(took):,} of {workload.samples:,} tasks were placed at once")
    return {"tasks_per_s": workload.samples / total, **latencies("decision", took)}


def _ticks(harness: Harness, workload: Workload) -> list[float]:
    draw = random.Random(1)
    scheduler, rm, clock, asked = harness.scheduler, harness.rm, harness.clock, workload.asked
    running = list(rm.placed)
    took = []
    for task in range(workload.tasks, workload.tasks + workload.samples):
        index = draw.randrange(len(running))
        running[index], running[-1] = running[-1], running[index]
        key = running.pop()
        uuid, _ = rm.placed.pop(key)
        gone = AllocationRelease(app_name(int(key[1:]) % workload.applications), uuid=uuid)
        request = UpdateRequest(
            RM, asks=[workload.ask(task, asked)], releases=AllocationReleasesRequest([gone])
        )
        clock.advance(TICK)
        start = time.perf_counter()
        scheduler.fire_timers()
        scheduler.update(request)
        scheduler.schedule()
        if f"t{task}" in rm.placed:
            took.append(rm.last - start)
            running.append(f"t{task}")
    return took
