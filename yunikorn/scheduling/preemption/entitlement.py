"""Entitlement: the guarantees that a request calls on, and the part of the tree where they count.

A queue that uses more than its guarantee already has nothing left to call on. A request below such a queue
may still be entitled against the work of its neighbours there, by a guarantee further down: it takes the
place of their work, and the queue uses no more than before. Against queues outside it is not entitled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from yunikorn.scheduling.preemption.snapshot import Bound, guarantees

if TYPE_CHECKING:
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.queue import Queue
    from yunikorn.scheduling.preemption.snapshot import Pairs, PreemptionSnapshot


@attrs.frozen
class Entitlement:
    """The guarantees that cover a request, from the bottom up, at least one of them of a type it asks for."""

    bounds: tuple[Bound, ...]
    within: Queue | None
    """Only work below this queue may go; None: that of any queue."""

    def root(self, fence: Queue) -> Queue:
        """The lower of `fence`, which is above the request, and `within`."""
        if self.within is None or fence not in self.within.chain:
            return fence
        return self.within

    def covers_neighbour(self, queue: Queue, pairs: Pairs) -> bool:
        """Whether all guarantees of types asked for cover `queue` as well as the request."""
        return all(bound.queue in queue.chain for bound in self.bounds if _is_for(bound, pairs))


def entitlements(ask: Ask, snapshot: PreemptionSnapshot) -> list[Entitlement]:
    """The guarantees that `ask` calls on, in the order in which to try them: against neighbours first.

    Neighbours make room without more use of the queue above; work from outside is only enough if that queue
    keeps to its guarantee. Empty if no guarantee is left, or has a type that the request asks for.
    """
    pairs = ask.ask_class.pairs
    bounds: list[Bound] = []
    found: list[Entitlement] = []
    for bound in guarantees(ask.app.chain[0]):
        if not snapshot.has_room((bound,), pairs):
            found.append(Entitlement(tuple(bounds), bound.queue))
            if snapshot.exceeds(bound, pairs):
                break
        bounds.append(bound)
    else:
        found.append(Entitlement(tuple(bounds), None))
    return [each for each in found if any(_is_for(bound, pairs) for bound in each.bounds)]


def _is_for(bound: Bound, pairs: Pairs) -> bool:
    return any(name in bound.limit for name, _ in pairs)
