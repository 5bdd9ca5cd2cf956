"""Reloading: first load of a large configuration, and reloads with few changes in a busy cluster."""

from __future__ import annotations

import gc
import time

from benchmarks.failure import BenchmarkFailure
from benchmarks.harness import Harness
from benchmarks.quantiles import quantile
from benchmarks.workload import RM, Workload
from yunikorn.interface.messages import UpdateRequest

CHANGES = 10
"""Number of queues whose guarantee a reload changes."""


def load_and_reload(workload: Workload) -> dict[str, float]:
    """Measure the seconds of the first load, and of a reload with ten changes (median of `samples`)."""
    text = workload.configuration()
    gc.collect()
    start = time.perf_counter()
    harness = Harness(text, installed=workload.plugins)
    load = time.perf_counter() - start
    harness.update(
        UpdateRequest(
            RM,
            new_schedulable_nodes=workload.node_infos(),
            new_applications=workload.application_requests(),
        )
    )
    for update in workload.ask_updates():
        harness.update(update)
    harness.settle()
    workload.verify(harness.rm.placed)
    took = []
    for sample in range(workload.samples):
        raised = {(sample + step * 97) % workload.queues: sample + 1 for step in range(CHANGES)}
        changed = workload.configuration(raised)
        start = time.perf_counter()
        fresh = harness.scheduler.reload_configuration(RM, changed)
        took.append(time.perf_counter() - start)
        if not fresh:
            raise BenchmarkFailure("the scheduler took a changed configuration for the same")
    harness.check()
    return {"load_s": load, "reload_s": quantile(took, 0.5)}
