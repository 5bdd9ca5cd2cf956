"""The watch list: queues and nodes with requests that may preempt, and when each is worth a look.

A look is due when a request comes of age, and again once something has changed since the last look in
vain, but not within `SPACING` of it. Nothing is due while nothing changes: no timer is set then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from yunikorn.clock import Timer, Timers
    from yunikorn.objects.allocation_accounting import AllocationAccounting

from yunikorn.clock import SECOND
from yunikorn.resources import INT64_MAX

SPACING = 15 * SECOND
"""Time between two attempts for one request (facts §9.2)."""
NEVER = INT64_MAX

S = TypeVar("S")


class Watch(Generic[S]):
    """One entry of the list."""

    __slots__ = ("retry", "ripe", "seen", "subject")

    def __init__(self, subject: S, ripe: int) -> None:
        self.subject = subject
        self.ripe = ripe
        """When the next request comes of age (ns)."""
        self.retry = NEVER
        """When another look is allowed, if something has changed (ns)."""
        self.seen = -1
        """The accounting's count of changes at the last look."""

    def is_due(self, now: int, changes: int) -> bool:
        """Whether to look now."""
        return now >= self.ripe or (changes != self.seen and now >= self.retry)


class Watchlist(Generic[S]):
    """All entries of a partition."""

    def __init__(self, timers: Timers, accounting: AllocationAccounting) -> None:
        self._timers = timers
        self._accounting = accounting
        self._watches: dict[S, Watch[S]] = {}
        self._ripe = self._retry = NEVER
        self._seen = -1
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._watches)

    def __contains__(self, subject: S) -> bool:
        return subject in self._watches

    def notice(self, subject: S, ripe: int) -> None:
        """A request of `subject` comes of age at `ripe`."""
        watch = self._watches.get(subject)
        if watch is None:
            self._watches[subject] = Watch(subject, ripe)
        elif ripe < watch.ripe:
            watch.ripe = ripe
        if ripe < self._ripe:
            self._ripe = ripe
            self._alarm(ripe)

    def due(self, now: int) -> list[Watch[S]]:
        """What to look at now, in the order in which it was noticed."""
        changes = self._accounting.changes
        if now < self._ripe and (changes == self._seen or now < self._retry):
            if changes != self._seen:
                self._alarm(self._retry)
            return []
        return [watch for watch in self._watches.values() if watch.is_due(now, changes)]

    def is_due(self, now: int) -> bool:
        """Whether a look is due by time, without a change."""
        return now >= self._ripe and bool(self._watches)

    def looked(self, watch: Watch[S], *, ripe: int, retry: int) -> None:
        """Schedule the next look: at `ripe`, or from `retry` on after a further change."""
        watch.ripe, watch.retry = ripe, retry
        watch.seen = self._accounting.changes

    def drop(self, subject: S) -> None:
        """Nothing of it waits any more."""
        self._watches.pop(subject, None)

    def clear(self) -> None:
        """Start anew."""
        self._watches.clear()

    def set_timer(self) -> None:
        """All that was due has been looked at: work out when the next look is due."""
        changes = self._seen = self._accounting.changes
        watches = self._watches.values()
        self._retry = min((watch.retry for watch in watches), default=NEVER)
        changed = min((watch.retry for watch in watches if watch.seen != changes), default=NEVER)
        self._ripe = min(changed, min((watch.ripe for watch in watches), default=NEVER))
        self._alarm(self._ripe)

    def _alarm(self, due: int) -> None:
        # The timer does nothing but have whoever drives the scheduler come back by then.
        timer = self._timer
        if due == NEVER or (timer is not None and timer.call is not None and timer.due <= due):
            return
        if timer is not None:
            timer.cancel()
        self._timer = self._timers.at(due, lambda: None)
