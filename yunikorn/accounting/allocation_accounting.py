"""Accounting of allocations: how much each application, queue and node has allocated.

Pending requests are accounted for in `pending_accounting`. Every change updates the application, its queue,
all parent queues and the node together, and marks each changed object as dirty, so that the scheduling layer
can update its orders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.accounting.booking import book, book_decision
from yunikorn.accounting.key_indexes import AllocationKeyIndex
from yunikorn.accounting.lifetime_usage import credit_recovered, record_change, record_end, record_withdrawal
from yunikorn.accounting.pending_accounting import PendingAccounting
from yunikorn.accounting.reservation_accounting import ReservationAccounting
from yunikorn.event_types import EventChange
from yunikorn.model.allocation import ALLOCATION_EVENT, Allocation, ReportedEnds, TerminationType
from yunikorn.model.application import COUNTED, REACTIVATED
from yunikorn.states import ACCEPTED, ASK, NEW, RESUMING, RUNNING, STARTING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from yunikorn.accounting.allocation_gangs import AllocationGangs
    from yunikorn.accounting.books import Books
    from yunikorn.accounting.changes import Changes
    from yunikorn.accounting.user_group_limits import UserGroupLimits
    from yunikorn.model.application import Application, ApplicationStates
    from yunikorn.model.ask import Ask, AskExtras, AskSpec
    from yunikorn.model.ask_class import PendingClasses
    from yunikorn.model.node import Node
    from yunikorn.resources import Resource

_PENDING_NEXT = ASK.moves["Pending", "allocate"]


class AllocationAccounting:
    """Accounting of the allocations of one partition."""

    def __init__(
        self,
        applications: Mapping[str, Application],
        pending_classes: PendingClasses,
        usage: UserGroupLimits,
        changes: Changes,
        states: ApplicationStates,
        serial: Iterator[int],
    ) -> None:
        self.applications = applications
        """Applications that have not ended, by id."""
        self.pending_classes = pending_classes
        self.usage = usage
        self.changes = changes
        self.states = states
        self._events = changes.events
        self._by_uuid: dict[str, Allocation] | None = None
        """All allocations that have not ended by uuid; None until the first look-up without an application
        (see `allocations`)."""
        self._runs: AllocationKeyIndex | None = None
        """Applications by allocation key; None until the first look-up without an application (see
        `apps_with_key`)."""
        self.awaited: set[str] = set()
        """Uuids of recovered allocations whose application has not been reported yet."""
        self.changed_nodes: list[Node] = []
        """Nodes whose available resources changed since the node orders were last updated."""
        self.node_reservations = ReservationAccounting(changes, self.node_changed)
        self.pending_accounting = PendingAccounting(
            pending_classes, usage, self.node_reservations, changes, states
        )
        self._serial = serial
        self.ends = ReportedEnds()
        self.gangs: AllocationGangs
        """Set by the partition."""
        self.books: Books | None = None
        """Plugins that keep books; None if there are none. Set by `keep_books`."""
        self.change_count = 0
        """Number of commits, releases, node changes, and stops and starts of queues so far.

        Refused requests are worth retrying after this number has changed."""

    # -- allocations --------------------------------------------------------------------------------

    @property
    def allocations(self) -> dict[str, Allocation]:
        """All allocations that have not ended, by uuid.

        The index is built on first use and maintained from then on: an RM that names allocations without
        their application, or that recovers allocations, does so repeatedly. Without such an RM a decision
        need not update the index.
        """
        if self._by_uuid is None:
            apps = self.applications.values()
            self._by_uuid = {uuid: one for app in apps for uuid, one in app.allocations.items()}
        return self._by_uuid

    def apps_with_key(self, key: str) -> list[Application]:
        """Return the applications that have allocations with this key.

        The index of keys is built on the first call, together with the index of uuids, and maintained from
        then on. Until then a decision need not update either index.
        """
        if self._runs is None:
            self._runs = AllocationKeyIndex(self.allocations.values())
        return self._runs.find(key)

    def keep_books(self, books: Books | None) -> None:
        """Pass every placement and release on to these books from now on.

        The index of uuids is then maintained, so that a decision without books and index tests for neither.
        """
        self.books = books
        if books is not None:
            self._by_uuid = self.allocations

    def _index(self, known: dict[str, Allocation], allocation: Allocation) -> None:
        """Add an allocation to the indexes that are used when a caller does not name the application."""
        known[allocation.uuid] = allocation
        if self._runs is not None:
            self._runs.add(allocation)

    def new_uuid(self, key: str) -> str:
        """Return a new uuid for an allocation of the ask with this key."""
        known = self._by_uuid
        if known is None:
            # All uuids were generated here, and each ends with a different number.
            return f"{key}#{next(self._serial)}"
        while (uuid := f"{key}#{next(self._serial)}") in known or uuid in self.awaited:
            # A recovering RM reports uuids that were generated before the restart.
            pass
        return uuid

    def allocate(self, ask: Ask, node: Node, now: int) -> Allocation:
        """Allocate one pending replica of the ask on `node`, and announce it to the RM."""
        app, spec, extras = ask.app, ask.spec, ask.extras
        key, known = ask.key, self._by_uuid
        uuid = f"{key}#{next(self._serial)}" if known is None else self.new_uuid(key)
        allocation = Allocation(uuid, key, app, ask, node, ask.resource, ask.priority, spec, now)
        if known is not None:
            known[uuid] = allocation
            if self._runs is not None:
                self._runs.add(allocation)
            if self.books is not None:
                if self.books.planned:
                    allocation.spec = self.books.spec_of(ask)
                self.books.placed(allocation, node)
        if app.by_key is None:
            app.allocations[uuid] = allocation
        else:
            app.obtain(allocation)
        node.take(allocation)
        self.change_count += 1
        if not node.is_dirty:
            node.is_dirty = True
            self.changed_nodes.append(node)
        if extras is not None:
            extras.made += 1
            self._relieve(extras, allocation)
        app.waiting_since = now
        app.misses = 0
        ask.live += 1
        ask.pending -= 1
        if not ask.pending:
            ask.state = _PENDING_NEXT
            self.pending_accounting.unqueue(ask)
        pairs = ask.pending_class.ask_class.pairs
        book_decision(app, pairs)
        if not app.usage_dirty:
            self.usage.book(app, pairs)
        elif self._events.wants_usage:
            self._events.used(app, EventChange.ADD, pairs, now)
        if spec.placeholder:
            self.gangs.placed(allocation)
        elif app.state != RUNNING:
            self.states.start(app)
        self.changes.allocated(allocation, now)
        return allocation

    def _relieve(self, extras: AskExtras, allocation: Allocation) -> None:
        """Update the reservation and the gang of an ask with extras after an allocation."""
        ask, node = allocation.ask, allocation.node
        assert ask is not None
        if extras.reserved is node:
            self.node_reservations.unreserve(ask)
        elif extras.reserved is not None:
            self.node_reservations.inheritable[ask] = None
        if extras.gang_blocked:
            self.gangs.joined(allocation)
        self._moved(allocation)

    def make(self, ask: Ask, node: Node, now: int, uuid: str = "") -> Allocation:
        """Return an allocation for `ask` on `node` that is not accounted for yet."""
        uuid = uuid or self.new_uuid(ask.key)
        spec = ask.spec if self.books is None else self.books.spec_of(ask)
        return Allocation(uuid, ask.key, ask.app, ask, node, ask.resource, ask.priority, spec, now)

    def promise(self, ask: Ask, node: Node, now: int) -> Allocation:
        """Remove one pending replica of the ask and return its allocation, to be passed to `enter` later."""
        allocation = self.make(ask, node, now)
        self._serve(ask)
        return allocation

    def _serve(self, ask: Ask) -> None:
        """Subtract one replica of the ask from the pending requests."""
        if ask.extras is not None:
            ask.extras.made += 1
        ask.live += 1
        ask.pending -= 1
        if not ask.pending:
            ask.state = _PENDING_NEXT
            self.pending_accounting.unqueue(ask)
        book(ask.app, ask.resource, pending=-1)

    # -- placements that permit policies decide about -----------------------------------------------

    def place_unannounced(self, ask: Ask, node: Node, now: int) -> Allocation:
        """Allocate one pending replica of the ask on `node` unknown to the RM.

        `announce` or `take_back` follows. Gang and state of the application are left to `announce`; an
        application that has not started counts as running from now on.
        """
        allocation = self.make(ask, node, now)
        app, extras = ask.app, ask.extras
        if self.books is not None:
            self.books.placed(allocation, node)
        self._enter(allocation, on_node=True)
        if extras is not None:
            extras.made += 1
            if extras.reserved is node:
                self.node_reservations.unreserve(ask)
            elif extras.reserved is not None:
                self.node_reservations.inheritable[ask] = None
        ask.live += 1
        ask.pending -= 1
        if not ask.pending:
            # The state changes afterwards, because a watcher reports a request in the new state as scheduled.
            self.pending_accounting.unqueue(ask)
            ask.state = _PENDING_NEXT
        book(app, ask.resource, pending=-1)
        app.unannounced += 1
        self.recount(app)
        return allocation

    def announce(self, allocation: Allocation, now: int) -> None:
        """Announce a placement of `place_unannounced` to the RM, and update gang and application."""
        app, ask = allocation.app, allocation.ask
        allocation.ensure_extras().hold = None
        if now != allocation.placed:
            record_change(allocation, now, allocation.resource, now)
        allocation.placed = now
        allocation.node.reorder_victims()
        app.unannounced -= 1
        if ask is not None and not ask.pending:
            self.changes.pending_ended(ask)
        if allocation.placeholder:
            self.gangs.placed(allocation)
        elif app.state != RUNNING:
            self.states.start(app)
        self.changes.allocated(allocation, now)

    def take_back(self, allocation: Allocation, *, at_once: bool) -> None:
        """Undo `place_unannounced`: the replica is pending again.

        `at_once` if nothing has been decided since: nothing else is worth retrying then.
        """
        app, ask = allocation.app, allocation.ask
        assert ask is not None
        if not at_once:
            record_withdrawal(allocation, self._events.now())
        self._withdraw(allocation, gained=not at_once)
        allocation.ensure_extras().hold = None
        app.unannounced -= 1
        ask.live -= 1
        self.pending_accounting.restore(ask)
        self.recount(app)
        self.usage.resume(app)

    def _withdraw(self, allocation: Allocation, *, gained: bool) -> None:
        """End an allocation whose request is about to wait again; `gained` if others may use the room."""
        app, node = allocation.app, allocation.node
        allocation.mark_releasing(TerminationType.SCHEDULING_FAILED_ON_RM)
        allocation.end("stop")
        if self._by_uuid is not None:
            del self._by_uuid[allocation.uuid]
            if self._runs is not None:
                self._runs.remove(allocation)
        if self.books is not None:
            self.books.released(allocation, node)
        app.lose(allocation)
        node.give_back(allocation)
        self._moved(allocation)
        self.node_changed(node, gained=gained)
        book(app, allocation.resource, allocated=-1)
        self.usage.unbook(app, tuple(allocation.resource.items()))
        if gained:
            for queue in app.chain:
                if queue.over_quota:
                    queue.room_grew()
        if allocation.eviction is not None:
            allocation.eviction.left(allocation)

    def return_to(self, ask: Ask, allocation: Allocation, message: str) -> None:
        """End an allocation that the RM could not start: a replica of `ask`, of its key, is pending again."""
        app, own = allocation.app, allocation.ask
        record_end(allocation, self._events.now(), TerminationType.SCHEDULING_FAILED_ON_RM)
        self._withdraw(allocation, gained=True)
        if allocation.placeholder:
            self.gangs.returned(allocation)
        if own is not None:
            own.live -= 1
        self.pending_accounting.restore(ask)
        if app.atomic is not None and ask.task_group:
            self.pending_accounting.gangs.count(ask, 1)
        if app.state in REACTIVATED:
            self.states.advance(app, "ask added")
        self.recount(app)
        self.usage.resume(app)
        self.changes.ended(allocation, TerminationType.SCHEDULING_FAILED_ON_RM, message)

    def allocate_sized(self, ask: Ask, node: Node, now: int, uuid: str, resource: Resource) -> Allocation:
        """Allocate one pending replica of the ask with a size, and optionally a `uuid`, chosen by the RM."""
        allocation = self.make(ask, node, now, uuid)
        allocation.resource = resource
        if self.books is not None:
            self.books.placed(allocation, node)
        self.enter(allocation, on_node=True)
        if ask.extras is not None:
            self._relieve(ask.extras, allocation)
        self._serve(ask)
        if allocation.placeholder:
            self.gangs.placed(allocation)
        elif ask.app.state != RUNNING:
            self.states.start(ask.app)
        return allocation

    def enter(self, allocation: Allocation, *, on_node: bool) -> None:
        """Account for an allocation that books contain already, on its node as well if `on_node`."""
        self._enter(allocation, on_node=on_node)
        self.changes.allocated(allocation, self._events.now())

    def _enter(self, allocation: Allocation, *, on_node: bool) -> None:
        app, node = allocation.app, allocation.node
        if self._by_uuid is not None:
            self._index(self._by_uuid, allocation)
        app.obtain(allocation)
        if on_node:
            node.take(allocation)
            self.node_changed(node, gained=False)
        self._moved(allocation)
        app.waiting_since = allocation.placed
        app.misses = 0
        book(app, allocation.resource, allocated=1)
        self.usage.book(app, tuple(allocation.resource.items()))

    def recover(
        self,
        app: Application,
        node: Node,
        uuid: str,
        key: str,
        resource: Resource,
        priority: int,
        spec: AskSpec,
        now: int,
    ) -> Allocation:
        """Account for an allocation reported by an RM, regardless of quotas (recovery)."""
        allocation = Allocation(uuid, key, app, None, node, resource, priority, spec, now)
        if now < app.submitted:
            app.submitted = now
        self._index(self.allocations, allocation)
        if self.books is not None:
            self.books.placed(allocation, node)
        credit_recovered(allocation)
        app.obtain(allocation)
        node.take(allocation)
        self.node_changed(node, gained=False)
        self._moved(allocation)
        book(app, resource, allocated=1)
        self.usage.book(app, tuple(resource.items()))
        if app.state == NEW:
            self.states.advance(app, "allocation recovered")
        if allocation.placeholder:
            self.gangs.found(allocation)
        else:
            self.gangs.joined(allocation)
            if app.state == RESUMING:
                self.states.advance(app, "allocation recovered")
            self.states.advance(app, "allocation recovered")
        if app.state == STARTING and (app.gang is not None or app.atomic is not None):
            # The gang started before the restart of the RM: one task that is left does not start it again.
            self.states.advance(app, "allocation recovered")
        self.changes.recovered(allocation)
        return allocation

    def resize(self, allocation: Allocation, resource: Resource) -> None:
        """Change the size of an allocation on its node, regardless of quotas."""
        app, node, before = allocation.app, allocation.node, allocation.resource
        if allocation.placeholder:
            self.gangs.resized(allocation, resource)
        if allocation.eviction is not None:
            allocation.eviction.resized(allocation, resource)
        books = None if allocation.releasing == TerminationType.PLACEHOLDER_REPLACED else self.books
        if books is not None:
            books.released(allocation, node)
        record_change(allocation, self._events.now(), resource, allocation.placed)
        node.give_back(allocation)
        allocation.resize(resource)
        if self._events.wants_releases:
            self._events.resized(allocation, before)
        node.take(allocation)
        if books is not None:
            books.placed(allocation, node)
        self.node_changed(node, gained=True)
        book(app, before, allocated=-1)
        self.usage.unbook(app, tuple(before.items()))
        book(app, resource, allocated=1)
        self.usage.book(app, tuple(resource.items()))
        for queue in app.chain:
            if queue.over_quota:
                queue.room_grew()

    def release(self, allocation: Allocation, termination: TerminationType, message: str = "") -> None:
        """End an allocation: free its resources on the node, in the application and in the queues."""
        app, node = allocation.app, allocation.node
        record_end(allocation, self._events.now(), termination)
        replaced = allocation.replacement is not None and self.gangs.conclude(allocation)
        allocation.end(ALLOCATION_EVENT[termination])
        if self._by_uuid is not None:
            del self._by_uuid[allocation.uuid]
            if self._runs is not None:
                self._runs.remove(allocation)
            if self.books is not None and allocation.releasing != TerminationType.PLACEHOLDER_REPLACED:
                self.books.released(allocation, node)
        app.lose(allocation)
        node.give_back(allocation)
        self.node_changed(node, gained=True)
        book(app, allocation.resource, allocated=-1)
        self.usage.unbook(app, tuple(allocation.resource.items()))
        for queue in app.chain:
            if queue.over_quota:
                queue.room_grew()
        if allocation.eviction is not None:
            allocation.eviction.left(allocation)
        self._forget_ask(allocation)
        if app.topology is not None:
            self._moved(allocation)
            self._try_elsewhere(app, allocation.task_group)
        if allocation.placeholder:
            self.gangs.ended(allocation, replaced=replaced)
        self.changes.ended(allocation, termination, message)
        if app.gang is None and app.atomic is None:
            self.states.conclude(app)
        else:
            self.gangs.rest(app, allocation)

    def _forget_ask(self, allocation: Allocation) -> None:
        # An ask is complete when all its allocations have been made and have ended.
        ask = allocation.ask
        if ask is not None:
            ask.live -= 1
            if not ask.live and not ask.pending and ask.app.asks.get(ask.key) is ask:
                del ask.app.asks[ask.key]

    def _moved(self, allocation: Allocation) -> None:
        for moved in self.changes.readers.home_changed if allocation.app.topology is not None else ():
            moved(allocation)

    def _try_elsewhere(self, app: Application, task_group: str) -> None:
        """Try the requests of an application again elsewhere if no member of a task group is left."""
        if not any(one.task_group == task_group for one in app.allocations.values()):
            for ask_class in dict.fromkeys(ask.ask_class for ask in app.asks.values() if ask.pending):
                if ask_class.home is not None:
                    self.pending_classes.mark_schedulable(ask_class)

    # -- nodes and applications ---------------------------------------------------------------------

    def node_changed(self, node: Node, *, gained: bool) -> None:
        """Record a change of a node's available resources or state; `gained` if the node may fit more."""
        self.change_count += 1
        if gained:
            node.gained = True
        if not node.is_dirty:
            node.is_dirty = True
            self.changed_nodes.append(node)

    def recount(self, app: Application) -> None:
        """Update the number of running applications of the queues (docs/states.md).

        An application in Accepted or Resuming counts as running only while it has allocations: a gang with
        some of its placeholders allocated.
        """
        counts = app.state in COUNTED or (app.state in (ACCEPTED, RESUMING) and bool(app.allocations))
        if counts != app.counted:
            app.counted = counts
            for queue in app.chain:
                queue.count_running(1 if counts else -1)
        not_started = app.state == NEW or (app.state in (ACCEPTED, RESUMING) and not counts)
        if not_started != app.not_started:
            app.set_not_started(not_started)
            self.usage.recount(app)

    def stop_counting(self, app: Application) -> None:
        """Stop counting an application as running when it leaves its queue, in any state."""
        if app.counted:
            app.counted = False
            for queue in app.chain:
                queue.count_running(-1)
