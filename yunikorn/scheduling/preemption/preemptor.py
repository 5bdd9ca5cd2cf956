"""Preemptor: preempts allocations for pending requests that cannot be placed.

The preemptor acts when nothing more can be placed, and only for queues with requests that have waited long
enough. Such a request must be covered by a guarantee of its queue, or, if the properties of the queue allow
it, have a higher priority than its victims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from yunikorn.api import Predicate, PreemptionCause
from yunikorn.clock import SECOND
from yunikorn.model.ask import BY_ARRIVAL, NodeOwner
from yunikorn.model.queue import Queue
from yunikorn.resources import INT64_MIN
from yunikorn.scheduling.obstacles import first_obstacle, obstacles, over_limit
from yunikorn.scheduling.preemption.candidate_store import CandidateStore, KeptPool
from yunikorn.scheduling.preemption.candidates import (
    Candidates,
    Pool,
    candidates_on,
    eligible_leaves,
    preempts_without_guarantee,
    rights,
    room_on,
    shortage,
)
from yunikorn.scheduling.preemption.gang_preemption import GangCandidates, GangVictims
from yunikorn.scheduling.preemption.schedule import (
    NEVER,
    RETRY_INTERVAL,
    Evictor,
    PreemptionSchedule,
    ScheduleEntry,
)
from yunikorn.scheduling.preemption.snapshot import (
    Entitlement,
    PreemptionPrecheck,
    PreemptionSnapshot,
    entitlements,
    quotas,
)
from yunikorn.scheduling.preemption.victims import PreemptionPlan, Search, victims_on, without
from yunikorn.states import STOPPED

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.config.queues_yaml import PreemptionConfig
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.node import Node
    from yunikorn.scheduling.cycle import Cycle
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.preemption.candidates import EligibleLeaves
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy

ATTEMPTS = 10
"""Maximum number of requests of one queue that are tried per round, as in YuniKorn 1.9."""
MOST_FAILURES = 20
"""Number of failed attempts, over all queues, after which the remaining queues wait for the next round."""
CROWDED_PAUSE = SECOND
"""Time (ns) between attempts while victims of other requests are still ending."""
PRECHECK_PAUSE = SECOND
"""Time (ns) before a queue without prospects is checked again after a change."""


class _Round:
    """State of one round for one queue: attempts made, and the time of the next round."""

    def __init__(self, now: int, delay: int, changes: int, policy: VictimPolicy) -> None:
        self._now = now
        self._delay = delay
        self._policy = policy
        self._changes = changes
        self._left = ATTEMPTS
        self._failed: dict[AskClass, int] = {}
        """Highest priority at which requests of an ask class failed; lower priorities would fail as well."""
        self._candidates: dict[tuple[int, str], list[Candidates]] = {}
        """Candidates in sets of eligible leaves, by priority and kind of cause."""
        self._units: dict[Hashable, GangCandidates] = {}
        self.success = False
        """True if any attempt found victims."""
        self.eligible_at = NEVER
        self.retry = NEVER

    @property
    def failures(self) -> int:
        """Number of failed attempts."""
        return len(self._failed)

    def is_early(self, ask: Ask) -> bool:
        """Return True if `ask` has not waited for the delay yet."""
        return ask.created + self._delay > self._now

    def may_try(self, ask: Ask) -> bool:
        """Return True if `ask` may be tried now; False also rules out the requests after it in its run."""
        eligible_at = ask.created + self._delay
        if eligible_at > self._now:
            self.eligible_at = min(self.eligible_at, eligible_at)
            return False
        if ask.ask_class in self._failed and self._failed[ask.ask_class] >= ask.priority:
            return False
        if ask.barred_until > self._now:
            self.passed_over(ask)
            return False
        if not self._left:
            # After a success the next round may follow at once: fewer requests wait each time.
            self.eligible_at = min(
                self.eligible_at, self._now if self.success else self._now + RETRY_INTERVAL
            )
            return False
        self._left -= 1
        return True

    def passed_over(self, ask: Ask) -> None:
        """Schedule a barred request for the end of its pause.

        If the request has missed a change, its next attempt is due by time. `retry` would be wrong then: it
        may be now because of another request, so that the same change would make rounds due at this instant
        endlessly.
        """
        if ask.attempt_change != self._changes:
            self.eligible_at = min(self.eligible_at, ask.barred_until)
        else:
            self.retry = min(self.retry, ask.barred_until)
            self._repeat(ask.barred_until)

    def _repeat(self, until: int) -> None:
        """Make a round due by time, not before `until`, if the answers of the policy depend on the time."""
        if self._policy.refresh:
            self.eligible_at = min(self.eligible_at, max(until, self._now + self._policy.refresh))

    def pool(self, ask: Ask, eligible: EligibleLeaves, cause: PreemptionCause) -> Pool:
        """Return a pool with at least the candidates for `ask` in the eligible leaves."""
        found = self._candidates.setdefault((ask.priority, cause.kind), [])
        every = next((one for one in found if one.covers(eligible)), None)
        if every is None:
            every = Candidates(eligible, self._policy, cause)
            found.append(every)
        return every.pool(ask.ask_class)

    def units(self, ask: Ask, eligible: EligibleLeaves, cause: PreemptionCause) -> GangCandidates:
        """Return the candidates for a gang in the eligible leaves."""
        own = ask.app if ask.app.chain[0] in eligible else None
        key = ask.priority, cause.kind, frozenset(eligible.items()), own
        if key not in self._units:
            self._units[key] = GangCandidates(ask, eligible, cause, self._policy)
        return self._units[key].refreshed()

    def takes(self, plan: PreemptionPlan, ask: Ask) -> None:
        """Update all pools after victims and a node were chosen for `ask`."""
        nodes = [victim.node for victim in plan.victims]
        for victim in plan.victims:
            if victim.hold is not None:
                # The other members of a gang that is withheld from the RM end with the victim.
                nodes += [one.node for one in victim.hold.members]
        nodes += [node for node in (plan.node, ask.reserved) if node is not None]
        for found in self._candidates.values():
            for every in found:
                every.changed(nodes)
        for units in self._units.values():
            units.is_stale = True

    def attempted(self, ask: Ask, until: int) -> None:
        """Bar a request from further attempts until the given time (ns)."""
        extras = ask.ensure_extras()
        extras.barred_until, extras.attempt_change = until, self._changes
        self.retry = min(self.retry, until)

    def failed(self, ask: Ask, until: int) -> None:
        """Bar a request that failed, and for this round all requests that would fail as well."""
        self.attempted(ask, until)
        self._repeat(until)
        self._failed[ask.ask_class] = max(ask.priority, self._failed.get(ask.ask_class, ask.priority))


class Preemptor:
    """Preemption for the requests of one partition."""

    def __init__(
        self,
        partition: Partition,
        cycle: Cycle,
        orders: NodeOrders,
        config: PreemptionConfig,
        policy: VictimPolicy,
    ) -> None:
        self.config = config
        self.policy = policy
        self.evictor = Evictor(partition)
        self._partition = partition
        self._kept = CandidateStore(policy, partition)
        self._cycle = cycle
        self._orders = orders
        self._schedule: PreemptionSchedule[Queue | str] = PreemptionSchedule(
            partition.timers, partition.accounting
        )
        self._required: dict[str, dict[Ask, None]] = {}
        """Requests with a required node, by node id."""
        self._versions = 0

    # -- noticing -----------------------------------------------------------------------------------

    def notice(self, ask: Ask) -> None:
        """Schedule an attempt for a new or changed request, and discard results of earlier attempts."""
        if ask.extras is not None:
            ask.extras.barred_until = INT64_MIN
        node_id = ask.pending_class.ask_class.required
        if node_id:
            self._required.setdefault(node_id, {})[ask] = None
            self._schedule.notice(node_id, self._partition.clock.now())
        elif self.config.enabled and ask.spec.may_preempt:
            leaf = ask.app.chain[0]
            if leaf in self._schedule.entries or leaf.may_preempt():
                self._schedule.notice(leaf, ask.created + leaf.settings.preemption_delay)

    def reconfigure(self, config: PreemptionConfig, policy: VictimPolicy) -> None:
        """Reschedule all pending requests after a change of guarantees, properties or the policy."""
        self.config, self.policy = config, policy
        self._kept = CandidateStore(policy, self._partition)
        self._schedule.clear()
        self._required.clear()
        for app in self._partition.applications.values():
            for ask in app.asks.values():
                if ask.pending:
                    self.notice(ask)

    # -- reviewing -----------------------------------------------------------------------------------

    def is_due(self) -> bool:
        """Return True if another round is due now, because the last one reached its limits."""
        if not self._schedule.entries or self._partition.state == STOPPED:
            return False
        return self._schedule.is_due(self._partition.clock.now())

    def review(self) -> None:
        """Preempt where that is due; called when nothing can be placed."""
        if not self._schedule.entries or self._partition.state == STOPPED:
            return
        now = self._partition.clock.now()
        due = self._schedule.due(now)
        precheck = PreemptionPrecheck(self._partition.ask_classes)
        failures = 0
        for entry in due:
            subject = entry.subject
            if isinstance(subject, Queue):
                if failures < MOST_FAILURES:
                    # The remaining queues stay due, and the caller returns at once for them.
                    failures += self._review_queue(entry, subject, precheck, now)
            else:
                self._review_node(entry, subject, now)
        if due or self._schedule.is_due(now):
            self._schedule.set_timer()

    def _review_queue(
        self, entry: ScheduleEntry[Queue | str], leaf: Queue, precheck: PreemptionPrecheck, now: int
    ) -> int:
        """Preempt for requests of `leaf`; returns the number of failed attempts."""
        if not leaf.waiting or not leaf.is_leaf:
            self._schedule.drop(leaf)
            return 0
        if precheck.cannot_help(leaf):
            self._schedule.reschedule(entry, eligible_at=NEVER, retry=now + PRECHECK_PAUSE)
            return 0
        changes = self._partition.accounting.change_count
        attempts = _Round(now, leaf.settings.preemption_delay, changes, self.policy)
        for run in self._runs(leaf):
            for ask in run:
                if not ask.may_preempt or ask.ask_class.required:
                    continue
                until = self.evictor.waits_until(ask)
                if until > now:
                    # The time counts as well as a change, because the reserved node may be gone by then.
                    attempts.eligible_at = min(attempts.eligible_at, until)
                else:
                    if not attempts.may_try(ask):
                        if ask.sort_key is BY_ARRIVAL or not attempts.is_early(ask):
                            break
                        continue  # the policy does not order by age, so that older ones may follow
                    if not self._measured_attempt(ask, attempts):
                        pause = CROWDED_PAUSE if any(self.evictor.promised()) else RETRY_INTERVAL
                        attempts.failed(ask, now + pause)
                        break
                    attempts.success = True
                # Once this replica is served, the next may follow at once.
                attempts.retry = now
        if attempts.eligible_at == attempts.retry == NEVER:
            # No request may be tried: the queue is stopped, or its applications may not start yet.
            attempts.retry = now + PRECHECK_PAUSE
        self._schedule.reschedule(entry, eligible_at=attempts.eligible_at, retry=attempts.retry)
        return attempts.failures

    def _runs(self, leaf: Queue) -> Iterator[list[Ask]]:
        """Yield the pending requests in order, grouped by application and pending class."""
        if any(queue.state == STOPPED for queue in leaf.chain):
            return
        self._cycle.reorder(leaf)
        for app in list(leaf.sorted_members):
            if app.max_apps_blocker is None:
                yield from app.requests.runs()
        for app in leaf.applications.values():
            if app.held is not None:
                continue
            if app.requests.unschedulable and app.admitted and app.max_apps_blocker is None:
                now = self._partition.clock.now()
                yield from (
                    [ask]
                    for ask in app.asks.values()
                    if ask.unschedulable and not ask.gang_blocked and not ask.is_paused(now)
                )

    def next_attempt_at(self, ask: Ask) -> int | None:
        """Return the time (ns) of the first attempt for a pending request; None if there is none.

        For explanations; changes nothing.
        """
        leaf, required = ask.app.chain[0], ask.ask_class.required
        if (
            not (self.config.enabled and ask.may_preempt and leaf.may_preempt())
            or required
            or ask.gang_blocked
        ):
            return None
        if ask.app.held is not None or ask.app.max_apps_blocker is not None or over_limit(ask):
            return None
        return ask.created + leaf.settings.preemption_delay

    def refusal(self, ask: Ask) -> str:
        """Return why a gang has no right to preempt that its queue gives to others; empty if it has.

        For explanations; changes nothing.
        """
        if ask.gang is None or not ask.app.chain[0].may_preempt():
            return ""
        topology, planner = ask.app.topology, self._cycle.atomic.planner
        if not self.config.enabled:
            return "preemption is disabled in the partition"
        if not ask.may_preempt:
            return "its members request not to preempt"
        if not rights(ask, PreemptionSnapshot(self.evictor.promised())):
            return "no guarantee covers all its members"
        if topology is not None and not planner.fits_empty(ask.gang, topology):
            return "no domain has room for it, even without other work"
        return ""

    def protections(self, ask: Ask) -> dict[str, int]:
        """Return the number of allocations that the policy protects from preemption for `ask`, by reason.

        For explanations; changes nothing.
        """
        snapshot = PreemptionSnapshot(self.evictor.promised())
        entitled: list[Entitlement | None] = [*entitlements(ask, snapshot)]
        if preempts_without_guarantee(ask.app.chain[0]):
            entitled.append(None)
        found: dict[str, str] = {}
        for each in entitled:
            eligible, cause = eligible_leaves(ask, snapshot, each)
            for one in candidates_on(eligible):
                reason = self.policy.protection(one, cause, quiet=True)
                if reason is not None:
                    found.setdefault(one.uuid, reason)
        return Counter(found.values())

    # -- attempts -----------------------------------------------------------------------------------

    def _measured_attempt(self, ask: Ask, attempts: _Round) -> bool:
        measurements = self._partition.measurements
        if measurements is None:
            return self._attempt(ask, attempts)
        start = measurements.stopwatch()
        try:
            return self._attempt(ask, attempts)
        finally:
            measurements.note_preemption(measurements.stopwatch() - start)

    def _attempt(self, ask: Ask, attempts: _Round) -> bool:
        """Find victims for `ask` and evict them; returns True if there were any."""
        plan = self._plan(ask, attempts)
        if plan is None:
            return False
        victims = self.policy.modes(plan.victims, plan.cause)
        if victims is None:
            return False
        attempts.takes(plan, ask)
        if plan.node is not None:
            for other in [other for other in plan.node.reservations if other is not ask]:
                self._partition.accounting.node_reservations.unreserve(other)
            self._cycle.reservations.keep_for_victims(ask, plan.node)
        self.evictor.evict_for(ask, plan.node, victims)
        if plan.places and ask.gang is not None:
            self._cycle.atomic.domains.keep(ask.gang, plan.places, plan.label, None, ask.eviction)
        return True

    def _plan(self, ask: Ask, attempts: _Round) -> PreemptionPlan | None:
        if over_limit(ask):
            return None
        snapshot = PreemptionSnapshot(self.evictor.promised())
        if ask.gang is not None:
            with self._cycle.atomic.domains.lifted(ask.gang, self._giving_way(ask)):
                return self._plan_for_gang(ask, ask.gang, snapshot, attempts)
        has_room = self._has_room(ask)
        if has_room and first_obstacle(ask) is None:
            return None
        if self._room_is_coming(ask, snapshot):
            return None
        fits = partial(self._may_host, ask)
        left: list[Search] = []
        for search in self._searches(ask, snapshot, attempts):
            plan = search.plan(fits, has_room)
            if plan is not None:
                return plan
            if search.spares:
                left.append(search)
        for search in left:
            plan = search.plan(fits, has_room, spared=True)
            if plan is not None:
                return plan
        books = self._orders.books
        if has_room or books is None or not books.commits or not ask.refusals:
            return None
        lacks = partial(self._lacks_what_victims_have, ask)
        plans = (
            each.plan_for_refused(lacks, spared=spared)
            for spared in (False, True)
            for each in self._searches(ask, snapshot, attempts)
        )
        return next((plan for plan in plans if plan is not None), None)

    def _lacks_what_victims_have(self, ask: Ask, node: Node) -> bool:
        """Return True if a node has room, and is refused by a predicate that gives things to allocations."""
        if not self._may_host(ask, node) or shortage(room_on(node), ask.ask_class.pairs):
            return False
        found = self._orders.predicates.evaluate(ask, node)
        return found is not None and type(found[0]).commit is not Predicate.commit

    def _searches(self, ask: Ask, snapshot: PreemptionSnapshot, attempts: _Round) -> Iterator[Search]:
        """Yield the searches for `ask` in the order in which to try them."""
        for one in rights(ask, snapshot):
            search = self._search(ask, snapshot.renewed(), attempts, one)
            if search is not None:
                yield search

    def _plan_for_gang(
        self, ask: Ask, gang: AtomicGang, snapshot: PreemptionSnapshot, attempts: _Round
    ) -> PreemptionPlan | None:
        """Return the victims that make room for all members of a gang in one domain, or None."""
        planner, leaf = self._cycle.atomic.planner, ask.app.chain[0]
        if gang.app.topology is not None and not planner.fits_empty(gang, gang.app.topology):
            return None
        for entitled in rights(ask, snapshot):
            eligible, cause = eligible_leaves(ask, snapshot, entitled)
            clearing = planner.clearing(gang) if eligible else None
            if clearing is None:
                continue
            bounds = [*quotas(leaf), *(entitled.bounds if entitled else ())]
            renewed = snapshot.renewed()
            renewed.come(ask.app, ask.resource)
            self._orders.predicates.begin()
            found = GangVictims(ask, attempts.units(ask, eligible, cause), renewed, bounds).find(clearing)
            if found is not None:
                victims, cleared = found
                label = planner.label(gang, cleared.domain)
                return PreemptionPlan(tuple(victims), None, cause, cleared.plan, label) if victims else None
        return None

    def _search(
        self, ask: Ask, snapshot: PreemptionSnapshot, attempts: _Round, entitled: Entitlement | None
    ) -> Search | None:
        leaf = ask.app.chain[0]
        eligible, cause = eligible_leaves(ask, snapshot, entitled)
        if not eligible:
            # Most searches end here where many queues wait and none has more than its guarantee.
            return None
        bounds = [*quotas(leaf), *(entitled.bounds if entitled else ())]
        snapshot.come(ask.app, ask.resource)
        pool: Pool | KeptPool | None = self._kept.find(leaf, cause, eligible, ask.ask_class.pairs)
        pool = pool or attempts.pool(ask, eligible, cause)
        return Search(ask, snapshot, bounds, pool, eligible, self._accepts, cause, self.policy)

    def _may_host(self, ask: Ask, node: Node) -> bool:
        """Return True if victims on `node` could make room for `ask`."""
        if node.reservations and not self._may_take_over(node, ask):
            return False
        ask_class = ask.pending_class.ask_class
        return node.schedulable and node.could_host(ask_class.pairs) and not ask_class.rules_out(node)

    def _room_is_coming(self, ask: Ask, snapshot: PreemptionSnapshot) -> bool:
        """Return True if `ask` will have room once allocations end that the RM is ending by itself.

        These may be victims of a scheduler that ended meanwhile: for the same request nothing more is
        preempted (`docs/decisions/archive/0146`).
        """
        ends, pairs = self._partition.accounting.ends.allocations, ask.ask_class.pairs
        if not ends or not snapshot.has_room(quotas(ask.app.chain[0]), pairs):
            return False
        nodes = {one.node.id: one.node for one in ends.values()}
        return any(
            self._may_host(ask, node) and not shortage(room_on(node), pairs) and self._accepts(ask, node, ())
            for node in nodes.values()
        )

    def _has_room(self, ask: Ask) -> bool:
        if ask.ask_class.unschedulable:
            return False
        self._orders.predicates.begin()
        return self._orders.find(ask) is not None

    def _may_take_over(self, node: Node, ask: Ask) -> bool:
        for other in node.reservations:
            if isinstance(other, NodeOwner):
                core, running = other.app.core, other.app.allocations.values()
                # Others may use the node only when all that runs of the gang has ended, which ends as one.
                if other.app is not ask.app and (core is None or not all(map(core.has, running))):
                    return False
            elif other is not ask and (
                other.ask_class.required or other.priority > ask.priority or self.evictor.is_waiting(other)
            ):
                return False
        return True

    def _giving_way(self, ask: Ask) -> list[Ask]:
        """Return the single requests that lose their reservations if `ask`, a gang, needs their nodes."""
        reserved = self._partition.accounting.node_reservations.nodes
        nodes = [node for node in reserved if self._may_take_over(node, ask)]
        return [one for node in nodes for one in node.reservations if one.gang is None]

    def _accepts(self, ask: Ask, node: Node, victims: Sequence[Allocation]) -> bool:
        """Return True if predicates accept `node` without `victims`, and without what is being released."""
        for owner in node.owners if node.reservations else ():
            if owner.app is not ask.app and all(one.app is not owner.app for one in victims):
                return False
        if self._orders.chain is None and self._orders.books is None:
            return True
        # The node is hypothetical: answers cached for the real node do not apply.
        rest = without(node, victims)
        self._versions -= 1
        rest.version = self._versions
        gone = [one for uuid, one in node.allocations.items() if uuid not in rest.allocations]
        return self._orders.judge_without(ask, rest, gone) is None

    # -- required nodes -----------------------------------------------------------------------------

    def _review_node(self, entry: ScheduleEntry[Queue | str], node_id: str, now: int) -> None:
        asks = self._required.get(node_id, {})
        for ask in list(asks):
            if not ask.pending or ask.app.queue is None or ask.ask_class.required != node_id:
                del asks[ask]
        if not asks:
            self._required.pop(node_id, None)
            self._schedule.drop(node_id)
            return
        node = self._partition.nodes.get(node_id)
        ready = [ask for ask in asks if not (ask.gang_blocked or self.evictor.is_waiting(ask))]
        attempts = _Round(now, 0, self._partition.accounting.change_count, self.policy)
        if node is None or not ready:
            attempts.retry = now
        else:
            # Requests of several applications, whose policies may order their requests differently.
            for ask in sorted(ready, key=lambda ask: (-ask.priority, ask.created, ask.arrival)):
                if now < ask.barred_until:
                    attempts.passed_over(ask)
                elif self._may_make_room(ask):
                    self._make_room(ask, node)
                    attempts.failed(ask, now + RETRY_INTERVAL)
                else:
                    # Nothing was searched: the next change may give the queue room.
                    attempts.retry = now
        self._schedule.reschedule(entry, eligible_at=attempts.eligible_at, retry=attempts.retry)

    def _may_make_room(self, ask: Ask) -> bool:
        """Return True if only its node keeps `ask`, which requires that node, from being placed."""
        app, root = ask.app, self._partition.queues.root
        if app.held is not None or app.max_apps_blocker is not None:
            return False
        if any(queue.state == STOPPED for queue in app.chain[:-1]):
            return False
        # Victims make room in the cluster as well, but quotas and limits must have room already.
        return all(obstacle is root for obstacle in obstacles(ask))

    def _make_room(self, ask: Ask, node: Node) -> None:
        pairs = ask.ask_class.pairs
        if not node.could_host(pairs) or ask.ask_class.fits(node):
            return
        rivals = [other for other in self.evictor.promised() if other.reserved is node]
        chosen, cause = victims_on(node, ask, self.policy, rivals)
        victims = None if chosen is None else self.policy.modes(chosen, cause)
        if victims:
            self.evictor.evict_for(ask, node, victims, kind="daemon set ask")
        elif victims is None:
            self._partition.changes.requests.not_preemptable(ask, node)
