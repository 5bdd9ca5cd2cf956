"""Preemption snapshot: hypothetical usage of queues, and the limits within which a request may preempt.

`PreemptionSnapshot` has the usage of queues as if some allocations were removed and requests added. The
accounting itself stays unchanged: the usage of a queue is copied on first access. Usage excludes allocations
that are being preempted, and includes room promised to other preempting requests, so that capacity promised
to one request is not counted for another.

`VictimLeaf` is a leaf within the fence of a request: the subtree in which the request may preempt, with the
eligible priorities per leaf. The rules are those of YuniKorn 1.9; see "Preemption" in docs/scheduling.md.

`Entitlement` has the guarantees on which a request may rely, and the subtree in which they apply. A queue
above its guarantee cannot rely on that guarantee. A request below such a queue may still preempt siblings
within the queue on account of a guarantee further down: the request replaces their work, and the usage of the
queue does not grow. Queues outside are then not eligible.

`PreemptionPrecheck` detects leaves whose requests cannot have victims. Victims in other queues free no room
within the leaf's own guarantee and quota. If not even the smallest pending request fits these, all attempts
for the leaf fail until one of its own allocations ends, and none is made. On a full cluster, thousands of
pending requests would otherwise be tried every few seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import attrs

from yunikorn.resources import NOTHING, Resource, Tally, grow, shrink, smaller_of

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.queue import Queue


class VictimLeaf(NamedTuple):
    """A leaf that may contain victims."""

    queue: Queue
    priority: int
    """Highest priority of eligible allocations, from the point of view of this leaf."""
    fenced: bool
    """True if a priority fence applies: priorities within the leaf are then ignored."""


def fence_root(leaf: Queue, pairs: Pairs, snapshot: PreemptionSnapshot) -> Queue:
    """Return the first ancestor that is the root, is fenced, or lacks quota for the request.

    In a queue that lacks quota, its own or an inherited one, only victims below that queue make room.
    """
    for queue in leaf.chain:
        if queue.parent is None or queue.settings.preemption_policy == "fence":
            return queue
        most, used = effective_max(queue), snapshot.used(queue)
        if any(name in most and used.get(name, 0) + amount > most[name] for name, amount in pairs):
            return queue
    return leaf


def effective_max(queue: Queue) -> Resource:
    """Return the smallest quota of the queue and its ancestors, including the size of the cluster."""
    most = NOTHING
    for each in queue.chain:
        most = smaller_of(each.max or NOTHING, most)
    return most


def reaches(leaf: Queue, root: Queue, priority: int, *, less: bool = False) -> Iterator[VictimLeaf]:
    """Yield the leaves below `root`, except `leaf`, in which a request of `priority` may preempt.

    With `less`, the priority of a fenced queue must be below that of the request, and not only equal.
    """
    on_path: dict[Queue, int] = {}
    for queue in leaf.chain:
        # Priority relative to the children of this queue; its own offset affects all of them equally.
        on_path[queue] = priority
        if queue is root:
            break
        settings = queue.settings
        priority = settings.priority_offset + (0 if settings.priority_fence else priority)
    yield from _below(root, VictimLeaf(root, on_path[root], False), leaf, on_path, less)


def _below(
    queue: Queue, here: VictimLeaf, leaf: Queue, on_path: dict[Queue, int], less: bool
) -> Iterator[VictimLeaf]:
    if queue is leaf:
        return
    if queue.is_leaf:
        if queue.settings.preemption_policy != "disabled":
            yield here
        return
    for child in queue.children.values():
        offset = child.settings.priority_offset
        if child in on_path:
            victim_leaf = VictimLeaf(child, on_path[child], here.fenced)
        elif child.settings.priority_fence:
            if offset > here.priority or (less and offset == here.priority):
                continue
            victim_leaf = VictimLeaf(child, here.priority, True)
        else:
            victim_leaf = VictimLeaf(child, here.priority - offset, here.fenced)
        yield from _below(child, victim_leaf, leaf, on_path, less)


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


class PreemptionPrecheck:
    """Precheck for one round, based on all pending requests of the partition."""

    def __init__(self, ask_classes: Iterable[AskClass]) -> None:
        """Create a precheck; `ask_classes` are evaluated on first use."""
        self._ask_classes = ask_classes
        self._least: Tally | None = None
        """Smallest pending amount per resource type, over the requests of that type."""
        self._common: frozenset[str] = frozenset()
        """Resource types that occur in all pending requests."""

    def cannot_help(self, leaf: Queue) -> bool:
        """Return True if no request of `leaf` can have victims.

        Room promised to other requests is ignored here, since it can only reduce the available room.
        """
        settings = leaf.settings
        if settings.preempts_by_priority or settings.preempts_within:
            return False
        called_on = {name for bound in guarantees(leaf) for name in bound.limit}
        exceeded = self._exceeded(leaf)
        # One type of a request suffices to rely on a guarantee, but all its types must respect the bounds.
        return bool(called_on) and (called_on <= exceeded or not exceeded.isdisjoint(self._common))

    def _exceeded(self, leaf: Queue) -> set[str]:
        """Return the types with which every request of that type exceeds a bound of the leaf itself."""
        bounds: list[Mapping[str, int]] = [limit for limit in (leaf.guaranteed, leaf.max) if limit]
        if not bounds:
            return set()
        least = self._scan_ask_classes()
        used, going = leaf.allocated, leaf.preempting
        return {
            name
            for limit in bounds
            for name, amount in limit.items()
            if name not in least or used.get(name, 0) - going.get(name, 0) + least[name] > amount
        }

    def _scan_ask_classes(self) -> Mapping[str, int]:
        if self._least is None:
            least: Tally = {}
            common: set[str] | None = None
            for ask_class in self._ask_classes:
                if ask_class.waiting:
                    for name, amount in ask_class.pairs:
                        least[name] = min(amount, least.get(name, amount))
                    common = set(ask_class.resource) if common is None else common & ask_class.resource.keys()
            self._least, self._common = least, frozenset(common or ())
        return self._least or NOTHING


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
        leaves: dict[Queue, Tally] = {}
        for ask in promised:
            grow(leaves.setdefault(ask.app.chain[0], {}), ask.resource)
        for leaf, amount in leaves.items():
            for queue in leaf.chain:
                grow(self._promised.setdefault(queue, {}), amount)

    def renewed(self) -> PreemptionSnapshot:
        """Return a snapshot as this one was when it was created."""
        found = PreemptionSnapshot()
        found._promised = self._promised
        return found

    def used(self, queue: Queue) -> Tally:
        """Return the hypothetical usage of `queue`."""
        used = self._used.get(queue)
        if used is None:
            used = dict(queue.allocated)
            if queue.preempting:
                shrink(used, queue.preempting)
            if queue in self._promised:
                grow(used, self._promised[queue])
            self._used[queue] = used
        return used

    def come(self, app: Application, amount: Mapping[str, int]) -> None:
        """Add `amount` to the usage of the application's queues."""
        for queue in app.chain:
            grow(self.used(queue), amount)

    def go(self, *victims: Allocation) -> None:
        """Remove victims from the usage of their queues."""
        for victim in victims:
            for queue in victim.app.chain:
                shrink(self.used(queue), victim.resource)

    def stay(self, *victims: Allocation) -> None:
        """Undo `go`."""
        for victim in victims:
            for queue in victim.app.chain:
                grow(self.used(queue), victim.resource)

    def let_go(
        self, victims: Iterable[Allocation], asking: Queue | None = None, pairs: Pairs | None = None
    ) -> bool:
        """Remove `victims` if all queues keep their guarantees, see `keeps_guarantees`; else none of them.

        With the `pairs` of a request in `asking`, a queue loses nothing unless it `is_over`.
        """
        gone: list[Allocation] = []
        for victim in victims:
            own = victim.app.chain[0]
            is_over = pairs is None or asking is None or self.is_over(own, asking, pairs)
            if not is_over or not self.keeps_guarantees(victim, asking):
                self.stay(*gone)
                return False
            self.go(victim)
            gone.append(victim)
        return True

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
