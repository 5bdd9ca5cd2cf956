"""How a parent queue orders its children: `fair`, the default of every parent.

Another policy is named in the parent's properties:

    queues:
      - name: teams
        parent: true
        properties:
          queue.sort.policy: fair

Queue priorities count before the key, unless the parent's `application.sort.priority` is `disabled`, which
ignores them. Equal keys go by name. The core sees to both.
"""

from __future__ import annotations

import attrs

from yunikorn.api import Queue, QueueSortPolicy, hookimpl
from yunikorn_policies.shares import fair_share_key


@attrs.frozen
class FairQueues(QueueSortPolicy):
    """The queue that uses the smallest part of what it should have comes first."""

    name = "fair"

    def key(self, queue: Queue) -> tuple[float, float]:
        """Its usage against its due, the smallest first; between equals the one that waits for most."""
        return fair_share_key(queue)


@hookimpl
def yunikorn_queue_sort_policies() -> list[type[QueueSortPolicy]]:
    """The default ways to order queues."""
    return [FairQueues]
