"""Search for the victims of one request, and for the node on which the request will run.

Victims free the missing amount of every resource type, and leave every queue its guarantee. The set is
minimal: without any one of the victims the request could not run. The partition's preemption policy decides
who may be a victim, in which order victims are chosen, and by their cost the node. Unlike in YuniKorn 1.9,
nothing is preempted if the request would still lack any resource type.

On a node that a request requires, neither guarantees nor fences protect victims, since the request can run on
no other node. Free room counts first, so that nothing is preempted for room that already exists.

Optionally, victims are also chosen on nodes with less capacity than usage (shrunk nodes). Off by default:
YuniKorn 1.9 keeps running allocations and places nothing new (`docs/decisions/archive/0036`). Queues keep
their guarantees and protected allocations stay, so that a node may remain overcommitted.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

import attrs

from yunikorn.api import PreemptionCause
from yunikorn.model.node import Node
from yunikorn.resources import INT64_MAX, Tally, grow, shrink
from yunikorn.scheduling.preemption.candidates import (
    Pool,
    is_eligible,
    prune,
    room_on,
    shortage,
    total_of,
    uses_any_of,
)
from yunikorn.scheduling.preemption.snapshot import PreemptionSnapshot, apart
from yunikorn.scheduling.preemption.victim_policy import is_spared, others_first

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation, Unit
    from yunikorn.model.ask import Ask
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.preemption.candidate_store import KeptPool
    from yunikorn.scheduling.preemption.candidates import EligibleLeaves, Entry, KnownVictims
    from yunikorn.scheduling.preemption.snapshot import Bound
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy

MOST_REFUSED = 64
"""Number of nodes with room that are examined for a request which they refuse."""
Glance = tuple[int, "list[Allocation] | None", "Sequence[Allocation] | None"]
"""Lower bound on the number of victims on a node, 0 if there are none; the victims if the number is exact:
always if it is 1; and the candidates whose choice showed this, None if it depends on guarantees."""


def victims_on(
    node: Node, ask: Ask, policy: VictimPolicy, rivals: Iterable[Ask] = ()
) -> tuple[list[Allocation] | None, PreemptionCause]:
    """Return the victims on `node` for `ask`, and the cause.

    There are no victims if pending releases suffice, and None if no choice does.

    `rivals` are requests whose victims on the same node have not ended yet.
    """
    wanted = dict(ask.ask_class.pairs)
    for rival in rivals:
        grow(wanted, rival.resource)
    pairs = tuple((name, amount) for name, amount in wanted.items() if name in ask.ask_class.resource)
    short = shortage(room_on(node), pairs)
    cause = PreemptionCause(
        "required-node", ask.app.chain[0], ask.priority, node, MappingProxyType({**short})
    )
    may_go = policy.eligible(cause)
    candidates = [one for one in node.allocations.values() if one.priority <= ask.priority and may_go(one)]
    ordered = policy.in_order(candidates, cause) if short else ()

    def may_end(unit: Unit) -> bool:
        return all(one.priority <= ask.priority for one in unit)

    def short_without(gone: Iterable[Allocation]) -> Tally:
        return shortage(room_on(node, gone), pairs)

    chosen, short = _choose(ordered, node, partial(policy.unit_of, cause=cause), may_end, short_without)
    return None if short else chosen, cause


def victims_of(node: Node, policy: VictimPolicy) -> tuple[list[Allocation], PreemptionCause]:
    """Return the victims that let the rest fit `node`, as far as possible, and the cause."""
    cause = PreemptionCause("shrunk-node", node=node, amount=MappingProxyType({**overuse(node)}))
    ordered = policy.in_order(filter(policy.eligible(cause), node.allocations.values()), cause)
    may_end, unit_of = PreemptionSnapshot().let_go, partial(policy.unit_of, cause=cause)
    return _choose(ordered, node, unit_of, may_end, partial(overuse, node))[0], cause


def _choose(
    ordered: Iterable[Allocation],
    node: Node,
    unit_of: Callable[[Allocation], Unit],
    may_end: Callable[[Unit], bool],
    short_without: Callable[[Iterable[Allocation]], Tally],
) -> tuple[list[Allocation], Tally]:
    """Return those that end so that nothing is short on a node, and what still is."""
    chosen: list[Unit] = []
    short = short_without(())
    for victim in ordered:
        if short and uses_any_of(victim, tuple(short.items())) and victim not in flat(chosen):
            unit = unit_of(victim)
            if unit and may_end(unit):
                chosen.append(unit)
                short = short_without(_there(node, chosen))
    return flat(prune(chosen, lambda _, rest: short_without(_there(node, rest)) == short)), short


def flat(units: Iterable[Unit]) -> list[Allocation]:
    """Return the allocations of units."""
    return [one for unit in units for one in unit]


def _there(node: Node, units: Iterable[Unit]) -> list[Allocation]:
    return [one for unit in units for one in unit if one.node is node]


def overuse(node: Node, going: Iterable[Allocation] = ()) -> Tally:
    """Return the usage above the capacity of `node` once `going` and all pending releases have ended."""
    room = room_on(node, going)
    return shortage(room, ((name, 0) for name in room))


@attrs.frozen
class PreemptionPlan:
    """Victims, and the node that they make room on; no node if only quotas lacked room."""

    victims: tuple[Allocation, ...]
    node: Node | None
    cause: PreemptionCause
    places: Sequence[tuple[Ask, Node]] = ()
    """Nodes that are kept for the members of a gang."""
    label: str = ""
    """Name of the domain of the gang."""


class Search:
    """Search for one request."""

    def __init__(
        self,
        ask: Ask,
        snapshot: PreemptionSnapshot,
        bounds: Sequence[Bound],
        pool: Pool | KeptPool,
        eligible: EligibleLeaves,
        accepts: Callable[[Ask, Node, Sequence[Allocation]], bool],
        cause: PreemptionCause,
        policy: VictimPolicy,
    ) -> None:
        """Create a search among the candidates of `pool` in `eligible` leaves.

        Candidates that are already being released are ignored. `snapshot` includes the request; `accepts`
        asks the predicates about a node without some allocations.
        """
        self._ask = ask
        self._leaf = ask.app.chain[0]
        self._pairs = ask.ask_class.pairs
        self._snapshot = snapshot
        self._bounds = bounds
        self._pool = pool
        self._eligible = eligible
        self._accepts = accepts
        self._cause, self._policy = cause, policy
        self._spared = False
        """True if those that are spared may be victims, too."""
        self._known_above: dict[Queue, Tally | None] = {}
        """Known results of `_above`."""

    def _alive(self, candidates: Iterable[Allocation]) -> Iterator[Allocation]:
        eligible, spared = self._eligible, self._spared
        for one in candidates:
            extras = one.extras
            if extras is not None and (
                extras.releasing is not None or extras.replaces is not None or extras.eviction is not None
            ):
                continue
            if one.app.chain[0] in eligible and (spared or not is_spared(one)):
                yield one

    @property
    def spares(self) -> bool:
        """True if there may be candidates that are spared at first."""
        return self._pool.has_spared

    def plan(
        self, fits: Callable[[Node], bool], has_room: bool, *, spared: bool = False
    ) -> PreemptionPlan | None:
        """Return the best plan, or None; with `has_room` only quotas are exceeded, and no node is needed.

        `fits` returns True for nodes that may host the request. Those that are spared are victims, after
        all others, only with `spared`.
        """
        self._spared = spared
        if not self._can_help():
            return None
        if has_room:
            if next(self._alive(self._pool.any_order()), None) is None:
                return None
            extras = self._make_bounds_hold([])
            return None if extras is None else self._planned(extras, None)
        for node, victims in self._nodes(fits):
            if (plan := self._extend(node, victims)) is not None:
                return plan
        return None

    def plan_for_refused(self, fits: Callable[[Node], bool], *, spared: bool) -> PreemptionPlan | None:
        """Return a plan for a node that has room, but lacks something else that victims have; or None.

        `fits` returns True for such nodes. The fewest victims are those in order until the node is accepted.
        """
        self._spared = spared
        found: tuple[list[Allocation], Node] | None = None
        nodes = {one.node: None for one in self._alive(self._pool.any_order())}
        for node in islice(filter(fits, nodes), MOST_REFUSED):
            chosen: list[Allocation] = []
            for one in self._alive(self._pool.on(node)):
                if self._take(one):
                    chosen.append(one)
                    if self._accepts(self._ask, node, chosen):
                        needed = self._needed_for_acceptance(node, chosen)
                        if found is None or len(needed) < len(found[0]):
                            found = needed, node
                        break
            self._snapshot.stay(*chosen)
            if found is not None and len(found[0]) == 1:
                break
        if found is None:
            return None
        return self._with_bounds(*found)

    def _needed_for_acceptance(self, node: Node, chosen: list[Allocation]) -> list[Allocation]:
        return prune(chosen, lambda _, rest: self._accepts(self._ask, node, rest))

    def _with_bounds(self, victims: list[Allocation], node: Node) -> PreemptionPlan | None:
        self._snapshot.go(*victims)
        extras = self._make_bounds_hold(victims)
        self._snapshot.stay(*victims)
        units = None if extras is None else self._policy.units([*victims, *extras], self._cause)
        return None if units is None else self._plan_of(units, node)

    def _planned(self, victims: list[Allocation], node: Node | None) -> PreemptionPlan | None:
        """Return the plan with the needed victims and what ends with them; None if that may not end."""
        chosen = self._prune([(one,) for one in victims], node)
        units = self._policy.units(flat(chosen), self._cause)
        if units is None:
            return None
        if len(units) < len(flat(units)):
            # Some may not be needed where what ends with others ends as well.
            units = self._prune(units, node)
        return self._plan_of(units, node)

    def _plan_of(self, units: Sequence[Unit], node: Node | None) -> PreemptionPlan | None:
        """Return the plan with these units; None if what ends with their first ones may not end."""
        first, others = [unit[0] for unit in units], [one for unit in units for one in unit[1:]]
        if others:
            if not all(is_eligible(one, self._eligible) for one in others):
                return None
            self._snapshot.go(*first)
            may_end = self._snapshot.let_go(others, self._leaf)
            self._snapshot.stay(*(flat(units) if may_end else first))
            if not may_end:
                return None
        return PreemptionPlan(tuple(flat(units)), node, self._cause)

    # -- nodes --------------------------------------------------------------------------------------

    def _nodes(self, fits: Callable[[Node], bool]) -> Iterator[tuple[Node, list[Allocation]]]:
        """Yield the possible nodes and the victims there, lowest cost first, then by node id."""
        pool = self._pool
        if not isinstance(pool, Pool):
            return self._fewest_first(pool, fits)
        entries = pool.choices(fits)
        known = pool.known(self._eligible, spared=self._spared)
        if known.needs.hold_for(self._may_lose):
            on_known = partial(self._on_known, pool, known)
            return _by_cost(list(known.entries.values()), on_known, pool.every.cost)
        return _by_cost(entries, self._on_node, pool.every.cost)

    def _fewest_first(
        self, pool: KeptPool, fits: Callable[[Node], bool]
    ) -> Iterator[tuple[Node, list[Allocation]]]:
        """Yield the possible nodes and the victims there, the fewest first, then by node id.

        A node is examined only if its free room and its largest candidate could cover the request, in order
        of ids; the first on which a single victim suffices ends the search. Only if there is none, lower
        bounds are computed for all nodes.
        """
        nodes, known = pool.nodes, pool.known_nodes(spared=self._spared)
        later: list[Entry] = []
        examined: set[Node] = set()
        for position in known.left(self._may_lose):
            node = nodes[position]
            examined.add(node)
            if not fits(node):
                continue
            least, victims, chosen = self._glance(node)
            if least == 1 and victims is not None:
                yield node, victims
                continue
            if chosen is not None:
                known.fail(position, least, chosen)
            if least:
                later.append((least, position, node, victims))
        for position, least in enumerate(pool.least()):
            if least and not known.is_hopeless(position) and nodes[position] not in examined:
                later.append((least, position, nodes[position], None))
        yield from _by_cost(
            later, lambda node: self._on_node(node) if node in examined or fits(node) else None, len
        )

    def _on_known(self, pool: Pool, known: KnownVictims, node: Node) -> list[Allocation] | None:
        """As `_on_node`; remembers the victims in `known` if they are those of other requests as well."""
        short = pool.shortage(node)
        if not short:
            return None
        chosen, enough = first_that_help(self._alive(pool.on(node)), dict(short))
        if not enough:
            # Less would help with guarantees.
            known.entries.pop(node.id, None)
            return None
        if self._may_go_together(chosen):
            victims = self._needed(node, chosen)
            known.add((pool.every.cost(victims), node.id, node, victims), chosen)
            return victims
        return self._on_node(node)

    def _glance(self, node: Node) -> Glance:
        """Return the least possible number of victims on `node`; see `Glance`."""
        short = self._pool.shortage(node)
        if not short:
            return 0, None, ()
        chosen, enough = first_that_help(self._alive(self._pool.on(node)), dict(short))
        if not enough:
            # Less would help with guarantees.
            return 0, None, ()
        is_free = all(map(self._may_go_first, chosen))
        if not is_free:
            there = filter(self._may_go_first, self._alive(self._pool.on(node)))
            chosen, enough = first_that_help(there, dict(short))
            if not enough:
                return 0, None, None
        if len(chosen) > 1 and not self._may_go_together(chosen):
            victims = self._on_node(node)
            return len(victims or ()), victims, None
        last = chosen[-1]
        for name, amount in short.items():
            if last.resource.get(name, 0) < amount:
                return 2, None, chosen if is_free else None
        # Those before the last one do not suffice, and are not needed if the last one does.
        return 1, [last], None

    def _may_go_first(self, victim: Allocation) -> bool:
        """Return True if the queues of `victim` keep their guarantees without it, and lose nothing else."""
        above, resource = self._above(victim.app.chain[0]), victim.resource
        if above is None:
            return False
        for name, most in above.items():
            amount = resource.get(name)
            if amount and amount > most:
                return False
        return True

    def _above(self, leaf: Queue) -> Tally | None:
        """Return what queues of victims in `leaf` use above their guarantees, the least for each type.

        None if nothing may go, because no requested type is above a guarantee.
        """
        try:
            return self._known_above[leaf]
        except KeyError:
            above = self._known_above[leaf] = self._above_guarantees(leaf)
            return above

    def _above_guarantees(self, leaf: Queue) -> Tally | None:
        above: Tally = {}
        for queue in apart(leaf, self._leaf):
            used = self._snapshot.used(queue) if queue.guaranteed else {}
            for name, amount in queue.guaranteed.items():
                above[name] = min(used.get(name, 0) - amount, above.get(name, INT64_MAX))
        return above if not above or any(above.get(name, 0) > 0 for name, _ in self._pairs) else None

    def _may_go_together(self, victims: list[Allocation]) -> bool:
        """Return True if queues keep their guarantees even if all `victims` were in the same leaf."""
        total = total_of(victims)
        return all(self._may_lose(leaf, total) for leaf in {victim.app.chain[0] for victim in victims})

    def _may_lose(self, leaf: Queue, total: Tally) -> bool:
        """Return True if `leaf` may lose victims until `total` has gone."""
        above = self._above(leaf)
        if not above:
            return above is not None
        for name, most in above.items():
            if total.get(name, 0) > most:
                return False
        # A requested type is above the guarantee until the last victim has gone.
        for name, _ in self._pairs:
            if total.get(name, 0) < above.get(name, 0):
                return True
        return False

    def _on_node(self, node: Node) -> list[Allocation] | None:
        """Return the victims that make room on `node`; None if they cannot, or if none are needed."""
        short = self._pool.shortage(node)
        if not short:
            return None
        # What may not go first may not go after others: their queues have less then.
        there = [one for one in self._alive(self._pool.on(node)) if self._may_go_first(one)]
        chosen, enough = first_that_help(there, dict(short))
        if not enough:
            # Less would help with guarantees.
            return None
        if len(chosen) == 1 or self._may_go_together(chosen):
            return self._needed(node, chosen)
        chosen, enough = self._take_in_turn(there, short)
        # The first victims may use up the excess over the guarantee, leaving too little for a larger one.
        for sort in (others_first, list) if len(chosen) < len(there) else ():
            if not enough:
                largest = sorted(there, key=lambda one: -_part_of(short, one))
                chosen, enough = self._take_in_turn(sort(largest), short)
        return self._needed(node, chosen) if enough else None

    def _needed(self, node: Node, chosen: list[Allocation]) -> list[Allocation]:
        """Return `chosen` without those that the request does not need on `node`; one is always needed."""
        if len(chosen) == 1:
            return chosen
        free, pairs = self._pool.room(node), self._pairs

        def is_unneeded(_: Allocation, rest: list[Allocation]) -> bool:
            room = dict(free)
            for one in rest:
                grow(room, one.resource)
            return not shortage(room, pairs)

        return prune(chosen, is_unneeded)

    def _take_in_turn(self, candidates: Iterable[Allocation], short: Tally) -> tuple[list[Allocation], bool]:
        """As `first_that_help`, but of those that may go after the ones before them."""
        chosen, enough = first_that_help(candidates, dict(short), self._take)
        self._snapshot.stay(*chosen)
        return chosen, enough

    # -- bounds -------------------------------------------------------------------------------------

    def _can_help(self) -> bool:
        """Return True if all candidates together cover the amounts by which bounds are exceeded."""
        for queue, name, amount in list(self._snapshot.deficits(self._bounds, self._pairs)):
            for candidate in self._alive(self._pool.any_order((queue,))):
                if queue in candidate.app.chain:
                    amount -= candidate.resource.get(name, 0)
                    if amount <= 0:
                        break
            else:
                return False
        return True

    def _extend(self, node: Node, victims: list[Allocation]) -> PreemptionPlan | None:
        """Return the complete plan with these victims on `node`, or None if there is none."""
        if not self._accepts(self._ask, node, victims):
            return None
        self._snapshot.go(*victims)
        extras = self._make_bounds_hold(victims)
        self._snapshot.stay(*victims)
        if extras is None:
            return None
        return self._planned([*victims, *extras], node)

    def _make_bounds_hold(self, victims: Sequence[Allocation]) -> list[Allocation] | None:
        """Return further victims, on any node, that restore the bounds; None if there are not enough."""
        extras: list[Allocation] = []
        lacking = self._lacking()
        if not lacking:
            return extras
        for victim in self._alive(self._pool.in_order({queue for queue, _ in lacking})):
            if not lacking:
                break
            helps = any(queue in victim.app.chain and victim.resource.get(name) for queue, name in lacking)
            if helps and victim not in victims and self._take(victim):
                extras.append(victim)
                lacking = self._lacking()
        self._snapshot.stay(*extras)
        return None if lacking else extras

    def _lacking(self) -> list[tuple[Queue, str]]:
        return [(queue, name) for queue, name, _ in self._snapshot.deficits(self._bounds, self._pairs)]

    def _take(self, victim: Allocation) -> bool:
        """Remove `victim` in the snapshot if its queue stays above its guarantee; True if removed."""
        return self._snapshot.let_go((victim,), self._leaf, self._pairs)

    def _prune(self, units: Sequence[Unit], node: Node | None) -> list[Unit]:
        """Drop the units that are needed neither on `node` nor for the bounds."""
        snapshot = self._snapshot

        def is_unneeded(unit: Unit, rest: list[Unit]) -> bool:
            self._snapshot.stay(*unit)
            short = node is not None and shortage(room_on(node, _there(node, rest)), self._pairs)
            if short or self._lacking():
                snapshot.go(*unit)
                return False
            return True

        snapshot.go(*flat(units))
        kept = prune(units, is_unneeded)
        self._snapshot.stay(*flat(kept))
        return kept


def _by_cost(
    heap: list[Entry],
    victims_on: Callable[[Node], list[Allocation] | None],
    cost: Callable[[list[Allocation]], float],
) -> Iterator[tuple[Node, list[Allocation]]]:
    """Yield nodes and the victims there, lowest cost first, then in order.

    Victims of a node are computed only when its lower bound reaches the top of the heap.
    """
    heapq.heapify(heap)
    while heap:
        _, order, node, victims = heapq.heappop(heap)
        if victims is not None:
            yield node, victims
        elif (victims := victims_on(node)) is not None:
            heapq.heappush(heap, (cost(victims), order, node, victims))


def first_that_help(
    candidates: Iterable[Allocation], short: Tally, take: Callable[[Allocation], bool] | None = None
) -> tuple[list[Allocation], bool]:
    """Return the victims in order until nothing is short, and True if that was reached.

    With `take`, those for which it returns False are passed over.
    """
    chosen: list[Allocation] = []
    for victim in candidates:
        if not short:
            break
        resource = victim.resource
        helps = [name for name in short if resource.get(name, 0) > 0]
        if helps and (take is None or take(victim)):
            chosen.append(victim)
            for name in helps:
                short[name] -= resource[name]
                if short[name] <= 0:
                    del short[name]
    return chosen, not short


def _part_of(short: Tally, victim: Allocation) -> float:
    """Return the sum over all types of the share of the shortage that `victim` covers."""
    return sum(min(victim.resource.get(name, 0), amount) / amount for name, amount in short.items())


def without(node: Node, victims: Iterable[Allocation]) -> Node:
    """Return a copy of `node` without `victims` and without the allocations being released."""
    copy = Node(node.id, node.capacity, node.attributes, node.occupied)
    copy.state, copy.classes, copy.domains = node.state, node.classes, node.domains
    gone = {victim.uuid for victim in victims}
    for one in node.allocations.values():
        if one.eviction is None and one.uuid not in gone:
            copy.allocations[one.uuid] = one
            shrink(copy.available, one.resource)
    return copy
