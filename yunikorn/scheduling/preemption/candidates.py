"""Candidates for preemption: the allocations that may be preempted for a request, in order.

A `Pool` has the sorted candidates and the nodes on which they run. Collecting and sorting candidates is most
of the cost of a search for victims. Between similar requests of the same round little changes: the chosen
victims, and the reserved nodes. Candidates are therefore collected once per round, and those chosen meanwhile
are skipped. Candidates do not depend on the ask class; only the number of victims per node does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from yunikorn.api import PreemptionCause
from yunikorn.resources import INT64_MIN, Tally, grow
from yunikorn.scheduling.preemption.snapshot import entitlements, fence_root, guarantees, quotas, reaches
from yunikorn.scheduling.preemption.victim_policy import is_spared, may_go

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.preemption.snapshot import Entitlement, Pairs, PreemptionSnapshot
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy


T = TypeVar("T")


def uses_any_of(allocation: Allocation, pairs: Pairs) -> bool:
    """Return True if the allocation uses any of the requested resource types."""
    resource = allocation.resource
    for name, _ in pairs:
        if resource.get(name, 0) > 0:
            return True
    return False


def preempts_without_guarantee(leaf: Queue) -> bool:
    """Return True if the properties of `leaf` let its requests preempt without a guarantee."""
    return leaf.settings.preempts_by_priority or leaf.settings.preempts_within


def rights(ask: Ask, snapshot: PreemptionSnapshot) -> list[Entitlement | None]:
    """Return the entitlements to try in order; None for the right to preempt by priority."""
    leaf = ask.app.chain[0]
    # Victims are outside the leaf, and free no room within its own quota and guarantee.
    own = [bound for bound in (*quotas(leaf), *guarantees(leaf)) if bound.queue is leaf]
    found: list[Entitlement | None] = []
    if snapshot.has_room(own, ask.ask_class.pairs):
        found += entitlements(ask, snapshot)
    if preempts_without_guarantee(leaf):
        found.append(None)
    return found


def eligible_leaves(
    ask: Ask, snapshot: PreemptionSnapshot, entitled: Entitlement | None
) -> tuple[EligibleLeaves, PreemptionCause]:
    """Return the leaves in which `ask` may have victims by an entitlement, or by its priority for None."""
    leaf = ask.app.chain[0]
    if entitled is not None:
        return across_queues(ask, snapshot, entitled), PreemptionCause("guarantee", leaf, ask.priority)
    settings = leaf.settings
    outside, inside = settings.preempts_by_priority, settings.preempts_within
    eligible = by_priority(ask, snapshot, outside=outside, inside=inside)
    return eligible, PreemptionCause("priority", leaf, ask.priority)


def across_queues(ask: Ask, snapshot: PreemptionSnapshot, entitled: Entitlement) -> dict[Queue, int | None]:
    """Return the leaves and highest priorities eligible for a request that a guarantee covers.

    Allocations in other leaves up to the priority of the request are eligible. Leaves without a guarantee of
    their own that share the guarantee on which the request relies are left out: they have an equal right to
    the room.
    """
    leaf, pairs = ask.app.chain[0], ask.ask_class.pairs
    found = _outside(ask, snapshot, entitled.root(fence_root(leaf, pairs, snapshot)), less=False)
    return {
        queue: most
        for queue, most in found.items()
        if not entitled.covers_neighbour(queue, pairs) or snapshot.remaining(queue, leaf) is not None
    }


def by_priority(
    ask: Ask, snapshot: PreemptionSnapshot, *, outside: bool, inside: bool
) -> dict[Queue, int | None]:
    """Return the leaves and priorities eligible for a request without a guarantee.

    Only allocations of lower priority are eligible, in other leaves (`outside`) or in its own (`inside`).
    """
    leaf = ask.app.chain[0]
    found: dict[Queue, int | None] = {}
    if outside:
        found = _outside(ask, snapshot, fence_root(leaf, ask.ask_class.pairs, snapshot), less=True)
        found = {queue: most for queue, most in found.items() if _shared(queue, leaf).settings.sort_priority}
    if inside and leaf.settings.sort_priority:
        found[leaf] = ask.priority - 1
    return found


def _shared(queue: Queue, other: Queue) -> Queue:
    """Return the lowest common ancestor of two queues.

    Its order decides between the two queues. If that order ignores priorities, preempted work would regain
    the room as soon as it is submitted again.
    """
    above = other.chain
    return next(each for each in queue.chain if each in above)


def candidates_on(
    eligible: EligibleLeaves, may_go: Callable[[Allocation], bool] = may_go
) -> Iterator[Allocation]:
    """Yield the candidates in the eligible leaves; `may_go` includes the protection by the policy."""
    for leaf, most in eligible.items():
        for app in leaf.applications.values():
            for allocation in app.allocations.values():
                if may_go(allocation) and (most is None or allocation.priority <= most):
                    yield allocation


def is_eligible(one: Allocation, eligible: EligibleLeaves) -> bool:
    """Return True if an allocation is in an eligible leaf, and not too important."""
    most = eligible.get(one.app.chain[0], INT64_MIN)
    return most is None or one.priority <= most


def _outside(ask: Ask, snapshot: PreemptionSnapshot, root: Queue, *, less: bool) -> dict[Queue, int | None]:
    leaf = ask.app.chain[0]
    found: dict[Queue, int | None] = {}
    for victim_leaf in reaches(leaf, root, ask.priority, less=less):
        remaining = snapshot.remaining(victim_leaf.queue, leaf)
        if remaining is None or any(value < 0 for value in remaining.values()):
            found[victim_leaf.queue] = None if victim_leaf.fenced else victim_leaf.priority - less
    return found


EligibleLeaves = Mapping["Queue", int | None]
"""Leaves whose allocations may be preempted, with the highest eligible priority; None means any."""

Entry = tuple[float, str | int, "Node", "list[Allocation] | None"]
"""Heap entry: (lower bound of the cost, or the cost, id or position of the node, node, victims or None if not
computed yet).

