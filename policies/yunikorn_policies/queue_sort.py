"""Default policy for the order of the children of a parent queue: `fair`.

A parent queue selects a policy in its properties:

    queues:
      - name: teams
        parent: true
        properties:
          queue.sort.policy: fair

The core orders by queue priority first, unless the parent's `application.sort.priority` is `disabled`, then
by key, and then by name.
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
        """Return usage relative to guarantee or quota, and the negative pending share to break ties."""
        return fair_share_key(queue)


@hookimpl
def yunikorn_queue_sort_policies() -> list[type[QueueSortPolicy]]:
    """Return the default policies."""
    return [FairQueues]
