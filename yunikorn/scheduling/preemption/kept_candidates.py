"""Candidates for preemption by node, kept from one search to the next.

Where requests ripen one by one, as in a simulation, each search is made for a single request. Collecting all
candidates of the cluster for it would cost far more than the search. If the policy's answers are constant,
the candidates are therefore kept by node, in order, and renewed only on nodes that changed. Nodes report
their changes themselves, so that a search pays for what changed, and not for the number of nodes: a node that
is asked to appends itself to a list at its next change, and does not report further changes until it is asked
again. Without preemption a change costs one test.

The victims are those of a search that keeps nothing (`docs/decisions/archive/0169`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Generic, TypeVar

from yunikorn.scheduling.preemption.candidates import room_on
from yunikorn.scheduling.preemption.victim_policy import (
    has_opted_out,
    others_first,
    without_ties,
)

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.api import PreemptionCause
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.resources import Tally
    from yunikorn.scheduling.preemption.candidates import EligibleLeaves
    from yunikorn.scheduling.preemption.snapshot import Pairs
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy

LOG = 4_096
"""Number of changes that a reader may lag behind; everything has changed for one that lags more."""
STALE = -1
_T = TypeVar("_T")


class ChangeLog(Generic[_T]):
    """The latest changes, in order. A reader remembers the number of the first that it has not read."""

    def __init__(self) -> None:
        self.entries: list[_T] = []
        self.start = 0
        """Number of the first entry that is still there."""

    @property
    def end(self) -> int:
        """Number of the next entry."""
        return self.start + len(self.entries)

    def since(self, number: int) -> list[_T]:
        """Return the entries from this number on; they are still there if it is not below `start`."""
        return self.entries[number - self.start :]

    def trim(self) -> None:
        """Forget the oldest entries if there are too many."""
        if len(self.entries) > 2 * LOG:
            self.start += len(self.entries) - LOG
            self.entries = self.entries[len(self.entries) - LOG :]


class NodeChanges:
    """The nodes of a partition, and those that changed since an earlier search."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._capacity_version = -1
        self._latest: list[Node] = []
        """Nodes that changed since `collect`; nodes append themselves."""
        self.log: ChangeLog[Node] = ChangeLog()
        self.nodes: list[Node] = []
        """All nodes in the order of their registration; another list whenever there are others."""

    def collect(self) -> None:
        """Take in the latest changes."""
        version = self._partition.accounting.node_reservations.capacity_version
        if version != self._capacity_version:
            self._capacity_version = version
            present = list(self._partition.nodes.values())
            if present != self.nodes:
                self.nodes = present
                # Nodes that another configuration has asked are asked to report here.
                self._latest += [node for node in present if node.change_log is not self._latest]
        if self._latest:
            self.log.trim()
            self.log.entries += self._latest
            for node in self._latest:
                node.change_log = self._latest
            self._latest.clear()


class Unkeepable(Exception):
    """The policy failed for an allocation, or its ranks are no numbers: candidates have to be collected."""


class KeptNode:
    """A node with its candidates."""

    __slots__ = ("candidates", "room", "version")

    def __init__(self) -> None:
        self.candidates: list[Allocation] = []
        """Candidates in order, those included that are being released."""
        self.room: Tally = {}
        """Free room once all pending releases have ended."""
        self.version = STALE
        """Version of the node for which the order of candidates holds."""


class AmountColumn:
    """Amounts of one resource type on all nodes, by position."""

    __slots__ = ("largest", "reach", "room")

    def __init__(self) -> None:
        self.room: list[int] = []
        """Free room once all pending releases have ended."""
        self.largest: list[int] = []
        """Largest amount of a candidate."""
        self.reach: list[int] = []
        """Sum of both: the most that one victim makes room for; negative without candidates."""


