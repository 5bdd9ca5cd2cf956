"""Room of the domains of a tree: how many members of each kind fit, counted incrementally.

Counts are kept for the ask classes that gangs with requirements on the topology wait with. Nodes are compared
by their versions when a gang is tried, so that decisions about other requests cost nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.topology.topology_tree import TopologyTree, TreeDomain

UNKNOWN = -1
"""Version of a node that was not counted yet."""
MOST_KINDS = 64
"""Largest number of ask classes whose counts are kept; those that are not used for longest are dropped."""
MOST_JUDGED = 256
"""The same for the classes of gangs, or the gangs, for which results of checks are kept."""


class NodeCounts:
    """A number for each node, and its sum for each domain."""

    __slots__ = ("by_domain", "by_node")

    def __init__(self) -> None:
        self.by_node: dict[Node, int] = {}
        self.by_domain: dict[TreeDomain, int] = {}

    def set(self, counts: Iterable[tuple[Node, int]], domain_of: Mapping[Node, TreeDomain]) -> None:
        """Set the numbers of nodes, each in its innermost domain and in those above."""
        by_node, by_domain = self.by_node, self.by_domain
        changed: dict[TreeDomain, int] = {}
        for node, count in counts:
            difference = count - by_node.get(node, 0)
            if difference:
                by_node[node] = count
                innermost = domain_of[node]
                changed[innermost] = changed.get(innermost, 0) + difference
        for innermost, difference in changed.items():
            for domain in innermost.chain:
                by_domain[domain] = by_domain.get(domain, 0) + difference


class DomainVerdict:
    """Result of the checks of one domain for gangs of one class."""

    __slots__ = ("failed", "rank", "refusal", "seen", "shortage", "turn")

    def __init__(self, seen: int, shortage: int, refusal: str | None, rank: tuple[float, ...]) -> None:
        self.seen = seen
        """Latest change of the domain above that the result includes."""
        self.shortage = shortage
        """Number of members that the domain surely has no room for."""
        self.refusal = refusal
        self.rank = rank
        self.failed = -1
        """Latest change of the domain when members did not fit together; -1 if that was not tried."""
        self.turn = 0
        """Number of attempts that tried the domain, and ended before all others were tried."""


class DomainRooms:
    """Counts for one tree."""

    def __init__(self, tree: TopologyTree, orders: NodeOrders, reserved: Mapping[Node, object]) -> None:
        """Create for a tree; `reserved` has the nodes with reservations."""
        self.tree = tree
        self._orders, self._reserved = orders, reserved
        self._kinds: dict[AskClass, tuple[Ask, NodeCounts]] = {}
        """Counts of members that fit, each with a request of the class."""
        self._judged: dict[Hashable, dict[TreeDomain, DomainVerdict]] = {}
        """Results of the checks of domains, by class of gangs, and application if they depend on it."""
        self.idle = NodeCounts()
        """Nodes that run nothing and are open, as 1."""
        self._positions: dict[Node, int] = {}
        """Position of each node in `_versions`."""
        self._versions: list[int] = []
        self._closed: dict[Node, None] = {}
        """Nodes that were reserved at the latest count."""
        self._departures = tree.departures
        self._counts = 0
        """Number of counts so far that found a change."""

    def of(self, ask: Ask) -> NodeCounts:
        """Return how many requests like `ask` fit; valid until the next change of a node."""
        kind = self._kinds.pop(ask.ask_class, None)
        if kind is None:
            kind = ask, self.count(ask)
            while len(self._kinds) >= MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]
        self._kinds[ask.ask_class] = kind
        return kind[1]

    def judged_for(self, gangs: Hashable) -> dict[TreeDomain, DomainVerdict]:
        """Return what is known about domains for these gangs, to be completed."""
        found = self._judged.pop(gangs, {})
        while len(self._judged) >= MOST_JUDGED:
            del self._judged[next(iter(self._judged))]
        self._judged[gangs] = found
        return found

    def count(self, ask: Ask, rooms: Mapping[Node, Mapping[str, int]] | None = None) -> NodeCounts:
        """Count how many requests like `ask` fit the open nodes, or these `rooms` of nodes."""
        found = NodeCounts()
        if rooms is None:
            rooms = {node: node.available for node in self._positions if node.is_free}
        fitting = ((node, self._fitting(ask, node, room)) for node, room in rooms.items())
        found.set(fitting, self.tree.domain_of)
        return found

    def _fitting(self, ask: Ask, node: Node, room: Mapping[str, int]) -> int:
        ask_class = ask.ask_class
        if ask_class.required not in ("", node.id) or ask_class.rules_out(node):
            return 0
        count: int | None = None
        for name, amount in ask_class.pairs:
            fitting = room.get(name, 0) // amount
            if fitting <= 0:
                return 0
            if count is None or fitting < count:
                count = fitting
        chain = self._orders.chain
        if count is None or (chain is not None and chain.excludes(ask, node)):
            return 0
        return count

    def refresh(self) -> None:
        """Count again on the nodes that changed, joined or left since the last call."""
        domain_of = self.tree.domain_of
        if self._departures != self.tree.departures:
            self.forget()
        if len(self._positions) < len(domain_of):
            for node in domain_of:
                if node not in self._positions:
                    self._positions[node] = len(self._positions)
                    self._versions.append(UNKNOWN)
        versions = [node.version for node in self._positions]
        if versions != self._versions or self._reserved.keys() != self._closed.keys():
            pairs = zip(self._positions, versions, self._versions, strict=True)
            changed = dict.fromkeys(node for node, version, known in pairs if version != known)
            changed.update((node, None) for node in self._reserved if node not in self._closed)
            changed.update((node, None) for node in self._closed if node not in self._reserved)
            self._versions, self._closed = versions, dict.fromkeys(self._reserved)
            self._counts += 1
            idle = ((node, int(not node.allocations and node.is_free)) for node in changed)
            self.idle.set(idle, domain_of)
            for innermost in dict.fromkeys(domain_of[node] for node in changed):
                for domain in innermost.chain:
                    domain.changed = self._counts
            self._count_again(changed)

    def settle(self, nodes: Iterable[Node]) -> None:
        """Count again on nodes whose room changes while a gang is being planned; not a change of a domain."""
        again = [*nodes]
        for node in again:
            self._versions[self._positions[node]] = node.version
        self._count_again(again)

    def _count_again(self, nodes: Iterable[Node]) -> None:
        for ask, counts in self._kinds.values():
            fitting = (
                (node, self._fitting(ask, node, node.available) if node.is_free else 0) for node in nodes
            )
            counts.set(fitting, self.tree.domain_of)

    def forget(self) -> None:
        """Forget all counts, because nodes left, or predicates changed; they are made again when used."""
        self._judged = {}
        self._kinds, self._positions, self._versions, self._closed = {}, {}, [], {}
        self.idle, self._departures = NodeCounts(), self.tree.departures
