"""Clearing of a domain: which running work has to end there so that a gang has room.

Victims of preemption are found in this way, and the domain that is kept free for a gang until others end.
Work is given in the order in which it should end. First, domains are compared by counts alone: how much of
the work has to end until each part of the gang has room. In the best ones, the members are then placed with
the work taken away, and as much of it as possible is spared. Nothing lasts.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.resources import Tally, grow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from yunikorn.model.allocation import Allocation, Unit
    from yunikorn.model.ask import Ask, NodeOwner
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.topology.domain_rooms import DomainRooms
    from yunikorn.scheduling.topology.domain_search import DomainSearch
    from yunikorn.scheduling.topology.topology_tree import TreeDomain

    Plan = list[tuple[Ask, Node]]

MOST_ESTIMATED = 64
"""Number of domains that are estimated: those of the lowest cost if each unit made room for one member."""
MOST_CLEARED = 4
"""Number of domains, those of the lowest cost by counts, in which members are placed."""


@attrs.frozen(eq=False)
class Clearing:
    """A domain, the work that has to end there, and the places of the members after that."""

    domain: TreeDomain
    units: list[Unit]
    plan: Plan


class DomainClearing:
    """Search for the domain of one gang that is cleared at the lowest cost."""

    def __init__(self, search: DomainSearch, rooms: DomainRooms, orders: NodeOrders) -> None:
        self._search, self._rooms, self._orders = search, rooms, orders

    @property
    def domains(self) -> list[TreeDomain]:
        """Domains that the gang may take."""
        return self._search.domains

    def best(
        self,
        units: Mapping[TreeDomain, list[Unit]],
        usable: Callable[[list[Unit]], list[Unit]],
        cost: Callable[[Sequence[Unit], TreeDomain], Any],
    ) -> Clearing | None:
        """Return the clearing of the lowest cost, or None; one without units if a domain has room already.

        `units` are those of each of the `domains`; see `by_domain`. `usable` returns those of the units in a
        domain that may end together, in order.
        """
        ending = [
            one
            for node in self._rooms.tree.domain_of
            for one in node.allocations.values()
            if one.extras is not None and one.extras.eviction is not None
        ]
        root = self._rooms.tree.root
        self._take(root, [tuple(ending)])
        try:
            return self._best(units, usable, cost)
        finally:
            self._put_back(root, [tuple(ending)])

    def _best(
        self,
        units: Mapping[TreeDomain, list[Unit]],
        usable: Callable[[list[Unit]], list[Unit]],
        cost: Callable[[Sequence[Unit], TreeDomain], Any],
    ) -> Clearing | None:
        rough = []
        for number, (domain, there) in enumerate(units.items()):
            inside = usable(there)
            lacking = max(self._search.lacking(domain), 0)
            if inside or not lacking:
                lacking = len(inside) if self._search.exclusive else lacking
                rough.append((cost(inside[:lacking], domain), domain.path, number, inside, domain))
        estimates = []
        for _, _, number, inside, domain in heapq.nsmallest(MOST_ESTIMATED, rough):
            least = self._estimate(domain, inside)
            if least is not None:
                estimates.append((cost(inside[:least], domain), domain.path, number, least, inside, domain))
        found: list[tuple[Any, int, Clearing]] = []
        for _, _, number, least, inside, domain in heapq.nsmallest(MOST_CLEARED, estimates):
            clearing = self._clear(domain, inside, least)
            if clearing is not None:
                found.append((cost(clearing.units, domain), number, clearing))
        return min(found)[-1] if found else None

    def _estimate(self, domain: TreeDomain, units: Sequence[Unit]) -> int | None:
        """Return how many units have to end, by counts alone; None if all of them do not suffice."""
        if self._search.exclusive:
            gone = self._rooms.states.gone.copy()
            gone.update(*units, *map(_owners_of, units))
            return None if self._search.sharing(domain, gone) else len(units)
        if any(map(_owners_of, units)):
            return 0
        parts, fitting = self._search.parts, self._rooms.fitting
        lacking = [part.count - part.rooms.by_domain.get(domain, 0) for part in parts]
        if all(number <= 0 for number in lacking):
            return 0
        rooms: dict[Node, Tally] = {}
        counts: list[dict[Node, int]] = [{} for _ in parts]
        for number, unit in enumerate(units):
            touched: dict[Node, None] = {}
            for one in unit:
                node = one.node
                if node.is_free and node in domain.nodes:
                    grow(rooms.setdefault(node, dict(node.available)), one.resource)
                    touched[node] = None
            for at, part in enumerate(parts):
                for node in touched:
                    before = counts[at].get(node, part.rooms.on(node))
                    counts[at][node] = fitting(part.ask, node, rooms[node], is_empty=True)
                    lacking[at] -= counts[at][node] - before
            if all(left <= 0 for left in lacking):
                return number + 1
        return None

    def _clear(self, domain: TreeDomain, units: Sequence[Unit], least: int) -> Clearing | None:
        """Return the fewest of the units, by bisection and by sparing one after the other, or None."""
        gone = list(units)
        self._take(domain, gone)
        try:
            plan = self._search.fits_in(domain)
            if plan is None:
                return None
            low, high = least, len(units)
            while low < high:
                middle = (low + high) // 2
                self._change(domain, gone, units[:middle])
                found = self._search.fits_in(domain)
                if found is None:
                    low = middle + 1
                else:
                    plan, high = found, middle
            self._change(domain, gone, units[:high])
            for unit in reversed(units[:high]):
                self._put_back(domain, [unit])
                gone.remove(unit)
                found = self._search.fits_in(domain)
                if found is None:
                    self._take(domain, [unit])
                    gone.append(unit)
                else:
                    plan = found
            gone.sort(key=units.index)
            return Clearing(domain, list(gone), plan)
        finally:
            self._put_back(domain, gone)

    # -- taking away --------------------------------------------------------------------------------

    def _change(self, domain: TreeDomain, gone: list[Unit], wanted: Sequence[Unit]) -> None:
        """Take away the `wanted` units: more or fewer of the same sequence than those that are gone."""
        if len(wanted) > len(gone):
            self._take(domain, wanted[len(gone) :])
        else:
            self._put_back(domain, gone[len(wanted) :])
        gone[:] = wanted

    def _take(self, domain: TreeDomain, units: Iterable[Unit]) -> None:
        books = self._orders.books
        touched = self._open(domain, units, gone=True)
        for one in _inside(domain, units):
            one.node.regain(one.resource)
            if books is not None:
                books.released(one, one.node)
            touched[one.node] = None
        self._settle(touched)

    def _put_back(self, domain: TreeDomain, units: Iterable[Unit]) -> None:
        books = self._orders.books
        touched = self._open(domain, units, gone=False)
        for one in _inside(domain, units):
            one.node.lend(one.resource)
            if books is not None:
                books.placed(one, one.node)
            touched[one.node] = None
        self._settle(touched)

    def _open(self, domain: TreeDomain, units: Iterable[Unit], *, gone: bool) -> dict[Node, None]:
        """Note what is gone or back, and return the nodes that are no longer, or again, of owners alone."""
        states = self._rooms.states.gone
        touched: dict[Node, None] = {}
        for unit in units:
            (states.update if gone else states.difference_update)(unit)
            for owner in _owners_of(unit):
                members = [one for one in owner.app.allocations.values() if one.app.alone(one.task_group)]
                (states.add if states.issuperset(members) else states.discard)(owner)
                touched |= {node: None for node in owner.nodes if node in domain.nodes}
        return touched

    def _settle(self, nodes: dict[Node, None]) -> None:
        if nodes:
            if self._orders.books is not None:
                self._orders.review_domains()
            self._orders.predicates.prepare_again()
            self._rooms.settle(nodes)


def _owners_of(unit: Unit) -> list[NodeOwner]:
    """Return what has nodes alone for the application of a unit: none, or one."""
    return list({owner: None for one in unit for owner in one.node.owners if owner.app is one.app})


def _inside(domain: TreeDomain, units: Iterable[Unit]) -> list[Allocation]:
    return [one for unit in units for one in unit if one.node in domain.nodes]


def by_domain(units: Iterable[Unit], domains: Iterable[TreeDomain]) -> dict[TreeDomain, list[Unit]]:
    """Return the units that have a part in each of these domains."""
    found: dict[TreeDomain, list[Unit]] = {domain: [] for domain in domains}
    of_node = {node: there for domain, there in found.items() for node in domain.nodes}
    for unit in units:
        if len(unit) == 1:
            lists = [of_node.get(unit[0].node)]
        else:
            lists = list({id(there): there for one in unit for there in (of_node.get(one.node),)}.values())
        for there in lists:
            if there is not None:
                there.append(unit)
    return found
