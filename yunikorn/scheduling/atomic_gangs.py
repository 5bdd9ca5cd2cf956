"""Atomic gangs: every member gets its place in one decision, or none does (decision 24).

A gang holds nothing while it waits. So that it does not wait for ever, one that found no room for long
enough holds back what comes after it in the order: all requests where nodes lack room, those of a queue or
of a user where that one's quota does. What comes before it in the order is served all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from yunikorn.objects.atomic_gang import GangShape
from yunikorn.resources import Tally, describe, fits_quota, subtract, sum_of

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.allowance import Allowance
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.atomic_gang import AtomicGang, Members
    from yunikorn.objects.node import Node
    from yunikorn.objects.partition import Partition
    from yunikorn.objects.queue import Queue
    from yunikorn.objects.shape import Shape
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.parking import Parking
    from yunikorn.scheduling.predicate_chain import PredicateChain

Plan = list[tuple["Ask", "Node"]]

LOOKS_PER_MEMBER = 32
"""Nodes that can be looked at in the time that it takes to place a member and to take it back."""


class AtomicGangs:
    """Places whole gangs, and holds others back for those that waited long."""

    def __init__(
        self, partition: Partition, orders: NodeOrders, parking: Parking, predicates: PredicateChain
    ) -> None:
        self._partition = partition
        self._claims = partition.claims
        self._root = partition.queues.root
        self._gangs = partition.gangs
        self._orders = orders
        self._parking = parking
        self.predicates = predicates
        self._silenced: list[tuple[Queue, int]] = []
        self._closed: list[Allowance] = []
        self.stops = False
        """Whether an overdue gang holds back everything that comes after it."""

    # -- holding back -------------------------------------------------------------------------------

    def guard(self, search: Callable[[], Allocation | None]) -> Allocation | None:
        """Search for the next decision, with those held back that an overdue gang holds back."""
        try:
            return search()
        finally:
            self._release()

    def _release(self) -> None:
        self.stops = False
        for queue, bits in reversed(self._silenced):
            queue.awaken(bits)
        for allowance in self._closed:
            for claim in allowance.claims.values():
                self._claims.weigh(claim)
        self._silenced, self._closed = [], []

    def _hold_back(self, gang: AtomicGang, cause: Queue | Allowance) -> bool:
        """For the rest of this search; False if the gang may not: it is not overdue, or can never run."""
        holds_back = gang.overdue and self._may_ever_run(gang)
        gang.insist(wanted=holds_back)
        if not holds_back:
            return False
        if cause is self._root:
            self.stops = True
        elif cause in gang.app.chain:
            queue: Queue = cause
            self._silenced.append((queue, queue.bits))
            queue.bits = 0
        else:
            allowance: Allowance = cause  # type: ignore[assignment]
            self._closed.append(allowance)
            for claim in allowance.claims.values():
                self._claims.open &= ~claim.bits
        return True

    def _may_ever_run(self, gang: AtomicGang) -> bool:
        app, request = gang.app, gang.request
        assert request is not None
        amount = request.resource
        quotas = [queue.max for queue in app.chain] + [one.max_resources for one in app.owner]
        if any(quota is not None and not fits_quota(quota, amount) for quota in quotas):
            return False
        version = self._partition.ledger.kept.alterations, self._partition.cluster.version
        shape = _shape_of(request)
        if shape.possible is None or shape.possible[0] != version:
            shape.possible = (version, self._fits_empty_nodes(gang))
        return shape.possible[1]

    def _fits_empty_nodes(self, gang: AtomicGang) -> bool:
        rooms = self._empty_rooms()
        for ask, count in sorted(_by_shape(gang.members), key=lambda one: -sum(one[0].resource.values())):
            left = count
            for node, room in rooms:
                if ask.shape.required in ("", node.id) and not self.predicates.excludes(ask, node):
                    left -= _take(room, ask, left)
                    if not left:
                        break
            else:
                return False
        return True

    def _empty_rooms(self) -> list[tuple[Node, Tally]]:
        """What nodes that take work have room for as long as nothing runs here."""
        return [
            (node, dict(subtract(node.capacity, node.occupied)))
            for node in self._partition.nodes.values()
            if node.schedulable
        ]

    # -- placing ------------------------------------------------------------------------------------

    def serve(self, request: Ask, gang: AtomicGang) -> Allocation | None:
        """Place all members, or learn why none can be placed."""
        pairs = request.shape.pairs
        for queue in gang.app.chain:
            if not queue.has_room(pairs):
                self._tell(gang, f"{describe(queue.headroom or {})} left in queue {queue.path}")
                self._wait(gang)
                if not self._hold_back(gang, queue):
                    queue.blocked(request.claim)
                return None
        for allowance in gang.app.owner:
            if not allowance.has_room(pairs):
                self._tell(gang, f"{describe(allowance.headroom)} left for {allowance.label}")
                self._wait(gang)
                if not self._hold_back(gang, allowance):
                    self._claims.exceed(request.claim, allowance)
                return None
        plan = None if request.shape.closed else self._plan(gang)
        if plan is None:
            self._no_nodes(request, gang)
            return None
        return self._carry_out(gang, plan)

    def _plan(self, gang: AtomicGang) -> Plan | None:
        """A node for every member, as if they were placed one by one; nothing is changed by it."""
        plan: Plan = []
        self.predicates.begin()
        if self._lacks_room(gang):
            return None
        try:
            for ask, count in gang.members:
                for _ in range(count):
                    node = self._node(ask)
                    if node is None:
                        return None
                    node.lend(ask.resource)
                    plan.append((ask, node))
                    self._orders.follow(node, gained=False)
        finally:
            for ask, node in plan:
                node.regain(ask.resource)
            for node in dict.fromkeys(node for _, node in plan):
                self._orders.follow(node, gained=True)
        return plan

    def _lacks_room(self, gang: AtomicGang) -> bool:
        """Whether all free room is too little for the members of some shape, found without placing them.

        Looks at every node once for each shape, and only where that takes less time than a plan may.
        """
        nodes, most = self._partition.nodes, LOOKS_PER_MEMBER * gang.size
        if len(nodes) > most:
            return False
        kinds = _by_shape(gang.members)
        if len(kinds) * len(nodes) > most:
            return False
        return any(_room_for(ask.shape, count, nodes) < count for ask, count in kinds)

    def _node(self, ask: Ask) -> Node | None:
        shape, chain = ask.shape, self.predicates
        if not shape.required:
            return self._orders.of(shape).find(shape, ask, chain if chain else None)
        node = self._partition.nodes.get(shape.required)
        return node if node is not None and shape.fits(node) and chain.refusal(ask, node) is None else None

    def _carry_out(self, gang: AtomicGang, plan: Plan) -> Allocation:
        gang.finish()
        for ask, node in plan:
            allocation = self._partition.place(ask, node)
        gang.let_go()
        return allocation

    def _no_nodes(self, request: Ask, gang: AtomicGang) -> None:
        chain = self.predicates
        if request.shape.closed:
            self._tell(gang, _shape_of(request).why)
            self._wait(gang)
        else:
            refusals = "; ".join(f"{reason} ({count}x)" for reason, count in sorted(chain.refusals.items()))
            why = refusals or "the free room is in too small pieces"
            self._tell(gang, why)
            self._wait(gang)
            if chain.personal:
                # The answers of the nodes to its members hold for no other gang.
                gang.form(alone=True)
                assert gang.request is not None
                request = gang.request
            _shape_of(request).why = why
            self._claims.close(request.shape)
            if chain.unsettled:
                self._parking.park(request.shape)
        self._hold_back(gang, self._root)

    # -- waiting ------------------------------------------------------------------------------------

    def _wait(self, gang: AtomicGang) -> None:
        if gang.deadline is None:
            patience = self._partition.periods.gang_patience
            gang.deadline = self._partition.timers.after(patience, lambda: self._overdue(gang))

    def _overdue(self, gang: AtomicGang) -> None:
        gang.settle()
        if gang.request is None:
            return
        gang.overdue = True
        self._gangs.overdue[gang.app.id] = gang
        gang.insist(wanted=True)

    def _tell(self, gang: AtomicGang, why: str) -> None:
        journal, request = self._partition.journal, gang.request
        if gang.told or request is None:
            return
        gang.told = True
        if journal.listening:
            size = f"{gang.size} members, {describe(request.resource)}"
            never = ""
            if not self._may_ever_run(gang):
                total = describe(sum_of(room for _, room in self._empty_rooms()))
                never = f"; it never can as things are, with {total} in all"
            message = f"Gang of application '{gang.app.id}' ({size}) has no room: {why}{never}"
            journal.record("REQUEST", request.key, gang.app.id, message=message, reason="GangUnschedulable")


def _shape_of(request: Ask) -> GangShape:
    """The shape of a request that stands for a gang."""
    shape = request.shape
    assert isinstance(shape, GangShape)
    return shape


def _by_shape(members: Members) -> Members:
    """The members with all of one shape counted together, under the first ask of that shape."""
    kinds: dict[Shape, tuple[Ask, int]] = {}
    for ask, count in members:
        first, before = kinds.get(ask.shape, (ask, 0))
        kinds[ask.shape] = first, before + count
    return list(kinds.values())


def _take(room: Tally, ask: Ask, most: int) -> int:
    """Take as many repeats of `ask` out of `room` as fit, up to `most`, and return their number."""
    count = _repeats_in(room, ask.shape, most)
    for name, amount in ask.shape.pairs:
        room[name] = room.get(name, 0) - amount * count
    return count


def _room_for(shape: Shape, most: int, nodes: Mapping[str, Node]) -> int:
    """The requests of `shape`, up to `most`, that fit into the free room of the nodes; without predicates."""
    if shape.required:
        node = nodes.get(shape.required)
        return 0 if node is None else _repeats_in(node.available, shape, most)
    found = 0
    for node in nodes.values():
        if node.is_free:
            found += _repeats_in(node.available, shape, most - found)
            if found == most:
                break
    return found


def _repeats_in(room: Mapping[str, int], shape: Shape, most: int) -> int:
    """The requests of `shape`, up to `most`, that fit `room` together."""
    for name, amount in shape.pairs:
        most = min(most, max(0, room.get(name, 0)) // amount)
    return most
