"""Unschedulable queue and back-off: requests and applications that are tried again later.

The unschedulable queue has requests that nodes with room refused, to be tried again after a change. Any
allocation, release or change of a node may undo the refusal of a predicate that does not declare its
dependencies (`docs/decisions/0040`). Retrying after each change would starve other requests, so the number of
changes to wait for doubles with every refusal. When the cycle is otherwise idle, it retries all requests that
have not been tried since the last change. Without a change nothing is retried: an idle cycle costs nothing.
Predicates whose answers change independently of the core, such as those of resource managers, set
`refresh_every`; an elapsed interval then counts as a change.

After repeated failed requests, an application is not tried for a while (`AppBackoff`). The queue properties
are `application.unschedasks.backoff` (count) and `.delay`, as in YuniKorn 1.9. A request counts each time it
is tried and no node accepts it; requests of an ask class marked unschedulable are not tried and do not count.
Each allocation resets the count. A timer ends the back-off; until then the cycle skips the application.
Reservations of the application are still served.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND
from yunikorn.config.durations import describe_duration
from yunikorn.model.ask import Ask

if TYPE_CHECKING:
    from yunikorn.accounting.allocation_accounting import AllocationAccounting
    from yunikorn.accounting.partition import Partition
    from yunikorn.clock import Timer, Timers
    from yunikorn.model.application import Application
    from yunikorn.model.ask_class import AskClass, PendingClasses
    from yunikorn.resources import Resource
    from yunikorn.scheduling.node_orders import NodeOrders


class AppBackoff:
    """Starts and ends the back-off of the applications of one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def record_miss(self, app: Application) -> None:
        """Count a request of `app` that no node accepted; start the back-off at the configured number."""
        settings = app.chain[0].settings
        if not settings.backoff_count:
            return
        app.misses += 1
        if app.misses < settings.backoff_count:
            return
        misses, app.misses = app.misses, 0
        if app.backoff_timer is None:
            app.backoff_timer = self._partition.timers.after(settings.backoff_delay, lambda: self.wake(app))
            app.paused = True
            app.mark_dirty()
            after = describe_duration(settings.backoff_delay)
            message = (
                f"{misses} requests in a row found no node: the application is tried again after {after}"
            )
            self._partition.changes.noted(app, "BackOff", message)

    def wake(self, app: Application) -> None:
        """End the back-off of `app`; no effect without one."""
        if app.backoff_timer is not None:
            app.backoff_timer.cancel()
            app.backoff_timer = None
            app.paused = app.held is not None
            app.mark_dirty()
            app.activate(app.requests.bits)
            for look_again in self._partition.changes.readers.more_to_try:
                look_again()


LONGEST = 16
"""Largest number of changes to wait for."""
IDLE_TRIES = 64
"""Number of requests that an idle cycle retries without a pause."""
IDLE_PAUSE = SECOND
"""Pause (ns) before an idle cycle retries the next `IDLE_TRIES` requests, even without a change."""
PAUSE = SECOND
"""Time (ns) during which a request added by `pause` is not tried again, whatever changes."""

NEVER = -1
"""Number of changes that is never reached: an entry with this number counts as changed since."""


class _Waiting:
    """An unschedulable ask or ask class."""

    __slots__ = ("at", "is_waiting", "item")

    def __init__(self, item: Ask | AskClass, at: int) -> None:
        self.item = item
        self.at = at
        """Number of changes when the item was last tried."""
        self.is_waiting = True


