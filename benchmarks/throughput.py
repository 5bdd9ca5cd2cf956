"""Throughput: how many tasks get their place in a second, all of them waiting at once."""

from __future__ import annotations

import gc
import time

from benchmarks.stand import Stand
from benchmarks.workload import RM, Workload


def tasks_per_second(workload: Workload) -> dict[str, float]:
    """On empty nodes, from the first ask handed in to the last allocation received in the callback."""
    stand = Stand.ready(workload)
    figures = hand_in_and_decide(stand, workload)
    workload.verify(stand.rm.placed)
    if workload.sink:
        # It may have a file to close.
        stand.scheduler.stop(RM)
    return figures


def hand_in_and_decide(stand: Stand, workload: Workload) -> dict[str, float]:
    """Tasks per second; seconds for taking in all asks, and for deciding; seconds of this process's CPU.

    The messages are made before, as a resource manager has them at hand; the rest is as in service, the
    garbage collector included. Less CPU than time means that the machine was busy with something else.
    """
    updates = list(workload.ask_updates())
    gc.collect()
    start, start_cpu = time.perf_counter(), time.process_time()
    for update in updates:
        stand.scheduler.update(update)
    taken_in = time.perf_counter()
    stand.settle()
    end, cpu = stand.rm.last, time.process_time() - start_cpu
    stand.check()
    return {
        "tasks_per_s": workload.tasks / (end - start),
        "take_in_s": taken_in - start,
        "decide_s": end - taken_in,
        "cpu_s": cpu,
    }
