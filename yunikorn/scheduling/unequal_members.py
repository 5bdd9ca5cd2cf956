"""Search for the nodes of unequal members of a gang, for gangs that do not fit in the order of their members.

Members with the fewest fitting nodes are placed first, and then large ones, each on the node with the least
room left. A choice that leads nowhere is taken back. The number of nodes that are examined is bounded, so
that a large gang or a large cluster delays other requests only a little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.gang import Members
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_orders import NodeOrders

MOST_CHECKS = 20_000
"""Number of nodes that are examined for one gang, about 20 milliseconds."""
CHECKS_PER_STEP = 20
"""Number of nodes that can be examined in the time of placing one member and undoing that."""


class UnequalMembers:
    """Members of one gang while their nodes are searched; nothing lasts after the search."""

    def __init__(self, members: Members, nodes: Sequence[Node], orders: NodeOrders) -> None:
        self._nodes, self._orders, self._chain = nodes, orders, orders.chain
        self._checks = MOST_CHECKS
        self._placed: list[tuple[Ask, Node]] = []
        self._asks = [ask for ask, count in members for _ in range(count)]
        self._fitting: dict[AskClass, list[Node]] = {}
        """Nodes of each ask class that have room at first, without those that a predicate always refuses."""

    def search(self) -> list[tuple[Ask, Node]] | None:
        """Return a node for every member; None if there is none, or if the search would take too long.

        Equal members fit in their order, if they fit at all.
        """
        kinds = {ask.ask_class: ask for ask in self._asks}
        if len(kinds) < 2 or len(kinds) * len(self._nodes) > MOST_CHECKS:
            return None
        self._fitting = {kind: self._nodes_for(ask) for kind, ask in kinds.items()}
        if sum(map(self._cost, self._asks)) > MOST_CHECKS:
            return None
        rank = {kind: (len(self._fitting[kind]), -self._share(ask)) for kind, ask in kinds.items()}
        self._asks.sort(key=lambda ask: rank[ask.ask_class])
        steps = [self._choices(self._asks[0])]
        try:
            while steps:
                node = next(steps[-1], None)
                if node is None:
                    steps.pop()
                    if self._placed:
                        self._take_back()
                    continue
                self._put(self._asks[len(self._placed)], node)
                if len(self._placed) == len(self._asks):
                    return [*self._placed]
                if self._checks < 0:
                    return None
                steps.append(self._choices(self._asks[len(self._placed)]))
        finally:
            while self._placed:
                self._take_back()
        return None

    def _nodes_for(self, ask: Ask) -> list[Node]:
        ask_class, chain = ask.ask_class, self._chain
        return [
            node
            for node in self._nodes
            if (node.is_free or ask_class.required)
            and ask_class.fits(node)
            and (chain is None or not chain.excludes(ask, node))
        ]

    def _cost(self, ask: Ask) -> int:
        return len(self._fitting[ask.ask_class]) + CHECKS_PER_STEP

    def _share(self, ask: Ask) -> float:
        """Return the largest part of a node that a member needs."""
        pairs, nodes = ask.ask_class.pairs, self._fitting[ask.ask_class]
        parts = (amount / (node.capacity.get(name, 0) or 1) for name, amount in pairs for node in nodes)
        return max(parts, default=0.0)

    def _choices(self, ask: Ask) -> Iterator[Node]:
        """Return the nodes for a member, the one with the least room left first; equal nodes count once."""
        self._checks -= self._cost(ask)
        ask_class, chain = ask.ask_class, self._chain
        found: dict[tuple[object, ...], Node] = {}
        for node in self._fitting[ask_class]:
            if ask_class.fits(node):
                room = node.available
                left = sum(
                    (room.get(name, 0) - amount) / (node.capacity.get(name, 0) or 1)
                    for name, amount in ask_class.pairs
                )
                if chain is None:
                    found.setdefault((left, tuple(sorted(room.items()))), node)
                elif chain.refusal(ask, node) is None:
                    found[left, node.id] = node
        return iter([found[key] for key in sorted(found)])

    def _put(self, ask: Ask, node: Node) -> None:
        node.lend(ask.resource)
        self._placed.append((ask, node))
        if self._chain is not None and self._orders.books is not None:
            self._orders.books.placed(ask, node)
        self._changed()

    def _take_back(self) -> None:
        ask, node = self._placed.pop()
        if self._chain is not None and self._orders.books is not None:
            self._orders.books.released(ask, node)
        node.regain(ask.resource)
        self._changed()

    def _changed(self) -> None:
        if self._chain is not None:
            self._orders.review_domains()
            self._chain.prepare_again()
