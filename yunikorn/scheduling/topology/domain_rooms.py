"""Room of the domains of a tree: how many members of each kind fit, counted incrementally.

Counts are kept for the ask classes that gangs with requirements on the topology wait with. They are brought
up to date when such a gang is tried, so that decisions about other requests cost nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.scheduling.topology.node_states import NodeStates

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.gang_topology import GangSlice
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.topology.node_states import NodeState
    from yunikorn.scheduling.topology.topology_tree import TopologyTree, TreeDomain

    Slices = tuple[GangSlice, ...]

FEWEST_KINDS, MOST_COUNTS = 64, 2_000_000
"""Number of ask classes whose counts are kept in any case, and of the counts kept for all of them. Those that
are not used for longest are dropped, and made again from the states of nodes."""
MOST_JUDGED = 4096
"""Largest number of classes of gangs, or of gangs, for which results of checks are kept."""


class RoomCounts:
    """Number of members of one kind that fit each domain, in whole slices."""

    def __init__(self, rooms: DomainRooms, ask: Ask, slices: Slices) -> None:
        self._rooms, self._ask, self._states = rooms, ask, rooms.states
        self._size, self._inner, self._level = 1, self, len(rooms.tree.levels) - 1
        if slices:
            self._size, self._inner = slices[0].size, rooms.of(ask, slices[1:])
            self._level = rooms.tree.numbers[slices[0].level]
        self._fits: dict[NodeState, int] = {}
        self._seen = -1
        """Number of changes of domains that are included."""
        self._counts: dict[TreeDomain, int] = {}
        self.most: dict[int, tuple[int, str]] = {}
        """By level, if known: the largest number in a domain, and the first such domain by name."""

    def count_for(self, ask: Ask) -> None:
        """Count by a request that waits now: that of an earlier request may have changed its class since."""
        self._ask = ask
        if self._inner is not self:
            self._inner.count_for(ask)

    @property
    def by_domain(self) -> dict[TreeDomain, int]:
        """Number for each domain with room, up to date."""
        states, new = self._states, self._states.logged - self._seen
        if new:
            if len(self._fits) > 2 * states.number + FEWEST_KINDS:
                self._fits = {}
            if self._seen < 0 or new > len(states.log):
                self._count_all()
            else:
                for innermost in dict.fromkeys(states.log[-new:]):
                    self._count_again(innermost)
            self._seen = states.logged
        return self._counts

    def on(self, node: Node) -> int:
        """Return how many members fit a node."""
        state, ask_class = self._states.of[node], self._ask.ask_class
        if ask_class.searched_apart:
            return self._rooms.fitting(self._ask, node, state.room)
        fitting = self._fits.get(state)
        if fitting is None:
            fitting = self._fits[state] = self._rooms.fitting(self._ask, node, state.room)
        return fitting

    def _count_all(self) -> None:
        """Count all domains, each level from the one below."""
        self.most, here = {}, dict.fromkeys(self._states.inside, 0)
        self._counts = counts = {}
        while here:
            above: dict[TreeDomain, int] = {}
            if next(iter(here)).level >= self._level:
                here = {domain: self._inside(domain) for domain in here}
            for domain, count in here.items():
                if count:
                    counts[domain] = count
                parent = domain.parent
                if parent is not None:
                    above[parent] = above.get(parent, 0) + count
            here = above

    def _count_again(self, innermost: TreeDomain) -> None:
        counts, difference = self._counts, 0
        for domain in innermost.chain:
            before = counts.get(domain, 0)
            now = before + difference if domain.level < self._level else self._inside(domain)
            difference = now - before
            if difference:
                counts[domain] = now
                known = self.most.get(domain.level)
                if known is not None and known[1] == domain.path and now < before:
                    del self.most[domain.level]
                elif known is not None and (domain.name or domain.parent is None):
                    self.most[domain.level] = _larger(known, now, domain)
            elif domain.level < self._level:
                return

    def _inside(self, domain: TreeDomain) -> int:
        """Return the number of a domain that is no sum of those below."""
        if self._inner is not self:
            room = self._inner.by_domain.get(domain, 0)
            return room - room % self._size if domain.name or domain.level > self._level else 0
        groups, room = self._states.inside.get(domain, {}), 0
        if self._ask.ask_class.searched_apart:
            return sum(self.on(node) for nodes in groups.values() for node in nodes)
        for state, nodes in groups.items():
            fitting = self._fits.get(state)
            room += (self.on(next(iter(nodes))) if fitting is None else fitting) * len(nodes)
        return room


def _larger(known: tuple[int, str], count: int, domain: TreeDomain) -> tuple[int, str]:
    """Return the larger number with its domain, the first by name of equals."""
    if count < known[0] or (count == known[0] and domain.path >= known[1]):
        return known
    return count, domain.path


class DomainVerdict:
    """Result of the checks of one domain with room for gangs of one class."""

    __slots__ = ("failed", "rank", "refusal", "seen", "turn")

    def __init__(self, seen: int, refusal: str | None, rank: tuple[float, ...]) -> None:
        self.seen = seen
        """Latest change of the domain above that the result includes."""
        self.refusal = refusal
        self.rank = rank
        self.failed = -1
        """Latest change of the domain when members did not fit together; -1 if that was not tried."""
        self.turn = 0
        """Number of attempts that tried the domain, and ended before all others were tried."""


class DomainRooms:
    """Counts for one tree: the room now, or without the allocations of this partition."""

    states: NodeStates
    idle: dict[TreeDomain, int]
    """Number of nodes that run nothing and are open, by domain."""
    changes: dict[TreeDomain, int]
    """Number of the count that found the latest change of a node in a domain."""
    _judged: dict[Hashable, dict[TreeDomain, DomainVerdict]]
    """Results of the checks of domains, by class of gangs, and application if they depend on it."""
    _kinds: dict[tuple[AskClass, Slices], RoomCounts]
    _closed: dict[Node, None]
    """Nodes that were reserved at the latest count."""
    _idle: dict[Node, None]

    def __init__(
        self,
        tree: TopologyTree,
        orders: NodeOrders,
        reserved: Mapping[Node, object],
        *,
        empty: bool = False,
    ) -> None:
        """Create for a tree; `reserved` has the nodes with reservations."""
        self.tree = tree
        self._orders, self._reserved, self._empty = orders, reserved, empty
        self._stamp: Hashable = None
        self._counts = 0
        """Number of counts so far that found a change."""
        self.forget()

    def of(self, ask: Ask, slices: Slices = ()) -> RoomCounts:
        """Return how many requests like `ask` fit; valid until the next change of a node."""
        kinds, key = self._kinds, (ask.ask_class, slices)
        found = kinds.pop(key, None)
        if found is None:
            found = RoomCounts(self, ask, slices)
            while len(kinds) >= max(FEWEST_KINDS, MOST_COUNTS // (len(self.changes) + 1)):
                del kinds[next(iter(kinds))]
        kinds[key] = found
        found.count_for(ask)
        return found

    def judged_for(self, gangs: Hashable) -> dict[TreeDomain, DomainVerdict]:
        """Return what is known about domains for these gangs, to be completed."""
        found = self._judged.pop(gangs, {})
        while len(self._judged) >= MOST_JUDGED:
            del self._judged[next(iter(self._judged))]
        self._judged[gangs] = found
        return found

    def fitting(self, ask: Ask, node: Node, room: Mapping[str, int], *, is_empty: bool = False) -> int:
        """Return how many requests like `ask` fit a node with this room; with `is_empty`, without others."""
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
        # Predicates count beside the tasks that run.
        return count if chain is None or is_empty or self._empty else chain.room(ask, node, count)

    def running(self, domain: TreeDomain) -> frozenset[str]:
        """Return the ids of the applications that run in a domain."""
        seen = self.changes[domain]
        known = self._running.get(domain)
        if known is None or known[0] != seen:
            below = [self.running(child) for child in domain.children.values()]
            here = () if below else (one.app.id for node in domain.nodes for one in node.allocations.values())
            known = self._running[domain] = seen, frozenset(here).union(*below)
        return known[1]

    def refresh(self, stamp: Hashable) -> None:
        """Read the nodes that changed, joined or left since the last call; none have for an equal stamp."""
        if self._departures != self.tree.departures or self._chain is not self._orders.chain:
            self.forget()
        elif stamp == self._stamp and self._reserved.keys() == self._closed.keys():
            return
        self._stamp = stamp
        changed = dict.fromkeys(self.states.changed())
        if not self._empty:
            changed.update((node, None) for node in self._reserved.keys() ^ self._closed.keys())
        if changed:
            self._closed = dict.fromkeys(self._reserved)
            self._counts += 1
            self.states.read(changed)
            self._follow(changed)

    def _follow(self, changed: Iterable[Node]) -> None:
        """Note changes of nodes."""
        idle, differences = self._idle, dict.fromkeys(map(self.tree.domain_of.__getitem__, changed), 0)
        for node in changed:
            if (not node.allocations and node.is_free) != (node in idle):
                differences[self.tree.domain_of[node]] += -1 if node in idle else 1
                if idle.pop(node, node) is node:
                    idle[node] = None
        for innermost, difference in differences.items():
            for domain in innermost.chain:
                self.changes[domain] = self._counts
                self.idle[domain] = self.idle.get(domain, 0) + difference

    def settle(self, nodes: Iterable[Node]) -> None:
        """Read nodes whose room changes while a gang is being planned; not a change of a domain."""
        self.states.read(nodes)

    def forget(self) -> None:
        """Forget all counts, because nodes left, or predicates changed; they are made again when used."""
        self._judged, self._kinds, self._closed, self._idle = {}, {}, {}, {}
        self._running: dict[TreeDomain, tuple[int, frozenset[str]]] = {}
        """Applications in domains that a policy asked about, each with the latest change that is included."""
        self.idle, self.changes, self._stamp = {}, {}, None
        self._departures, self._chain = self.tree.departures, self._orders.chain
        apart = self._chain is not None and self._chain.counts_room
        self.states = NodeStates(self.tree, empty=self._empty, apart=apart and not self._empty)
