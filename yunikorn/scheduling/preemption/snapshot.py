"""Preemption snapshot: hypothetical usage of queues with some allocations removed and requests added.

The accounting itself stays unchanged: the usage of a queue is copied on first access. Usage excludes
allocations that are being preempted, and includes room promised to other preempting requests, so that
capacity promised to one request is not counted for another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from yunikorn.resources import NOTHING, Resource, Tally, grow, shrink, smaller_of

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.queue import Queue

Pairs = Sequence[tuple[str, int]]


@attrs.frozen
class Bound:
    """Upper bound on the usage of a queue including the request: its quota or its guarantee."""

    queue: Queue
    limit: Mapping[str, int]


class PreemptionSnapshot:
    """Hypothetical usage of queues."""

    def __init__(self, promised: Iterable[Ask] = ()) -> None:
        self._used: dict[Queue, Tally] = {}
        self._promised: dict[Queue, Tally] = {}
        for ask in promised:
            for queue in ask.app.chain:
                grow(self._promised.setdefault(queue, {}), ask.resource)

    def used(self, queue: Queue) -> Tally:
        """Return the hypothetical usage of `queue`."""
        used = self._used.get(queue)
        if used is None:
            used = dict(queue.allocated)
            shrink(used, queue.preempting)
            grow(used, self._promised.get(queue, NOTHING))
            self._used[queue] = used
        return used

    def come(self, app: Application, amount: Mapping[str, int]) -> None:
        """Add `amount` to the usage of the application's queues."""
        for queue in app.chain:
            grow(self.used(queue), amount)

    def go(self, victim: Allocation) -> None:
        """Remove `victim` from the usage of its queues."""
        for queue in victim.app.chain:
            shrink(self.used(queue), victim.resource)

    def stay(self, victim: Allocation) -> None:
        """Undo `go`."""
        for queue in victim.app.chain:
            grow(self.used(queue), victim.resource)

    # -- guarantees ---------------------------------------------------------------------------------

    def remaining(self, queue: Queue, asking: Queue) -> Resource | None:
        """Return the unused guarantee of `queue`, negative where exceeded; None without a guarantee.

        The result is the minimum over all guarantees that do not also cover `asking`.
        """
        found: Resource | None = None
        for each in apart(queue, asking):
            if each.guaranteed:
                used = self.used(each)
                rest = {name: amount - used.get(name, 0) for name, amount in each.guaranteed.items()}
                found = smaller_of(found or NOTHING, rest)
        return found

    def is_over(self, queue: Queue, asking: Queue, pairs: Pairs) -> bool:
        """Return True if `queue` exceeds its guarantee for any of these types, or has no guarantee."""
        remaining = self.remaining(queue, asking)
        return remaining is None or any(remaining.get(name, 0) < 0 for name, _ in pairs)

    def keeps_guarantees(self, victim: Allocation, asking: Queue | None = None) -> bool:
        """Return True if every queue of `victim` keeps its guarantee without it (`docs/decisions/0025`).

        With `asking`, common ancestors are left out: there, the victim makes room for a request of the same
        queue.
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
        """Return True if each bound leaves room for an additional request."""
        for bound in bounds:
            used = self.used(bound.queue)
            for name, amount in pairs:
                limit = bound.limit.get(name)
                if limit is not None and used.get(name, 0) + amount > limit:
                    return False
        return True

    def exceeds(self, bound: Bound, pairs: Pairs) -> bool:
        """Return True if the usage already exceeds a bound for any of these types."""
        used = self.used(bound.queue)
        return any(name in bound.limit and used.get(name, 0) > bound.limit[name] for name, _ in pairs)

    def deficits(self, bounds: Iterable[Bound], pairs: Pairs) -> Iterator[tuple[Queue, str, int]]:
        """Yield the amounts by which bounds are exceeded, for these types."""
        for bound in bounds:
            used = self.used(bound.queue)
            for name, _ in pairs:
                limit = bound.limit.get(name)
                if limit is not None and used.get(name, 0) > limit:
                    yield bound.queue, name, used[name] - limit


def apart(queue: Queue, asking: Queue) -> Iterator[Queue]:
    """Yield `queue` and its ancestors below the first common ancestor with `asking`."""
    shared = asking.chain
    for each in queue.chain:
        if each in shared:
            return
        yield each


def quotas(leaf: Queue) -> list[Bound]:
    """Return the quotas that apply to a request in `leaf`."""
    return [Bound(queue, queue.max) for queue in leaf.chain if queue.max is not None]


def guarantees(leaf: Queue) -> list[Bound]:
    """Return the guarantees on which a request in `leaf` may rely: its own, else those of its ancestors."""
    if leaf.guaranteed:
        return [Bound(leaf, leaf.guaranteed)]
    return [Bound(queue, queue.guaranteed) for queue in leaf.chain if queue.guaranteed]
