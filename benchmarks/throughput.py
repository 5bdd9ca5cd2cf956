"""Throughput: how many tasks get their place in a second, all of them waiting at once."""

from __future__ import annotations

import gc
import time

from benchmarks.stand import Stand
from benchmarks.workload import Workload


def tasks_per_second(workload: Workload) -> dict[str, float]:
    """From the first ask handed in to the last allocation received in the callback.

    The messages are made before, as a resource manager has them at hand; the rest is as in service,
    the garbage collector included.
    """
    stand = Stand.ready(workload)
    updates = list(workload.ask_updates())
    gc.collect()
    start = time.perf_counter()
    for update in updates:
        stand.scheduler.update(update)
    taken_in = time.perf_counter()
    stand.settle()
    end = stand.rm.last
    stand.check()
    workload.verify(stand.rm.placed)
    return {
        "tasks_per_s": workload.tasks / (end - start),
        "take_in_s": taken_in - start,
        "decide_s": end - taken_in,
    }
