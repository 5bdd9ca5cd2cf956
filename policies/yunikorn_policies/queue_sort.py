"""How a parent queue orders its children: `fair`, the default of every parent.

Another policy is named in the parent's properties:

    queues:
      - name: teams
        parent: true
        properties:
          queue.sort.policy: fair

Queue priorities count before the key (unless the parent's `application.sort.priority` is `disabled`,
then after the key's first part), and equal keys go by name: the core sees to both.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.api import Queue, QueueSortPolicy, hookimpl


@attrs.frozen
class Fair(QueueSortPolicy):
    """The queue that uses the smallest part of what it should have comes first."""

    name = "fair"

    def key(self, queue: Queue) -> tuple[float, float]:
        """Its usage against its due, the smallest first; between equals the one that waits for most."""
        return (usage_ratio(queue), -pending_share(queue))


def usage_ratio(queue: Queue) -> float:
    """The largest ratio over all types of what is used to what is guaranteed, or else to the quota.

    A guarantee or quota of 0 that is used counts as fully used; a type with neither does not count.
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
        share += amount / whole if whole else amount
    return share


@hookimpl
def yunikorn_queue_sort_policies() -> list[type[QueueSortPolicy]]:
    """The default ways to order queues."""
    return [Fair]
