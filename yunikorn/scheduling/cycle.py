"""The scheduling cycle: selects the next request and its node, one decision at a time.

A decision takes the queues, applications, requests and nodes in the current order of their policies, and
places the first request that can be placed. Every level keeps its order up to date, so that only the members
changed by a decision move, and summarises its schedulable pending classes as bits. A request that could not
be placed clears its bits until a change makes it schedulable again. An idle cycle costs one AND of two
integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from yunikorn.model.ask_class import NOTHING_REFUSED
from yunikorn.model.queue import Queue
from yunikorn.resources import fits
from yunikorn.scheduling.allocator import Allocator
from yunikorn.scheduling.atomic_gangs import AtomicGangs
from yunikorn.scheduling.obstacles import Holder, first_obstacle, obstacles
from yunikorn.scheduling.predicate_chain import counted
from yunikorn.scheduling.replacement import Replacement
from yunikorn.scheduling.reservations.reservations import Reservations
from yunikorn.scheduling.unschedulable_queue import AppBackoff, UnschedulableQueue
from yunikorn.states import STOPPED

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.index.sorted_members import QueueMember
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask, AskExtras
    from yunikorn.model.gang import Members
    from yunikorn.scheduling.member_order import MemberOrder
    from yunikorn.scheduling.node_orders import NodeOrders


class Cycle:
    """Scheduling decisions of one partition."""

    def __init__(self, partition: Partition, orders: NodeOrders) -> None:
        self._partition = partition
        self._pending_classes = partition.pending_classes
        self._root = partition.queues.root
        self._cluster = partition.cluster
        self._accounting = partition.accounting
        self._node_reservations = partition.accounting.node_reservations
        self._clock = partition.clock
        self._requests = partition.changes.requests
        self._orders = orders
        self.allocator = Allocator(partition)
        self.reservations = Reservations(partition, orders, self.allocator, self.foremost, self.reorder)
        self._excluding: dict[Queue, None] = {}
        """Leaf queues whose policy may exclude applications (an ordered set)."""
        self.unschedulable_queue = UnschedulableQueue(
            partition.accounting, partition.pending_classes, partition.timers, orders
        )
        self._gangs = partition.gangs
        self._formation = partition.gangs.formation
        self.replacement = Replacement(partition, orders, self.unschedulable_queue)
        self.atomic = AtomicGangs(partition, orders, self.allocator, self.unschedulable_queue)
        self.backoff = AppBackoff(partition)
        partition.changes.readers.members_left.append(self.reorder)
        self._stop_starts = 0
        """Value of `ClusterSize.stop_starts` that this cycle has applied."""
        self._stopped = False
        """True if the partition or the root queue is stopped."""

    def decide(self) -> Allocation | None:
        """Place the next request; None when nothing can be placed now."""
        accounting, node_reservations = self._accounting, self._node_reservations
        if self._stop_starts != self._cluster.stop_starts:
            self._follow_stop_starts()
        if self._stopped:
            return None
        if accounting.changed_nodes:
            self._orders.reorder(accounting)
            if self.unschedulable_queue.by_due:
                self.unschedulable_queue.activate_due()
            if node_reservations.lost or node_reservations.changed_hosts:
                self.reservations.reconsider()
            if self._orders.regained:
                allocation = self.reservations.serve()
                if allocation is not None:
                    return allocation
        if self._formation.unformed or self._gangs.ready:
            if self._formation.unformed:
                self._formation.form_again()
            allocation = self.replacement.decide() if self._gangs.ready else None
            if allocation is not None:
                return allocation
        if self._formation.overdue:
            return self.atomic.guard(self._search)
        root = self._root
        wanted = root.bits & self._pending_classes.schedulable
        if wanted:
            allocation = self._descend(root, wanted)
            if allocation is not None:
                return allocation
        return self._search()

    def _follow_stop_starts(self) -> None:
        """Apply a stop or start of queues or of the partition."""
        self._stopped = STOPPED in (self._root.state, self._partition.state)
        if not self._stopped:
            self._stop_starts = self._cluster.stop_starts
            # Preemption may have been refused because of the stopped queue: the start counts as a change.
            self._accounting.change_count += 1
            self.reservations.give_up_stopped()
            self.replacement.resume()

    def _search(self) -> Allocation | None:
        pending_classes, root = self._pending_classes, self._root
        while True:
            wanted = 0 if self.atomic.stops else root.bits & pending_classes.schedulable
            if not wanted:
                if self.reservations.restricted:
                    self.atomic.look(self.reservations.look)
                if self._accounting.node_reservations.inheritable and self.reservations.give_up_inheritable():
                    return self._decide_again()
                if self._accounting.changed_nodes:
                    return self._decide_again()
                if self._excluding and not self.atomic.stops and self._review_excluded():
                    continue
                unschedulable = self.unschedulable_queue
                if unschedulable.by_age and not self.atomic.stops and unschedulable.activate_idle():
                    if self._gangs.ready:
                        return self._decide_again()
                    continue
                return None
            allocation = self._descend(root, wanted)
            if allocation is not None:
                return allocation

    def _decide_again(self) -> Allocation | None:
        """Decide from the beginning after a change of nodes, which may let an overdue gang run."""
        self.atomic.release()
        return self.decide()

    @property
    def has_backpressure(self) -> bool:
        """True if an overdue gang keeps all requests after it from being tried."""
        return bool(self._formation.overdue) and self.atomic.stopped

    @property
    def is_excluding(self) -> bool:
        """True if the policy of a leaf queue excludes applications now."""
        return any(leaf.policy_excluded for leaf in self._excluding)

    @property
    def is_time_dependent(self) -> bool:
        """True if the passage of time alone may change which applications a policy excludes."""
        return bool(self._excluding) and any(
            leaf.policy_excluded and leaf.order.time_dependent for leaf in self._excluding
        )

    def _review_excluded(self) -> bool:
        """Resort leaves that exclude applications and whose keys may have changed.

        Returns True if requests appeared that can be placed, or that may reserve a node.

        Keys may change with time or with usage elsewhere, without a change of the applications themselves.
        """
        now = self._partition.clock.now()
        for leaf in list(self._excluding):
            if not leaf.policy_excluded:
                del self._excluding[leaf]
            elif leaf.sorted_members.version != leaf.cluster.version or leaf.order.would_be_due(now):
                self.reorder(leaf)
        if self.reservations.due:
            return True
        # Not by the bits of root alone: a look at silenced queues leaves theirs in the queues above, and sets
        # them again as soon as a dead end has cleared them.
        return self.foremost(self._pending_classes.schedulable) is not None

    def _descend(self, queue: Queue, wanted: int) -> Allocation | None:
        """Serve the first application with schedulable `wanted` bits; None after a dead end cleared bits."""
        version = queue.cluster.version
        while True:
            order: MemberOrder = queue.order
            sorted_members, dirty = queue.sorted_members, queue.dirty
            if (
                sorted_members.version != version
                or order.time_dependent
                or (dirty and (len(dirty) > 1 or not order.renew(sorted_members, dirty)))
            ):
                self.reorder(queue)
            sort_keys = sorted_members.blocks[0].entries
            found: Any = sort_keys[0][-1] if sort_keys else None
            member: QueueMember | None = found
            if member is None or not member.bits & wanted:
                member = found = None if member is None else sorted_members.first(wanted)
                if member is None:
                    queue.bits &= ~wanted
                    return None
            wanted &= member.bits
            if queue.is_leaf:
                return self._serve(found, wanted)
            queue = found

    def foremost(self, wanted: int) -> Ask | None:
        """Return the first request with any of the `wanted` bits; leaves all schedulable bits as they are."""
        queue = root = self._root
        following = wanted & root.bits
        while following:
            if (
                queue.dirty
                or queue.sorted_members.version != queue.cluster.version
                or queue.order.time_dependent
            ):
                self.reorder(queue)
            member = queue.sorted_members.first(following)
            if member is None:
                # A dead end: the requests that the bits of the queue stood for are gone.
                queue.bits &= ~following
                queue, following = root, wanted & root.bits
                continue
            following &= member.bits
            if queue.is_leaf:
                ask: Ask | None = member.requests.first(following >> 1 if member.not_started else following)
                return ask
            queue = member
        return None

    def waiting(self, queue: Queue) -> Iterator[Members]:
        """Yield what waits in a queue within its quotas and limits, in order: gangs, and single requests."""
        for member in [*queue.sorted_members]:
            if not queue.is_leaf:
                yield from self.waiting(member)
                continue
            bits = member.requests.bits
            while (ask := member.requests.first(bits)) is not None:
                bits &= ~ask.pending_class.bit
                if next(obstacles(ask, to_start=True), self._root) is self._root:
                    yield [(ask, 1)] if ask.gang is None else ask.gang.members

    def reorder(self, queue: Queue) -> None:
        """Bring the order of a queue's members up to date with all changes since the last call."""
        order: MemberOrder = queue.order
        sorted_members, dirty = queue.sorted_members, queue.dirty
        if sorted_members.version != queue.cluster.version or (
            order.time_dependent and order.is_due(self._clock.now())
        ):
            sorted_members.version = queue.cluster.version
            if order.admission_classes is not None:
                order.admission_classes.ask_again()
            members: Iterable[Any] = queue.applications.values() if queue.is_leaf else queue.children.values()
            for member in members:
                if not member.is_dirty:
                    member.is_dirty = True
                    dirty.append(member)
        if dirty:
            queue.dirty = []
            if queue.is_leaf:
                self._resort_applications(queue, dirty)
            else:
                self._resort_queues(queue, dirty)

    def _resort_queues(self, parent: Queue, dirty: list[Queue]) -> None:
        sorted_members, put = parent.sorted_members, parent.order.put
        for child in dirty:
            child.is_dirty = False
            if child.is_schedulable():
                put(sorted_members, child)
            else:
                sorted_members.remove(child)
                if not child.waiting:
                    # A member outside the order must not look schedulable: see `Queue.activate`.
                    child.bits = 0

    def _resort_applications(self, leaf: Queue, dirty: list[Application]) -> None:
        order: MemberOrder = leaf.order
        admission_classes, sorted_members, put = order.admission_classes, leaf.sorted_members, order.put
        subjects = order.subjects
        for app in dirty:
            app.is_dirty = False
            # A held application takes no place in its admission class.
            here = app.queue is leaf and app.held is None
            if subjects is not None:
                if here:
                    subjects.watch(app)
                else:
                    subjects.forget(app)
            if admission_classes is not None:
                if here:
                    admission_classes.update(app, order.admission_key(app))
                else:
                    admission_classes.remove(app)
                admission_classes.exclude(app, leaf)
            if here and app.is_schedulable():
                put(sorted_members, app)
            else:
                sorted_members.remove(app)
        if admission_classes is not None:
            for app in admission_classes.review():
                admission_classes.exclude(app, leaf)
                if app.is_schedulable() and app.queue is leaf:
                    order.put(sorted_members, app)
                    leaf.activate(app.bits)
                    for look_again in self._partition.changes.readers.more_to_try:
                        look_again()
                else:
                    sorted_members.remove(app)
            if leaf.policy_excluded:
                self._excluding[leaf] = None

    def _serve(self, app: Application, wanted: int) -> Allocation | None:
        ask = app.requests.first(wanted >> 1 if app.not_started else wanted)
        if ask is None:
            # The bits of the application are out of date: the request they stood for is gone.
            app.bits &= ~wanted
            return None
        extras = ask.extras
        if extras is not None:
            if ask.pending_class.bit & self._pending_classes.growth and (first := self._before_growth(app)):
                return self._descend(app.chain[0], first)
            if extras.gang is not None:
                return self.atomic.serve(ask, extras.gang)
        obstacle = first_obstacle(ask)
        if obstacle is not None:
            self._block(ask, obstacle)
            return None
        if extras is not None and (extras.quota_reported or extras.limit_reported):
            self._report_room(ask, extras)
        chain = self._orders.chain
        if chain is not None:
            chain.begin()
        node = self._orders.find(ask)
        if node is None and ask.spec.execution_timeout:
            node = self.atomic.lend(ask)
        if node is None:
            self._give_up(ask)
            return None
        allocation = self.allocator.allocate(ask, node, self._clock.now())
        if ask.spec.execution_timeout and allocation is not None:
            self._partition.watch(allocation)
        return allocation

    def _before_growth(self, app: Application) -> int:
        """Return the bits of requests that precede the growth of a gang, as other gangs of its leaf wait."""
        leaf, pending_classes, own = app.chain[0], self._pending_classes, app.atomic
        wanted = pending_classes.schedulable & ~pending_classes.growth
        for queue in app.chain:
            wanted &= queue.bits
        gang = leaf.sorted_members.first(wanted & pending_classes.gangs)
        if gang is None or own is None or not fits(app.allocated, own.total):
            # A member of the size may have ended since the request came, which replaces that member now.
            return 0
        return 0 if leaf.order.priority_first and gang.priority < app.priority else wanted

    def _block(self, ask: Ask, obstacle: Holder) -> None:
        """Do not try the pending class again before the obstacle has room; report the obstacle once."""
        if isinstance(obstacle, Queue):
            obstacle.mark_over_quota(ask.pending_class, self._clock.now())
            if obstacle is self._root:
                self.reservations.consider(ask)
            if not ask.quota_reported:
                ask.ensure_extras().quota_reported = True
                self._requests.over_quota(ask, obstacle)
        else:
            self._pending_classes.mark_over_limit(ask.pending_class, obstacle, self._clock.now())
            if not ask.limit_reported:
                ask.ensure_extras().limit_reported = True
                self._requests.over_limit(ask, obstacle)

    def _give_up(self, ask: Ask) -> None:
        """Mark the ask class, or only this ask, unschedulable after no node accepted the request."""
        self.backoff.record_miss(ask.app)
        chain = self._orders.chain
        refusals = NOTHING_REFUSED if chain is None else chain.refusals_of(ask)
        now = self._clock.now()
        if chain is None or not refusals:
            ask.ask_class.refusals = NOTHING_REFUSED
            own = None if ask.extras is None else ask.extras.log
            if own is None:
                ask.ask_class.log_search(ask, NOTHING_REFUSED, now)
            else:
                own.repeat(now)
            self._pending_classes.mark_unschedulable(ask.ask_class)
            self.reservations.consider(ask)
            if ask.app.topology is not None and ask.app.topology.exclusive:
                # Work may end on nodes that are too small for the request, but in its domain.
                self.unschedulable_queue.mark_unschedulable(ask.ask_class)
            return
        self._report(ask, refusals)
        if chain.personal:
            ask.ensure_extras().refuse(refusals, now)
            self._partition.accounting.pending_accounting.mark_unschedulable(ask)
            self.unschedulable_queue.mark_unschedulable(ask)
        else:
            ask.ask_class.refusals = refusals
            ask.ask_class.log_search(ask, refusals, now)
            self._pending_classes.mark_unschedulable(ask.ask_class)
            self.reservations.consider(ask)
            if chain.passing:
                self.unschedulable_queue.mark_unschedulable(ask.ask_class)

    def _report_room(self, ask: Ask, extras: AskExtras) -> None:
        if extras.quota_reported:
            self._requests.in_quota_again(ask)
        if extras.limit_reported:
            self._requests.in_limit_again(ask)
        extras.quota_reported = extras.limit_reported = False

    def _report(self, ask: Ask, refusals: Mapping[str, int]) -> None:
        if self._requests.wanted and ask.tries == 0 and ask.ask_class.tries == 0:
            self._requests.unschedulable(ask, counted(refusals))
