"""Parking: requests that nodes with room refused, to be tried again when something has changed.

A refusal by a predicate that does not say what it depends on may be undone by any commit, release or
change of a node (decision 40). Trying after each of them would waste the time of all others, so the
distance doubles with every refusal; when there is nothing else to decide, whatever has not been tried
since the last change is tried all the same. Without a change nothing is tried: an idle cycle is free.
Only where a predicate says that its answers change without the core's knowing (`refresh_every`), as those
of resource managers do, the time that it names passes for a change.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND
from yunikorn.objects.ask import Ask

if TYPE_CHECKING:
    from yunikorn.clock import Timer, Timers
    from yunikorn.objects.allocation_accounting import AllocationAccounting
    from yunikorn.objects.ask_class import AskClass
    from yunikorn.objects.pending_class import PendingClasses
    from yunikorn.scheduling.predicate_chain import PredicateChain

LONGEST = 16
"""Changes that are waited for at the most."""
IDLE_TRIES = 64
"""Requests that are tried in one go because there is nothing else to do."""
IDLE_PAUSE = SECOND
"""After which the next of them are tried, even if nothing has changed since."""


class _Waiting:
    """An ask, or a whole ask class, that waits."""

    __slots__ = ("at", "item", "waits")

    def __init__(self, item: Ask | AskClass, at: int) -> None:
        self.item = item
        self.at = at
        """The change after which it was last tried."""
        self.waits = True


class UnschedulableQueue:
    """Asks, and whole ask classes, that wait for a change."""

    def __init__(
        self,
        accounting: AllocationAccounting,
        pending_classes: PendingClasses,
        timers: Timers,
        predicates: PredicateChain,
    ) -> None:
        self.predicates = predicates
        self._accounting = accounting
        self._pending_classes = pending_classes
        self._timers = timers
        self.by_due: list[tuple[int, int, _Waiting]] = []
        """All that waits for a change, as a heap by the time from which it is tried again without one."""
        self._by_age: deque[_Waiting] = deque()
        """The same, whoever was tried longest ago first; those woken meanwhile are skipped."""
        self._count = 0
        self._idle_at = -1
        self._idle_left = 0
        self._pause: Timer | None = None
        self._looks = 0
        """How often time has passed for a change."""
        self._look: Timer | None = None

    @property
    def looks_again(self) -> bool:
        """Whether time alone will have something tried again."""
        return self._look is not None

    @property
    def _changes(self) -> int:
        return self._accounting.changes + self._looks

    def mark_unschedulable(self, item: Ask | AskClass) -> None:
        """Wait for a change: an ask is taken out of the running, an ask class has been closed already."""
        now = self._changes
        entry = _Waiting(item, now)
        self._count += 1
        heapq.heappush(self.by_due, (now + min(LONGEST, 2 ** min(item.tries, 8)), self._count, entry))
        self._by_age.append(entry)
        if len(self._by_age) > 2 * len(self.by_due) + IDLE_TRIES:
            self._by_age = deque(entry for entry in self._by_age if entry.waits)
        item.tried()
        refresh = self.predicates.refresh
        if refresh is not None and self._look is None:
            self._look = self._timers.after(refresh, self._look_again)

    def activate_due(self) -> None:
        """Bring back what has waited long enough."""
        heap, changes = self.by_due, self._changes
        while heap and heap[0][0] <= changes:
            self._activate(heapq.heappop(heap)[2])

    def activate_idle(self) -> bool:
        """With nothing else to do: bring back the next that has not been tried since the last change.

        After so many the others have to wait, until something changes or a pause is over: a backlog of
        any size must not hold up what comes next, and none of it may be forgotten.
        """
        entries, changes = self._by_age, self._changes
        if self._idle_at != changes:
            self._idle_at, self._idle_left = changes, IDLE_TRIES
        while entries and (entries[0].at != changes or not entries[0].waits):
            if entries[0].waits and not self._idle_left:
                if self._pause is None:
                    self._pause = self._timers.after(IDLE_PAUSE, self._go_on)
                return False
            if self._activate(entries.popleft()):
                self._idle_left -= 1
                return True
        return False

    def _go_on(self) -> None:
        self._pause, self._idle_at = None, -1

    def _look_again(self) -> None:
        self._look = None
        self._looks += 1

    def _activate(self, entry: _Waiting) -> bool:
        if not entry.waits:
            return False
        entry.waits = False
        item = entry.item
        if isinstance(item, Ask):
            if not item.unschedulable:
                return False
            self._accounting.pending_accounting.activate(item)
            return True
        self._pending_classes.mark_schedulable(item)
        return True
