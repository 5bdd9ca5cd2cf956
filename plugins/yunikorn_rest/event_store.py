"""Store of the latest events of all resource managers, numbered, for readers in any thread.

The core appends each batch of events as it is. Nothing is made or copied until a reader asks for events. A
reader has a position in the store and no queue of its own, so a slow reader does not delay the core, and can
tell how many events it has missed (`docs/decisions/archive/0092`).

Settings of events that a resource manager sends beside its configuration, with the names of YuniKorn 1.9.

A resource manager sends them with its registration, in `extra_config`. They concern the store of events and
its readers, and never a decision (`docs/decisions/archive/0101`).
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from yunikorn.accounting.event_batch import EventBatch
from yunikorn.api import Event
from yunikorn.errors import printable
from yunikorn.framework.event_wants import EVERYTHING, NOTHING_WANTED
from yunikorn.text import suggest
from yunikorn_rest.decision_store import DecisionStore

_log = logging.getLogger("yunikorn.sessions")

PREFIX = "event."
LONGEST = 40
"""Number of characters of a bad value that a message shows."""
TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


@attrs.frozen
class EventSettings:
    """Settings of events; None where nothing is set."""

    tracking: bool | None = None
    """False to keep no events of this resource manager."""
    capacity: int | None = None
    """Number of events that the store keeps."""
    records: int | None = None
    """Number of events in one answer."""
    streams: int | None = None
    """Number of streams."""
    per_host: int | None = None
    """Number of streams of clients with the same address."""


@attrs.frozen
class _Number:
    """A key whose value is a number."""

    field: str
    """Field of `EventSettings`; empty for a key that has no effect here."""
    most: int
    zero_is_default: bool = True


_NUMBERS: Mapping[str, _Number] = {
    "event.ringBufferCapacity": _Number("capacity", 1_000_000),
    "event.RESTResponseSize": _Number("records", 100_000),
    "event.maxStreams": _Number("streams", 1_000, zero_is_default=False),
    "event.maxStreamsPerHost": _Number("per_host", 1_000, zero_is_default=False),
    "event.requestCapacity": _Number("", 2**64 - 1),
}
TRACKING = "event.trackingEnabled"
KEYS = (TRACKING, *_NUMBERS)
"""Known keys. `event.requestCapacity` has no effect: events for the resource manager are not stored."""


def read_event_settings(extra_config: Mapping[str, str]) -> tuple[EventSettings, list[str]]:
    """Return the settings among these entries, and all problems; the default applies to a bad value."""
    found: dict[str, int] = {}
    tracking: bool | None = None
    problems: list[str] = []
    for key in sorted(extra_config):
        text = extra_config[key].strip()
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
        if key == TRACKING:
            if text in TRUE or text in FALSE:
                tracking = text in TRUE
            else:
                problems.append(f"{key}: {shown!r} is neither true nor false; events are kept")
        elif key in _NUMBERS:
            number = _NUMBERS[key]
            amount = _amount(text)
            if amount is None or amount > number.most:
                problems.append(
                    f"{key}: {shown!r} is not a number from 0 to {number.most}; the default applies"
                )
            elif number.field and (amount or not number.zero_is_default):
                found[number.field] = amount
        elif key.startswith(PREFIX):
            problems.append(f"{key}: unknown and ignored{suggest(key, KEYS)}")
    return EventSettings(tracking, **found), problems


def event_settings_of(label: str, extra_config: Mapping[str, str]) -> EventSettings:
    """Return the settings of a resource manager, and log all problems together."""
    settings, problems = read_event_settings(extra_config)
    if problems:
        _log.warning("%s", printable(f"{label}: settings of events: {'; '.join(problems)}"))
    return settings


def _amount(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None


def combined(several: Iterable[EventSettings]) -> EventSettings:
    """Return settings for all resource managers together: the largest of each number.

    Events are tracked unless each resource manager has switched them off.
    """
    known = list(several)

    def largest(field: str) -> int | None:
        return max((value for one in known if (value := getattr(one, field)) is not None), default=None)

    return EventSettings(
        tracking=any(one.tracking is not False for one in known) if known else None,
        capacity=largest("capacity"),
        records=largest("records"),
        streams=largest("streams"),
        per_host=largest("per_host"),
    )


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
