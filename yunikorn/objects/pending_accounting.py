"""The backlog: who waits for how much, in its application and in every queue above.

Every change is booked in one go, and what it touches is noted, for the scheduling layer to bring its orders
up to date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from yunikorn.objects.termination import TerminationType
from yunikorn.states import ASK, COMPLETING, NEW, PENDING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from yunikorn.objects.application import Application
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.ask_index import AskIndex
    from yunikorn.objects.event_recorder import EventRecorder
    from yunikorn.objects.node_reservations import NodeReservations
    from yunikorn.objects.partition_gangs import PartitionGangs
    from yunikorn.objects.pending_class import PendingClass, PendingClasses
    from yunikorn.objects.user_group_usage import UserGroupUsage


class PendingWatcher(Protocol):
    """Somebody who is told how requests fare."""

    def waits(self, ask: Ask) -> None:
        """A request starts to wait."""
        ...

    def leaves(self, ask: Ask) -> None:
        """A request waits no more: it was served, or it went."""
        ...


class PendingAccounting:
    """The requests of one partition that wait."""

    def __init__(
        self,
        pending_classes: PendingClasses,
        usage: UserGroupUsage,
        node_reservations: NodeReservations,
        event_recorder: EventRecorder,
    ) -> None:
        self.pending_classes = pending_classes
        self.usage = usage
        self.node_reservations = node_reservations
        self.event_recorder = event_recorder
        self.gangs: PartitionGangs
        """The books of gangs; given by the partition."""
        self.watcher: PendingWatcher | None = None
        """Wants to know how requests fare, if anybody does."""
        self.index: AskIndex | None = None
        """Applications by the keys of their asks, once an ask was looked for by its key alone."""

    def add(self, ask: Ask) -> None:
        """An ask with its `pending` repeats starts to wait."""
        app = ask.app
        ask.state = ASK.next(ask.label, ask.state, "ask")
        app.asks[ask.key] = ask
        if self.index is not None:
            self.index.add(app, ask.key)
        if ask.created < app.submitted:
            app.submitted = ask.created
        self._queue_up(ask)
        self.book(app, ask.resource, ask.pending)
        if ask.task_group:
            self.gangs.count(ask, ask.pending)
        if app.state in (NEW, COMPLETING):
            app.run("ask added")
        if self.event_recorder.enabled:
            self.event_recorder.record(
                "APP", app.id, ask.key, change="ADD", detail="APP_REQUEST", resource=ask.resource
            )

    def _queue_up(self, ask: Ask) -> None:
        app = ask.app
        if not app.has_waiting:
            _count(app, 1)
        if ask.task_group and self.gangs.max_apps_events(ask):
            extras = ask.ensure_extras()
            extras.gang_blocked = extras.unschedulable = True
            app.requests.keep(ask)
            self.gangs.waits(ask)
        else:
            app.requests.add(ask)
        if not app.not_started and not app.counted_by_limits:
            self.usage.recount(app)
        self.pending_classes.wait(ask.pending_class)
        if ask.priority > app.priority:
            app.reprioritise()
        if not ask.gang_blocked:
            app.activate(ask.pending_class.bit)
        if self.watcher is not None:
            self.watcher.waits(ask)

    @staticmethod
    def queue_up_all(app: Application, asks: Sequence[Ask]) -> None:
        """Plain asks of one application start to wait; the rest of what `add` does is left to the caller."""
        if not app.has_waiting:
            _count(app, 1)
        app.requests.add_all(asks)

    def unqueue(self, ask: Ask) -> None:
        """An ask waits no more."""
        app = ask.app
        if self.watcher is not None:
            self.watcher.leaves(ask)
        extras = ask.extras
        if extras is not None and extras.reserved is not None:
            self.node_reservations.inheritable[ask] = None
        if extras is not None and extras.unschedulable:
            extras.unschedulable = extras.gang_blocked = False
            app.requests.forget_unschedulable(ask)
            follower = None
        else:
            follower = app.requests.remove(ask)
        pending_class = ask.pending_class
        if pending_class.asks > 1:
            pending_class.asks -= 1
        else:
            self.pending_classes.leave(pending_class)
        if follower is None:
            app.learn_bits()
            if ask.priority >= app.priority:
                app.reprioritise()
            if not app.has_waiting:
                self._nothing_waits(app)
        elif ask.priority >= app.priority and ask.priority != follower.priority:
            app.reprioritise()

    def _nothing_waits(self, app: Application) -> None:
        """An application asks for nothing any more."""
        _count(app, -1)
        if app.counted_by_limits and not app.allocations:
            self.usage.recount(app)

    def mark_unschedulable(self, ask: Ask) -> None:
        """A waiting ask is not to be tried until `activate`."""
        ask.ensure_extras().unschedulable = True
        app = ask.app
        app.requests.mark_unschedulable(ask)
        app.learn_bits()
        app.mark_dirty()

    def activate(self, ask: Ask) -> None:
        """An unschedulable ask is worth trying again."""
        if ask.gang_blocked:
            self.gangs.waits(ask)
        elif ask.unschedulable:
            ask.ensure_extras().unschedulable = False
            ask.app.requests.forget_unschedulable(ask)
            ask.app.requests.add(ask)
            ask.app.activate(ask.pending_class.bit)
            ask.app.mark_dirty()

    def block_for_gang(self, ask: Ask) -> None:
        """A waiting ask is not to be tried for the sake of its gang, until `unblock_for_gang`."""
        if not ask.unschedulable:
            self.mark_unschedulable(ask)
        ask.ensure_extras().gang_blocked = True
        if ask.reserved is not None:
            self.node_reservations.unreserve(ask)

    def unblock_for_gang(self, ask: Ask) -> None:
        """A held ask is like any other from now on."""
        ask.ensure_extras().gang_blocked = False
        self.activate(ask)

    def offer(self, request: Ask) -> None:
        """A request that stands for a gang is worth trying."""
        app = request.app
        if not app.has_waiting:
            _count(app, 1)
        app.requests.add(request)
        self.pending_classes.wait(request.pending_class)
        app.reprioritise()
        app.activate(request.pending_class.bit)
        app.mark_dirty()

    def withdraw(self, request: Ask) -> None:
        """A request that stood for a gang is no more."""
        app = request.app
        app.requests.remove(request)
        if not app.has_waiting:
            self._nothing_waits(app)
        self.pending_classes.leave(request.pending_class)
        app.reprioritise()
        app.learn_bits()
        app.mark_dirty()

    def reshape(self, ask: Ask, pending_class: PendingClass) -> None:
        """A waiting ask belongs to another class of requests now, and is worth trying again."""
        if ask.gang_blocked:
            self.pending_classes.leave(ask.pending_class)
            ask.pending_class = pending_class
            self.pending_classes.wait(pending_class)
            return
        if ask.unschedulable:
            self.activate(ask)
        app = ask.app
        app.requests.remove(ask)
        if ask.reserved is not None:
            self.node_reservations.unreserve(ask)
        self.pending_classes.leave(ask.pending_class)
        ask.pending_class = pending_class
        app.requests.add(ask)
        self.pending_classes.wait(pending_class)
        app.learn_bits()
        app.activate(pending_class.bit)
        app.mark_dirty()

    def change_pending(self, ask: Ask, pending: int) -> None:
        """Set how many allocations an ask still waits for; those made stay (decision 28)."""
        difference = pending - ask.pending
        if not difference:
            return
        if not ask.pending:
            ask.state = ASK.next(ask.label, ask.state, "ask")
            ask.pending = pending
            self._queue_up(ask)
            if ask.app.can_wake:
                ask.app.run("ask added")
        elif not pending:
            ask.pending = 0
            self.unqueue(ask)
        ask.pending = pending
        self.book(ask.app, ask.resource, difference)
        if ask.task_group:
            self.gangs.count(ask, difference)

    def drop(
        self, ask: Ask, termination: TerminationType = TerminationType.STOPPED_BY_RM, message: str = ""
    ) -> None:
        """End an ask, whatever of it was left; one that was still pending is rejected."""
        app = ask.app
        left, ask.pending = ask.pending, 0
        if left:
            self.unqueue(ask)
            self.book(app, ask.resource, -left)
        del app.asks[ask.key]
        if ask.task_group:
            if left:
                self.gangs.count(ask, -left, dropped=True)
            self.gangs.forget(ask)
        if ask.state == PENDING:
            ask.state = ASK.next(ask.label, ask.state, "reject")
        if self.event_recorder.enabled:
            timed_out = termination == TerminationType.TIMEOUT
            detail = "REQUEST_TIMEOUT" if timed_out else "REQUEST_CANCEL"
            self.event_recorder.record(
                "APP",
                app.id,
                ask.key,
                change="REMOVE",
                detail=detail,
                message=message,
                resource=ask.resource,
            )
        app.conclude()

    @staticmethod
    def book(app: Application, resource: Mapping[str, int], times: int) -> None:
        """So many more asks for `resource` wait, or less where `times` is below 0."""
        pairs = resource.items()
        tally = app.demand
        for name, amount in pairs:
            tally[name] = tally.get(name, 0) + amount * times
        if not app.is_dirty:
            app.mark_dirty()
        for queue in app.chain:
            tally = queue.demand
            for name, amount in pairs:
                tally[name] = tally.get(name, 0) + amount * times
            if not queue.is_dirty:
                queue.mark_dirty()


def _count(app: Application, more: int) -> None:
    """So many more applications of its queues have something that waits."""
    for queue in app.chain:
        queue.waiting += more
