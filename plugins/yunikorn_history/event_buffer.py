"""Events of a core on their way to the recorder, in a buffer of bounded size.

The core's thread appends, and the recorder's thread takes. Neither waits for the other.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import attrs

from yunikorn.accounting.event_batch import ASKED, Entry, EventBatch, Source
from yunikorn.clock import MILLISECOND
from yunikorn.event_types import EventDetail
from yunikorn.framework.event_wants import read_wants
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application

WANTED = read_wants(("APP", "NODE", "QUEUE", "REQUEST", "PLUGIN"))
"""Events of the usage of users follow from those of applications."""
MOST = 500_000
"""Number of entries in the buffer at most."""
MOST_BYTES = 256 << 20
ENTRY_BYTES = 300
"""Memory of an entry, with the objects of the core that only the entry keeps (estimated)."""


@attrs.frozen
class ReceivedEvents:
    """Entries of an event batch."""

    source: Source
    entries: Sequence[Entry]
    applications: Mapping[str, Sequence[Application]]
    """Applications that were submitted, by id: the one that runs or waits, then the one that ended last."""
    size: int
    bytes: int


@attrs.frozen
class SessionChange:
    """Begin or end of the session of a resource manager."""

    rm_id: str
    begins: bool
    time: int
    """Time (ms)."""


@attrs.frozen
class LostEvents:
    """Events that did not fit into the buffer."""

    since: int
    until: int
    lost: int


class EventBuffer:
    """Receiver of events for the recorder."""

    def __init__(self, now: Callable[[], int], most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        """Create an empty buffer; `now` returns the time (ns)."""
        self.failures_seen = 0
        self._is_closed = False
        self.wanted = WANTED
        self.configured: Callable[[], object] = lambda: None
        """Called in the core's thread after a registration or a change of a configuration."""
        self.wake = threading.Event()
        """Set by each event."""
        self.lost = 0
        """Number of entries that did not fit into the buffer."""
        self.most, self.most_bytes = most, most_bytes
        self._now = now
        self._items: deque[ReceivedEvents | SessionChange | LostEvents] = deque()
        self._scheduler: Scheduler | None = None
        self._registered: set[str] = set()
        self._gap: tuple[int, int] | None = None
        """Time of the first lost entry, and `lost` before."""
        # The core's thread writes the first two, and the recorder's thread the others.
        self._received = self._received_bytes = self._taken = self._taken_bytes = 0

    # -- in the core's thread -------------------------------------------------------------------------

    def attach(self, scheduler: Scheduler) -> None:
        """Look for applications in this scheduler."""
        self._scheduler = scheduler

    def append(self, batch: EventBatch) -> None:
        """Receive events, or count them as lost if there is no room."""
        if self._is_closed:
            return
        entries = batch.entries
        events = [entry for entry in entries if type(entry) is not tuple]
        size = len(entries)
        if size != len(events):
            size += sum(len(one[2]) for one in entries if type(one) is tuple and one[0] is ASKED)
        amount = size * ENTRY_BYTES
        submitted: list[str] = []
        for event in events:
            amount += len(event.message)  # type: ignore[union-attr]
            if event.detail == EventDetail.APP_NEW:  # type: ignore[union-attr]
                submitted.append(event.object_id)  # type: ignore[union-attr]
        if self.backlog + size > self.most or self.backlog_bytes + amount > self.most_bytes:
            if self._gap is None:
                self._gap = self._now() // MILLISECOND, self.lost
            self.lost += size
            return
        found = {app_id: self._applications(batch.source, app_id) for app_id in submitted}
        self._received += size
        self._received_bytes += amount
        self._items.append(ReceivedEvents(batch.source, entries, found, size, amount))
        # Afterwards, because the core has done already what this batch tells.
        self._end_gap()
        if not self.wake.is_set():
            self.wake.set()

    def configure(self, rm_id: str, settings: Mapping[str, str] | None) -> bool:
        """Note the begin or the end of a session; settings of events concern REST alone."""
        begins = settings is not None
        if begins != (rm_id in self._registered):
            (self._registered.add if begins else self._registered.remove)(rm_id)
            if not self._is_closed:
                self._items.append(SessionChange(rm_id, begins, self._now() // MILLISECOND))
                self.wake.set()
        self.configured()
        return True

    def _end_gap(self) -> None:
        if self._gap is not None:
            since, before = self._gap
            self._gap = None
            self._items.append(LostEvents(since, self._now() // MILLISECOND, self.lost - before))

    def _applications(self, source: Source, app_id: str) -> Sequence[Application]:
        if self._scheduler is None:
            return ()
        found: list[Application] = []
        for rm_id, at in self._scheduler.all_partitions():
            if (rm_id, at.partition.config_name) == source:
                waiting, partition = at.submitted.get(app_id), at.partition
                if (live := partition.applications.get(app_id)) is not None:
                    found.append(live)
                elif waiting is not None:
                    found.append(waiting.app)
                if (ended := partition.ended.get(app_id)) is not None:
                    found.append(ended)
        return found

    # -- in the recorder's thread ---------------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """Number of entries in the buffer; may be read in any thread."""
        return self._received - self._taken

    @property
    def backlog_bytes(self) -> int:
        """Memory of the entries in the buffer (estimated)."""
        return self._received_bytes - self._taken_bytes

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to take."""
        return not self._items

    def take(self) -> ReceivedEvents | SessionChange | LostEvents | None:
        """Remove and return the oldest item; None if there is none."""
        try:
            item = self._items.popleft()
        except IndexError:
            return None
        if isinstance(item, ReceivedEvents):
            self._taken += item.size
            self._taken_bytes += item.bytes
        return item

    def close(self) -> None:
        """Receive nothing more, and forget what is in the buffer, because nothing is recorded any more."""
        self._is_closed = True
        while self.take() is not None:
            pass

    def finish(self) -> None:
        """Report events that were lost last; called after the end of the core."""
        self._end_gap()
