"""Standings: what queues would use if some allocations went and some requests came.

The books themselves stay as they are: a standing is copied from a queue when it is first looked at.
Usage counts without what is on its way out, and with what other preempting requests were promised, so
that one guarantee does not pay for two requests. Source: facts §9.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from yunikorn.resources import NOTHING, Resource, Tally, grow, shrink, smaller_of

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.application import Application
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.queue import Queue

Pairs = Sequence[tuple[str, int]]


@attrs.frozen
class Bound:
    """What the usage of a queue must not exceed once a request has come: its quota or its guarantee."""

    queue: Queue
    limit: Mapping[str, int]


class Standings:
    """What-if books of queues."""

    def __init__(self, promised: Iterable[Ask] = ()) -> None:
        self._used: dict[Queue, Tally] = {}
        self._before: dict[Queue, Tally] = {}
        self._promised: dict[Queue, Tally] = {}
        for ask in promised:
            for queue in ask.app.chain:
                grow(self._promised.setdefault(queue, {}), ask.resource)

    def used(self, queue: Queue) -> Tally:
        """What `queue` would use."""
        used = self._used.get(queue)
        if used is None:
            used = dict(queue.allocated)
            shrink(used, queue.preempting)
            grow(used, self._promised.get(queue, NOTHING))
            self._used[queue] = used
            self._before[queue] = dict(used)
        return used

    def come(self, app: Application, amount: Mapping[str, int]) -> None:
        """The application would have so much more."""
        for queue in app.chain:
            grow(self.used(queue), amount)

    def go(self, victim: Allocation) -> None:
        """`victim` would be gone."""
        for queue in victim.app.chain:
            shrink(self.used(queue), victim.resource)

    def stay(self, victim: Allocation) -> None:
        """Undo `go`."""
        for queue in victim.app.chain:
            grow(self.used(queue), victim.resource)

    # -- guarantees ---------------------------------------------------------------------------------

    def remaining(self, queue: Queue, asking: Queue) -> Resource | None:
        """What is left of the guarantees that count for `queue`, below 0 where more is used; None: no
        guarantee counts.

        Guarantees above `asking` do not count where it has one itself. Source: facts §9.4.
        """
        above = self.remaining(queue.parent, asking) if queue.parent is not None else None
        guaranteed = queue.guaranteed
        if not guaranteed:
            return above
        used = self.used(queue)
        own = Resource({name: amount - used.get(name, 0) for name, amount in guaranteed.items()})
        if queue is asking:
            return Resource({**(above or NOTHING), **own})
        if asking.guaranteed and queue in asking.chain:
            return None
        return smaller_of(own, above or NOTHING)

    def is_over(self, queue: Queue, asking: Queue, pairs: Pairs) -> bool:
        """Whether `queue` uses more than it is guaranteed of any of these types, or has no guarantee."""
        remaining = self.remaining(queue, asking)
        return remaining is None or any(remaining.get(name, 0) < 0 for name, _ in pairs)

    def keeps_guarantees(self, victim: Allocation) -> bool:
        """Whether every queue of `victim` could lose it without less than its guarantee (decision 25).

        A queue that has less already (as one may that the request is in too) must not get less still.
        """
        for queue in victim.app.chain:
            if queue.guaranteed:
                used = self.used(queue)
                before = self._before[queue]
                for name, amount in victim.resource.items():
                    least = min(queue.guaranteed.get(name, 0), before.get(name, 0))
                    if amount and name in queue.guaranteed and used.get(name, 0) - amount < least:
                        return False
        return True

    # -- bounds -------------------------------------------------------------------------------------

    def has_room(self, bounds: Iterable[Bound], pairs: Pairs) -> bool:
        """Whether each bound leaves room for a request of so much that has not come yet."""
        for bound in bounds:
            used = self.used(bound.queue)
            for name, amount in pairs:
                limit = bound.limit.get(name)
                if limit is not None and used.get(name, 0) + amount > limit:
                    return False
        return True

    def deficits(self, bounds: Iterable[Bound], pairs: Pairs) -> Iterator[tuple[Queue, str, int]]:
        """By how much each bound is exceeded, for these types."""
        for bound in bounds:
            used = self.used(bound.queue)
            for name, _ in pairs:
                limit = bound.limit.get(name)
                if limit is not None and used.get(name, 0) > limit:
                    yield bound.queue, name, used[name] - limit


def quotas(leaf: Queue) -> list[Bound]:
    """The quotas that a request in `leaf` has to meet."""
    return [Bound(queue, queue.max) for queue in leaf.chain if queue.max is not None]


def guarantees(leaf: Queue) -> list[Bound]:
    """The guarantees that a request in `leaf` can call on: its own, else those above."""
    if leaf.guaranteed:
        return [Bound(leaf, leaf.guaranteed)]
    return [Bound(queue, queue.guaranteed) for queue in leaf.chain if queue.guaranteed]
