"""Atomic gangs: all members are placed in one decision, or none.

A gang holds no resources while it waits. To prevent starvation, a gang that has found no room for the
configured time (`docs/decisions/archive/0051`) is overdue and holds back the requests after it in the order:
all requests if nodes lack room, or those of a queue or user whose quota is exhausted. Requests before the
gang are still served. See `docs/decisions/0024`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from yunikorn.clock import MILLISECOND
from yunikorn.model.ask_class import NOTHING_REFUSED
from yunikorn.model.attempt_log import OVER_LIMIT, OVER_QUOTA
from yunikorn.model.gang import GangClass
from yunikorn.model.queue import Queue
from yunikorn.quantities import in_words
from yunikorn.resources import INT64_MAX, Tally, fits_quota, subtract, sum_of
from yunikorn.scheduling.obstacles import Holder, bound_of, first_obstacle, holders
from yunikorn.scheduling.predicate_chain import counted
from yunikorn.scheduling.topology.domain_clearing import by_domain
from yunikorn.scheduling.topology.gang_planner import GangPlanner
from yunikorn.scheduling.topology.kept_domains import KeptDomains
from yunikorn.scheduling.unequal_members import UnequalMembers

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.gang import AtomicGang, Members
    from yunikorn.model.gang_topology import GangTopology
    from yunikorn.model.node import Node
    from yunikorn.model.usage_tracker import UsageTracker
    from yunikorn.scheduling.allocator import Allocator
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.topology.topology_tree import TreeDomain
    from yunikorn.scheduling.unschedulable_queue import UnschedulableQueue

Plan = list[tuple["Ask", "Node"]]

NODES_PER_MEMBER = 32
"""Number of nodes that can be examined in the time of placing one member and undoing that."""
BETWEEN_TRIES = 100 * MILLISECOND
"""Time in which other requests are served, before further domains are tried for a gang."""


class AtomicGangs:
    """Places atomic gangs, and applies back-pressure on behalf of overdue ones."""

    def __init__(
        self,
        partition: Partition,
        orders: NodeOrders,
        allocator: Allocator,
        unschedulable_queue: UnschedulableQueue,
    ) -> None:
        self._partition, self._allocator = partition, allocator
        self._pending_classes = partition.pending_classes
        self._root = partition.queues.root
        self._formation = partition.gangs.formation
        self._orders = orders
        self._unschedulable_queue = unschedulable_queue
        self.planner = GangPlanner(partition, orders)
        self.domains = KeptDomains(partition, self.planner, self._overdue)
        self._silenced: list[tuple[Queue, int]] = []
        self._closed: list[UsageTracker] = []
        self._backpressure: dict[Application, tuple[Ask, Queue]] = {}
        """Applications whose gangs hold back all requests after them in a queue, with the gang's request."""
        self._why = ""
        """Reason why the topology has no place for the latest gang."""
        self._refusals: Mapping[str, int] = NOTHING_REFUSED
        """Reasons why nodes refused the member that found none in the latest plan, with counts."""
        self.stops = False
        """True while an overdue gang holds back all requests after it."""
        self.stopped = False
        """True if the latest search for a decision ended with `stops`; for reports only."""
        self.backfills = False
        """True if a policy decides what may start before a gang that waits for nodes, and holds back none."""

    # -- holding back -------------------------------------------------------------------------------

    def guard(self, search: Callable[[], Allocation | None]) -> Allocation | None:
        """Search for the next decision under the back-pressure of overdue gangs, which ends afterwards."""
        try:
            return search()
        finally:
            self.release()

    def release(self) -> None:
        """End the back-pressure of overdue gangs, until one of them applies it again."""
        self.stopped, self.stops = self.stops, False
        for queue, bits in reversed(self._silenced):
            queue.activate(bits)
        for tracker in self._closed:
            for pending_class in self._pending_classes.under(tracker):
                self._pending_classes.refresh(pending_class)
        self._silenced, self._closed = [], []
        self._backpressure = {}

    def look(self, look: Callable[[Mapping[Application, tuple[Ask, Queue]]], None]) -> None:
        """Call `look` with the gangs that hold back others; requests before them are visible meanwhile."""
        silenced = [queue for queue, _ in self._silenced]
        for queue, bits in reversed(self._silenced):
            queue.activate(bits)
        look(self._backpressure)
        self._silenced = [(queue, queue.bits) for queue in silenced]
        for queue in silenced:
            queue.bits = 0

    def _apply_backpressure(self, gang: AtomicGang, cause: Holder) -> bool:
        """Apply back-pressure until the search ends; False if the gang is not overdue or can never run."""
        planned = self.backfills and cause is self._root and gang.app.topology is None
        holds_back = gang.overdue and not planned and self._may_ever_run(gang)
        self._formation.set_force_visit(gang, wanted=holds_back)
        if not holds_back:
            return False
        if isinstance(cause, Queue) and gang.request is not None:
            self._backpressure[gang.app] = (gang.request, cause)
        if cause is self._root:
            self.stops = True
        elif isinstance(cause, Queue):
            self._silenced.append((cause, cause.bits))
            cause.bits = 0
        else:
            self._closed.append(cause)
            for pending_class in self._pending_classes.under(cause):
                self._pending_classes.schedulable &= ~pending_class.bits
        return True

    def _may_ever_run(self, gang: AtomicGang) -> bool:
        app, request = gang.app, gang.request
        assert request is not None
        amount = request.resource
        if not all(fits_quota(bound_of(holder), amount) for holder in holders(app)):
            return False
        version = (
            self._partition.accounting.node_reservations.capacity_version,
            self._partition.cluster.version,
        )
        ask_class = _ask_class_of(request)
        if ask_class.possible is None or ask_class.possible[0] != version:
            ask_class.possible = (version, self._fits_empty_nodes(gang))
        return ask_class.possible[1]

    def _fits_empty_nodes(self, gang: AtomicGang) -> bool:
        if gang.app.topology is not None:
            return self.planner.fits_empty(gang, gang.app.topology)
        rooms = self._empty_rooms()
        for ask, count in sorted(_by_ask_class(gang.members), key=lambda one: -sum(one[0].resource.values())):
            left = count
            for node, room in rooms:
                if ask.ask_class.required in ("", node.id) and not self._orders.predicates.excludes(
                    ask, node
                ):
                    left -= take_replicas(room, ask, left)
                    if not left:
                        break
            else:
                return False
        return True

    def _empty_rooms(self) -> list[tuple[Node, Tally]]:
        """Return the room of all schedulable nodes without the allocations of this partition."""
        return [
            (node, dict(subtract(node.capacity, node.occupied)))
            for node in self._partition.nodes.values()
            if node.schedulable
        ]

    # -- placing ------------------------------------------------------------------------------------

    def serve(self, request: Ask, gang: AtomicGang) -> Allocation | None:
        """Place all members; None, with the reason recorded, if the gang cannot be placed now."""
        obstacle = first_obstacle(request)
        if gang.first_try is None and obstacle in (None, self._root):
            gang.first_try = self._partition.clock.now()
            self._partition.gangs.start_timer(gang.app)
        if obstacle is not None:
            self._block(gang, request, obstacle)
            return None
        plan = None if request.ask_class.unschedulable else self._plan(gang)
        if plan is None:
            self._no_nodes(request, gang)
            return None
        return self._allocator.place_gang(gang, plan)

    def _block(self, gang: AtomicGang, request: Ask, obstacle: Holder) -> None:
        """Hold back later requests, or do not try the gang again before the obstacle has room."""
        where = f"in {obstacle.label}" if isinstance(obstacle, Queue) else f"for {obstacle.label}"
        self._report(gang, f"{in_words(obstacle.headroom or {})} left {where}")
        self._wait(gang)
        now = self._partition.clock.now()
        if (obstacle is not self._root or not self._waits_for_domain(gang)) and self._apply_backpressure(
            gang, obstacle
        ):
            # The gang is tried again at each decision, also while the obstacle has no room.
            reason = OVER_QUOTA if isinstance(obstacle, Queue) else OVER_LIMIT
            request.ask_class.log_search(request, {reason: 1}, now)
        elif isinstance(obstacle, Queue):
            obstacle.mark_over_quota(request.pending_class, now)
        else:
            self._pending_classes.mark_over_limit(request.pending_class, obstacle, now)

    def _plan(self, gang: AtomicGang) -> Plan | None:
        """Return a node for every member, or None; leaves no changes."""
        self._refusals, self._why = NOTHING_REFUSED, ""
        self._orders.predicates.begin()
        with self.domains.lifted(gang) as nodes:
            if gang.app.topology is not None:
                return self._plan_in_domains(gang, gang.app.topology)
            plan = self.planner.plan_on(gang, nodes) if nodes else None
        return plan or self._plan_anywhere(gang)

    def _plan_anywhere(self, gang: AtomicGang) -> Plan | None:
        """Return a node for every member of a gang without requirements, or None."""
        if self._lacks_room(gang):
            return None
        plan = self._plan_in_order(gang)
        if plan is None:
            plan = UnequalMembers(gang.members, [*self._partition.nodes.values()], self._orders).search()
        return plan

    def _plan_in_order(self, gang: AtomicGang) -> Plan | None:
        """Return a node for every member, as if placed one by one; None with the refusals."""
        plan: Plan = []
        orders, books = self._orders, self._orders.books
        try:
            for ask, count in gang.members:
                for _ in range(count):
                    node = orders.find(ask)
                    if node is None:
                        self._refusals = orders.predicates.refusals_of(ask)
                        return None
                    node.lend(ask.resource)
                    plan.append((ask, node))
                    if books is not None:
                        books.placed(ask, node)
                        orders.review_domains()
                    orders.predicates.prepare_again()
                    orders.follow(node, gained=False)
        finally:
            if books is not None:
                for ask, node in reversed(plan):
                    books.released(ask, node)
                orders.review_domains()
            for ask, node in plan:
                node.regain(ask.resource)
            for node in dict.fromkeys(node for _, node in plan):
                orders.follow(node, gained=True)
        return plan

    def _plan_in_domains(self, gang: AtomicGang, topology: GangTopology) -> Plan | None:
        """Return a node for every member as the topology requires, or None; leaves no changes."""
        planner = self.planner
        plan = planner.plan(gang, topology)
        if plan is None:
            self._why, self._refusals, due = planner.why, planner.refusals, planner.retry_at
            if due is not None and due != gang.relaxes_at:
                self._partition.timers.at(due, lambda: self._relax(gang))
            gang.relaxes_at = due
            if planner.unfinished and not gang.continues:
                gang.continues = True
                self._partition.timers.after(BETWEEN_TRIES, lambda: self._continue(gang))
        return plan

    def _continue(self, gang: AtomicGang) -> None:
        """Try the domains that the latest attempt for a gang has left."""
        gang.continues = False
        self._relax(gang)

    def _relax(self, gang: AtomicGang) -> None:
        """Try a gang again when a level that it prefers is given up."""
        if gang.request is not None:
            self._pending_classes.mark_schedulable(gang.request.ask_class)

    def _lacks_room(self, gang: AtomicGang) -> bool:
        """Return True if the total free room is too small for the members of some ask class.

        This precheck examines every node once per ask class, and only where that is cheaper than planning.
        """
        nodes, most = self._partition.nodes, NODES_PER_MEMBER * gang.size
        if len(nodes) > most:
            return False
        kinds = _by_ask_class(gang.members)
        if len(kinds) * len(nodes) > most:
            return False
        return any(_room_for(ask.ask_class, count, nodes) < count for ask, count in kinds)

    def _no_nodes(self, request: Ask, gang: AtomicGang) -> None:
        chain = self._orders.predicates
        if request.ask_class.unschedulable:
            self._report(gang, _ask_class_of(request).why)
            self._wait(gang)
        else:
            why = self._why or counted(self._refusals) or "the free resources are too fragmented"
            self._report(gang, why)
            self._wait(gang)
            if chain.personal:
                # The refusals are specific to these members, and say nothing about gangs of the same class.
                self._formation.form(gang, alone=True)
                assert gang.request is not None
                request = gang.request
            _ask_class_of(request).why = why
            request.ask_class.log_search(request, self._refusals, self._partition.clock.now())
            self._pending_classes.mark_unschedulable(request.ask_class)
            alone = gang.app.topology is not None and gang.app.topology.exclusive
            # Work may end on a node that is too small for members, but in their domain.
            if alone or chain.unsettled or (chain.has_domains and self._refusals):
                self._unschedulable_queue.mark_unschedulable(request.ask_class)
        if not self._waits_for_domain(gang):
            self._apply_backpressure(gang, self._root)

    # -- domains that drain -------------------------------------------------------------------------

    def _waits_for_domain(self, gang: AtomicGang) -> bool:
        """Return True if a domain is kept for an overdue gang, so that others are served elsewhere."""
        required = gang.app.topology is not None and gang.app.topology.required
        if not gang.overdue or not required or not self._may_ever_run(gang):
            return False
        if self.domains.of(gang) is None and not self.domains.is_full:
            drained = self._next_to_drain(gang)
            if drained is None:
                return False
            self.domains.keep(gang, *drained)
        elif self.domains.of(gang) is None:
            self.domains.queue[gang] = None
        gang.overdue = False
        self._formation.overdue.pop(gang, None)
        self._formation.set_force_visit(gang, wanted=False)
        return True

    def _next_to_drain(self, gang: AtomicGang) -> tuple[Plan, str, int | None] | None:
        """Return the places in the domain that drains first, its name, and when that is if known."""
        clearing = self.planner.clearing(gang)
        if clearing is None:
            return None
        running = [one for node in self._partition.nodes.values() for one in node.allocations.values()]
        running.sort(key=_end_of)
        units = [(one,) for one in running if one.app is not gang.app]

        def drains(ending: Sequence[tuple[Allocation, ...]], _: TreeDomain | None = None) -> tuple[int, int]:
            return max((_end_of(one) for (one,) in ending), default=0), len(ending)

        found = clearing.best(by_domain(units, clearing.domains), list, drains)
        if found is None or not found.units:
            return None
        start, _ = drains(found.units)
        label = self.planner.label(gang, found.domain)
        return found.plan, label, None if start == INT64_MAX else start

    def lend(self, ask: Ask) -> Node | None:
        """Return a node that is kept for a gang, and on which a request ends before the gang can start."""
        if not self.domains.by_gang:
            return None
        until = self._partition.clock.now() + ask.spec.execution_timeout
        fits, judge = ask.ask_class.fits, self._orders.predicates.judge
        lent = (node for node in self.domains.lendable(until) if node.schedulable)
        return next((node for node in lent if fits(node) and judge(ask, node) is None), None)

    # -- waiting ------------------------------------------------------------------------------------

    def _wait(self, gang: AtomicGang) -> None:
        gang.refusals = 0
        if gang.deadline is None and gang.may_hold_back:
            patience = self._partition.timeouts.gang_patience
            gang.deadline = self._partition.timers.after(patience, lambda: self._overdue(gang))

    def _overdue(self, gang: AtomicGang) -> None:
        self._formation.choose_members(gang)
        if gang.request is None:
            return
        gang.overdue = True
        self._formation.overdue[gang] = None
        self._formation.set_force_visit(gang, wanted=True)

    def _report(self, gang: AtomicGang, why: str) -> None:
        requests, request = self._partition.changes.requests, gang.request
        if gang.reported or request is None:
            return
        gang.reported = True
        if requests.wanted:
            size = f"{gang.size} members, {in_words(request.resource)}"
            never = ""
            if not self._may_ever_run(gang):
                total = in_words(sum_of(room for _, room in self._empty_rooms()))
                never = f"; with the current quotas and nodes ({total} in total) it cannot run at all"
            what = f"{gang.noun.capitalize()} of application '{gang.app.id}'"
            message = f"{what} ({size}) has no room: {why}{never}"
            requests.gang_unschedulable(request, message)


