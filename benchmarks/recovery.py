"""Recovery: registration of a resource manager with nodes and their running allocations."""

from __future__ import annotations

import gc
import time

from benchmarks.failure import BenchmarkFailure
from benchmarks.harness import Harness
from benchmarks.workload import RM, Workload, app_name, node_name
from yunikorn.interface.messages import Allocation, UpdateRequest


def registration(workload: Workload) -> dict[str, float]:
    """Measure the seconds of one update with all nodes and their allocations."""
    harness = Harness(workload.configuration(), installed=workload.plugins)
    harness.update(UpdateRequest(RM, new_applications=workload.application_requests()))
    nodes, asked = workload.node_infos(), workload.asked
    for task in range(workload.tasks):
        number = task % workload.nodes
        nodes[number].existing_allocations.append(
            Allocation(
                f"t{task}",
                app_name(task % workload.applications),
                uuid=f"u{task}",
                node_id=node_name(number),
                resource_per_alloc=asked[task % workload.sizes],
            )
        )
    request = UpdateRequest(RM, new_schedulable_nodes=nodes)
    gc.collect()
    start = time.perf_counter()
    harness.scheduler.update(request)
    harness.scheduler.schedule()
    took = time.perf_counter() - start
    harness.check()
    partition = harness.scheduler.partition(RM)
    if partition is None or partition.partition.used != workload.demand:
        raise BenchmarkFailure("what was recovered is not what the nodes brought along")
    return {"recover_s": took, "tasks_per_s": workload.tasks / took}
