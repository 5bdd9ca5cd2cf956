"""Candidates for preemption by node, kept from one search to the next.

Where requests ripen one by one, as in a simulation, each search is made for a single request. Collecting all
candidates of the cluster for it would cost far more than the search. If the policy's answers are constant,
the candidates are therefore kept by node, in order, and renewed only on nodes that changed: a search compares
the versions of all nodes, which is a loop over numbers, and evaluates what changed.

A node is examined only if its free room and its largest candidate could cover the request. Such nodes are
looked at in order of their id, and the first on which a single victim suffices ends the search. Only if there
is none, lower bounds are computed for all nodes.

The victims are those of a search that keeps nothing (`docs/decisions/0169`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from yunikorn.scheduling.preemption.victim_policy import has_opted_out
from yunikorn.scheduling.preemption.victims import candidates_on, room_on, shortage

if TYPE_CHECKING:
    from yunikorn.api import PreemptionCause
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.resources import Tally
    from yunikorn.scheduling.preemption.snapshot import Pairs
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy
    from yunikorn.scheduling.preemption.victims import EligibleLeaves

KEPT = 50_000
"""Number of nodes, over all causes, whose candidates are kept."""
STALE = -1
IMPOSSIBLE = 1 << 40
"""Lower bound on the number of victims where no number suffices."""


class Unkeepable(Exception):
    """The policy failed for an allocation, or its ranks are no numbers: candidates have to be collected."""


class Column:
    """Amounts of one resource type on all nodes, by position."""

    __slots__ = ("largest", "reach", "room")

    def __init__(self) -> None:
        self.room: list[int] = []
        """Free room once all pending releases have ended."""
        self.largest: list[int] = []
        """Largest amount of a candidate."""
        self.reach: list[int] = []
        """Sum of both: the most that one victim makes room for; negative without candidates."""

    def set(self, position: int, room: int, largest: int, *, any_candidate: bool) -> None:
        """Set the amounts of a node."""
        self.room[position] = room
        self.largest[position] = largest
        self.reach[position] = room + largest if any_candidate else -1


class KeptCandidates:
    """Candidates for requests of one cause on all nodes, in the order of node ids."""

    def __init__(self, asking: Queue, cause: PreemptionCause, policy: VictimPolicy) -> None:
        self._cause = cause
        self._asking = asking
        self._policy = policy
        self._leaves: dict[Queue, int | None] = {}
        """Leaves that were eligible in any search, with the highest eligible priority."""
        self._registered: list[Node] = []
        """Nodes in the order of their registration."""
        self.nodes: list[Node] = []
        """Nodes in the order of their ids; a position refers to this list."""
        self._positions: dict[Node, int] = {}
        self._versions: list[int] = []
        self.candidates: list[list[Allocation]] = []
        """Candidates in order, those included that are being released."""
        self._rooms: list[Tally] = []
        self._columns: dict[str, Column] = {}

    def update(self, nodes: Mapping[str, Node], eligible: EligibleLeaves) -> None:
        """Apply all changes since the previous search. Raises `Unkeepable`."""
        present = list(nodes.values())
        if present != self._registered:
            self._registered = present
            self._list()
        for leaf, most in eligible.items():
            if leaf not in self._leaves or self._leaves[leaf] != most:
                self._add(leaf, most)
        stale = [
            position
            for position, (node, known) in enumerate(zip(self.nodes, self._versions, strict=True))
            if node.version + node.victims_version != known
        ]
        if stale:
            # Positions among equals are looked up only where ranks tie.
            order = _Enumeration(self._asking)
            for position in stale:
                self._renew(position, order)

    def _list(self) -> None:
        """List the nodes again, and keep what is known of those that are still there."""
        known = self._positions
        versions, candidates, rooms = self._versions, self.candidates, self._rooms
        self.nodes = sorted(self._registered, key=lambda node: node.id)
        places = [known.get(node) for node in self.nodes]
        self._versions = [STALE if place is None else versions[place] for place in places]
        self.candidates = [[] if place is None else candidates[place] for place in places]
        self._rooms = [{} if place is None else rooms[place] for place in places]
        for column in self._columns.values():
            for name in Column.__slots__:
                former = getattr(column, name)
                setattr(column, name, [-1 if place is None else former[place] for place in places])
        self._positions = {node: position for position, node in enumerate(self.nodes)}

    def _add(self, leaf: Queue, most: int | None) -> None:
        """Make the allocations of another leaf candidates."""
        if len(self._leaves) > 2 * len(self._leaves.keys() & _all_leaves(leaf)) + 16:
            present = _all_leaves(leaf)
            self._leaves = {one: value for one, value in self._leaves.items() if one in present}
        self._leaves[leaf] = most
        for app in leaf.applications.values():
            for allocation in app.allocations.values():
                position = self._positions.get(allocation.node)
                if position is not None:
                    self._versions[position] = STALE

    def _renew(self, position: int, order: _Enumeration) -> None:
        """Evaluate a node that is new or has changed."""
        node, leaves = self.nodes[position], self._leaves
        found: list[Allocation] = []
        for one in node.allocations.values():
            chain = one.app.chain
            if chain and chain[0] in leaves and not has_opted_out(one):
                most = leaves[chain[0]]
                if most is None or one.priority <= most:
                    found.append(one)
        room = self._rooms[position] = room_on(node)
        if found:
            found = self._in_order(found, order)
        self.candidates[position] = found
        largest: Tally = {}
        for one in found:
            for name, amount in one.resource.items():
                if amount > largest.get(name, 0):
                    largest[name] = amount
        for name, column in self._columns.items():
            column.set(position, room.get(name, 0), largest.get(name, 0), any_candidate=bool(found))
        self._versions[position] = node.version + node.victims_version

    def _in_order(self, found: list[Allocation], order: _Enumeration) -> list[Allocation]:
        """Return the candidates of a node by rank; of equal rank, in reverse, as `VictimPolicy.in_order`."""
        ranked = self._policy.constant_ranks(found, self._cause)
        if ranked is None:
            raise Unkeepable
        ranked.reverse()
        ranked.sort(key=itemgetter(0))
        ordered: list[Allocation] = []
        for _, equals in groupby(ranked, key=itemgetter(0)):
            ordered += order.reversed([one for _, one in equals])
        return ordered

    def column(self, name: str) -> Column:
        """Return the amounts of a resource type."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = Column()
            column.room = [room.get(name, 0) for room in self._rooms]
            column.largest = [
                max((one.resource.get(name, 0) for one in there), default=0) for there in self.candidates
            ]
            column.reach = [
                room + most if there else -1
                for room, most, there in zip(column.room, column.largest, self.candidates, strict=True)
            ]
        return column

    def room(self, node: Node) -> Tally:
        """Return the free room of a node once all pending releases have ended."""
        return self._rooms[self._positions[node]]

    def on(self, node: Node) -> list[Allocation]:
        """Return the candidates on a node in order."""
        return self.candidates[self._positions[node]]