Without costs of the policy, the cost is the number of victims."""
ROUNDING = 1 - 1e-9
"""Factor by which a computed bound is reduced, so that rounding does not raise it above the cost."""


class Candidates:
    """All candidates for requests of one priority, independent of ask class, and the free room of nodes."""

    def __init__(self, eligible: EligibleLeaves, policy: VictimPolicy, cause: PreemptionCause) -> None:
        self._eligible = eligible
        self.ordered = policy.in_order(candidates_on(eligible, policy.eligible(cause)), cause)
        self.costs: Mapping[str, float] | None = None
        """Costs of the candidates by uuid; None if each costs 1."""
        if policy.has_costs:
            self.costs = policy.costs(self.ordered, cause)
            self.ordered = [one for one in self.ordered if one.uuid in self.costs]
        self.has_spared = any(map(is_spared, self.ordered[-1:]))
        """True if any candidate is spared, as an originator or as a part of a gang; these are last."""
        self.by_node: dict[str, list[Allocation]] = {}
        """Candidates by node id, in the same order."""
        for candidate in self.ordered:
            self.by_node.setdefault(candidate.node.id, []).append(candidate)
        self._largest: dict[str, Tally] = {}
        self._cheapest: dict[str, tuple[list[float], dict[str, float]]] = {}
        """Costs in order, and the best ratios of cost to amount by resource type, by node id."""
        self._rooms: dict[str, Tally] = {}
        self._pools: dict[AskClass, Pool] = {}

    def pool(self, ask_class: AskClass) -> Pool:
        """Return the candidates for requests of an ask class."""
        found = self._pools.get(ask_class)
        if found is None:
            found = self._pools[ask_class] = Pool(self, ask_class.pairs)
        return found

    def covers(self, eligible: EligibleLeaves) -> bool:
        """Return True if all candidates in the `eligible` leaves are included here."""
        known = self._eligible
        return all(leaf in known and known[leaf] == most for leaf, most in eligible.items())

    def largest(self, node_id: str) -> Tally:
        """Return the largest amount of any candidate on this node, per resource type."""
        found = self._largest.get(node_id)
        if found is None:
            found = self._largest[node_id] = {}
            for one in self.by_node[node_id]:
                for name, amount in one.resource.items():
                    if amount > found.get(name, 0):
                        found[name] = amount
        return found

    def bound(self, node_id: str, number: int, short: Mapping[str, int]) -> float:
        """Return a lower bound on the cost of covering `short` on a node, for candidates with costs.

        At least `number` victims are needed, and each amount costs at least the best ratio of cost to amount.
        """
        known = self._cheapest.get(node_id)
        if known is None:
            costs, ratios = self.costs or {}, dict[str, float]()
            for one in self.by_node[node_id]:
                cost = costs[one.uuid]
                for name, amount in one.resource.items():
                    if amount > 0 and cost < ratios.get(name, math.inf) * amount:
                        ratios[name] = cost / amount
            known = sorted(costs[one.uuid] for one in self.by_node[node_id]), ratios
            self._cheapest[node_id] = known
        cheapest, ratios = known
        least = max(amount * ratios.get(name, 0.0) for name, amount in short.items())
        return max(sum(cheapest[:number]), least * ROUNDING)

    def cost(self, victims: Sequence[Allocation]) -> float:
        """Return the cost of victims."""
        costs = self.costs
        return len(victims) if costs is None else sum(sorted(costs[one.uuid] for one in victims))

    def room(self, node: Node) -> Tally:
        """Return the free room of `node` once all pending releases have ended."""
        room = self._rooms.get(node.id)
        if room is None:
            room = self._rooms[node.id] = room_on(node)
        return room

    def changed(self, nodes: Sequence[Node]) -> None:
        """Evaluate these nodes again after new evictions or reservations."""
        for node in nodes:
            self._rooms.pop(node.id, None)
            for pool in self._pools.values():
                pool.changed[node.id] = node


class KnownVictims:
    """Victims by node for one ask class and one set of eligible leaves, as far as they are known."""

    def __init__(self, bounds: Mapping[str, Entry]) -> None:
        """Create with lower bounds only; `bounds` has an entry for each node."""
        self.entries = dict(bounds)
        """Entry by id of the node: the cost with the victims if they are known, else a lower bound."""
        self.needs = Needs()

    def add(self, entry: Entry, chosen: Sequence[Allocation]) -> None:
        """Remember the victims of a node, which were found by choosing `chosen` there."""
        self.entries[entry[2].id] = entry
        self.needs.add(chosen)


class Needs(dict["Queue", Tally]):
    """By leaf, the most that any choice of victims takes in which the leaf has a part.

    What was found by these choices holds while each leaf may lose as much, together with its ancestors.
    """

    def add(self, chosen: Sequence[Allocation]) -> Iterable[Queue]:
        """Add a choice of victims, and return their leaves."""
        total = total_of(chosen)
        leaves = {one.app.chain[0]: None for one in chosen}
        for leaf in leaves:
            need = self.setdefault(leaf, {})
            for name, amount in total.items():
                if amount > need.get(name, 0):
                    need[name] = amount
        return leaves

    def hold_for(self, may_lose: Callable[[Queue, Tally], bool]) -> bool:
        """Return True if each leaf may lose what the choices take."""
        return all(may_lose(leaf, need) for leaf, need in self.items())


class Pool:
    """Candidates for requests of one ask class and one priority."""

    def __init__(self, every: Candidates, pairs: Sequence[tuple[str, int]]) -> None:
        self.every = every
        self._pairs = pairs
        self._bounds: dict[str, Entry] | None = None
        """Entry with a lower bound by node id."""
        self._known: dict[tuple[frozenset[Queue], bool], KnownVictims] = {}
        """Victims known from earlier searches, by eligible leaves, and with or without spared ones."""
        self.changed: dict[str, Node] = {}
        """Nodes to evaluate again, by id."""

    @property
    def has_spared(self) -> bool:
        """True if any candidate is spared."""
        return self.every.has_spared

    def choices(self, fits: Callable[[Node], bool]) -> list[Entry]:
        """Return the possible nodes with the lower bound of the cost on each, in no particular order.

        `fits` returns True for nodes that may host the request.
        """
        entry_of = self._entry if self.every.costs is None else self._entry_by_cost
        bounds = self._bounds
        if bounds is None:
            nodes = [candidates[0].node for candidates in self.every.by_node.values()]
            bounds = {node.id: entry for node in nodes if fits(node) and (entry := entry_of(node))}
            self._bounds = bounds
        else:
            for node in self.changed.values():
                entry = entry_of(node) if fits(node) else None
                for entries in (bounds, *(known.entries for known in self._known.values())):
                    if entry is None:
                        entries.pop(node.id, None)
                    else:
                        entries[node.id] = entry
        self.changed.clear()
        return list(bounds.values())

    def known(self, eligible: Collection[Queue], *, spared: bool) -> KnownVictims:
        """Return the victims known for these eligible leaves; `choices` has to be called before."""
        key = frozenset(eligible), spared
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = KnownVictims(self._bounds or {})
        return found

    def any_order(self, queues: Iterable[Queue] = ()) -> Iterable[Allocation]:
        """Return the candidates, at least those below any of these queues, in no particular order."""
        return self.every.ordered

    def in_order(self, queues: Iterable[Queue]) -> Iterable[Allocation]:
        """Return the candidates, at least those below any of these queues, in order."""
        return self.every.ordered

    def on(self, node: Node) -> Sequence[Allocation]:
        """Return the candidates on a node in order, those included that are no longer available."""
        return self.every.by_node[node.id]

    def room(self, node: Node) -> Tally:
        """Return the free room of `node` once all pending releases have ended."""
        return self.every.room(node)

    def shortage(self, node: Node) -> Tally:
        """Return what `node` lacks for the request once all pending releases have ended."""
        return shortage(self.every.room(node), self._pairs)

    def _entry(self, node: Node) -> Entry | None:
        if node.id not in self.every.by_node:
            return None
        least = _fewest(self.shortage(node), self.every.largest(node.id))
        return (least, node.id, node, None) if least else None

    def _entry_by_cost(self, node: Node) -> Entry | None:
        entry = self._entry(node)
        if entry is None:
            return None
        bound = self.every.bound(node.id, round(entry[0]), self.shortage(node))
        return (bound, node.id, node, None)


def _fewest(short: Mapping[str, int], largest: Mapping[str, int]) -> int:
    """Return a lower bound on the number of victims, given the largest amounts; 0 if no number suffices."""
    least = 0
    for name, amount in short.items():
        most = largest.get(name)
        if not most:
            return 0
        least = max(least, -(-amount // most))
    return least


def shortage(room: Mapping[str, int], pairs: Iterable[tuple[str, int]]) -> Tally:
    """Return what `room` lacks for an amount."""
    return {name: amount - room.get(name, 0) for name, amount in pairs if amount > room.get(name, 0)}


def room_on(node: Node, going: Iterable[Allocation] = ()) -> Tally:
    """Return the free room of `node` once `going` and all pending releases have ended."""
    room = dict(node.available)
    for one in node.allocations.values():
        extras = one.extras
        if extras is not None and extras.eviction is not None:
            grow(room, one.resource)
    for one in going:
        grow(room, one.resource)
    return room


def prune(victims: Sequence[T], is_unneeded: Callable[[T, list[T]], bool]) -> list[T]:
    """Return `victims`, or units, without those that are not needed; the last choice is dropped first.

    `is_unneeded` receives a victim and the victims that would be left without it.
    """
    kept = list(victims)
    for victim in reversed(victims):
        rest = [one for one in kept if one is not victim]
        if is_unneeded(victim, rest):
            kept = rest
    return kept


def total_of(allocations: Iterable[Allocation]) -> Tally:
    """Return the sum of the resources of allocations."""
    total: Tally = {}
    for one in allocations:
        for name, amount in one.resource.items():
            total[name] = total.get(name, 0) + amount
    return total