class KeptCandidates:
    """Candidates for requests of one cause on all nodes; a position is the place in the order of node ids."""

    def __init__(self, asking: Queue, cause: PreemptionCause, policy: VictimPolicy) -> None:
        self._asking = asking
        self.cause = cause
        self.policy = policy
        self._leaves: dict[Queue, int | None] = {}
        """Leaves that were eligible in any search, with the highest eligible priority."""
        self._registered: list[Node] = []
        """Nodes in the order of their registration."""
        self._seen = 0
        """Number of the first change of a node that was not applied yet."""
        self.nodes: list[Node] = []
        """Nodes by position; another list whenever there are others."""
        self._positions: dict[Node, int] = {}
        self.kept: list[KeptNode] = []
        """Candidates by position."""
        self._with_spared: set[Node] = set()
        """Nodes with candidates that are spared now, or may be once other members of their gang have left."""
        self._columns: dict[str, AmountColumn] = {}
        self.log: ChangeLog[int] = ChangeLog()
        """Positions of nodes that changed."""

    def on(self, node: Node) -> KeptNode:
        """Return what is kept of a node."""
        return self.kept[self._positions[node]]

    @property
    def has_spared(self) -> bool:
        """True if any candidate may be spared."""
        return bool(self._with_spared)

    # -- changes ------------------------------------------------------------------------------------

    def update(self, changes: NodeChanges, eligible: EligibleLeaves) -> None:
        """Apply all changes since the previous search. Raises `Unkeepable`."""
        positions = self._positions
        stale: set[int | None] = set()
        if changes.nodes is not self._registered:
            stale.update(self._list(changes.nodes))
            positions = self._positions
        if self._seen < changes.log.start:
            stale.update(range(len(self.nodes)))
        else:
            stale.update(map(positions.get, changes.log.since(self._seen)))
        self._seen = changes.log.end
        for leaf, most in eligible.items():
            if leaf not in self._leaves or self._leaves[leaf] != most:
                stale.update(self._add(leaf, most))
        self.log.trim()
        # Positions among equals are looked up only where ranks tie.
        order = _Enumeration(self._asking)
        for position in stale:
            # Removed nodes have no position.
            if position is not None:
                self._renew(position, order)

    def _list(self, registered: list[Node]) -> list[int]:
        """List the nodes again, keep what is known of those that are still there, and return the new ones."""
        former = dict(zip(self.nodes, self.kept, strict=True))
        self._registered = registered
        self.nodes = sorted(registered, key=lambda node: node.id)
        self._positions = {node: position for position, node in enumerate(self.nodes)}
        self.kept = [former.get(node) or KeptNode() for node in self.nodes]
        self._with_spared.intersection_update(self.nodes)
        self._columns.clear()
        return [position for node, position in self._positions.items() if node not in former]

    def _add(self, leaf: Queue, most: int | None) -> list[int]:
        """Make the allocations of another leaf candidates, and return the positions of their nodes."""
        if len(self._leaves) > 2 * len(self._leaves.keys() & all_leaves(leaf)) + 16:
            present = all_leaves(leaf)
            self._leaves = {one: value for one, value in self._leaves.items() if one in present}
        self._leaves[leaf] = most
        found = []
        for app in leaf.applications.values():
            for allocation in app.allocations.values():
                position = self._positions.get(allocation.node)
                if position is not None:
                    self.kept[position].version = STALE
                    found.append(position)
        return found

    def _renew(self, position: int, order: _Enumeration) -> None:
        """Evaluate a node that is new or has changed."""
        node, kept = self.nodes[position], self.kept[position]
        version = node.version + node.victims_version
        if version != kept.version:
            kept.candidates = self._in_order(self._candidates_on(node), order)
            kept.version = version
            if any(one.spec.originator or one.app.core is not None for one in kept.candidates):
                self._with_spared.add(node)
            else:
                self._with_spared.discard(node)
        room = kept.room = room_on(node)
        self.log.entries.append(position)
        amounts = [one.resource for one in kept.candidates]
        for name, column in self._columns.items():
            free = column.room[position] = room.get(name, 0)
            largest = column.largest[position] = max([one.get(name, 0) for one in amounts], default=0)
            column.reach[position] = free + largest if amounts else -1

    def _candidates_on(self, node: Node) -> list[Allocation]:
        leaves = self._leaves
        found: list[Allocation] = []
        for one in node.allocations.values():
            chain = one.app.chain
            if chain and chain[0] in leaves and not has_opted_out(one):
                most = leaves[chain[0]]
                if most is None or one.priority <= most:
                    found.append(one)
        return found

    def _in_order(self, found: list[Allocation], order: _Enumeration) -> list[Allocation]:
        """Return the candidates of a node in the order of `VictimPolicy.in_order`."""
        if not found:
            return found
        ranked = self.policy.constant_ranks(found, self.cause)
        if ranked is None:
            raise Unkeepable
        ranked.reverse()
        ranked.sort(key=itemgetter(0))
        if len({rank for rank, _ in ranked}) == len(ranked):
            return others_first([one for _, one in ranked])
        ordered: list[Allocation] = []
        for _, equals in groupby(ranked, key=itemgetter(0)):
            ordered += without_ties(order.reversed([one for _, one in equals]))
        return others_first(ordered)

    # -- amounts ------------------------------------------------------------------------------------

    def column(self, name: str) -> AmountColumn:
        """Return the amounts of a resource type."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = AmountColumn()
            for kept in self.kept:
                free = kept.room.get(name, 0)
                largest = max((one.resource.get(name, 0) for one in kept.candidates), default=0)
                column.room.append(free)
                column.largest.append(largest)
                column.reach.append(free + largest if kept.candidates else -1)
        return column

    def reached(self, pairs: Pairs, start: int = 0) -> Iterator[int]:
        """Yield the positions from `start` on of nodes where one victim may suffice."""
        columns = [(self.column(name).reach, amount) for name, amount in pairs]
        (first, least), *more = columns
        for position in range(start, len(first)):
            if first[position] >= least:
                for reach, amount in more:
                    if reach[position] < amount:
                        break
                else:
                    yield position

    def reaches(self, position: int, pairs: Pairs) -> bool:
        """Return True if one victim may suffice on a node."""
        for name, amount in pairs:
            if self.column(name).reach[position] < amount:
                return False
        return True


class _Enumeration:
    """The order of `candidates_on`, in which allocations of equal rank are reversed."""

    def __init__(self, asking: Queue) -> None:
        self._asking = asking
        self._leaves: dict[Queue, int] = {}
        self._applications: dict[Queue, dict[str, int]] = {}
        self._allocations: dict[str, dict[str, int]] = {}

    def reversed(self, equals: list[Allocation]) -> list[Allocation]:
        """Return allocations of one node that are in the reverse order of the node in the reverse order."""
        if len(equals) == 1:
            return equals
        # An allocation without extras entered its node and its application at the same time.
        is_plain = all(one.extras is None for one in equals)
        first = equals[0].app
        if is_plain and all(one.app is first for one in equals):
            return equals
        # Equals of this order stay in theirs.
        return sorted(equals, key=self._application if is_plain else self._position, reverse=True)

    def _position(self, one: Allocation) -> tuple[int, int, int]:
        own = self._allocations.get(one.app.id)
        if own is None:
            own = self._allocations[one.app.id] = {
                uuid: number for number, uuid in enumerate(one.app.allocations)
            }
        return *self._application(one), own.get(one.uuid, STALE)

    def _application(self, one: Allocation) -> tuple[int, int]:
        app, leaf = one.app, one.app.chain[0]
        if not self._leaves:
            # The queue of the request itself is the last of the eligible leaves.
            every = [queue for queue in self._asking.chain[-1].walk() if queue is not self._asking]
            self._leaves = {queue: number for number, queue in enumerate([*every, self._asking])}
        apps = self._applications.get(leaf)
        if apps is None:
            apps = self._applications[leaf] = {each: number for number, each in enumerate(leaf.applications)}
        return self._leaves[leaf], apps.get(app.id, STALE)


def all_leaves(queue: Queue) -> set[Queue]:
    """Return all leaves of the tree of a queue."""
    return {one for one in queue.chain[-1].walk() if one.is_leaf}
