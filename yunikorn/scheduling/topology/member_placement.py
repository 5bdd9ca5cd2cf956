"""Placement of members inside a domain: split among the domains below, down to nodes.

The room of placed members is lent while the rest is being planned; nothing lasts after the plan is made.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from typing import TYPE_CHECKING

from yunikorn.scheduling.topology.gang_views import DomainView
from yunikorn.scheduling.unequal_members import UnequalMembers

if TYPE_CHECKING:
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang_topology import GangSlice
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.topology.domain_rooms import DomainRooms
    from yunikorn.scheduling.topology.gang_placement_rules import GangPlacementRules
    from yunikorn.scheduling.topology.gang_views import EqualMembers, MemberGroup
    from yunikorn.scheduling.topology.topology_tree import TreeDomain

Slices = tuple["GangSlice", ...]


class MemberPlacement:
    """Members of a gang that are placed so far."""

    def __init__(
        self,
        rules: GangPlacementRules,
        rooms: DomainRooms,
        orders: NodeOrders,
        views: dict[TreeDomain, DomainView],
    ) -> None:
        self._rules, self._rooms, self._orders, self._views = rules, rooms, orders, views
        self._numbers = rooms.tree.numbers
        self._placed: list[tuple[EqualMembers, Ask, Node]] = []
        self.refusals: Counter[str] = Counter()
        """Reasons why predicates refused members on nodes with room, with counts."""
        self._alike = orders.chain is None or orders.chain.are_shared
        """True if the members of one part can exchange their nodes."""

    @property
    def nodes(self) -> list[Node]:
        """Nodes of the members, in the order of placement."""
        return [node for _, _, node in self._placed]

    def finish(self, group: MemberGroup) -> list[tuple[Ask, Node]]:
        """Return the plan, and undo everything; consecutive members get neighbouring nodes if possible."""
        plan = [(ask, node) for _, ask, node in self._placed]
        if self._alike:
            domain_of, plan = self._rooms.tree.domain_of, []
            for part in group.parts:
                nodes = [node for one, _, node in self._placed if one is part]
                nodes.sort(key=lambda node: (domain_of[node].path, node.id))
                plan += zip(part.each, nodes, strict=True)
        self.undo()
        return plan

    # -- room ---------------------------------------------------------------------------------------

    def shortage(self, group: MemberGroup, domain: TreeDomain) -> int:
        """Return the number of members of a task group that a domain surely has no room for."""
        return sum(max(0, part.count - part.whole.by_domain.get(domain, 0)) for part in group.parts)

    # -- placing ------------------------------------------------------------------------------------

    def place(self, group: MemberGroup, domain: TreeDomain) -> bool:
        """Place the members of a task group in a domain, or none of them."""
        mark, slices = len(self._placed), group.topology.slices
        for part in sorted(group.parts, key=lambda one: one.rooms.by_domain.get(domain, 0) / one.count):
            if self._spread(group, part, part.count, domain, slices) < part.count:
                self.undo(mark)
                return not slices and self._place_unequal(group, domain)
        return True

    def _place_unequal(self, group: MemberGroup, domain: TreeDomain) -> bool:
        """Place the unequal members of a task group that do not fit by their number in each domain below."""
        part_of = {ask.key: part for part in group.parts for ask in part.each}
        members = [(ask, 1) for part in group.parts for ask in part.each]
        nodes = [*domain.nodes]
        versions = [node.version for node in nodes]
        plan = UnequalMembers(members, nodes, self._orders).search()
        for ask, node in plan or ():
            self._put(part_of[ask.key], ask, node)
        # Nodes that were only tried have not changed either.
        self._rooms.settle(
            [node for node, version in zip(nodes, versions, strict=True) if node.version != version]
        )
        return plan is not None

    def _spread(
        self, group: MemberGroup, part: EqualMembers, count: int, domain: TreeDomain, slices: Slices
    ) -> int:
        """Place up to `count` members in a domain, in whole slices; return their number."""
        if slices and domain.level >= self._numbers[slices[0].level]:
            return self._place_slices(group, part, count, domain, slices)
        children = list(domain.children.values())
        if not slices and all(len(child.nodes) < 2 for child in children):
            return self._fill(part, count, domain)
        unit, left = slices[0].size if slices else 1, count
        while left:
            rooms = self._rooms.of(part.ask, slices).by_domain
            room = {
                DomainView.of(child, self._rooms, self._views): fitting // unit
                for child in children
                if (fitting := rooms.get(child, 0)) >= unit
            }
            if not room:
                break
            for view, share in self._rules.split(group, part, left // unit, room).items():
                placed = self._spread(group, part, share * unit, view.domain, slices)
                left -= placed
                if placed < share * unit:
                    # Predicates refused nodes, or another part used what was counted for this one.
                    children.remove(view.domain)
        return count - left

    def _place_slices(
        self, group: MemberGroup, part: EqualMembers, count: int, domain: TreeDomain, slices: Slices
    ) -> int:
        """Place whole slices in a domain of their level; return the number of members."""
        size, placed = slices[0].size, 0
        while placed < count:
            mark = len(self._placed)
            if self._spread(group, part, size, domain, slices[1:]) < size:
                self.undo(mark)
                break
            placed += size
        return placed

    def _fill(self, part: EqualMembers, count: int, domain: TreeDomain) -> int:
        """Place up to `count` members on the nodes of a domain in their order; return their number."""
        ask_class, fitting = part.ask.ask_class, part.rooms.on
        order, chain = self._orders.of(ask_class), self._orders.chain
        nodes = [node for node in domain.nodes if fitting(node)]
        entries = sorted((order.score(node), node.id, node) for node in nodes)
        each = [part.ask] if self._alike else part.each
        first = 0 if self._alike else sum(one is part for one, _, _ in self._placed)
        placed = 0
        touched: dict[Node, None] = {}
        while entries and placed < count:
            _, node_id, node = entries.pop(0)
            ask = each[(first + placed) % len(each)]
            if chain is not None and (refusal := chain.refusal(ask, node)) is not None:
                self.refusals[refusal] += 1
                continue
            self._put(part, ask, node)
            touched[node] = None
            placed += 1
            if ask_class.fits(node):
                insort(entries, (order.score(node), node_id, node))
        self._rooms.settle(touched)
        return placed

    def _put(self, part: EqualMembers, ask: Ask, node: Node) -> None:
        orders = self._orders
        node.lend(ask.resource)
        self._placed.append((part, ask, node))
        if orders.books is not None:
            orders.books.placed(ask, node)
            orders.review_domains()
        orders.predicates.prepare_again()

    def undo(self, mark: int = 0) -> None:
        """Take back all members after the first `mark`."""
        gone, orders = self._placed[mark:], self._orders
        if not gone:
            return
        del self._placed[mark:]
        for _, ask, node in reversed(gone):
            if orders.books is not None:
                orders.books.released(ask, node)
            node.regain(ask.resource)
        if orders.books is not None:
            orders.review_domains()
        orders.predicates.prepare_again()
        self._rooms.settle(dict.fromkeys(node for _, _, node in gone))
