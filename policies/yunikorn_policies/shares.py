"""The arithmetic of shares that the default policies order by."""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn.api import Node, Queue


def usage_ratio(queue: Queue) -> float:
    """The largest ratio over all types of what is used to what is guaranteed, or else to the quota.

    A guarantee or quota of 0 that is used counts as fully used; a type with neither does not count
    (decision 19).
    """
    guaranteed = queue.guaranteed
    fair_max: Mapping[str, int] | None = None
    largest = 0.0
    for name, used in queue.allocated.items():
        if used > 0:
            due = guaranteed.get(name)
            if due is None:
                if fair_max is None:
                    fair_max = queue.fair_max
                due = fair_max.get(name)
                if due is None:
                    continue
            ratio = used / due if due > 0 else 1.0
            if ratio > largest:
                largest = ratio
    return largest


def pending_share(queue: Queue) -> float:
    """What waits in the queue, as the sum over all types of its parts of the cluster."""
    total = queue.total
    share = 0.0
    for name, amount in queue.pending.items():
        whole = total.get(name)
        share += amount / whole if whole else float(amount)
    return share


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
