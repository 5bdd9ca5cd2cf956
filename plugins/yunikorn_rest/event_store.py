"""Store of the latest events of all resource managers, numbered, for readers in any thread.

The core appends each batch of events as it is. Nothing is made or copied until a reader asks for events. A
reader has a position in the store and no queue of its own, so a slow reader does not delay the core, and can
tell how many events it has missed (`docs/decisions/archive/0092`).
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

import attrs

from yunikorn.accounting.event_batch import EventBatch
from yunikorn.api import Event
from yunikorn.framework.event_wants import EVERYTHING, NOTHING_WANTED
from yunikorn_rest.decision_store import DecisionStore
from yunikorn_rest.event_settings import EventSettings, combined, event_settings_of

CAPACITY = 100_000
"""Number of events that a store keeps by default, as YuniKorn 1.9."""
COMPACT_FROM = 1_000
"""Number of forgotten batches from which their entries are removed."""


@attrs.frozen
class Extract:
    """Successive events of a store, and the ids that the store has."""

    lowest: int
    """Id of the oldest event; 0 if there is none."""
    highest: int
    """Id of the latest event; 0 if there is none."""
    events: Sequence[Event] | None
    """Events from the requested id on; None if the store has no event with this id."""


@attrs.frozen
class EventWindow:
    """Successive events of one batch, which makes them in the thread that reads them."""

    batch: EventBatch
    first: int
    """Id of the first event of the batch."""
    begin: int
    """Position of the first event of the window in the batch."""
    end: int
    """Position behind the last event of the window."""

    @property
    def events(self) -> Sequence[Event]:
        """Events of the window."""
        return self.batch[self.begin : self.end]


class EventStore:
    """The latest events; ids start at 0 and have no gaps.

    `append` is called in the core's thread, everything else in any thread.
    """

    def __init__(
        self, instance: str, capacity: int = CAPACITY, decisions: DecisionStore | None = None
    ) -> None:
        """Create an empty store; `instance` is an identifier that differs for each start of the process.

        The decisions among the events are added to `decisions` as well.
        """
        if capacity < 1:
            raise ValueError(f"the capacity of the store must be at least 1 event, got {capacity}")
        self.instance = instance
        self.decisions = decisions
        self.wanted = EVERYTHING
        self.failures_seen = 0
        self._capacity = capacity
        self.settings = EventSettings()
        """Settings of all resource managers together."""
        self._settings: dict[str, EventSettings] = {}
        """Settings by resource manager."""
        self._default_capacity = capacity
        self._first_kept = 0
        """Id of the oldest event that the store has had since its capacity last changed."""
        self._lock = threading.Lock()
        self._next = 0
        """Id of the next event."""
        self._firsts: list[int] = []
        """Id of the first event of each batch, ascending."""
        self._batches: list[EventBatch | None] = []
        """Batches; None for forgotten ones, which are the first `_forgotten`."""
        self._forgotten = 0
        self._wakers: tuple[Callable[[], None], ...] = ()

    # -- in the core's thread -----------------------------------------------------------------------

    def append(self, batch: EventBatch) -> None:
        """Add a batch, and forget the oldest events beyond the capacity; never waits for a reader."""
        number = len(batch)
        if not number:
            return
        if self.decisions is not None:
            self.decisions.append(batch)
        with self._lock:
            self._firsts.append(self._next)
            self._batches.append(batch)
            self._next += number
            self._forget()
        for wake in self._wakers:
            wake()

    def _forget(self) -> None:
        """Forget the batches all of whose events are beyond the capacity."""
        lowest = self._lowest()
        at = self._forgotten
        while self._firsts[at + 1 : at + 2] and self._firsts[at + 1] <= lowest:
            self._batches[at] = None
            at += 1
        if at >= COMPACT_FROM and 2 * at > len(self._firsts):
            del self._firsts[:at], self._batches[:at]
            at = 0
        self._forgotten = at

    def configure(self, rm_id: str, settings: Mapping[str, str] | None) -> bool:
        """Apply the settings of a resource manager, or forget them (None); problems are logged.

        Returns False if the resource manager wants no events to be kept.
        """
        self._settings.pop(rm_id, None)
        if settings is not None:
            self._settings[rm_id] = event_settings_of(f"resource manager {rm_id}", settings)
        self.settings = combined(self._settings.values())
        capacity = self.settings.capacity or self._default_capacity
        if capacity != self._capacity:
            with self._lock:
                self._first_kept, self._capacity = self._lowest(), capacity
                self._forget()
        return settings is not None and self._settings[rm_id].tracking is not False

    @property
    def is_tracking(self) -> bool:
        """False if no events are kept, because all resource managers have switched that off."""
        return self.settings.tracking is not False

    def switch_off(self) -> None:
        """Want no events any more; must precede the first registration of a resource manager."""
        self.wanted = NOTHING_WANTED

    # -- in any thread ------------------------------------------------------------------------------

    @property
    def capacity(self) -> int:
        """Number of events that the store keeps."""
        return self._capacity

    @property
    def bounds(self) -> tuple[int, int]:
        """Id of the oldest event, and id of the next event, which is the same in an empty store."""
        with self._lock:
            return self._lowest(), self._next

    def _lowest(self) -> int:
        return max(self._first_kept, self._next - self._capacity)

    def read(self, start: int, count: int) -> Extract:
        """Return up to `count` events from the id `start` on."""
        with self._lock:
            lowest, following = self._lowest(), self._next
            windows = self._windows(start, count) if lowest <= start < following else None
        events = None if windows is None else [event for window in windows for event in window.events]
        return Extract(lowest, max(0, following - 1), events)

    def windows(self, start: int, count: int) -> list[EventWindow]:
        """Return the windows with up to `count` events from the id `start` on; empty if it is unknown."""
        with self._lock:
            return self._windows(start, count) if self._lowest() <= start < self._next else []

    def _windows(self, start: int, count: int) -> list[EventWindow]:
        found: list[EventWindow] = []
        stop = min(self._next, start + count)
        at = bisect_right(self._firsts, start) - 1
        while start < stop:
            batch, first = self._batches[at], self._firsts[at]
            assert batch is not None
            end = min(stop, self._firsts[at + 1] if at + 1 < len(self._firsts) else self._next)
            found.append(EventWindow(batch, first, start - first, end - first))
            start = end
            at += 1
        return found

    # -- notices of new events ----------------------------------------------------------------------

    def add_waker(self, wake: Callable[[], None]) -> None:
        """Call `wake` in the core's thread after each batch; it must return at once and not raise."""
        with self._lock:
            self._wakers = (*self._wakers, wake)

    def remove_waker(self, wake: Callable[[], None]) -> None:
        """Call `wake` no more, apart from a call that is in progress."""
        with self._lock:
            self._wakers = tuple(one for one in self._wakers if one != wake)
