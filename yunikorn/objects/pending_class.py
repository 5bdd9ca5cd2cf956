"""Pending classes: the requests of one ask class under the same limits, with a pair of bits of their own.

Nodes answer by ask class; limits of users and groups answer by owner. What queues keep of "is there
anything worth trying here?" are bits of pending classes, and "may anything of this pending class be placed
now?" is one
bit in `PendingClasses.open`, whether it is closed because no node has room or because a user has enough.

The second bit of the pair stands for the same requests of applications that have not started: they need
a place among the running applications too, and where that is full only their bit is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from yunikorn.objects.ask_class import AskClass, AskClasses

if TYPE_CHECKING:
    from yunikorn.objects.usage_tracker import UsageTracker

IDLE_PENDING_CLASSES = 256
"""Pending classes without a waiting request that are kept for the next one, before all idle ones are
dropped.
"""


@lru_cache(maxsize=64)
def _not_started_mask(pairs: int) -> int:
    return sum(2 << (2 * pair) for pair in range(pairs))


def not_started_part(bits: int) -> int:
    """Of these bits, those of applications that have not started."""
    return bits & _not_started_mask((bits.bit_length() // 128 + 1) * 64)


class PendingClass:
    """Requests of one ask class with the same owner: the limits that count for them."""

    __slots__ = ("ask_class", "asks", "bit", "bits", "force_visit", "over_limit", "owner")

    def __init__(
        self, ask_class: AskClass, owner: tuple[UsageTracker, ...], bit: int, *, insists: bool
    ) -> None:
        self.ask_class = ask_class
        self.owner = owner
        self.bit = bit
        self.bits = bit | bit << 1
        self.asks = 0
        """Waiting requests of this pending class."""
        self.over_limit = False
        """Whether a limit on resources leaves no room for it."""
        self.force_visit = insists
        """Whether its requests have their turn although there is no room (see `AtomicGang.insists`)."""


class PendingClasses:
    """The live pending classes of a partition."""

    def __init__(self, ask_classes: AskClasses) -> None:
        self.ask_classes = ask_classes
        self._free: list[int] = []
        self._used = 0
        self._pending_classes = 0
        self._idle = 0
        self.schedulable = 0
        """Bits of the pending classes of which a request may be placed now, as far as is known."""
        self.times_full = 0
        """Counts how often as many applications came to run under a limit as may."""
        self.on_forget: list[Callable[[int], None]] = []
        """Called with the bits of dropped pending classes, before the bits serve again."""
        ask_classes.on_drop.append(self._drop)

    def of(
        self, ask_class: AskClass, owner: tuple[UsageTracker, ...], *, insists: bool = False
    ) -> PendingClass:
        """The pending class of requests of `ask_class` by `owner`; of those that insist on their turn,
        another.
        """
        key = (*owner, None) if insists else owner
        pending_class = ask_class.pending_classes.get(key)
        if pending_class is None:
            if self._idle >= IDLE_PENDING_CLASSES and self._idle * 2 > self._pending_classes:
                for one in list(self.ask_classes):
                    self._drop(one)
            if self._free:
                bit = self._free.pop()
            else:
                bit = 1 << 2 * self._used
                self._used += 1
            pending_class = ask_class.pending_classes[key] = PendingClass(
                ask_class, owner, bit, insists=insists
            )
            for tracker in owner:
                tracker.pending_classes[bit] = pending_class
            self._pending_classes += 1
            self._idle += 1
            self.refresh(pending_class)
        return pending_class

    def refresh(self, pending_class: PendingClass) -> None:
        """Open or close the bits of a pending class by all that is known of it."""
        if (
            pending_class.ask_class.unschedulable or pending_class.over_limit
        ) and not pending_class.force_visit:
            self.schedulable &= ~pending_class.bits
        elif any(tracker.full for tracker in pending_class.owner):
            self.schedulable = self.schedulable & ~pending_class.bits | pending_class.bit
        else:
            self.schedulable |= pending_class.bits

    def wait(self, pending_class: PendingClass) -> None:
        """One more request of this pending class waits."""
        if not pending_class.asks:
            self._idle -= 1
            self.ask_classes.wait(pending_class.ask_class)
        pending_class.asks += 1

    def leave(self, pending_class: PendingClass) -> None:
        """One request of this pending class waits no more."""
        pending_class.asks -= 1
        if not pending_class.asks:
            self._idle += 1
            self.ask_classes.leave(pending_class.ask_class)

    # -- nodes --------------------------------------------------------------------------------------

    def mark_unschedulable(self, ask_class: AskClass) -> None:
        """No node has room for this ask class, until `mark_schedulable`."""
        self.ask_classes.mark_unschedulable(ask_class)
        for pending_class in ask_class.pending_classes.values():
            if not pending_class.force_visit:
                self.schedulable &= ~pending_class.bits

    def mark_schedulable(self, ask_class: AskClass) -> None:
        """Some node may have room for this ask class again."""
        if ask_class.unschedulable:
            self.ask_classes.mark_schedulable(ask_class)
            for pending_class in ask_class.pending_classes.values():
                self.refresh(pending_class)

    # -- limits -------------------------------------------------------------------------------------

    def mark_over_limit(self, pending_class: PendingClass, tracker: UsageTracker) -> None:
        """A limit has no room for this pending class, until `room_grew`."""
        pending_class.over_limit = True
        tracker.over_limit[pending_class.bit] = pending_class
        self.schedulable &= ~pending_class.bits

    def room_grew(self, tracker: UsageTracker) -> None:
        """Usage under a limit fell: try again what has room now."""
        for bit, pending_class in list(tracker.over_limit.items()):
            if tracker.has_room(pending_class.ask_class.pairs):
                del tracker.over_limit[bit]
                pending_class.over_limit = False
                self.refresh(pending_class)

    def count_changed(self, tracker: UsageTracker) -> None:
        """The number of applications that run under a limit changed."""
        full = tracker.is_full
        if full != tracker.full:
            tracker.full = full
            self.times_full += full
            for pending_class in tracker.pending_classes.values():
                self.refresh(pending_class)

    def reconsider(self) -> None:
        """Policies or limits changed: whatever was tried in vain is worth trying again."""
        for ask_class in self.ask_classes:
            self.ask_classes.mark_schedulable(ask_class)
            for pending_class in ask_class.pending_classes.values():
                pending_class.over_limit = False
                for tracker in pending_class.owner:
                    tracker.over_limit.pop(pending_class.bit, None)
                self.refresh(pending_class)

    # -- forgetting ---------------------------------------------------------------------------------

    def _drop(self, ask_class: AskClass) -> None:
        """Drop the pending classes of an ask class that no request waits for."""
        gone = 0
        for key, pending_class in list(ask_class.pending_classes.items()):
            if not pending_class.asks:
                del ask_class.pending_classes[key]
                for tracker in pending_class.owner:
                    tracker.pending_classes.pop(pending_class.bit, None)
                    tracker.over_limit.pop(pending_class.bit, None)
                self._free.append(pending_class.bit)
                self._pending_classes -= 1
                self._idle -= 1
                gone |= pending_class.bits
        if gone:
            self.schedulable &= ~gone
            for forget in self.on_forget:
                forget(gone)