class UnschedulableQueue:
    """Asks and ask classes that wait for a change."""

    def __init__(
        self,
        accounting: AllocationAccounting,
        pending_classes: PendingClasses,
        timers: Timers,
        orders: NodeOrders,
    ) -> None:
        self._orders = orders
        self._accounting = accounting
        self._pending_classes = pending_classes
        self._timers = timers
        self.by_due: list[tuple[int, int, _Waiting]] = []
        """Heap of (number of changes at which to retry, sequence number, entry)."""
        self.by_age: deque[_Waiting] = deque()
        """Entries by the time of their last try, oldest first; entries activated meanwhile are skipped."""
        self._count = 0
        self._idle_at = -1
        self._idle_left = 0
        self._pause: Timer | None = None
        self._paused: dict[int, list[_Waiting]] = {}
        """Entries that are not tried before a time (ns), by that time."""
        self._refreshes = 0
        """Number of elapsed refresh intervals; each counts as a change."""
        self._refresh_timer: Timer | None = None

    def waiting_sizes(self) -> set[Resource]:
        """Return the amounts of all asks and ask classes that wait here for a change."""
        return {entry.item.resource for _, _, entry in self.by_due if entry.is_waiting}

    @property
    def has_refresh_timer(self) -> bool:
        """True if a timer is set after which something is retried without a change."""
        return self._refresh_timer is not None

    @property
    def _change_count(self) -> int:
        return self._accounting.change_count + self._refreshes

    def mark_unschedulable(self, item: Ask | AskClass) -> None:
        """Add an unschedulable ask or ask class; the caller has cleared its schedulable bits."""
        now = self._change_count
        entry = _Waiting(item, now)
        self._count += 1
        heapq.heappush(self.by_due, (now + min(LONGEST, 2 ** min(item.tries, 8)), self._count, entry))
        self.by_age.append(entry)
        if len(self.by_age) > 2 * len(self.by_due) + IDLE_TRIES:
            self.by_age = deque(entry for entry in self.by_age if entry.is_waiting)
        item.tried()
        refresh = self._orders.predicates.refresh
        if refresh is not None and self._refresh_timer is None:
            self._refresh_timer = self._timers.after(refresh, self._count_refresh)

    def pause(self, ask: Ask, now: int) -> None:
        """Add an unschedulable ask that is tried again after a pause, if something has changed since.

        This is for asks whose placement was booked and then refused. Booking and refusal are changes, which
        would let several such asks be tried again in turn without an end.
        """
        entry, due = _Waiting(ask, self._change_count), now + PAUSE
        if due in self._paused:
            self._paused[due].append(entry)
        else:
            self._paused[due] = [entry]
            self._timers.at(due, lambda: self._end_pause(due))

    def pause_until(self, ask: Ask, due: int) -> None:
        """Add an unschedulable ask that is tried again at `due` (ns), whatever has changed."""
        entry = _Waiting(ask, NEVER)
        if due in self._paused:
            self._paused[due].append(entry)
        else:
            self._paused[due] = [entry]
            self._timers.at(due, lambda: self._end_pause(due))

    def _end_pause(self, due: int) -> None:
        for entry in self._paused.pop(due):
            if entry.at != self._change_count:
                self._activate(entry)
            elif entry.item.unschedulable:
                self.mark_unschedulable(entry.item)

    def activate_due(self) -> None:
        """Activate all entries that have waited for enough changes."""
        heap, changes = self.by_due, self._change_count
        while heap and heap[0][0] <= changes:
            self._activate(heapq.heappop(heap)[2])

    def activate_idle(self) -> bool:
        """Activate the oldest entry not tried since the last change; False if there is none. For idle cycles.

        After `IDLE_TRIES` retries the remaining entries wait for a change or for the end of a pause. Any
        number of pending requests thus delays new requests only briefly, and every one of them is retried.
        """
        entries, changes = self.by_age, self._change_count
        if self._idle_at != changes:
            self._idle_at, self._idle_left = changes, IDLE_TRIES
        while entries and (entries[0].at != changes or not entries[0].is_waiting):
            if entries[0].is_waiting and not self._idle_left:
                if self._pause is None:
                    self._pause = self._timers.after(IDLE_PAUSE, self._go_on)
                return False
            if self._activate(entries.popleft()):
                self._idle_left -= 1
                return True
        return False

    def _go_on(self) -> None:
        self._pause, self._idle_at = None, -1

    def _count_refresh(self) -> None:
        self._refresh_timer = None
        self._refreshes += 1

    def _activate(self, entry: _Waiting) -> bool:
        if not entry.is_waiting:
            return False
        entry.is_waiting = False
        item = entry.item
        if isinstance(item, Ask):
            if not item.unschedulable:
                return False
            self._accounting.pending_accounting.activate(item)
            return True
        self._pending_classes.mark_schedulable(item)
        return True