def _end_of(allocation: Allocation) -> int:
    """Return the latest end of an allocation (ns), as far as it is known."""
    limit = allocation.spec.execution_timeout
    return allocation.placed + limit if limit else INT64_MAX


def _ask_class_of(request: Ask) -> GangClass:
    """Return the ask class of the request that represents a gang."""
    ask_class = request.ask_class
    assert isinstance(ask_class, GangClass)
    return ask_class


def _by_ask_class(members: Members) -> Members:
    """Return the members grouped by ask class: the first ask of each class, with the total count."""
    kinds: dict[AskClass, tuple[Ask, int]] = {}
    for ask, count in members:
        first, before = kinds.get(ask.ask_class, (ask, 0))
        kinds[ask.ask_class] = first, before + count
    return list(kinds.values())


def take_replicas(room: Tally, ask: Ask, most: int) -> int:
    """Subtract up to `most` replicas of `ask` from `room`, as many as fit; returns their number."""
    count = _count_in(room, ask.ask_class, most)
    for name, amount in ask.ask_class.pairs:
        room[name] = room.get(name, 0) - amount * count
    return count


def _room_for(ask_class: AskClass, most: int, nodes: Mapping[str, Node]) -> int:
    """Return how many requests of `ask_class` fit the free nodes, up to `most`; predicates are ignored."""
    if ask_class.required:
        node = nodes.get(ask_class.required)
        return 0 if node is None else _count_in(node.available, ask_class, most)
    found = 0
    for node in nodes.values():
        if node.is_free:
            found += _count_in(node.available, ask_class, most - found)
            if found == most:
                break
    return found


def _count_in(room: Mapping[str, int], ask_class: AskClass, most: int) -> int:
    """Return how many requests of `ask_class` fit `room` together, up to `most`."""
    for name, amount in ask_class.pairs:
        most = min(most, max(0, room.get(name, 0)) // amount)
    return most
