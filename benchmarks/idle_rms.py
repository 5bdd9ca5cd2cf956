"""Idle resource managers: decisions and registrations of one among many that have no work."""

from __future__ import annotations

import gc
import time

from benchmarks.failure import BenchmarkFailure
from benchmarks.quantiles import latencies
from benchmarks.stand import ResourceManager, Stand
from benchmarks.workload import RM, Workload
from yunikorn.interface.messages import RegisterResourceManagerRequest, UpdateRequest
from yunikorn.runtime.threaded import BATCH

REGISTRATIONS = 20
"""Number of measured registrations."""


def decision_latency(workload: Workload) -> dict[str, float]:
    """Measure the time from an ask to its allocation, beside `idle_rms` idle resource managers.

    Each idle resource manager has a node and an application that uses the whole node. The steps are those of
    a service. Then measure the time of a registration.
    """
    stand = Stand.ready(workload)
    for number in range(workload.idle_rms):
        _join(stand, workload, f"idle-{number}")
    stand.settle()
    gc.collect()
    took = _decisions(stand, workload)
    stand.check()
    joined = []
    for number in range(REGISTRATIONS):
        start = time.perf_counter()
        _register(stand, workload, f"late-{number}")
        joined.append(time.perf_counter() - start)
    return {**latencies("decision", took), "register_s": sorted(joined)[len(joined) // 2]}


def _register(stand: Stand, workload: Workload, rm_id: str) -> None:
    request = RegisterResourceManagerRequest(rm_id, config=workload.configuration())
    stand.scheduler.register_resource_manager(request, ResourceManager())


def _join(stand: Stand, workload: Workload, rm_id: str) -> None:
    _register(stand, workload, rm_id)
    stand.scheduler.update(
        UpdateRequest(
            rm_id,
            new_schedulable_nodes=workload.node_infos()[:1],
            new_applications=workload.application_requests()[:1],
            asks=[workload.ask(0, workload.asked)],
        )
    )


def _decisions(stand: Stand, workload: Workload) -> list[float]:
    scheduler, rm = stand.scheduler, stand.rm
    took = []
    for task in range(workload.samples):
        request = UpdateRequest(RM, asks=[workload.ask(task, workload.asked)])
        stand.clock.advance(0.001)
        start = time.perf_counter()
        scheduler.fire_timers()
        scheduler.update(request)
        scheduler.schedule(BATCH)
        scheduler.next_timer()
        if rm.received != task + 1:
            raise BenchmarkFailure(f"task {task} got no place at once")
        took.append(time.perf_counter() - start)
    return took
