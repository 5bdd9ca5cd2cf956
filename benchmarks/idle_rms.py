"""Idle resource managers: decisions and registrations of one among many that have no work."""

from __future__ import annotations

import gc
import time

from benchmarks.failure import BenchmarkFailure
from benchmarks.harness import Harness, ResourceManager
from benchmarks.quantiles import latencies
from benchmarks.workload import RM, Workload
from yunikorn.interface.messages import RegisterResourceManagerRequest, UpdateRequest
from yunikorn_service.runtime.threaded import BATCH

REGISTRATIONS = 20
"""Number of measured registrations."""


def decision_latency(workload: Workload) -> dict[str, float]:
    """Measure the time from an ask to its allocation, beside `idle_rms` idle resource managers.

    Each idle resource manager has a node and an application that uses the whole node. The steps are those of
    a service. Then measure the time of a registration.
    """
    harness = Harness.ready(workload)
    for number in range(workload.idle_rms):
        _join(harness, workload, f"idle-{number}")
    harness.settle()
    gc.collect()
    took = _decisions(harness, workload)
    harness.check()
    joined = []
    for number in range(REGISTRATIONS):
        start = time.perf_counter()
        _register(harness, workload, f"late-{number}")
        joined.append(time.perf_counter() - start)
    return {**latencies("decision", took), "register_s": sorted(joined)[len(joined) // 2]}


def _register(harness: Harness, workload: Workload, rm_id: str) -> None:
    request = RegisterResourceManagerRequest(rm_id, config=workload.configuration())
    harness.scheduler.register_resource_manager(request, ResourceManager())


def _join(harness: Harness, workload: Workload, rm_id: str) -> None:
    _register(harness, workload, rm_id)
    harness.scheduler.update(
        UpdateRequest(
            rm_id,
            new_schedulable_nodes=workload.node_infos()[:1],
            new_applications=workload.application_requests()[:1],
            asks=[workload.ask(0, workload.asked)],
        )
    )


def _decisions(harness: Harness, workload: Workload) -> list[float]:
    scheduler, rm = harness.scheduler, harness.rm
    took = []
    for task in range(workload.samples):
        request = UpdateRequest(RM, asks=[workload.ask(task, workload.asked)])
        harness.clock.advance(0.001)
        start = time.perf_counter()
        scheduler.fire_timers()
        scheduler.update(request)
        scheduler.schedule(BATCH)
        scheduler.next_timer()
        if rm.received != task + 1:
            raise BenchmarkFailure(f"task {task} got no place at once")
        took.append(time.perf_counter() - start)
    return took
