"""The cycle: which request gets which node, one decision at a time.

What it means: take the queues, applications, requests and nodes in their policies' order at this very
moment, and place the first request that can be placed; repeat. How it is done: every level keeps its
order up to date (only what a decision touched moves) and knows, as bits of claims, what is
worth trying; what was tried in vain is out until something changes for it. Nothing to do is one AND.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from yunikorn.objects.shape import NOTHING_REFUSED
from yunikorn.resources import describe
from yunikorn.scheduling.atomic_gangs import AtomicGangs
from yunikorn.scheduling.backoff import BackOff
from yunikorn.scheduling.parking import Parking
from yunikorn.scheduling.predicate_chain import counted
from yunikorn.scheduling.replacement import Replacement
from yunikorn.scheduling.reservations import Reservations
from yunikorn.states import STOPPED

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.allowance import Allowance
    from yunikorn.objects.application import Application
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.line import Member
    from yunikorn.objects.node import Node
    from yunikorn.objects.partition import Partition
    from yunikorn.objects.plight import Plight
    from yunikorn.objects.queue import Queue
    from yunikorn.scheduling.member_order import MemberOrder
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.predicate_chain import PredicateChain


class Cycle:
    """Takes the decisions of one partition."""

    def __init__(self, partition: Partition, orders: NodeOrders, predicates: PredicateChain) -> None:
        self._partition = partition
        self._claims = partition.claims
        self._root = partition.queues.root
        self._cluster = partition.cluster
        self._ledger = partition.ledger
        self._kept = partition.ledger.kept
        self._outbox = partition.outbox
        self._clock = partition.clock
        self._orders = orders
        self._predicates = predicates if predicates else None
        self.reservations = Reservations(partition, orders, predicates)
        self.reservations.foremost = self.foremost
        self._held: dict[Queue, None] = {}
        """Queues that may keep applications out, by their policy."""
        self.parking = Parking(partition.ledger, partition.claims, partition.timers, predicates)
        self._gangs = partition.gangs
        self.replacement = Replacement(partition, orders, self.parking, predicates)
        self.atomic = AtomicGangs(partition, orders, self.parking, predicates)
        self.backoff = BackOff(partition)
        partition.queues.put_in_order = self.settle
        self._switches = 0
        """Stops and starts of the partition and its queues that are known here ..."""
        self._stopped = False
        """... and whether the whole of it is stopped by them."""

    def use(self, predicates: PredicateChain) -> None:
        """Ask these predicates from now on."""
        self._predicates = predicates if predicates else None
        self.reservations.predicates = predicates
        self.replacement.predicates = self.atomic.predicates = self.parking.predicates = predicates

    def decide(self) -> Allocation | None:
        """Place the next request; None when nothing can be placed now."""
        ledger, kept = self._ledger, self._kept
        if self._switches != self._cluster.switches:
            self._follow_switches()
        if self._stopped:
            return None
        if ledger.changed_nodes:
            self._orders.settle(ledger)
            if self.parking.by_due:
                self.parking.wake_due()
            if kept.bereft or kept.new_hosts:
                self.reservations.reconsider()
            if self._orders.regained:
                allocation = self.reservations.serve()
                if allocation is not None:
                    return allocation
        if self._gangs.unformed or self._gangs.ready:
            if self._gangs.unformed:
                self._gangs.form()
            allocation = self.replacement.decide() if self._gangs.ready else None
            if allocation is not None:
                return allocation
        if self._gangs.overdue:
            return self.atomic.guard(self._search)
        root = self._root
        wanted = root.bits & self._claims.open
        if wanted:
            allocation = self._descend(root, wanted)
            if allocation is not None:
                return allocation
        return self._search()

    def _follow_switches(self) -> None:
        """Queues, or the whole partition, were stopped or started."""
        self._stopped = STOPPED in (self._root.state, self._partition.state)
        if not self._stopped:
            self._switches = self._cluster.switches
            # Preemption may have been refused because of the stopped queue: the start counts as a change.
            self._ledger.changes += 1
            self.reservations.give_up_stopped()
            self.replacement.resume()

    def _search(self) -> Allocation | None:
        claims, root = self._claims, self._root
        while True:
            wanted = 0 if self.atomic.stops else root.bits & claims.open
            if not wanted:
                if self._ledger.kept.vacated and self.reservations.give_up_vacated():
                    return self.decide()
                if self._ledger.changed_nodes:
                    return self.decide()
                if self._held and not self.atomic.stops and self._review_held():
                    continue
                if not self.atomic.stops and self.parking.wake_idle():
                    if self._gangs.ready:
                        return self.decide()
                    continue
                return None
            allocation = self._descend(root, wanted)
            if allocation is not None:
                return allocation

    @property
    def ages(self) -> bool:
        """True if time alone may open a queue, because its policy excludes applications by ageing keys."""
        return bool(self._held) and any(leaf.held and leaf.order.ages for leaf in self._held)

    def _review_held(self) -> bool:
        """Review who takes part where keys changed though no application did; whether that found work."""
        now = self._partition.clock.now()
        for leaf in list(self._held):
            if not leaf.held:
                del self._held[leaf]
            elif leaf.line.version != leaf.cluster.version or leaf.order.would_be_due(now):
                self.settle(leaf)
        return bool(self._root.bits & self._claims.open)

    def _descend(self, queue: Queue, wanted: int) -> Allocation | None:
        """Serve the foremost application with something worth trying; None after learning of a dead end."""
        version = queue.cluster.version
        while True:
            order: MemberOrder = queue.order
            line, stale = queue.line, queue.stale
            if (
                line.version != version
                or order.ages
                or (stale and (len(stale) > 1 or not order.renew(line, stale)))
            ):
                self.settle(queue)
            ranks = line.blocks[0].ranks
            found: Any = ranks[0][-1] if ranks else None
            member: Member | None = found
            if member is None or not member.bits & wanted:
                member = found = line.first(wanted)
                if member is None:
                    queue.bits &= ~wanted
                    return None
            wanted &= member.bits
            if queue.is_leaf:
                return self._serve(found, wanted)
            queue = found

    def foremost(self, wanted: int) -> Ask | None:
        """The foremost request with any of the `wanted` bits that is worth trying; nothing is learnt."""
        queue = self._root
        wanted &= queue.bits
        while wanted:
            if queue.stale or queue.line.version != queue.cluster.version or queue.order.ages:
                self.settle(queue)
            member = queue.line.first(wanted)
            if member is None:
                return None
            wanted &= member.bits
            if queue.is_leaf:
                ask: Ask | None = member.requests.first(wanted >> 1 if member.fresh else wanted)
                return ask
            queue = member
        return None

    def settle(self, queue: Queue) -> None:
        """Bring the line of a queue up to date with what changed since it was last looked at."""
        order: MemberOrder = queue.order
        line, stale = queue.line, queue.stale
        if line.version != queue.cluster.version or order.is_due(self._partition.clock.now()):
            line.version = queue.cluster.version
            if order.lanes is not None:
                order.lanes.ask_again()
            members: Iterable[Any] = queue.applications.values() if queue.is_leaf else queue.children.values()
            for member in members:
                if not member.touched:
                    member.touched = True
                    stale.append(member)
        if stale:
            queue.stale = []
            if queue.is_leaf:
                self._settle_applications(queue, stale)
            else:
                self._settle_queues(queue, stale)

    def _settle_queues(self, parent: Queue, stale: list[Queue]) -> None:
        line, put = parent.line, parent.order.put
        for child in stale:
            child.touched = False
            if child.waits():
                put(line, child)
            else:
                line.remove(child)
                if not child.waiting:
                    # Out of the line it must not look as if it were worth trying: see `Queue.awaken`.
                    child.bits = 0

    def _settle_applications(self, leaf: Queue, stale: list[Application]) -> None:
        order: MemberOrder = leaf.order
        lanes, line, put = order.lanes, leaf.line, order.put
        for app in stale:
            app.touched = False
            here = app.queue is leaf
            if lanes is not None:
                if here:
                    lanes.update(app, order.lane_rank(app))
                else:
                    lanes.remove(app)
                lanes.keep_out(app, leaf)
            if here and app.waits():
                put(line, app)
            else:
                line.remove(app)
        if lanes is not None:
            for app in lanes.review():
                lanes.keep_out(app, leaf)
                if app.waits() and app.queue is leaf:
                    order.put(line, app)
                    leaf.awaken(app.bits)
                else:
                    line.remove(app)
            if leaf.held:
                self._held[leaf] = None

    def _serve(self, app: Application, wanted: int) -> Allocation | None:
        ask = app.requests.first(wanted >> 1 if app.fresh else wanted)
        if ask is None:
            # What it waits for is less than its bits say: it has learnt of a request that went.
            app.bits &= ~wanted
            return None
        plight, shape = ask.plight, ask.claim.shape
        if plight is not None and plight.gang is not None:
            return self.atomic.serve(ask, plight.gang)
        pairs = shape.pairs
        for queue in app.chain[0].capped:
            if not queue.has_room(pairs):
                queue.blocked(ask.claim)
                if queue is self._root:
                    self.reservations.consider(ask)
                if plight is None or not plight.over_quota:
                    self._report_quota(ask, queue)
                return None
        for allowance in app.owner:
            if not allowance.has_room(pairs):
                self._claims.exceed(ask.claim, allowance)
                if plight is None or not plight.over_limit:
                    self._report_limit(ask, allowance)
                return None
        if plight is not None and (plight.over_quota or plight.over_limit):
            self._report_room(ask, plight)
        chain = self._predicates
        if chain is not None:
            chain.begin()
        node = self._required_node(ask) if shape.required else self._orders.of(shape).find(shape, ask, chain)
        if node is None:
            self._give_up(ask)
            return None
        allocation = self._ledger.allocate(ask, node, self._clock.now())
        self._outbox.allocations.append(allocation)
        if ask.terms.run_limit:
            self._partition.watch(allocation)
        return allocation

    def _required_node(self, ask: Ask) -> Node | None:
        node = self._partition.nodes.get(ask.shape.required)
        # A node that is drained still takes what belongs on it and nowhere else (facts §7.7).
        if node is None or not ask.shape.fits(node):
            return None
        chain = self._predicates
        return node if chain is None or chain.refusal(ask, node) is None else None

    def _give_up(self, ask: Ask) -> None:
        """No node took it: remember that for its whole shape, or park this one ask."""
        self.backoff.missed(ask.app)
        chain = self._predicates
        refusals = NOTHING_REFUSED if chain is None else chain.refusals
        if chain is None or not refusals:
            ask.shape.refusals = NOTHING_REFUSED
            self._claims.close(ask.shape)
            self.reservations.consider(ask)
            return
        self._report(ask, refusals)
        if chain.personal:
            ask.suffer().refusals = refusals
            self._partition.ledger.backlog.park(ask)
            self.parking.park(ask)
        else:
            ask.shape.refusals = refusals
            self._claims.close(ask.shape)
            self.reservations.consider(ask)
            if chain.passing:
                self.parking.park(ask.shape)

    def _report_quota(self, ask: Ask, queue: Queue) -> None:
        ask.suffer().over_quota = True
        journal = self._partition.journal
        if journal.listening:
            requested, available = describe(ask.resource), describe(queue.headroom or {})
            message = (
                f"Request '{ask.key}' does not fit in queue '{queue.path}' "
                f"(requested {requested}, available {available})"
            )
            journal.record(
                "REQUEST", ask.key, ask.app.id, message=message, reason="InsufficientQueueResources"
            )

    def _report_limit(self, ask: Ask, allowance: Allowance) -> None:
        ask.suffer().over_limit = True
        journal = self._partition.journal
        if journal.listening:
            requested, available = describe(ask.resource), describe(allowance.headroom)
            message = (
                f"Request '{ask.key}' exceeds the available {allowance.kind} quota of {allowance.label} "
                f"(requested {requested}, available {available})"
            )
            reason = f"Insufficient{allowance.kind.capitalize()}Quota"
            journal.record("REQUEST", ask.key, ask.app.id, message=message, reason=reason)

    def _report_room(self, ask: Ask, plight: Plight) -> None:
        journal, app = self._partition.journal, ask.app
        if journal.listening and plight.over_quota:
            message = f"Request '{ask.key}' has become schedulable in queue '{app.chain[0].path}'"
            journal.record("REQUEST", ask.key, app.id, message=message, reason="QueueResourcesAvailable")
        if journal.listening and plight.over_limit:
            message = f"Request '{ask.key}' fits in the available user quota"
            journal.record("REQUEST", ask.key, app.id, message=message, reason="UserQuotaAvailable")
        plight.over_quota = plight.over_limit = False

    def _report(self, ask: Ask, refusals: Mapping[str, int]) -> None:
        journal = self._partition.journal
        if journal.listening and ask.tries == 0 and ask.shape.tries == 0:
            message = f"Unschedulable request '{ask.key}': {counted(refusals)}"
            journal.record("REQUEST", ask.key, ask.app.id, message=message, reason="Unschedulable")
