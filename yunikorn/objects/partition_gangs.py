"""The books of gangs: placeholders and who takes their place, in two steps (facts §8).

A real request takes a placeholder's place when the scheduler decides so: the resource manager is told to
end the placeholder, and only when it confirms is the real allocation entered and announced. Until then the
placeholder counts for quotas and limits, never both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from yunikorn.objects.atomic_gang import AtomicGang
from yunikorn.objects.gang import HARD, Gang, TaskGroup, placeholder_timeout
from yunikorn.objects.outbox import AskRelease, Outbox, Release
from yunikorn.objects.state_log import StateLogEntry
from yunikorn.objects.termination import TerminationType
from yunikorn.resources import NOTHING, Resource, grow, shrink
from yunikorn.states import ACCEPTED, ASK, COMPLETING, FAILING, REMOVED, RESUMING, RUNNING, STARTING

if TYPE_CHECKING:
    from yunikorn.clock import Clock, Timers
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.allocation_accounting import AllocationAccounting
    from yunikorn.objects.application import Application
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.node import Node

TIMED_OUT = "ResourceReservationTimeout"


class PartitionGangs:
    """What a partition knows of its gangs."""

    def __init__(
        self, accounting: AllocationAccounting, outbox: Outbox, clock: Clock, timers: Timers
    ) -> None:
        self._accounting = accounting
        self._outbox = outbox
        self._clock = clock
        self._timers = timers
        self.ready: deque[TaskGroup] = deque()
        """Task groups in which a request may take a placeholder's place."""
        self.overdue: dict[str, AtomicGang] = {}
        """By application: atomic gangs that hold back later requests."""
        self.unformed: dict[str, AtomicGang] = {}
        """By application: atomic gangs whose members have to be chosen again before the next decision."""
        self.announce: Callable[[Allocation], None]
        """Whom to tell of an allocation that took a placeholder's place, as the partition says."""

    def form(self) -> None:
        """Choose the members of the gangs that lost some."""
        gangs, self.unformed = list(self.unformed.values()), {}
        for gang in gangs:
            gang.choose_members()

    def report(self, app: Application, reason: str, message: str) -> None:
        """Send the resource manager, and the sinks, a message about an application that keeps its state."""
        entered = app.state_log[-1].time if app.state_log else self._clock.now()
        self._outbox.updated_applications.append((app.id, StateLogEntry(app.state, entered, message)))
        self._accounting.event_recorder.record("APP", app.id, message=message, reason=reason)

    # -- asks ---------------------------------------------------------------------------------------

    def max_apps_events(self, ask: Ask) -> bool:
        """Whether an ask of a task group stays out of the running for its gang's sake."""
        app = ask.app
        if app.atomic is not None:
            return not app.atomic.done
        group = app.gang.groups.get(ask.task_group) if app.gang is not None else None
        return group is not None and not ask.placeholder and group.is_replaceable

    def waits(self, ask: Ask) -> None:
        """A held ask may take a placeholder's place, now or again."""
        if ask.app.gang is not None:
            group = ask.app.gang.groups[ask.task_group]
            group.add(ask)
            self._make_ready(group)

    def _make_ready(self, group: TaskGroup) -> None:
        if group.placeholders and not group.is_ready:
            group.is_ready = True
            self.ready.append(group)

    def count(self, ask: Ask, difference: int, *, dropped: bool = False) -> None:
        """So many more repeats of an ask of a task group wait."""
        app = ask.app
        if app.atomic is not None:
            app.atomic.count(ask, difference)
        elif ask.placeholder:
            group = self._group(app, ask)
            before = group.is_replaceable
            if dropped:
                group.timed_out -= difference
            else:
                group.count += difference
            self._block_or_unblock(app, group, before)

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
                    self.waits(ask)

    @staticmethod
    def promised(ask: Ask) -> list[Allocation]:
        """What is to take a placeholder's place for an ask: the resource manager still waits for it."""
        if ask.app.gang is None:
            return []
        coming = [placeholder.replacement for placeholder in ask.app.allocations.values()]
        return [real for real in coming if real is not None and real.ask is ask]

    def forget(self, ask: Ask) -> None:
        """An ask is dropped: what was to take a placeholder's place for it will not."""
        for real in self.promised(ask):
            self.undo(real)

    # -- placeholders -------------------------------------------------------------------------------

    def placed(self, placeholder: Allocation) -> None:
        """A placeholder has its place; the last one of all lets its application start."""
        app = placeholder.app
        group = self._group(app, placeholder)
        gang = app.gang
        assert gang is not None
        group.placeholders[placeholder.uuid] = placeholder
        gang.placeholders += 1
        grow(gang.placed, placeholder.resource)
        self._accounting.recount(app)
        if gang.timer is None:
            # Also beside a driver that runs already: nobody else would end what is never used.
            gang.timer = self._timers.after(gang.timeout, lambda: self._time_out(app, gang))
        if app.state == ACCEPTED and gang.is_complete and (gang.total or not gang.pending):
            app.run("all placeholders have their place")
        self._make_ready(group)

    def found(self, placeholder: Allocation) -> None:
        """A resource manager that recovers brought a placeholder along."""
        group = self._group(placeholder.app, placeholder)
        before = group.is_replaceable
        group.count += 1
        self._block_or_unblock(placeholder.app, group, before)
        self.placed(placeholder)

    def resized(self, placeholder: Allocation, resource: Resource) -> None:
        """The resource manager gives a placeholder another size."""
        gang = placeholder.app.gang
        assert gang is not None
        shrink(gang.placed, placeholder.resource)
        grow(gang.placed, resource)

    @staticmethod
    def joined(allocation: Allocation) -> None:
        """A member of an atomic gang runs already: the others are like any requests then (decision 24)."""
        atomic = allocation.app.atomic
        if atomic is not None and not atomic.done and allocation.task_group:
            atomic.finish()
            atomic.let_go()

    def ended(self, placeholder: Allocation, *, replaced: bool) -> None:
        """A placeholder is no more."""
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

    def end(self, placeholder: Allocation, termination: TerminationType, message: str) -> None:
        """Have the resource manager end a placeholder; it counts until that is confirmed."""
        placeholder.ensure_extras().releasing = termination
        self._group(placeholder.app, placeholder).placeholders.pop(placeholder.uuid, None)
        self._outbox.releases.append(Release(placeholder, termination, message))

    def end_all(self, app: Application, message: str) -> None:
        """Have the resource manager end all placeholders that are of no use any more."""
        for placeholder in list(app.allocations.values()):
            if placeholder.placeholder and placeholder.releasing is None:
                self.end(placeholder, TerminationType.TIMEOUT, message)

    # -- taking a placeholder's place ---------------------------------------------------------------

    def replace(self, placeholder: Allocation, ask: Ask, node: Node) -> Allocation:
        """Let one repeat of `ask` take the placeholder's place, on its node or another: the first step."""
        real = self._accounting.promise(ask, node, self._clock.now())
        placeholder.ensure_extras().replacement, real.ensure_extras().replaces = real, placeholder
        if node is not placeholder.node:
            node.take(real)
            self._accounting.node_changed(node, gained=False)
        self.end(placeholder, TerminationType.PLACEHOLDER_REPLACED, f"replaced by {ask.key}")
        return real

    def conclude(self, placeholder: Allocation) -> bool:
        """The placeholder ends: the second step. Returns whether a real allocation took its place."""
        real, app = placeholder.replacement, placeholder.app
        assert real is not None
        on_its_node = real.node is placeholder.node
        lost = on_its_node and real.node.state == REMOVED
        if lost or app.leaving or app.state == FAILING:
            self.undo(real)
            return False
        placeholder.ensure_extras().replacement = real.ensure_extras().replaces = None
        real.placed = self._clock.now()
        self._accounting.enter(real, on_node=on_its_node)
        gang = app.gang
        assert gang is not None
        # The last placeholder lets an application start. Its first real allocation does not, also where other
        # placeholders still wait: as in YuniKorn 1.9 it is Accepted until the second.
        if app.state not in (ACCEPTED, STARTING, RUNNING) or len(app.allocations) > gang.placeholders + 1:
            self._accounting.start(app)
        self.announce(real)
        return True

    def undo(self, real: Allocation) -> None:
        """An allocation that was to take a placeholder's place will not: its request waits again.

        The placeholder still ends: the resource manager has been told already.
        """
        placeholder, ask, node = real.replaces, real.ask, real.node
        assert placeholder is not None
        assert ask is not None
        placeholder.ensure_extras().replacement = real.ensure_extras().replaces = None
        if node is not placeholder.node:
            node.give_back(real)
            self._accounting.node_changed(node, gained=True)
        ask.live -= 1
        if ask.app.asks.get(ask.key) is ask and not ask.app.leaving:
            self._accounting.pending_accounting.change_pending(ask, ask.pending + 1)
        else:
            ask.state = ASK.next(ask.label, ask.state, "ask")

    # -- time, and the end --------------------------------------------------------------------------

    def _time_out(self, app: Application, gang: Gang) -> None:
        gang.timer = None
        fails = False
        if not self._has_worked(app, gang) and app.state in (ACCEPTED, STARTING, RUNNING):
            fails = gang.style == HARD
            if fails:
                app.reason = TIMED_OUT
                app.fire("fail", TIMED_OUT)
            elif app.state == ACCEPTED:
                app.fire("resume", TIMED_OUT)
        elif app.state == ACCEPTED:
            app.run("its real allocations go on without the gang")
        self._drop_asks(app, placeholders_only=not fails)
        self.end_all(app, "releasing allocated placeholders on placeholder timeout")

    @staticmethod
    def _has_worked(app: Application, gang: Gang) -> bool:
        """Whether an application has, or had, a real allocation; of a gathered gang a promised one counts."""
        if gang.worked or len(app.allocations) > gang.placeholders:
            return True
        promised = any(placeholder.replacement is not None for placeholder in app.allocations.values())
        return promised and app.state != ACCEPTED

    def _drop_asks(self, app: Application, *, placeholders_only: bool) -> None:
        for ask in list(app.asks.values()):
            if placeholders_only and not ask.placeholder:
                continue
            if ask.placeholder:
                termination = TerminationType.TIMEOUT
                message = "releasing pending placeholders on placeholder timeout"
            else:
                # Its own time is not over: it ends because the application fails.
                termination = TerminationType.STOPPED_BY_RM
                message = f"application {app.id} failed: {TIMED_OUT}"
            if ask.pending or self.promised(ask):
                self._outbox.ask_releases.append(AskRelease(app.id, ask.key, termination, message))
                self._accounting.pending_accounting.drop(ask, termination, message)

    def rest(self, app: Application, gone: Allocation) -> None:
        """An allocation of an application with a gang ended: see what that means for its state."""
        gang = app.gang
        if app.leaving or gang is None:
            return
        if not gone.placeholder:
            gang.worked = True
            self._accounting.recount(app)
        if app.state == FAILING:
            app.conclude()
        elif app.state == RESUMING:
            if not gang.placeholders:
                # With nothing real asked for yet it stays Accepted, for the tasks that come.
                app.run("all placeholders are released")
        elif app.state == COMPLETING:
            if not gang.placeholders and app.timer is not None and app.timer.call is None:
                app.fire("complete", "all placeholders are released")
        elif not gone.placeholder and len(app.allocations) == gang.placeholders and not app.has_waiting:
            app.fire("complete", "no requests and no real allocations left")
        else:
            app.conclude()

    def close(self, app: Application) -> None:
        """An application leaves: nothing is to happen to its gang any more."""
        if app.gang is not None:
            app.gang.stop_timer()
