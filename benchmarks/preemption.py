"""Preemption: the cluster is full, and a queue below its guarantee preempts other queues."""

from __future__ import annotations

import gc
import time

from benchmarks.failure import BenchmarkFailure
from benchmarks.harness import Harness
from benchmarks.workload import RM, Workload, app_name, node_name
from yunikorn.interface.messages import Allocation, NewNodeInfo, UpdateRequest
from yunikorn.resources import fits, grow, has_negative, sum_of

DELAY = 30.0
"""Virtual time that a request waits before it may preempt, in seconds (`preemption.delay`)."""
STEP = 0.1
"""Virtual time between two cycles without decisions, in seconds."""
LONGEST = 600.0
"""Virtual time after which the benchmark fails if requests are still pending, in seconds."""


def tasks_per_second(workload: Workload) -> dict[str, float]:
    """Measure preemption from the first cycle with an unmet guarantee to the last allocation.

    All queues except the first use the whole cluster. The applications of the first queue ask for `samples`
    tasks, which its guarantee covers. Preempted tasks end at once, so only the scheduler is measured.
    """
    harness = _full(workload)
    asked = workload.asked
    claims = range(workload.tasks, workload.tasks + workload.samples)
    claimant = app_name(0)
    asks = [workload.ask(task, asked) for task in claims]
    for ask in asks:
        ask.application_id = claimant
    harness.update(UpdateRequest(RM, asks=asks))
    harness.settle()
    harness.clock.advance(DELAY)
    gc.collect()
    start, start_cpu = time.perf_counter(), time.process_time()
    _serve(harness, workload.samples)
    took, cpu = harness.rm.last - start, time.process_time() - start_cpu
    harness.check()
    _verify(harness, workload)
    return {"tasks_per_s": workload.samples / took, "claim_s": took, "cpu_s": cpu}


def one_at_a_time(workload: Workload) -> dict[str, float]:
    """Measure preemption where each request comes alone, so that each is the only one of its round.

    So it is in a simulation, where requests become old enough to preempt one by one.
    """
    harness = _full(workload)
    asked = workload.asked
    gc.collect()
    took = cpu = 0.0
    for number in range(workload.samples):
        ask = workload.ask(workload.tasks + number, asked)
        ask.application_id = app_name(0)
        harness.update(UpdateRequest(RM, asks=[ask]))
        harness.settle()
        harness.clock.advance(DELAY)
        start, start_cpu = time.perf_counter(), time.process_time()
        _serve(harness, number + 1)
        took += time.perf_counter() - start
        cpu += time.process_time() - start_cpu
    harness.check()
    _verify(harness, workload)
    return {"tasks_per_s": workload.samples / took, "claim_s": took, "cpu_s": cpu}


def _full(workload: Workload) -> Harness:
    """Return a cluster without free resources, with tasks of all queues except the first."""
    harness = Harness(workload.configuration(), installed=workload.plugins, example=workload.example)
    harness.update(UpdateRequest(RM, new_applications=workload.application_requests()))
    asked = workload.asked
    owners = [app for app in range(workload.applications) if app % workload.queues]
    running: list[list[Allocation]] = [[] for _ in range(workload.nodes)]
    for task in range(workload.tasks):
        layer, number = divmod(task, workload.nodes)
        running[number].append(
            Allocation(
                f"r{task}",
                app_name(owners[task % len(owners)]),
                uuid=f"r{task}",
                node_id=node_name(number),
                resource_per_alloc=asked[(number + layer) % workload.sizes],
            )
        )
    nodes = [
        NewNodeInfo(
            node_name(number),
            {},
            sum_of(one.resource_per_alloc for one in here),
            existing_allocations=here,
        )
        for number, here in enumerate(running)
    ]
    harness.update(UpdateRequest(RM, new_schedulable_nodes=nodes))
    return harness


def _serve(harness: Harness, claims: int) -> None:
    """Schedule and confirm preemptions until all requests are allocated."""
    waited = 0.0
    while harness.rm.received < claims:
        harness.scheduler.fire_timers()
        decided = harness.settle()
        ended = harness.confirm()
        if not decided and not ended:
            waited += STEP
            harness.clock.advance(STEP)
            if waited > LONGEST:
                raise BenchmarkFailure(f"only {harness.rm.received:,} of {claims:,} claims were served")


def _verify(harness: Harness, workload: Workload) -> None:
    """Check that all requests are allocated, guarantees are met, and no node is over its capacity."""
    partition = harness.scheduler.partition(RM)
    if partition is None:
        raise BenchmarkFailure("the partition is gone")
    claimed: dict[str, int] = {}
    asked = workload.asked
    for task in range(workload.tasks, workload.tasks + workload.samples):
        grow(claimed, asked[task % workload.sizes])
    for queue in partition.partition.queues:
        used = {name: amount for name, amount in queue.allocated.items() if amount}
        if queue.applications.get(app_name(0)):
            if used != claimed:
                raise BenchmarkFailure(f"{queue.label} claimed {claimed} and has {used}")
        elif queue.is_leaf and not fits(used, queue.guaranteed):
            raise BenchmarkFailure(f"{queue.label} has {used} and is guaranteed {dict(queue.guaranteed)}")
    for node in partition.partition.nodes.values():
        if has_negative(node.available):
            raise BenchmarkFailure(f"{node.label} has {dict(node.available)} left")
