"""Formation of Atomic gangs: choice of the members, and the request that represents them."""

from __future__ import annotations

from bisect import bisect_left, insort
from operator import attrgetter
from typing import TYPE_CHECKING

from yunikorn.model.ask import Ask, AskSpec
from yunikorn.model.gang import GangClass, GangGrowth
from yunikorn.resources import grow

if TYPE_CHECKING:
    from yunikorn.accounting.changes import Changes
    from yunikorn.accounting.pending_accounting import PendingAccounting
    from yunikorn.model.ask_class import PendingClasses
    from yunikorn.model.gang import AtomicGang

_ORDER = attrgetter("order")


class GangFormation:
    """Atomic gangs of one partition, from their first ask to their placement."""

    def __init__(
        self,
        pending_accounting: PendingAccounting,
        pending_classes: PendingClasses,
        changes: Changes,
    ) -> None:
        self._pending_accounting = pending_accounting
        self._pending_classes = pending_classes
        self._changes = changes
        self.overdue: dict[AtomicGang, None] = {}
        """Overdue gangs, which hold back later requests (an ordered set)."""
        self.unformed: dict[AtomicGang, None] = {}
        """Gangs whose members must be chosen again before the next decision (an ordered set)."""

    def form_again(self) -> None:
        """Choose the members of the gangs that lost members."""
        gangs, self.unformed = self.unformed, {}
        for gang in gangs:
            self.choose_members(gang)

    def count(self, gang: AtomicGang, ask: Ask, difference: int) -> None:
        """Add `difference` to the pending replicas of a member."""
        gang = gang.part_of(ask.task_group)
        if gang.done:
            return
        grow(gang.arrived, ask.resource, difference)
        if ask.pending == difference:
            insort(gang.asks, ask, key=_ORDER)
        elif not ask.pending:
            del gang.asks[bisect_left(gang.asks, ask.order, key=_ORDER)]
        # Members are chosen once: later asks add no members, and only the loss of a member requires a new
        # choice.
        if isinstance(gang, GangGrowth):
            gang.waiting += difference
            if ask.pending < gang.needed.get(ask.key, 0):
                self._withdraw(gang)
            self.form_soon(gang)
        elif difference > 0:
            if not gang.members and gang.is_whole:
                self.form(gang)
        elif ask.pending < gang.needed.get(ask.key, 0):
            self._miss(gang)

    def _miss(self, gang: AtomicGang) -> None:
        """Choose other members after a loss: once for all losses before the next decision."""
        if not gang.is_whole:
            self.form(gang)
        else:
            self._withdraw(gang)
            self.form_soon(gang)

    def form_soon(self, gang: AtomicGang) -> None:
        """Choose the members before the next decision."""
        gang.is_unformed = True
        self.unformed[gang] = None

    def choose_members(self, gang: AtomicGang) -> None:
        """Choose the members of a gang now if a choice is outstanding."""
        if gang.is_unformed:
            self.form(gang)

    def form(self, gang: AtomicGang, *, alone: bool | None = None) -> None:
        """Create the request that represents the members of a gang, if the gang is whole.

        `alone` gives the gang an ask class of its own, so that search results are not shared with similar
        gangs.
        """
        gang.is_unformed = False
        for part in gang.growth.values():
            self.form(part)
        if gang.held:
            return
        eviction = None if gang.request is None else gang.request.eviction
        self._withdraw(gang)
        if alone is not None:
            gang.alone = alone
        if gang.done or not gang.is_whole:
            gang.members, gang.needed = [], {}
            self._stop_waiting(gang)
            self.tell_left(gang)
            return
        gang.members, amount = gang.choose()
        gang.needed = {ask.key: count for ask, count in gang.members}
        if not gang.members:
            # Only an application that must be accepted can have a size below 0; no member is needed then.
            self.finish(gang)
            self.unblock_rest(gang)
            return
        if gang.is_too_large:
            self._stop_waiting(gang)
            self._changes.remarked(gang.app, "GangTooLarge", gang.too_large)
            return
        first = gang.members[0][0]
        spec = AskSpec(may_preempt=all(ask.may_preempt for ask, _ in gang.members))
        name = f"{gang.noun} of {gang.app.id}"
        request = Ask(name, gang.app, amount, 1, first.priority, first.created, first.arrival, spec)
        request.sort_key = first.sort_key
        ask_class = self._pending_classes.ask_classes.of(amount, classes=gang.classes(), kind=GangClass)
        assert isinstance(ask_class, GangClass)
        ask_class.members = tuple(dict.fromkeys(ask.ask_class for ask, _ in gang.members))
        trackers, growth = gang.app.limit_trackers, not gang.may_hold_back
        request.pending_class = self._pending_classes.of(
            ask_class, trackers, force_visit=gang.force_visit, growth=growth
        )
        extras = request.ensure_extras()
        extras.gang, extras.eviction = gang, eviction
        if eviction is not None:
            eviction.ask, eviction.made = request, 0
        gang.request = request
        self._pending_accounting.offer(request)

    def set_force_visit(self, gang: AtomicGang, *, wanted: bool) -> None:
        """Set whether the request must be tried, by moving the request to another pending class."""
        request = gang.request
        if request is not None and request.pending_class.force_visit != wanted:
            self._pending_accounting.withdraw(request)
            request.pending_class = self._pending_classes.of(
                request.ask_class, gang.app.limit_trackers, force_visit=wanted
            )
            self._pending_accounting.offer(request)

    def _withdraw(self, gang: AtomicGang) -> None:
        if gang.request is not None:
            request, gang.request = gang.request, None
            self._pending_accounting.withdraw(request)
            request.pending = 0

    def _stop_waiting(self, gang: AtomicGang) -> None:
        """Stop waiting for room; the patience of the gang starts over with the next attempt."""
        if gang.deadline is not None:
            gang.deadline.cancel()
            gang.deadline = None
        if gang.overdue:
            for look_again in self._changes.readers.more_to_try:
                look_again()
        gang.overdue = gang.reported = gang.alone = False
        gang.first_try = gang.relaxes_at = None
        self.overdue.pop(gang, None)

    def tell_left(self, gang: AtomicGang) -> None:
        """Tell that a gang waits no more, without having been placed."""
        for left in self._changes.readers.gang_left:
            left(gang)

    def hold(self, gang: AtomicGang) -> None:
        """Keep the asks of a gang blocked whose members are placed, until `finish` or `resume`."""
        gang.held = True
        self._withdraw(gang)
        self._stop_waiting(gang)

    def resume(self, gang: AtomicGang, *, refused: bool) -> None:
        """Choose the members of a gang again whose placement was taken back, or `refused` by a policy."""
        gang.held = False
        gang.refusals = gang.refusals + 1 if refused else 0
        if not gang.done:
            self.form(gang, alone=refused)

    def finish(self, gang: AtomicGang) -> None:
        """Mark a gang as placed and withdraw the request that represents its members."""
        gang.done, gang.held = not isinstance(gang, GangGrowth), False
        self._withdraw(gang)
        self._stop_waiting(gang)

    def restart(self, gang: AtomicGang) -> None:
        """Wait for all members again, because those that ran are ending together."""
        gang.done = False
        for part in gang.growth.values():
            part.asks, part.waiting = [], 0
            self.form(part)
        gang.growth = {}
        gang.arrived, gang.members, gang.needed = {}, [], {}
        waiting = gang.asks = [ask for ask in gang.app.asks.values() if ask.pending and ask.task_group]
        for ask in waiting:
            self._pending_accounting.block_for_gang(ask)
        for restarted in self._changes.readers.gang_restarted:
            restarted(gang)
        gang.asks = []
        for ask in waiting:
            self.count(gang, ask, ask.pending)

    def unblock_rest(self, gang: AtomicGang) -> None:
        """Treat the remaining waiting asks of a gang as ordinary requests, or as those of further steps."""
        for finished in self._changes.readers.gang_finished:
            finished(gang)
        if gang.app.core is not None:
            gang.app.core.assign()
        if isinstance(gang, GangGrowth):
            for ask, count in gang.members:
                gang.waiting -= count
                if not ask.pending:
                    del gang.asks[bisect_left(gang.asks, ask.order, key=_ORDER)]
            self.form_soon(gang)
            return
        for ask in gang.asks:
            if not ask.gang_blocked:
                continue
            if gang.part_of(ask.task_group) is gang:
                self._pending_accounting.unblock_for_gang(ask)
            else:
                self.count(gang, ask, ask.pending)
        gang.asks.clear()