class _Enumeration:
    """The order of `candidates_on`, in which allocations of equal rank are reversed."""

    def __init__(self, asking: Queue) -> None:
        self._asking = asking
        self._leaves: dict[Queue, int] = {}
        self._applications: dict[Queue, dict[str, int]] = {}
        self._allocations: dict[str, dict[str, int]] = {}

    def reversed(self, equals: list[Allocation]) -> list[Allocation]:
        """Return allocations of one node that are in the reverse order of the node in the reverse order."""
        first = equals[0].app
        # An allocation without extras entered its node and its application at the same time.
        if len(equals) == 1 or all(one.app is first and one.extras is None for one in equals):
            return equals
        return sorted(equals, key=self._position, reverse=True)

    def _position(self, one: Allocation) -> tuple[int, int, int]:
        app, leaf = one.app, one.app.chain[0]
        if not self._leaves:
            # The queue of the request itself is the last of the eligible leaves.
            every = [queue for queue in self._asking.chain[-1].walk() if queue is not self._asking]
            self._leaves = {queue: number for number, queue in enumerate([*every, self._asking])}
        apps = self._applications.get(leaf)
        if apps is None:
            apps = self._applications[leaf] = {each: number for number, each in enumerate(leaf.applications)}
        own = self._allocations.get(app.id)
        if own is None:
            own = self._allocations[app.id] = {uuid: number for number, uuid in enumerate(app.allocations)}
        return self._leaves[leaf], apps.get(app.id, STALE), own.get(one.uuid, STALE)


def _all_leaves(queue: Queue) -> set[Queue]:
    """Return all leaves of the tree of a queue."""
    return {one for one in queue.chain[-1].walk() if one.is_leaf}


