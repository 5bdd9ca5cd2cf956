"""Gangs: applications that need all their tasks at once, with placeholders or in one decision."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import attrs

from benchmarks.failure import BenchmarkFailure
from benchmarks.harness import Harness
from benchmarks.workload import RM, Workload
from yunikorn.interface.messages import AllocationAsk, UpdateRequest
from yunikorn.resources import Resource, sum_of
from yunikorn_service.runtime.threaded import BATCH


def replacing_placeholders(workload: Workload) -> dict[str, float]:
    """Measure the tasks per second of gangs that reserve their resources with placeholders.

    For each task the placeholder is requested and placed first. Then the task is requested, the resource
    manager ends the placeholder at the scheduler's request, and receives the task in its place. The time is
    from the first placeholder submitted to the last task received.
    """
    harness = _harness(workload, "Soft")
    keeping = list(_asks(workload, placeholder=True))
    running = list(_asks(workload, placeholder=False))
    gc.collect()
    start, start_cpu = time.perf_counter(), time.process_time()
    for update in keeping:
        harness.scheduler.update(update)
    harness.settle()
    kept = harness.rm.last
    if harness.rm.received != workload.tasks:
        raise BenchmarkFailure(f"{harness.rm.received:,} of {workload.tasks:,} placeholders got a place")
    for update in running:
        harness.scheduler.update(update)
    while harness.scheduler.schedule(BATCH) or harness.rm.releases_to_confirm:
        harness.confirm()
    cpu = time.process_time() - start_cpu
    figures = {
        "tasks_per_s": workload.tasks / (harness.rm.last - start),
        "keep_s": kept - start,
        "replace_s": harness.rm.last - kept,
        "cpu_s": cpu,
    }
    _verify(harness, workload)
    return figures


def placing_as_a_whole(workload: Workload) -> dict[str, float]:
    """Measure the tasks per second of gangs that are each placed completely, in a single decision.

    The first decision is measured by itself, and the gangs per second are those of all later ones; both
    count CPU time.
    """
    harness = _harness(workload, "Atomic")
    updates = list(_asks(workload, placeholder=False))
    gc.collect()
    start, start_cpu = time.perf_counter(), time.process_time()
    for update in updates:
        harness.scheduler.update(update)
    taken_in, taken_in_cpu = time.perf_counter(), time.process_time()
    decided = harness.scheduler.schedule(1)
    first_cpu = time.process_time()
    decided += harness.settle()
    end, cpu = harness.rm.last, time.process_time()
    if decided != workload.applications:
        raise BenchmarkFailure(f"{decided:,} decisions placed {workload.applications:,} gangs")
    _verify(harness, workload)
    return {
        "tasks_per_s": workload.tasks / (end - start),
        "gangs_per_s": (decided - 1) / (cpu - first_cpu),
        "first_s": first_cpu - taken_in_cpu,
        "take_in_s": taken_in - start,
        "decide_s": end - taken_in,
        "cpu_s": cpu - start_cpu,
    }


def _harness(workload: Workload, style: str) -> Harness:
    """Return a harness with an application per gang, whose placeholder size is that of its tasks."""
    asked = workload.asked
    gangs = [
        attrs.evolve(
            app,
            gang_scheduling_style=style,
            placeholder_ask=sum_of(
                asked[task % workload.sizes] for task in range(number, workload.tasks, workload.applications)
            ),
        )
        for number, app in enumerate(workload.application_requests())
    ]
    harness = Harness(workload.configuration(), installed=workload.plugins)
    harness.update(UpdateRequest(RM, new_schedulable_nodes=workload.node_infos(), new_applications=gangs))
    return harness


def _asks(workload: Workload, *, placeholder: bool) -> Iterator[UpdateRequest]:
    """Yield the tasks, or their placeholders: one update per gang, one task group per size."""
    asked = workload.asked
    for app in range(workload.applications):
        tasks = range(app, workload.tasks, workload.applications)
        yield UpdateRequest(RM, asks=[_ask(workload, task, asked, placeholder) for task in tasks])


def _ask(workload: Workload, task: int, asked: list[Resource], placeholder: bool) -> AllocationAsk:
    ask = workload.ask(task, asked)
    ask.task_group_name = f"size-{task % workload.sizes}"
    if placeholder:
        ask.allocation_key, ask.placeholder = f"p{task}", True
    return ask


def _verify(harness: Harness, workload: Workload) -> None:
    harness.check()
    placed = {key: place for key, place in harness.rm.placed.items() if key.startswith("t")}
    workload.verify(placed)
    partition = harness.scheduler.partition(RM)
    if partition is None or partition.partition.used != workload.demand:
        raise BenchmarkFailure("what the gangs use is not what their tasks take together")
