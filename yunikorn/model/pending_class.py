"""Pending classes: requests of one ask class under the same user and group limits, each with two bits.

Nodes answer by ask class, and limits apply by user and group. Queues record the pending classes of
their schedulable requests as bits. `PendingClasses.schedulable` has the bits of all pending classes that may
be placed now; a bit is cleared if no request waits, if no node has room, or if a user or group limit is
exhausted.

The second bit represents the same requests in applications that have not started. These also need to be
within the limits on running applications. Where such a limit is reached, only the second bit is cleared.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from yunikorn.model.ask_class import AskClass, AskClasses

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.model.usage_tracker import UsageTracker

IDLE_PENDING_CLASSES = 256
"""Number of idle pending classes (without waiting requests) that are kept for reuse before all idle ones
are dropped."""


@lru_cache(maxsize=64)
def _not_started_mask(pairs: int) -> int:
    return sum(2 << (2 * pair) for pair in range(pairs))


def not_started_part(bits: int) -> int:
    """Return the subset of `bits` that represents applications that have not started."""
    return bits & _not_started_mask((bits.bit_length() // 128 + 1) * 64)


class PendingClass:
    """Requests of one ask class to which the same limits of users and groups apply."""

    __slots__ = ("ask_class", "asks", "bit", "bits", "force_visit", "limit_trackers", "over_limit")

    def __init__(
        self, ask_class: AskClass, limit_trackers: tuple[UsageTracker, ...], bit: int, *, force_visit: bool
    ) -> None:
        self.ask_class = ask_class
        self.limit_trackers = limit_trackers
        self.bit = bit
        self.bits = bit | bit << 1
        self.asks = 0
        """Number of waiting requests."""
        self.over_limit = False
        """True if a limit on resources leaves no room."""
        self.force_visit = force_visit
        """True if the requests must be tried even if there is no room (see `AtomicGang.force_visit`)."""


class PendingClasses:
    """The pending classes of a partition."""

    def __init__(self, ask_classes: AskClasses, bits_dropped: list[Callable[[int], None]]) -> None:
        """Create without pending classes; `bits_dropped` are called with the bits of dropped ones."""
        self.ask_classes = ask_classes
        self._bits_dropped = bits_dropped
        self._by_length: dict[int, PendingClass] = {}
        """Pending classes by the length of their bit: many powers of 2 have the same hash."""
        self._free: list[int] = []
        self._used = 0
        self.made = 0
        """Number of pending classes created so far."""
        self._idle = 0
        self.schedulable = 0
        """Bits of the pending classes whose requests may be placed now, as far as is known."""
        self.times_full = 0
        """Incremented whenever a limit reaches its maximum of running applications."""
        ask_classes.dropped.append(self._drop)

    def of(
        self, ask_class: AskClass, limit_trackers: tuple[UsageTracker, ...], *, force_visit: bool = False
    ) -> PendingClass:
        """Return the pending class of requests of `ask_class` under these limits.

        Gangs with `force_visit` have a pending class of their own.
        """
        key = (*limit_trackers, None) if force_visit else limit_trackers
        pending_class = ask_class.pending_classes.get(key)
        if pending_class is None:
            if self._idle >= IDLE_PENDING_CLASSES and self._idle * 2 > len(self._by_length):
                for one in list(self.ask_classes):
                    self._drop(one)
            if self._free:
                bit = self._free.pop()
            else:
                bit = 1 << 2 * self._used
                self._used += 1
            pending_class = PendingClass(ask_class, limit_trackers, bit, force_visit=force_visit)
            ask_class.pending_classes[key] = self._by_length[bit.bit_length()] = pending_class
            for tracker in limit_trackers:
                tracker.pending_bits[bit] = None
            self.made += 1
            self._idle += 1
            self.refresh(pending_class)
        return pending_class

    def refresh(self, pending_class: PendingClass) -> None:
        """Set or clear the bits of a pending class according to the present state of nodes and limits."""
        if (
            pending_class.ask_class.unschedulable or pending_class.over_limit
        ) and not pending_class.force_visit:
            self.schedulable &= ~pending_class.bits
        else:
            self.schedulable |= pending_class.bits
            for tracker in pending_class.limit_trackers:
                if tracker.full:
                    self.schedulable &= ~(pending_class.bit << 1)
                    break

    def wait(self, pending_class: PendingClass) -> None:
        """Count a new waiting request of this pending class."""
        if not pending_class.asks:
            self._idle -= 1
            ask_class = pending_class.ask_class
            self.ask_classes.wait(ask_class)
            if pending_class.limit_trackers or ask_class.unschedulable:
                self.refresh(pending_class)
            else:
                self.schedulable |= pending_class.bits
        pending_class.asks += 1

    def leave(self, pending_class: PendingClass) -> None:
        """Count a request of this pending class that no longer waits."""
        pending_class.asks -= 1
        if not pending_class.asks:
            self._idle += 1
            self.ask_classes.leave(pending_class.ask_class)
            # Queues keep the bits of past requests; cleared here, no descent looks for the requests.
            self.schedulable &= ~pending_class.bits

    # -- nodes --------------------------------------------------------------------------------------

    def mark_unschedulable(self, ask_class: AskClass) -> None:
        """Record that no node has room for this ask class, until `mark_schedulable`."""
        self.ask_classes.mark_unschedulable(ask_class)
        for pending_class in ask_class.pending_classes.values():
            if not pending_class.force_visit:
                self.schedulable &= ~pending_class.bits

    def mark_schedulable(self, ask_class: AskClass) -> None:
        """Record that some node may have room for this ask class."""
        if ask_class.unschedulable:
            self.ask_classes.mark_schedulable(ask_class)
            for pending_class in ask_class.pending_classes.values():
                self.refresh(pending_class)

    # -- limits -------------------------------------------------------------------------------------

    def under(self, tracker: UsageTracker) -> list[PendingClass]:
        """Return the pending classes under the limit of a user or group, in order of creation."""
        return [self._by_length[bit.bit_length()] for bit in tracker.pending_bits]

    def mark_over_limit(self, pending_class: PendingClass, tracker: UsageTracker) -> None:
        """Record that a limit has no room for this pending class, until `room_grew`."""
        pending_class.over_limit = True
        tracker.over_limit[pending_class.bit] = None
        self.schedulable &= ~pending_class.bits

    def room_grew(self, tracker: UsageTracker) -> None:
        """Reopen the pending classes that have room after usage under a limit fell."""
        for bit in list(tracker.over_limit):
            pending_class = self._by_length[bit.bit_length()]
            if tracker.has_room(pending_class.ask_class.pairs):
                del tracker.over_limit[bit]
                pending_class.over_limit = False
                self.refresh(pending_class)

    def count_changed(self, tracker: UsageTracker) -> None:
        """Update the bits after the number of running applications under a limit changed."""
        full = tracker.is_full
        if full != tracker.full:
            tracker.full = full
            self.times_full += full
            for pending_class in self.under(tracker):
                self.refresh(pending_class)

    def reconsider(self) -> None:
        """Make all pending classes schedulable again after policies or limits changed."""
        for ask_class in self.ask_classes:
            self.ask_classes.mark_schedulable(ask_class)
            for pending_class in ask_class.pending_classes.values():
                pending_class.over_limit = False
                for tracker in pending_class.limit_trackers:
                    tracker.over_limit.pop(pending_class.bit, None)
                self.refresh(pending_class)

    # -- idle pending classes -----------------------------------------------------------------------

    def _drop(self, ask_class: AskClass) -> None:
        """Drop the idle pending classes of an ask class."""
        gone = 0
        for key, pending_class in list(ask_class.pending_classes.items()):
            if not pending_class.asks:
                del ask_class.pending_classes[key]
                for tracker in pending_class.limit_trackers:
                    tracker.pending_bits.pop(pending_class.bit, None)
                    tracker.over_limit.pop(pending_class.bit, None)
                del self._by_length[pending_class.bit.bit_length()]
                self._free.append(pending_class.bit)
                self._idle -= 1
                gone |= pending_class.bits
        if gone:
            self.schedulable &= ~gone
            for forget in self._bits_dropped:
                forget(gone)
