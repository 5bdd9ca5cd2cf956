"""Bounded slowdown: the duration of an application relative to its duration on an empty cluster.

The bounded slowdown is the time from submission to the end of an application, divided by its run time with
all tasks started at once (that of its longest task). The divisor is at least 10 seconds and the result at
least 1; otherwise short jobs would dominate every mean. Losses by preemption and node failures are included.
Sources: D. Feitelson, L. Rudolph, "Metrics and benchmarking for parallel job scheduling", JSSPP 1998; the
bound of 10 s as in D. Feitelson, "Metrics for parallel job scheduling and their convergence", JSSPP 2001.
"""

from __future__ import annotations

from yunikorn.clock import SECOND
from yunikorn.simulation.workload import FOREVER, WorkloadApplication

BOUND = 10 * SECOND
"""Minimum run time in the divisor (ns)."""


def own_time(plan: WorkloadApplication) -> int | None:
    """Return the run time with all tasks started at once (ns); None if a task has no end of its own."""
    longest = 0
    for group in plan.tasks:
        runs = group.runtime
        if group.timeout and (runs == FOREVER or group.timeout < runs):
            runs = group.timeout
        if runs == FOREVER:
            return None
        longest = max(longest, runs)
    return longest


def bounded_slowdown(response: int, own: int) -> float:
    """Return the bounded slowdown for the time from submission to end and the run time (both ns)."""
    return max(1.0, response / max(own, BOUND))
