"""Gangs of a partition: placeholders, and their two-step replacement, as in YuniKorn 1.9.

First, the scheduler decides that a real request replaces a placeholder, and the resource manager is asked to
end the placeholder. Second, when the resource manager confirms, the real allocation is accounted for and
announced. Until then quotas and limits count the placeholder. They never count both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from yunikorn.accounting.gang_formation import GangFormation
from yunikorn.clock import SECOND
from yunikorn.model.allocation import TerminationType
from yunikorn.model.gang import HARD, Gang, TaskGroup, placeholder_timeout
from yunikorn.resources import NOTHING, Resource, grow, shrink
from yunikorn.states import (
    ACCEPTED,
    ASK,
    COMPLETING,
    FAILING,
    REMOVED,
    RESUMING,
    RUNNING,
    STARTING,
)

if TYPE_CHECKING:
    from yunikorn.accounting.allocation_accounting import AllocationAccounting
    from yunikorn.clock import Clock, Timers
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node

TIMED_OUT = "ResourceReservationTimeout"


class PartitionGangs:
    """State of the gangs of one partition."""

    def __init__(
        self,
        accounting: AllocationAccounting,
        clock: Clock,
        timers: Timers,
        announce: Callable[[Allocation], None],
    ) -> None:
        self._accounting = accounting
        self._changes, self._states = accounting.changes, accounting.states
        self._clock = clock
        self._timers = timers
        self.ready: deque[TaskGroup] = deque()
        """Task groups in which a request may be able to replace a placeholder."""
        self.formation = GangFormation(
            accounting.pending_accounting, accounting.pending_classes, self._changes
        )
        """Atomic gangs that wait for their members or for room."""
        self._announce = announce
        """Callback for real allocations that replaced a placeholder."""

    # -- asks ---------------------------------------------------------------------------------------

    def is_gang_blocked(self, ask: Ask) -> bool:
        """Return True if an ask of a task group must not be scheduled because of its gang."""
        app = ask.app
        whole = ask.whole_gang
        if whole is not None:
            return not whole.done
        group = app.gang.groups.get(ask.task_group) if app.gang is not None else None
        return group is not None and not ask.placeholder and group.is_replaceable

    def blocked_added(self, ask: Ask) -> None:
        """Queue a gang-blocked ask to replace a placeholder."""
        if ask.app.gang is not None and not ask.placeholder:
            group = ask.app.gang.groups[ask.task_group]
            group.add(ask)
            self._make_ready(group)

    def _make_ready(self, group: TaskGroup) -> None:
        if group.placeholders and not group.is_ready:
            group.is_ready = True
            self.ready.append(group)

    def count(self, ask: Ask, difference: int, *, dropped: bool = False) -> None:
        """Add `difference` to the pending replicas of an ask with a task group."""
        app = ask.app
        if app.atomic is not None:
            self.formation.count(app.atomic, ask, difference)
        elif ask.placeholder:
            group = self._group(app, ask)
            before = group.is_replaceable
            if dropped:
                group.timed_out -= difference
                if app.gang is not None and not app.gang.placeholders and not app.gang.pending:
                    app.gang.stop_timer()
            else:
                group.count += difference
            self._block_or_unblock(app, group, before)
            if app.whole_gang is not None:
                self.formation.count(app.whole_gang, ask, difference)

    def _group(self, app: Application, one: Ask | Allocation) -> TaskGroup:
        if app.gang is None:
            app.gang = Gang(NOTHING, app.gang_style, placeholder_timeout(0, app.tags, self._clock.now()))
        return app.gang.group(one.task_group, one.resource)

    def _block_or_unblock(self, app: Application, group: TaskGroup, before: bool) -> None:
        if group.is_replaceable == before:
            return
        for ask in list(app.asks.values()):
            if ask.task_group == group.name and ask.pending and not ask.placeholder:
                if before and ask.gang_blocked:
                    self._accounting.pending_accounting.unblock_for_gang(ask)
                elif not before and not ask.gang_blocked:
                    self._accounting.pending_accounting.block_for_gang(ask)
                    self.blocked_added(ask)

    @staticmethod
    def promised(ask: Ask) -> list[Allocation]:
        """Return the outstanding replacements for an ask, whose placeholders the RM has not ended yet."""
        gang = ask.app.gang
        return [] if gang is None else [*gang.promised.get(ask, ())]

    def forget(self, ask: Ask) -> None:
        """Undo the outstanding replacements for a dropped ask."""
        for real in self.promised(ask):
            self.undo(real)

    # -- placeholders -------------------------------------------------------------------------------

    def placed(self, placeholder: Allocation) -> None:
        """Account for an allocated placeholder; after the last one the application starts."""
        app = placeholder.app
        group = self._group(app, placeholder)
        gang = app.gang
        assert gang is not None
        group.placeholders[placeholder.uuid] = placeholder
        gang.placeholders += 1
        grow(gang.placed, placeholder.resource)
        self._accounting.recount(app)
        self.start_timer(app)
        if app.state == ACCEPTED and gang.is_complete and (gang.total or not gang.pending):
            self._states.advance(app, "all placeholders are allocated")
        self._make_ready(group)

    def start_timer(self, app: Application) -> None:
        """Start the time limit of placeholders: at the first placement, or the first attempt to place all."""
        gang = app.gang
        if gang is not None and gang.timer is None:
            # The timeout also applies if real allocations run: nothing else would end unused placeholders.
            gang.timer = self._timers.after(gang.timeout, lambda: self._time_out(app, gang))

    def found(self, placeholder: Allocation) -> None:
        """Account for a placeholder reported by a recovering RM."""
        group = self._group(placeholder.app, placeholder)
        before = group.is_replaceable
        group.count += 1
        self._block_or_unblock(placeholder.app, group, before)
        self.placed(placeholder)

    def resized(self, placeholder: Allocation, resource: Resource) -> None:
        """Update the size of a placeholder that the RM resized."""
        gang = placeholder.app.gang
        assert gang is not None
        shrink(gang.placed, placeholder.resource)
        grow(gang.placed, resource)

    def joined(self, allocation: Allocation) -> None:
        """Treat the rest of an atomic gang as ordinary asks when a member is found running."""
        whole = allocation.app.whole_gang
        if whole is not None and not whole.done and allocation.task_group:
            self.formation.finish(whole)
            self.formation.unblock_rest(whole)
        elif whole is not None and allocation.task_group in whole.growth:
            self.formation.form_soon(whole.growth[allocation.task_group])

    def ended(self, placeholder: Allocation, *, replaced: bool) -> None:
        """Account for the end of a placeholder."""
        app = placeholder.app
        group = self._group(app, placeholder)
        gang = app.gang
        assert gang is not None
        gang.placeholders -= 1
        shrink(gang.placed, placeholder.resource)
        group.placeholders.pop(placeholder.uuid, None)
        before = group.is_replaceable
        if replaced:
            group.replaced += 1
        else:
            group.timed_out += 1
        if not gang.placeholders:
            gang.stop_timer()
        self._accounting.recount(app)
        self._block_or_unblock(app, group, before)

    def returned(self, placeholder: Allocation) -> None:
        """Account for a placeholder that is pending again; the time limit of the gang continues."""
        gang = placeholder.app.gang
        assert gang is not None
        gang.placeholders -= 1
        shrink(gang.placed, placeholder.resource)
        self._group(placeholder.app, placeholder).placeholders.pop(placeholder.uuid, None)

    def end(self, placeholder: Allocation, termination: TerminationType, message: str) -> None:
        """Request the release of a placeholder; its resources count as used until the RM confirms."""
        placeholder.mark_releasing(termination)
        self._group(placeholder.app, placeholder).placeholders.pop(placeholder.uuid, None)
        self._changes.released(placeholder, termination, message)

    def end_all(self, app: Application, message: str) -> None:
        """Request the release of all placeholders that are not being released already."""
        for placeholder in list(app.allocations.values()):
            if placeholder.placeholder and placeholder.releasing is None:
                self.end(placeholder, TerminationType.TIMEOUT, message)

    # -- replacement --------------------------------------------------------------------------------

    def replace(self, placeholder: Allocation, ask: Ask, node: Node) -> Allocation:
        """Start the replacement of a placeholder by one replica of `ask` on `node` (first step)."""
        real = self._accounting.promise(ask, node, self._clock.now())
        placeholder.ensure_extras().replacement, real.ensure_extras().replaces = real, placeholder
        assert ask.app.gang is not None
        ask.app.gang.promise(ask, real)
        if node is not placeholder.node:
            node.take(real)
            self._accounting.node_changed(node, gained=False)
        if self._accounting.books is not None:
            self._accounting.books.released(placeholder, placeholder.node)
            self._accounting.books.placed(real, node)
            self._accounting.node_changed(placeholder.node, gained=False)
        self.end(placeholder, TerminationType.PLACEHOLDER_REPLACED, f"replaced by {ask.key}")
        return real

    def conclude(self, placeholder: Allocation) -> bool:
        """Finish the replacement when the placeholder ends (second step); return False if undone instead."""
        real, app = placeholder.replacement, placeholder.app
        assert real is not None
        on_its_node = real.node is placeholder.node
        lost = on_its_node and real.node.state == REMOVED
        if lost or app.leaving or app.state == FAILING:
            self.undo(real)
            return False
        placeholder.ensure_extras().replacement = real.ensure_extras().replaces = None
        gang = app.gang
        assert gang is not None
        assert real.ask is not None
        gang.settle(real.ask, real)
        asked = placeholder.ask
        real.ensure_extras().placeholder_requested = placeholder.placed if asked is None else asked.created
        real.placed = self._clock.now()
        real.node.reorder_victims()
        self._accounting.enter(real, on_node=on_its_node)
        # The last placeholder starts an application. The first real allocation does not, even while other
        # placeholders are pending: as in YuniKorn 1.9 the application is Accepted until the second real
        # allocation.
        if app.state not in (ACCEPTED, STARTING, RUNNING) or _announced(app) > gang.placeholders + 1:
            self._states.start(app)
        self._announce(real)
        return True

    def undo(self, real: Allocation) -> None:
        """Undo the first step of a replacement: the request waits again.

        The placeholder still ends, because the RM has already been asked to end it.
        """
        placeholder, ask, node = real.replaces, real.ask, real.node
        assert placeholder is not None
        assert ask is not None
        placeholder.ensure_extras().replacement = real.ensure_extras().replaces = None
        assert ask.app.gang is not None
        ask.app.gang.settle(ask, real)
        if node is not placeholder.node:
            node.give_back(real)
            self._accounting.node_changed(node, gained=True)
        if self._accounting.books is not None:
            self._accounting.books.released(real, node)
            self._accounting.node_changed(node, gained=False)
        ask.live -= 1
        if ask.app.asks.get(ask.key) is ask and not ask.app.leaving:
            self._accounting.pending_accounting.change_pending(ask, ask.pending + 1)
        else:
            ask.state = ASK.next(ask.label, ask.state, "ask")

    # -- timeout and termination --------------------------------------------------------------------

    def _time_out(self, app: Application, gang: Gang) -> None:
        gang.timer = None
        if gang.style == HARD and app.unanswered and not self._has_worked(app, gang):
            # The gang does not fail for the time that a policy takes to check its first real request.
            gang.timer = self._timers.after(SECOND, lambda: self._time_out(app, gang))
            return
        for timed_out in self._changes.readers.gang_timed_out:
            timed_out(app)
        fails = False
        if not self._has_worked(app, gang) and app.state in (ACCEPTED, STARTING, RUNNING):
            fails = gang.style == HARD
            if fails:
                app.reason = TIMED_OUT
                self._states.fire(app, "fail", TIMED_OUT)
            elif app.state == ACCEPTED:
                self._states.fire(app, "resume", TIMED_OUT)
        elif app.state == ACCEPTED:
            self._states.advance(app, "its real allocations continue without the gang")
        self._drop_asks(app, placeholders_only=not fails)
        self.end_all(app, "releasing allocated placeholders on placeholder timeout")
        if app.state == RESUMING and not gang.placeholders:
            self._states.advance(app, "no placeholder was placed in time")

    @staticmethod
    def _has_worked(app: Application, gang: Gang) -> bool:
        """Return True if an application has or had a real allocation.

        In a gang whose placeholders were all allocated, an outstanding replacement counts as a real
        allocation.
        """
        if gang.worked or _announced(app) > gang.placeholders:
            return True
        return bool(gang.promised) and app.state != ACCEPTED

    def _drop_asks(self, app: Application, *, placeholders_only: bool) -> None:
        for ask in list(app.asks.values()):
            if placeholders_only and not ask.placeholder:
                continue
            if ask.placeholder:
                termination = TerminationType.TIMEOUT
                message = "releasing pending placeholders on placeholder timeout"
            else:
                # The ask itself did not time out: it ends because the application fails.
                termination = TerminationType.STOPPED_BY_RM
                message = f"application {app.id} failed: {TIMED_OUT}"
            if ask.pending or self.promised(ask):
                self._changes.ask_released(app.id, ask.key, termination, message)
                self._accounting.pending_accounting.drop(ask, termination, message)

    def rest(self, app: Application, gone: Allocation) -> None:
        """Update the state of an application with a gang after an allocation ended."""
        gang, whole = app.gang, app.atomic
        if whole is not None and gone.task_group in whole.growth:
            self.formation.form_soon(whole.growth[gone.task_group])
        if gang is None:
            self._states.conclude(app)
            return
        if app.leaving:
            return
        if not gone.placeholder:
            gang.worked = True
            self._accounting.recount(app)
        if app.state == FAILING:
            self._states.conclude(app)
        elif app.state == RESUMING:
            if not gang.placeholders:
                # Without real requests the application stays Accepted and waits for tasks.
                self._states.advance(app, "all placeholders are released")
        elif app.state == COMPLETING:
            if not gang.placeholders and app.timer is not None and app.timer.call is None:
                self._states.fire(app, "complete", "all placeholders are released")
        elif (
            not gone.placeholder
            and len(app.allocations) == gang.placeholders
            and not app.has_unplaced
            and app.held is None
        ):
            self._states.fire(app, "complete", "no requests and no real allocations left")
        else:
            self._states.conclude(app)

    def close(self, app: Application) -> None:
        """End what waits for the gang of an application that leaves."""
        if app.gang is not None:
            app.gang.stop_timer()
        if app.whole_gang is not None:
            self.formation.tell_left(app.whole_gang)


def _announced(app: Application) -> int:
    """Return the number of allocations of an application that the RM is informed of."""
    return len(app.allocations) - app.unannounced
