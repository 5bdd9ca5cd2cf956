"""Formation of Atomic gangs: choice of the members, and the request that represents them."""

from __future__ import annotations

from bisect import bisect_left, insort
from operator import attrgetter
from typing import TYPE_CHECKING

from yunikorn.model.ask import Ask, AskSpec
from yunikorn.model.gang import GangClass
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
        self.overdue: dict[str, AtomicGang] = {}
        """Overdue gangs, which hold back later requests, by application id."""
        self.unformed: dict[str, AtomicGang] = {}
        """Gangs whose members must be chosen again before the next decision, by application id."""

    def form_again(self) -> None:
        """Choose the members of the gangs that lost members."""
        gangs, self.unformed = list(self.unformed.values()), {}
        for gang in gangs:
            self.choose_members(gang)

    def count(self, gang: AtomicGang, ask: Ask, difference: int) -> None:
        """Add `difference` to the pending replicas of a member."""
        if gang.done:
            return
        grow(gang.arrived, ask.resource, difference)
        if ask.pending == difference:
            insort(gang.asks, ask, key=_ORDER)
        elif not ask.pending:
            del gang.asks[bisect_left(gang.asks, ask.order, key=_ORDER)]
        # Members are chosen once: later asks add no members, and only the loss of a member requires a new
        # choice.
        if difference > 0:
            if not gang.members and gang.is_whole:
                self.form(gang)
        elif ask.pending < gang.needed.get(ask.key, 0):
            self._miss(gang)

    def _miss(self, gang: AtomicGang) -> None:
        """Choose other members after a loss: once for all losses before the next decision."""
        if not gang.is_whole:
            self.form(gang)
        elif not gang.is_unformed:
            self._withdraw(gang)
            gang.is_unformed = True
            self.unformed[gang.app.id] = gang

    def choose_members(self, gang: AtomicGang) -> None:
        """Choose the members of a gang now if a choice is outstanding."""
        if gang.is_unformed:
            self.form(gang)

    def form(self, gang: AtomicGang, *, alone: bool | None = None) -> None:
        """Create the request that represents the members of a gang, if the gang is whole.

        `alone` gives the gang an ask class of its own, so that search results are not shared with similar
        gangs.
        """
        if gang.held:
            return
        self._withdraw(gang)
        gang.is_unformed = False
        if alone is not None:
            gang.alone = alone
        if gang.done or not gang.is_whole:
            gang.members, gang.needed = [], {}
            self._stop_waiting(gang)
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
        # Victims for one member would end for nothing if there is no room for the next member.
        spec = AskSpec(may_preempt=False)
        name = f"gang of {gang.app.id}"
        request = Ask(name, gang.app, amount, 1, first.priority, first.created, first.arrival, spec)
        request.sort_key = first.sort_key
        ask_class = self._pending_classes.ask_classes.of(amount, classes=gang.classes(), kind=GangClass)
        assert isinstance(ask_class, GangClass)
        ask_class.members = tuple(dict.fromkeys(ask.ask_class for ask, _ in gang.members))
        request.pending_class = self._pending_classes.of(
            ask_class, gang.app.limit_trackers, force_visit=gang.force_visit
        )
        request.ensure_extras().gang = gang
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
        self.overdue.pop(gang.app.id, None)

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
        gang.done, gang.held = True, False
        self._withdraw(gang)
        self._stop_waiting(gang)

    def unblock_rest(self, gang: AtomicGang) -> None:
        """Treat the remaining waiting asks of a gang as ordinary requests."""
        for finished in self._changes.readers.gang_finished:
            finished(gang)
        for ask in gang.asks:
            if ask.gang_blocked:
                self._pending_accounting.unblock_for_gang(ask)
        gang.asks.clear()