class KeptPool:
    """Candidates for one request, from those that are kept."""

    def __init__(
        self,
        kept: KeptCandidates,
        eligible: EligibleLeaves,
        policy: VictimPolicy,
        cause: PreemptionCause,
        pairs: Pairs,
    ) -> None:
        self._kept = kept
        self._eligible = eligible
        self._policy = policy
        self._cause = cause
        self._pairs = pairs

    def any_order(self, queues: Iterable[Queue] | None = None) -> Iterator[Allocation]:
        """Yield the candidates in no particular order; with `queues`, only those below any of these."""
        return candidates_on(self._below(queues), self._policy.eligible(self._cause))

    def in_order(self, queues: Iterable[Queue]) -> Iterable[Allocation]:
        """Return the candidates below any of `queues` in order."""
        return self._policy.in_order(self.any_order(queues), self._cause)

    def _below(self, queues: Iterable[Queue] | None) -> EligibleLeaves:
        if queues is None:
            return self._eligible
        wanted = frozenset(queues)
        return {leaf: most for leaf, most in self._eligible.items() if not wanted.isdisjoint(leaf.chain)}

    def on(self, node: Node) -> list[Allocation]:
        """Return the candidates on a node in order, those included that are no longer available."""
        return self._kept.on(node)

    def room(self, node: Node) -> Tally:
        """Return the free room of a node once all pending releases have ended."""
        return self._kept.room(node)

    def shortage(self, node: Node) -> Tally:
        """Return what a node lacks for the request once all pending releases have ended."""
        return shortage(self._kept.room(node), self._pairs)

    def by_cost(
        self,
        fits: Callable[[Node], bool],
        glance: Callable[[Node], tuple[int, list[Allocation] | None]],
        victims_on: Callable[[Node], list[Allocation] | None],
    ) -> Iterator[tuple[Node, list[Allocation]]]:
        """Yield nodes and the victims there, the fewest first, then by node id.

        `fits` returns True for nodes that may host the request. `glance` returns a lower bound on the number
        of victims, 0 if there are none, with the victims if the number is exact: always if it is 1.
        """
        kept = self._kept
        later: list[tuple[int, int, list[Allocation] | None]] = []
        reached = set()
        for position in self._reached_by_one():
            node = kept.nodes[position]
            reached.add(position)
            if not fits(node):
                continue
            least, victims = glance(node)
            if least == 1 and victims is not None:
                yield node, victims
            elif least:
                later.append((least, position, victims))
        for position, least in enumerate(self._least()):
            if least < IMPOSSIBLE and position not in reached:
                later.append((least, position, None))
        heapq.heapify(later)
        while later:
            _, position, known = heapq.heappop(later)
            node = kept.nodes[position]
            if known is not None:
                yield node, known
            elif position in reached or fits(node):
                victims = victims_on(node)
                if victims is not None:
                    heapq.heappush(later, (len(victims), position, victims))

    def _reached_by_one(self) -> Iterator[int]:
        """Yield the positions of nodes where one victim may suffice."""
        amounts = [amount for _, amount in self._pairs]
        columns = [self._kept.column(name).reach for name, _ in self._pairs]
        if len(amounts) == 1:
            (only,), (column,) = amounts, columns
            return (position for position, most in enumerate(column) if most >= only)
        first, second, *more = amounts
        rows = zip(columns[0], columns[1], strict=True)
        found = (position for position, (one, other) in enumerate(rows) if one >= first and other >= second)
        if not more:
            return found
        rest = list(zip(more, columns[2:], strict=True))
        return (position for position in found if all(column[position] >= amount for amount, column in rest))

    def _least(self) -> Iterable[int]:
        """Return lower bounds on the number of victims, by position."""
        bounds: Iterable[int] | None = None
        for name, amount in self._pairs:
            column = self._kept.column(name)
            needed = [
                0 if room >= amount else -((room - amount) // most) if most else IMPOSSIBLE
                for room, most in zip(column.room, column.largest, strict=True)
            ]
            bounds = needed if bounds is None else list(map(max, bounds, needed))
        return [bound or IMPOSSIBLE for bound in bounds or ()]


class CandidateStore:
    """Kept candidates of a partition by cause; empty if the policy's answers are not constant."""

    def __init__(self, policy: VictimPolicy) -> None:
        self._policy = policy
        self._kept: dict[object, KeptCandidates] = {}
        self._usable = policy.is_constant

    def find(
        self,
        asking: Queue,
        cause: PreemptionCause,
        eligible: EligibleLeaves,
        pairs: Pairs,
        nodes: Mapping[str, Node],
    ) -> KeptPool | None:
        """Return the candidates for a request, up to date; None if they cannot be kept."""
        if not self._usable or not pairs:
            return None
        key = cause.kind, asking, cause.priority
        # The longest unused is first.
        kept = self._kept.pop(key, None) or KeptCandidates(asking, cause, self._policy)
        self._kept[key] = kept
        while len(self._kept) > max(1, KEPT // max(1, len(nodes))):
            del self._kept[next(iter(self._kept))]
        try:
            kept.update(nodes, eligible)
        except Unkeepable:
            self._usable = False
            self._kept.clear()
            return None
        return KeptPool(kept, eligible, self._policy, cause, pairs)
