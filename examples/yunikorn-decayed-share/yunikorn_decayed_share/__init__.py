"""A queue sort policy for YuniKorn: fair shares over time, of which the past counts less and less.

queues:
  - name: root
    properties:
      queue.sort.policy: decayed-share
      queue.sort.policy.hours: "24"

`fair` looks at the moment: a team that had the whole cluster all night and gave it back this morning is
served like one that had nothing. Here it comes after that one, until what it used is forgotten: half of it
every `hours`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from yunikorn.api import Queue, QueueSortPolicy, hookimpl

LN2 = math.log(2)


@attrs.frozen
class DecayedShare(QueueSortPolicy):
    """The queue goes first that used the smallest part of what it was due lately."""

    name = "decayed-share"
    hours: float = attrs.field(default=24.0, validator=attrs.validators.gt(0))
    """The half-life: after so long half of what a queue used is forgotten."""
    refresh: float = attrs.field(default=60.0, validator=attrs.validators.gt(0))
    """Seconds after which the order is looked at anew although nothing happened."""

    @property
    def half_life(self) -> float:
        """In seconds: the scheduler keeps the usage of queues with it."""
        return self.hours * 3600.0

    @property
    def refresh_every(self) -> float:
        """A queue that goes on using what it has falls back with time alone."""
        return self.refresh

    def key(self, queue: Queue) -> tuple[float, float, float]:
        """The share used lately, that of this moment, and the less waits the later."""
        whole = self.half_life / LN2  # What holding one unit for ever adds up to.
        lately = {name: usage / whole for name, usage in queue.recent.items()}
        return (_share(queue, lately), _share(queue, queue.allocated), -_pending(queue))


def _share(queue: Queue, amounts: Mapping[str, float]) -> float:
    """The largest part, over all types, of what the queue is due: its guarantee, else the cluster."""
    guaranteed, total = queue.guaranteed, queue.total
    largest = 0.0
    for name, amount in amounts.items():
        due = guaranteed.get(name) or total.get(name)
        if due:
            largest = max(largest, amount / due)
    return largest


def _pending(queue: Queue) -> float:
    """What waits in the queue, in parts of the cluster."""
    total = queue.total
    return sum(amount / total[name] for name, amount in queue.pending.items() if total.get(name))


@hookimpl
def yunikorn_queue_sort_policies() -> list[type[QueueSortPolicy]]:
    """What this package offers."""
    return [DecayedShare]
