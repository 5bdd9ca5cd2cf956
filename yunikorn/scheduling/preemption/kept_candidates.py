"""Candidates for preemption by node, kept from one search to the next.

Where requests ripen one by one, as in a simulation, each search is made for a single request. Collecting all
candidates of the cluster for it would cost far more than the search. If the policy's answers are constant,
the candidates are therefore kept by node, in order, and renewed only on nodes that changed. Nodes report
their changes themselves, so that a search pays for what changed, and not for the number of nodes.

The victims are those of a search that keeps nothing (`docs/decisions/archive/0169`).
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from yunikorn.scheduling.preemption.candidate_table import CandidateTable
from yunikorn.scheduling.preemption.known_nodes import KnownNodes
from yunikorn.scheduling.preemption.node_changes import ChangeReader
from yunikorn.scheduling.preemption.victim_policy import has_opted_out, others_first, without_ties
from yunikorn.scheduling.preemption.victims import room_on

if TYPE_CHECKING:
    from yunikorn.api import PreemptionCause
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.preemption.node_changes import NodeChanges
    from yunikorn.scheduling.preemption.snapshot import Pairs
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy
    from yunikorn.scheduling.preemption.victims import EligibleLeaves

KNOWN = 500_000
"""Number of nodes, over all `KnownNodes` of a cause, of which it is kept what was found there."""
LOG = 4_096
"""Largest number of changes in the table that known nodes may lag behind."""
STALE = -1


class Unkeepable(Exception):
    """The policy failed for an allocation, or its ranks are no numbers: candidates have to be collected."""


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
        self.table = CandidateTable()
        self._versions: list[int] = []
        """Versions of the nodes for which the order of candidates holds, by position."""
        self._known: dict[object, KnownNodes] = {}
        """Known nodes by amount and eligible leaves."""
        self.reader = ChangeReader()

    def update(self, changes: NodeChanges, eligible: EligibleLeaves) -> None:
        """Apply all changes since the previous search. Raises `Unkeepable`."""
        stale: set[int | None] = set()
        if changes.nodes is not self._registered:
            self._registered = changes.nodes
            stale.update(self._list())
        stale.update(map(self.table.positions.get, self.reader.read(changes.log)))
        for leaf, most in eligible.items():
            if leaf not in self._leaves or self._leaves[leaf] != most:
                stale.update(self._add(leaf, most))
        if self.table.changes > LOG:
            for known in self._known.values():
                known.catch_up()
                known.seen = 0
            self.table.clear_log()
        # Positions among equals are looked up only where ranks tie.
        order = _Enumeration(self._asking)
        for position in stale:
            # Removed nodes have no position.
            if position is not None:
                self._renew(position, order)

    def _list(self) -> list[int]:
        """List the nodes again, keep what is known of those that are still there, and return the new ones."""
        versions = self._versions
        places = self.table.arrange(self._registered)
        self._versions = [STALE if place is None else versions[place] for place in places]
        self._known.clear()
        return [position for position, place in enumerate(places) if place is None]

    def _add(self, leaf: Queue, most: int | None) -> list[int]:
        """Make the allocations of another leaf candidates, and return the positions of their nodes."""
        if len(self._leaves) > 2 * len(self._leaves.keys() & all_leaves(leaf)) + 16:
            present = all_leaves(leaf)
            self._leaves = {one: value for one, value in self._leaves.items() if one in present}
        self._leaves[leaf] = most
        found = []
        for app in leaf.applications.values():
            for allocation in app.allocations.values():
                position = self.table.positions.get(allocation.node)
                if position is not None:
                    self._versions[position] = STALE
                    found.append(position)
        return found

    def _renew(self, position: int, order: _Enumeration) -> None:
        """Evaluate a node that is new or has changed."""
        node, candidates = self.table.nodes[position], self.table.candidates[position]
        version = node.version + node.victims_version
        if version != self._versions[position]:
            candidates = self._candidates_on(node)
            if candidates:
                candidates = self._in_order(candidates, order)
            self._versions[position] = version
        self.table.set(position, candidates, room_on(node))

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
        ranked = self._policy.constant_ranks(found, self._cause)
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

    def known(self, pairs: Pairs, eligible: EligibleLeaves, *, originators: bool) -> KnownNodes:
        """Return what is known of nodes for an amount and eligible leaves, up to date."""
        key = tuple(pairs), frozenset(eligible), originators
        # The longest unused is first.
        known = self._known.pop(key, None) or KnownNodes(self.table, pairs)
        self._known[key] = known
        while len(self._known) > max(1, KNOWN // max(1, len(self.table.nodes))):
            del self._known[next(iter(self._known))]
        known.catch_up()
        return known


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
