"""Pending accounting: requests that wait and their resources, per application and queue.

Every change updates the application and all its queues together, and marks each changed object as dirty, so
that the scheduling layer can update its orders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from yunikorn.accounting.booking import book
from yunikorn.model.allocation import TerminationType
from yunikorn.model.application import REACTIVATED
from yunikorn.resources import INT32_MIN, grow
from yunikorn.states import ASK, COMPLETING, PENDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yunikorn.accounting.changes import Changes
    from yunikorn.accounting.key_indexes import AskIndex
    from yunikorn.accounting.reservation_accounting import ReservationAccounting
    from yunikorn.accounting.user_group_limits import UserGroupLimits
    from yunikorn.model.application import Application, ApplicationStates
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import PendingClass, PendingClasses
    from yunikorn.resources import Tally


class PendingGangs(Protocol):
    """Gangs, as pending requests concern them."""

    def is_gang_blocked(self, ask: Ask) -> bool:
        """Return True if an ask of a task group must not be scheduled because of its gang."""
        ...

    def blocked_added(self, ask: Ask) -> None:
        """Queue a gang-blocked ask to replace a placeholder."""
        ...

    def count(self, ask: Ask, difference: int, *, dropped: bool = False) -> None:
        """Add `difference` to the pending replicas of an ask with a task group."""
        ...

    def forget(self, ask: Ask) -> None:
        """Undo the outstanding replacements for a dropped ask."""
        ...


class PendingAccounting:
    """Waiting requests of one partition."""

    def __init__(
        self,
        pending_classes: PendingClasses,
        usage: UserGroupLimits,
        node_reservations: ReservationAccounting,
        changes: Changes,
        states: ApplicationStates,
    ) -> None:
        self.pending_classes = pending_classes
        self.usage = usage
        self.node_reservations = node_reservations
        self._changes, self._states = changes, states
        self.gangs: PendingGangs
        """Set by the partition."""
        self.index: AskIndex | None = None
        """Index of applications by ask key; None until the first look-up without an application."""

    def add_all(self, app: Application, asks: Sequence[Ask], *, plain: bool) -> None:
        """Account for new asks of an application, with their pending replicas.

        With `plain`, no ask has a task group, whose gang may block it.
        """
        if len(asks) == 1:
            app.submitted = min(app.submitted, asks[0].created)
        else:
            app.submitted = min(app.submitted, min([ask.created for ask in asks]))
        if not plain and any([ask.spec.task_group for ask in asks]):
            self._add_members(app, asks)
            return
        if not app.requests.any_wait:
            _count(app, 1)
        app.requests.add_all(asks)
        priority = asks[0].priority if len(asks) == 1 else max([ask.priority for ask in asks])
        if priority > app.priority:
            app.set_priority(priority)
        replicas: dict[PendingClass, int] = {}
        for ask in asks:
            replicas[ask.pending_class] = replicas.get(ask.pending_class, 0) + ask.pending
        bits = 0
        demand: Tally = {}
        for pending_class, count in replicas.items():
            bits |= pending_class.bit
            for name, amount in pending_class.ask_class.pairs:
                demand[name] = demand.get(name, 0) + amount * count
        app.activate(bits)
        book(app, demand, pending=1)
        self._added(app, asks)

    def _add_members(self, app: Application, asks: Sequence[Ask]) -> None:
        """Account for new asks one by one, because gangs may block the next ones; book them together."""
        demand: Tally = {}
        for ask in asks:
            self._queue_up(ask)
            grow(demand, ask.resource, ask.pending)
            if ask.spec.task_group:
                self.gangs.count(ask, ask.pending)
            self._added(app, [ask])
        book(app, demand, pending=1)

    def _added(self, app: Application, asks: Sequence[Ask]) -> None:
        """Update what depends on new asks that wait."""
        if app.state in REACTIVATED:
            self._states.advance(app, "ask added")
        if self.index is not None:
            for ask in asks:
                self.index.add(app, ask.key)
        changes = self._changes
        if changes.state_reader is not None or changes.events.wants_asks:
            changes.asks_added(app, asks)

    def _queue_up(self, ask: Ask) -> None:
        app = ask.app
        if not app.requests.any_wait:
            _count(app, 1)
        if ask.task_group and self.gangs.is_gang_blocked(ask):
            extras = ask.ensure_extras()
            extras.gang_blocked = extras.unschedulable = True
            app.requests.keep(ask)
            self.gangs.blocked_added(ask)
        else:
            app.requests.add(ask)
        if ask.priority > app.priority:
            app.set_priority(ask.priority)
        if not ask.gang_blocked:
            app.activate(ask.pending_class.bit)

    def unqueue(self, ask: Ask) -> None:
        """Remove an ask from the waiting requests."""
        app = ask.app
        if self._changes.state_reader is not None:
            self._changes.pending_ended(ask)
        extras = ask.extras
        if extras is not None and extras.reserved is not None:
            self.node_reservations.inheritable[ask] = None
        if extras is None or not extras.unschedulable:
            follower = app.requests.remove(ask)
        else:
            extras.unschedulable = extras.gang_blocked = False
            app.requests.forget_unschedulable(ask)
            follower = None
        pending_class = ask.pending_class
        if pending_class.asks > 1:
            pending_class.asks -= 1
        else:
            self.pending_classes.leave(pending_class)
        if follower is None:
            app.learn_bits()
            if not app.requests.any_wait:
                app.set_priority(INT32_MIN)
                self._nothing_waits(app)
            elif ask.priority >= app.priority:
                app.reprioritise()
        elif ask.priority >= app.priority and ask.priority != follower.priority:
            app.reprioritise()

    def _nothing_waits(self, app: Application) -> None:
        """Update the counts of an application that has no waiting requests any more."""
        _count(app, -1)
        if app.counted_by_limits:
            self.usage.recount(app)

    def mark_unschedulable(self, ask: Ask) -> None:
        """Keep a waiting ask out of scheduling until `activate`."""
        ask.ensure_extras().unschedulable = True
        app = ask.app
        app.requests.mark_unschedulable(ask)
        app.learn_bits()
        app.mark_dirty()

    def activate(self, ask: Ask) -> None:
        """Make an unschedulable ask schedulable again."""
        if ask.gang_blocked:
            self.gangs.blocked_added(ask)
        elif ask.unschedulable:
            ask.ensure_extras().unschedulable = False
            ask.app.requests.forget_unschedulable(ask)
            ask.app.requests.add(ask)
            ask.app.activate(ask.pending_class.bit)
            ask.app.mark_dirty()

    def block_for_gang(self, ask: Ask) -> None:
        """Keep a waiting ask out of scheduling because of its gang, until `unblock_for_gang`."""
        if not ask.unschedulable:
            self.mark_unschedulable(ask)
        ask.ensure_extras().gang_blocked = True
        if ask.reserved is not None:
            self.node_reservations.unreserve(ask)

    def unblock_for_gang(self, ask: Ask) -> None:
        """Make a gang-blocked ask an ordinary one again."""
        ask.ensure_extras().gang_blocked = False
        self.activate(ask)

    def offer(self, request: Ask) -> None:
        """Add a request that represents an atomic gang."""
        app = request.app
        if not app.requests.any_wait:
            _count(app, 1)
        app.requests.add(request)
        self.pending_classes.wait(request.pending_class)
        app.reprioritise()
        app.activate(request.pending_class.bit)
        app.mark_dirty()

    def withdraw(self, request: Ask) -> None:
        """Remove a request that represents an atomic gang."""
        app = request.app
        if request.unschedulable:
            request.ensure_extras().unschedulable = False
            app.requests.forget_unschedulable(request)
        else:
            app.requests.remove(request)
        if not app.requests.any_wait:
            self._nothing_waits(app)
        self.pending_classes.leave(request.pending_class)
        app.reprioritise()
        app.learn_bits()
        app.mark_dirty()

    def reshape(self, ask: Ask, pending_class: PendingClass) -> None:
        """Move a waiting ask to another pending class, and make the ask schedulable."""
        if ask.gang_blocked:
            self.pending_classes.leave(ask.pending_class)
            ask.move_to(pending_class)
            self.pending_classes.wait(pending_class)
            return
        if ask.unschedulable:
            self.activate(ask)
        app = ask.app
        app.requests.remove(ask)
        if ask.reserved is not None:
            self.node_reservations.unreserve(ask)
        self.pending_classes.leave(ask.pending_class)
        ask.move_to(pending_class)
        app.requests.add(ask)
        self.pending_classes.wait(pending_class)
        app.learn_bits()
        app.activate(pending_class.bit)
        app.mark_dirty()

    def wait_for_answer(self, app: Application) -> None:
        """Count an ask that a submit policy is asked about; the application continues for it."""
        app.unanswered += 1
        if app.state == COMPLETING:
            self._states.advance(app, "ask added")

    def all_answered(self, app: Application) -> None:
        """Update an application of which no ask waits for an answer any more."""
        self.usage.recount(app)
        self._states.conclude(app)

    def change_pending(self, ask: Ask, pending: int) -> None:
        """Set the number of pending replicas; existing allocations stay (docs/decisions/archive/0028)."""
        difference = pending - ask.pending
        if not difference:
            return
        if not ask.pending:
            ask.state = ASK.next(ask.label, ask.state, "ask")
            ask.pending = pending
            self.pending_classes.wait(ask.pending_class)
            self._queue_up(ask)
            self._changes.pending_again(ask)
            if ask.app.state in REACTIVATED:
                self._states.advance(ask.app, "ask added")
        elif not pending:
            ask.pending = 0
            self.unqueue(ask)
        ask.pending = pending
        book(ask.app, ask.resource, pending=difference)
        if ask.task_group:
            self.gangs.count(ask, difference)

    def adopt(self, ask: Ask) -> None:
        """Enter an ask, without pending replicas, for an allocation whose own ask is unknown."""
        ask.state = ASK.next(ask.label, ASK.next(ask.label, ask.state, "ask"), "allocate")
        ask.app.asks[ask.key] = ask
        if self.index is not None:
            self.index.add(ask.app, ask.key)

    def restore(self, ask: Ask) -> None:
        """Make a replica pending again whose placement was taken back; the counts of its gang include it."""
        if ask.pending:
            ask.pending += 1
        else:
            ask.state = ASK.next(ask.label, ask.state, "ask")
            ask.pending = 1
            self.pending_classes.wait(ask.pending_class)
            self._queue_up(ask)
            self._changes.pending_again(ask)
        book(ask.app, ask.resource, pending=1)

    def drop(
        self, ask: Ask, termination: TerminationType = TerminationType.STOPPED_BY_RM, message: str = ""
    ) -> None:
        """End an ask with all pending replicas; the state becomes Rejected if any was pending."""
        app = ask.app
        left, ask.pending = ask.pending, 0
        if left:
            self.unqueue(ask)
            book(app, ask.resource, pending=-left)
        del app.asks[ask.key]
        if ask.task_group:
            if left:
                self.gangs.count(ask, -left, dropped=True)
            self.gangs.forget(ask)
        if ask.state == PENDING:
            ask.state = ASK.next(ask.label, ask.state, "reject")
        self._changes.ask_ended(ask, termination, message)
        self._states.conclude(app)


def _count(app: Application, more: int) -> None:
    """Add `more` to the number of applications with waiting requests in each queue of an application."""
    for queue in app.chain:
        queue.waiting += more
