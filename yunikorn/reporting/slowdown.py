"""How much longer an application took than it would have on an empty cluster.

The bounded slowdown of an application is its time from submission to its end over the time it runs if all
of its tasks start at once (that of its longest task), but over no less than 10 seconds, and no less than 1:
short jobs would otherwise decide every mean. Source: D. Feitelson, L. Rudolph, "Metrics and benchmarking for
parallel job scheduling", JSSPP 1998; with a bound of 10 s as in D. Feitelson, "Metrics for parallel job
scheduling and their convergence", JSSPP 2001. What preemption and lost nodes cost is part of it.
"""

from __future__ import annotations

from yunikorn.clock import SECOND
from yunikorn.simulation.workload import FOREVER, WorkloadApplication

BOUND = 10 * SECOND
"""Run times below it count as this long (ns)."""


def own_time(plan: WorkloadApplication) -> int | None:
    """How long it runs if all its tasks start at once (ns); None if it never ends by itself."""
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
    """Of an application that took `response` from submission to end and runs for `own` by itself (ns)."""
    return max(1.0, response / max(own, BOUND))
