"""Entitlement: guarantees on which a request may rely, and the subtree in which they apply.

A queue above its guarantee cannot rely on that guarantee. A request below such a queue may still preempt
siblings within the queue on account of a guarantee further down: the request replaces their work, and the
usage of the queue does not grow. Queues outside are then not eligible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from yunikorn.scheduling.preemption.snapshot import Bound, guarantees

if TYPE_CHECKING:
    from yunikorn.model.ask import Ask
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.preemption.snapshot import Pairs, PreemptionSnapshot


@attrs.frozen
class Entitlement:
    """Guarantees that cover a request, from the leaf up; at least one has a requested resource type."""

    bounds: tuple[Bound, ...]
    within: Queue | None
    """Queue to whose subtree victims are restricted; None for no restriction."""

    def root(self, fence: Queue) -> Queue:
        """Return the lower of `fence`, an ancestor of the request's leaf, and `within`."""
        if self.within is None or fence not in self.within.chain:
            return fence
        return self.within

    def covers_neighbour(self, queue: Queue, pairs: Pairs) -> bool:
        """Return True if all guarantees with requested types cover `queue` as well as the request."""
        return all(bound.queue in queue.chain for bound in self.bounds if _is_for(bound, pairs))


def entitlements(ask: Ask, snapshot: PreemptionSnapshot) -> list[Entitlement]:
    """Return the entitlements of `ask` in the order in which to try them, the most local first.

    Local victims free room without increasing the usage of the queue above; victims from outside suffice only
    if that queue stays within its guarantee. Empty if no guarantee with a requested type applies.
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
