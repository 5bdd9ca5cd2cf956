"""The arithmetic of shares that the default policies order by."""

from __future__ import annotations

import math
from collections.abc import Mapping

from yunikorn.api import Node, Queue


def fair_share_key(queue: Queue) -> tuple[float, float]:
    """What a queue uses of its due, and, negative, what waits in it as a part of the cluster.

    The first is the largest ratio over all types of what is used to what is guaranteed, or else to the quota.
    A guarantee or quota of 0 that is used counts as fully used; a type with neither does not count
    (decision 19). The second is the sum over all types, and the same in whatever order they were asked for.
    """
    allocated, guaranteed, total, demand = queue.allocated, queue.guaranteed, queue.total, queue.demand
    fair_max: Mapping[str, int] | None = None
    ratio = share = 0.0
    for name, wanted in demand.items():
        used = allocated.get(name, 0)
        if used > 0:
            due = guaranteed.get(name)
            if due is None:
                if fair_max is None:
                    fair_max = queue.fair_max
                due = fair_max.get(name)
            if due is not None:
                part = used / due if due > 0 else 1.0
                if part > ratio:
                    ratio = part
        waiting = wanted - used
        if waiting:
            whole = total.get(name)
            share -= waiting / whole if whole else float(waiting)
    if len(demand) > 2:
        # Of three parts a sum from left to right depends on which comes first; of two it does not.
        share = -_waiting(demand, allocated, total)
    return ratio, share


def _waiting(demand: Mapping[str, int], allocated: Mapping[str, int], total: Mapping[str, int]) -> float:
    """What waits, as a part of the cluster: the sum over all types, rounded once."""
    parts = []
    for name, wanted in demand.items():
        waiting = wanted - allocated.get(name, 0)
        whole = total.get(name)
        parts.append(waiting / whole if whole else float(waiting))
    return math.fsum(parts)


def utilisation(node: Node, weights: Mapping[str, float]) -> float:
    """The weighted mean over the types that the node has of the part of each that is in use."""
    capacity, available = node.capacity, node.available
    used = total = 0.0
    for name, weight in weights.items():
        whole = capacity.get(name)
        if whole and weight:
            used += weight * (1.0 - available.get(name, 0) / whole)
            total += weight
    return used / total if total else 0.0
