"""Shares of queues, the key of the `fair` queue order."""

from __future__ import annotations

import math
from collections.abc import Mapping

from yunikorn.api import Queue


def fair_share_key(queue: Queue) -> tuple[float, float]:
    """Return the usage ratio of a queue, and its negative pending share.

    The usage ratio is the maximum over all types of usage to guarantee, or to the quota of a type without
    guarantee. A type with neither is ignored; a guarantee or quota of 0 that is in use counts as ratio 1. The
    pending share is the sum over all types of pending resources relative to the cluster; the sum does not
    depend on the order of the types. See `docs/decisions/0019`.
    """
    allocated, guaranteed, total, demand = queue.allocated, queue.guaranteed, queue.total, queue.demand
    # Most queues have no guarantee, and every decision asks for several keys.
    dues = guaranteed or queue.fair_max
    ratio = share = 0.0
    for name, wanted in demand.items():
        used = allocated.get(name, 0)
        if used > 0:
            due = dues.get(name)
            if due is None and guaranteed:
                due = queue.fair_max.get(name)
            if due is not None:
                part = used / due if due > 0 else 1.0
                if part > ratio:
                    ratio = part
        waiting = wanted - used
        if waiting:
            whole = total.get(name)
            share -= waiting / whole if whole else float(waiting)
    if len(demand) > 2:
        # A floating-point sum of three or more terms depends on their order.
        share = -_waiting(demand, allocated, total)
    return ratio, share


def _waiting(demand: Mapping[str, int], allocated: Mapping[str, int], total: Mapping[str, int]) -> float:
    """Return the pending resources relative to the cluster, summed over all types and rounded once."""
    parts = []
    for name, wanted in demand.items():
        waiting = wanted - allocated.get(name, 0)
        whole = total.get(name)
        parts.append(waiting / whole if whole else float(waiting))
    return math.fsum(parts)
