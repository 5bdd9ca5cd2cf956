"""A queue sort policy for YuniKorn: fair shares over time, in which past usage decays.

queues:
  - name: root
    properties:
      queue.sort.policy: decayed-share
      queue.sort.policy.hours: "24"

`fair` considers only the current usage: a team that used the whole cluster all night and released it this
morning counts like a team that used nothing. With this policy the first team is served after the second,
until its past usage has decayed, by half every `hours`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from yunikorn.api import Queue, QueueSortPolicy, hookimpl

LN2 = math.log(2)


@attrs.frozen
class DecayedShare(QueueSortPolicy):
    """The queue that recently used the smallest part of its due share goes first."""

    name = "decayed-share"
    hours: float = attrs.field(default=24.0, validator=attrs.validators.gt(0))
    """Half-life of the recorded usage, in hours."""
    refresh: float = attrs.field(default=60.0, validator=attrs.validators.gt(0))
    """Seconds after which the order is recomputed without any change."""

    @property
    def half_life(self) -> float:
        """Half-life in seconds, with which the scheduler records the usage of queues."""
        return self.hours * 3600.0

    @property
    def refresh_every(self) -> float:
        """Seconds between updates of the order, because the usage of a busy queue grows with time alone."""
        return self.refresh

    def key(self, queue: Queue) -> tuple[float, float, float]:
        """Return the recent share, the current share, and the negative pending share of a queue."""
        whole = self.half_life / LN2  # limit of the recorded usage of one unit that is always in use
        lately = {name: usage / whole for name, usage in queue.recent.items()}
        return (_share(queue, lately), _share(queue, queue.allocated), -_pending(queue))


def _share(queue: Queue, amounts: Mapping[str, float]) -> float:
    """Return the maximum over all types of the amount relative to the guarantee, else to the cluster."""
    guaranteed, total = queue.guaranteed, queue.total
    largest = 0.0
    for name, amount in amounts.items():
        due = guaranteed.get(name) or total.get(name)
        if due:
            largest = max(largest, amount / due)
    return largest


def _pending(queue: Queue) -> float:
    """Return the pending resources relative to the cluster, summed over all types."""
    total = queue.total
    return sum(amount / total[name] for name, amount in queue.pending.items() if total.get(name))


@hookimpl
def yunikorn_queue_sort_policies() -> list[type[QueueSortPolicy]]:
    """Return the policy of this package."""
    return [DecayedShare]
