"""Throughput: tasks allocated per second if all of them are pending at once."""

from __future__ import annotations

import gc
import time

from benchmarks.harness import Harness
from benchmarks.workload import RM, Workload


def tasks_per_second(workload: Workload) -> dict[str, float]:
    """Measure from the first ask submitted to the last allocation received, on empty nodes."""
    harness = Harness.ready(workload)
    figures = hand_in_and_decide(harness, workload)
    workload.verify(harness.rm.placed)
    if workload.sink:
        # Closes the sink and its file.
        harness.scheduler.stop(RM)
    return figures


def hand_in_and_decide(harness: Harness, workload: Workload) -> dict[str, float]:
    """Measure the tasks per second, the seconds to register all asks and to decide, and the CPU seconds.

    The messages are created before, because a resource manager has them available. All else is as in a
    service, including the garbage collector. CPU time below elapsed time means that the machine was busy.
    """
    updates = list(workload.ask_updates())
    gc.collect()
    start, start_cpu = time.perf_counter(), time.process_time()
    for update in updates:
        harness.scheduler.update(update)
    taken_in = time.perf_counter()
    harness.settle()
    end, cpu = harness.rm.last, time.process_time() - start_cpu
    harness.check()
    return {
        "tasks_per_s": workload.tasks / (end - start),
        "take_in_s": taken_in - start,
        "decide_s": end - taken_in,
        "cpu_s": cpu,
    }
