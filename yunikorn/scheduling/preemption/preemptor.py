"""The preemptor: has requests that wait in vain take capacity back (facts §9.1-9.6).

It looks when there is nothing left to place, and only at queues with a request that is old enough: one
whose queue is guaranteed more than it has, or, where the queue's properties allow it, one that is more
important than what runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND
from yunikorn.objects.queue import Queue
from yunikorn.resources import INT64_MIN
from yunikorn.scheduling.preemption.candidates import across_queues, by_priority, candidates_on
from yunikorn.scheduling.preemption.entitlement import Entitlement, entitlements
from yunikorn.scheduling.preemption.evictor import Evictor
from yunikorn.scheduling.preemption.pool import Candidates, Pool
from yunikorn.scheduling.preemption.prospects import Prospects
from yunikorn.scheduling.preemption.required_node import victims_on
from yunikorn.scheduling.preemption.search import Plan, Search, least, youngest
from yunikorn.scheduling.preemption.standings import Standings, guarantees, quotas
from yunikorn.scheduling.preemption.watchlist import NEVER, SPACING, Watch, Watchlist
from yunikorn.states import STOPPED

if TYPE_CHECKING:
    from yunikorn.config.schema import PreemptionConfig
    from yunikorn.objects.application import Application
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.node import Node
    from yunikorn.objects.partition import Partition
    from yunikorn.objects.shape import Shape
    from yunikorn.scheduling.cycle import Cycle
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.preemption.pool import Entry, Grounds

ATTEMPTS = 10
"""Requests of one queue that are tried in one look (facts §9.2)."""
IN_VAIN = 20
"""Attempts in vain, of all queues, after which the queues not looked at yet wait for the next round."""
CROWDED = SECOND
"""Time between attempts while other requests wait for what they preempted, and may be in the way."""
HOPELESS = SECOND
"""Time between looks at whether a queue may hope again, once something has changed."""


class _Look:
    """One look at a queue: what was tried, and when the next is due."""

    def __init__(self, now: int, delay: int, changes: int) -> None:
        self._now = now
        self._delay = delay
        self._changes = changes
        self._left = ATTEMPTS
        self._failed: dict[Shape, int] = {}
        """The highest priority at which requests of a shape have failed: those of less would as well."""
        self.pools: dict[tuple[Shape, int, bool], Pool] = {}
        """By shape, priority, and whether a guarantee is called on."""
        self._candidates: dict[tuple[int, bool], Candidates] = {}
        """By priority, and whether a guarantee is called on."""
        self.success = False
        """Whether any attempt had victims."""
        self.ripe = NEVER
        self.retry = NEVER

    @property
    def in_vain(self) -> int:
        """How many attempts failed."""
        return len(self._failed)

    def may_try(self, ask: Ask) -> bool:
        """Whether it is the turn of `ask`; if not, it is of none behind it in its run."""
        of_age = ask.created + self._delay
        if of_age > self._now:
            self.ripe = min(self.ripe, of_age)
            return False
        if ask.shape in self._failed and self._failed[ask.shape] >= ask.priority:
            return False
        if ask.barred_until > self._now:
            self.passed_over(ask)
            return False
        if not self._left:
            # Where attempts succeed the next may follow at once: each look finds fewer that wait.
            self.ripe = min(self.ripe, self._now if self.success else self._now + SPACING)
            return False
        self._left -= 1
        return True

    def passed_over(self, ask: Ask) -> None:
        """Schedule a barred request for the end of its pause.

        A change that it has missed makes that look due by time. Left to `retry`, which may be now on behalf
        of another request, the same change would make looks due at this instant without end.
        """
        if ask.attempt_change != self._changes:
            self.ripe = min(self.ripe, ask.barred_until)
        else:
            self.retry = min(self.retry, ask.barred_until)

    def pool(self, ask: Ask, grounds: Grounds, guaranteed: bool) -> Pool:
        """The candidates for `ask` on these grounds, and perhaps more."""
        shared = ask.priority, guaranteed
        every = self._candidates.get(shared)
        if every is None or not every.covers(grounds):
            order = youngest if guaranteed else least
            every = self._candidates[shared] = Candidates(grounds, candidates_on(grounds), order)
        key = ask.shape, ask.priority, guaranteed
        found = self.pools.get(key)
        if found is None or not found.every.covers(grounds):
            found = self.pools[key] = Pool(every, ask.shape.pairs)
        return found

    def takes(self, plan: Plan, ask: Ask) -> None:
        """Victims go for `ask`: their nodes, and those that are or were kept for it, are others now."""
        nodes = [victim.node for victim in plan.victims]
        nodes += [node for node in (plan.node, ask.reserved) if node is not None]
        for pool in self.pools.values():
            pool.changed(nodes)

    def attempted(self, ask: Ask, until: int) -> None:
        """Bar a request from further attempts until then (ns)."""
        plight = ask.suffer()
        plight.barred_until, plight.attempt_change = until, self._changes
        self.retry = min(self.retry, until)

    def failed(self, ask: Ask, until: int) -> None:
        """Bar a request that was tried without success, and for this look all that would fail as well."""
        self.attempted(ask, until)
        self._failed[ask.shape] = max(ask.priority, self._failed.get(ask.shape, ask.priority))


class Preemptor:
    """Preemption for requests, in one partition."""

    def __init__(
        self, partition: Partition, cycle: Cycle, orders: NodeOrders, config: PreemptionConfig
    ) -> None:
        self.config = config
        self.evictor = Evictor(partition)
        self._partition = partition
        self._cycle = cycle
        self._orders = orders
        self._watchlist: Watchlist[Queue | str] = Watchlist(partition.timers, partition.ledger)
        self._required: dict[str, dict[Ask, None]] = {}
        """By id of the node: requests that belong there."""
        self._versions = 0

    # -- noticing -----------------------------------------------------------------------------------

    def notice(self, ask: Ask) -> None:
        """A request starts to wait, or has changed: then what was found out about it holds no more."""
        if ask.plight is not None:
            ask.plight.barred_until = INT64_MIN
        node_id = ask.shape.required
        if node_id:
            self._required.setdefault(node_id, {})[ask] = None
            self._watchlist.notice(node_id, self._partition.clock.now())
        elif self.config.enabled and ask.may_preempt:
            leaf = ask.app.chain[0]
            if leaf in self._watchlist or _has_cause(leaf):
                self._watchlist.notice(leaf, ask.created + leaf.settings.preemption_delay)

    def reconfigure(self, config: PreemptionConfig) -> None:
        """Guarantees and properties may be others now: look at all that waits anew."""
        self.config = config
        self._watchlist.clear()
        self._required.clear()
        for app in self._partition.applications.values():
            for ask in app.asks.values():
                if ask.pending:
                    self.notice(ask)

    # -- looking ------------------------------------------------------------------------------------

    def is_due(self) -> bool:
        """Whether another look is due at this instant: the last one reached its bounds."""
        return self._partition.state != STOPPED and self._watchlist.is_due(self._partition.clock.now())

    def look(self) -> None:
        """Nothing can be placed now: preempt where that is due."""
        if not self._watchlist or self._partition.state == STOPPED:
            return
        now = self._partition.clock.now()
        due = self._watchlist.due(now)
        prospects = Prospects(self._partition.shapes)
        in_vain = 0
        for watch in due:
            subject = watch.subject
            if isinstance(subject, Queue):
                if in_vain < IN_VAIN:
                    # The others stay due: whoever drives the scheduler comes back for them at once.
                    in_vain += self._look_at_queue(watch, subject, prospects, now)
            else:
                self._look_at_node(watch, subject, now)
        if due or self._watchlist.is_due(now):
            self._watchlist.settle()

    def _look_at_queue(self, watch: Watch[Queue | str], leaf: Queue, prospects: Prospects, now: int) -> int:
        """Preempt for requests of `leaf`; returns how many attempts were in vain."""
        if not leaf.waiting or not leaf.is_leaf:
            self._watchlist.drop(leaf)
            return 0
        if prospects.is_hopeless(leaf):
            self._watchlist.looked(watch, ripe=NEVER, retry=now + HOPELESS)
            return 0
        look = _Look(now, leaf.settings.preemption_delay, self._partition.ledger.changes)
        for run in self._runs(leaf):
            for ask in run:
                if not ask.may_preempt or ask.shape.required:
                    continue
                until = self.evictor.waits_until(ask)
                if until > now:
                    # No change need come by then: the node that was kept may be gone.
                    look.ripe = min(look.ripe, until)
                else:
                    if not look.may_try(ask):
                        break
                    if not self._attempt(ask, look):
                        look.failed(ask, now + (CROWDED if any(self.evictor.promised()) else SPACING))
                        break
                    look.success = True
                # Once it is served the next of its repeats may follow at once.
                look.retry = now
        if look.ripe == look.retry == NEVER:
            # No request may be tried now: the queue is stopped, or its applications may not start yet.
            look.retry = now + HOPELESS
        self._watchlist.looked(watch, ripe=look.ripe, retry=look.retry)
        return look.in_vain

    def _runs(self, leaf: Queue) -> Iterator[list[Ask]]:
        """The waiting requests in their order, those of one application and claim together."""
        if any(queue.state == STOPPED for queue in leaf.chain):
            return
        self._cycle.settle(leaf)
        for app in list(leaf.line):
            if _may_start(app):
                yield from app.requests.runs()
        for app in leaf.applications.values():
            if app.requests.parked and app.admitted and _may_start(app):
                yield from ([ask] for ask in app.asks.values() if ask.parked and not ask.held)

    def outlook(self, ask: Ask) -> int | None:
        """When preemption is first tried for a waiting request (ns); None when it is not.

        For whoever asks why it waits; changes nothing.
        """
        leaf, required = ask.app.chain[0], ask.shape.required
        if not (self.config.enabled and ask.may_preempt and _has_cause(leaf)) or required or ask.held:
            return None
        if not _may_start(ask.app) or not all(one.has_room(ask.shape.pairs) for one in ask.app.owner):
            return None
        return ask.created + leaf.settings.preemption_delay

    # -- attempts -----------------------------------------------------------------------------------

    def _attempt(self, ask: Ask, look: _Look) -> bool:
        """Find victims for `ask` and have them go; returns whether there were any."""
        plan = self._plan(ask, look)
        if plan is None:
            return False
        look.takes(plan, ask)
        if plan.node is not None:
            for other in [other for other in plan.node.reservations if other is not ask]:
                self._partition.ledger.kept.unreserve(other)
            if ask.reserved is not plan.node:
                self._cycle.reservations.reserve(ask, plan.node)
        self.evictor.evict_for(ask, plan.node, plan.victims)
        return True

    def _plan(self, ask: Ask, look: _Look) -> Plan | None:
        if not all(allowance.has_room(ask.shape.pairs) for allowance in ask.app.owner):
            return None
        leaf = ask.app.chain[0]
        standings = Standings(self.evictor.promised())
        has_room = self._has_room(ask)
        blocked = any(not queue.has_room(ask.shape.pairs) for queue in ask.app.chain)
        if has_room and not blocked:
            return None
        # Victims are others' work: they make no room within what the queue itself may have.
        own = [bound for bound in (*quotas(leaf), *guarantees(leaf)) if bound.queue is leaf]
        if standings.has_room(own, ask.shape.pairs):
            for entitled in entitlements(ask, standings):
                plan = self._search(ask, Standings(self.evictor.promised()), look, has_room, entitled)
                if plan is not None:
                    return plan
        settings = leaf.settings
        if settings.preempts_by_priority or settings.preempts_within:
            return self._search(ask, Standings(self.evictor.promised()), look, has_room, None)
        return None

    def _search(
        self, ask: Ask, standings: Standings, look: _Look, has_room: bool, entitled: Entitlement | None
    ) -> Plan | None:
        leaf, settings = ask.app.chain[0], ask.app.chain[0].settings
        bounds = quotas(leaf)
        if entitled is not None:
            grounds = across_queues(ask, standings, entitled)
            bounds += entitled.bounds
        else:
            grounds = by_priority(
                ask, standings, outside=settings.preempts_by_priority, inside=settings.preempts_within
            )
        standings.come(ask.app, ask.resource)
        pool = look.pool(ask, grounds, entitled is not None)

        def fits(node: Node) -> bool:
            return node.schedulable and node.could_host(ask.shape.pairs) and self._may_take_over(node, ask)

        def choices() -> list[Entry]:
            return pool.choices(self._partition.nodes.values(), fits)

        return Search(ask, standings, bounds, pool, grounds, self._accepts).plan(choices, has_room)

    def _has_room(self, ask: Ask) -> bool:
        if ask.shape.closed:
            return False
        chain = self._cycle.reservations.predicates
        chain.begin()
        return self._orders.of(ask.shape).find(ask.shape, ask, chain or None) is not None

    def _may_take_over(self, node: Node, ask: Ask) -> bool:
        return not node.reservations or all(
            other is ask
            or not (other.shape.required or other.priority > ask.priority or self.evictor.is_waiting(other))
            for other in node.reservations
        )

    def _accepts(self, ask: Ask, node: Node) -> bool:
        # The node is an imagined one: what is remembered of the real one does not hold for it.
        self._versions -= 1
        node.version = self._versions
        return self._cycle.reservations.predicates.judge(ask, node, reserve=True) is None

    # -- required nodes -----------------------------------------------------------------------------

    def _look_at_node(self, watch: Watch[Queue | str], node_id: str, now: int) -> None:
        asks = self._required.get(node_id, {})
        for ask in list(asks):
            if not ask.pending or ask.app.queue is None or ask.shape.required != node_id:
                del asks[ask]
        if not asks:
            self._required.pop(node_id, None)
            self._watchlist.drop(node_id)
            return
        node = self._partition.nodes.get(node_id)
        ready = [ask for ask in asks if not (ask.held or self.evictor.is_waiting(ask))]
        look = _Look(now, 0, self._partition.ledger.changes)
        if node is None or not ready:
            look.retry = now
        else:
            for ask in sorted(ready, key=lambda ask: ask.order):
                if now < ask.barred_until:
                    look.passed_over(ask)
                else:
                    self._make_room(ask, node)
                    look.attempted(ask, now + SPACING)
        self._watchlist.looked(watch, ripe=look.ripe, retry=look.retry)

    def _make_room(self, ask: Ask, node: Node) -> None:
        pairs, app = ask.shape.pairs, ask.app
        allowed = all(queue.has_room(pairs) and queue.state != STOPPED for queue in app.chain[:-1])
        if not allowed or not _may_start(app) or not all(one.has_room(pairs) for one in app.owner):
            return
        if not node.could_host(pairs) or ask.shape.fits(node):
            return
        rivals = [other for other in self.evictor.promised() if other.reserved is node]
        victims = victims_on(node, ask, rivals)
        if victims:
            self.evictor.evict_for(ask, node, victims, kind="daemon set ask")
        elif victims is None:
            message = (
                f"Unschedulable request '{ask.key}' with required node '{node.id}', "
                "no preemption victim found"
            )
            self._partition.journal.record(
                "REQUEST", ask.key, app.id, message=message, reason="PreemptionFailed"
            )


def _has_cause(leaf: Queue) -> bool:
    """Whether requests in `leaf` may preempt: they have a guarantee to call on, or its properties say so."""
    settings = leaf.settings
    if settings.preempts_by_priority or settings.preempts_within:
        return True
    return any(queue.guaranteed for queue in leaf.chain)


def _may_start(app: Application) -> bool:
    """Whether limits on running applications allow this one to hold something."""
    return not app.fresh or not (
        any(queue.full for queue in app.chain) or any(allowance.full for allowance in app.owner)
    )
