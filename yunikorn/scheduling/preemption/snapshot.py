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


class PreemptionSnapshot:
    """What-if books of queues."""

    def __init__(self, promised: Iterable[Ask] = ()) -> None:
        self._used: dict[Queue, Tally] = {}
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
        """The rest of the guarantees of `queue`, below 0 where more is used; None if it has none.

        The smallest counts of all guarantees that do not cover `asking` as well.
        """
        found: Resource | None = None
        for each in apart(queue, asking):
            if each.guaranteed:
                used = self.used(each)
                rest = {name: amount - used.get(name, 0) for name, amount in each.guaranteed.items()}
                found = smaller_of(found or NOTHING, rest)
        return found

    def is_over(self, queue: Queue, asking: Queue, pairs: Pairs) -> bool:
        """Whether `queue` uses more than it is guaranteed of any of these types, or has no guarantee."""
        remaining = self.remaining(queue, asking)
        return remaining is None or any(remaining.get(name, 0) < 0 for name, _ in pairs)

    def keeps_guarantees(self, victim: Allocation, asking: Queue | None = None) -> bool:
        """Whether every queue of `victim` keeps its guarantee without it (decision 25).

        With `asking`, the queues that also cover that queue are left out: the victim makes room there for
        a request of the same queue.
        """
        own = victim.app.chain[0]
        for queue in own.chain if asking is None else apart(own, asking):
            guaranteed = queue.guaranteed
            if guaranteed:
                used = self.used(queue)
                for name, amount in victim.resource.items():
                    if amount and name in guaranteed and used.get(name, 0) - amount < guaranteed[name]:
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

    def exceeds(self, bound: Bound, pairs: Pairs) -> bool:
        """Whether more than a bound is used already, of any of these types."""
        used = self.used(bound.queue)
        return any(name in bound.limit and used.get(name, 0) > bound.limit[name] for name, _ in pairs)

    def deficits(self, bounds: Iterable[Bound], pairs: Pairs) -> Iterator[tuple[Queue, str, int]]:
        """By how much each bound is exceeded, for these types."""
        for bound in bounds:
            used = self.used(bound.queue)
            for name, _ in pairs:
                limit = bound.limit.get(name)
                if limit is not None and used.get(name, 0) > limit:
                    yield bound.queue, name, used[name] - limit


def apart(queue: Queue, asking: Queue) -> Iterator[Queue]:
    """`queue` and the queues above it, up to the first that covers `asking` too, which is left out."""
    shared = asking.chain
    for each in queue.chain:
        if each in shared:
            return
        yield each


def quotas(leaf: Queue) -> list[Bound]:
    """The quotas that a request in `leaf` has to meet."""
    return [Bound(queue, queue.max) for queue in leaf.chain if queue.max is not None]


def guarantees(leaf: Queue) -> list[Bound]:
    """The guarantees that a request in `leaf` can call on: its own, else those above."""
    if leaf.guaranteed:
        return [Bound(leaf, leaf.guaranteed)]
    return [Bound(queue, queue.guaranteed) for queue in leaf.chain if queue.guaranteed]
