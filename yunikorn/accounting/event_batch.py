"""Batches of events, which are made from compact entries when a sink first reads a batch.

A decision makes several events: for the application, for the node, and for the usage of the user and of the
group that counts. Their construction costs as much as the decision. The event recorder therefore notes
references to unchanging values, and a batch makes the events for the sinks that read them, in the thread that
reads them (`docs/decisions/archive/0081`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from yunikorn.api import Event
from yunikorn.event_types import EventChange, EventDetail, EventType
from yunikorn.framework.event_wants import EVERYTHING, Wanted
from yunikorn.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable

ALLOCATED = "allocated"
"""Entry `(ALLOCATED, time, allocation, resource)`."""
RELEASED = "released"
"""Entry `(RELEASED, time, allocation, resource, detail, message)`."""
RESIZED = "resized"
"""Entry `(RESIZED, time, allocation, resource before, resource)`, which has no event, as in YuniKorn 1.9."""
ASKED = "asked"
"""Entry `(ASKED, time, asks, resources, path of the queue)`; all asks are of one application."""
USED = "used"
"""Entry `(USED, time, change, path of the queue, user, group, pairs)`; empty names have no event."""

Entry = Event | tuple[Any, ...]
Source = tuple[str, str]
"""Resource manager and partition, as its configuration spells it, of the events of a batch."""
NO_SOURCE: Source = ("", "")
USAGE = (EventDetail.UG_USER_RESOURCE, EventDetail.UG_GROUP_RESOURCE)
"""Details of events of the usage of users, and of groups."""


class EventBatch(Sequence[Event]):
    """Immutable sequence of events, oldest first; the events are made when they are first read."""

    __slots__ = ("_entries", "_events", "_length", "source", "wanted")

    def __init__(
        self, entries: Iterable[Entry], wanted: Wanted = EVERYTHING, source: Source = NO_SOURCE
    ) -> None:
        self._entries = tuple(entries)
        self._events: tuple[Event, ...] | None = None
        self._length = -1
        self.wanted = wanted
        """Selection of the events in this batch."""
        self.source = source

    @property
    def entries(self) -> Sequence[Entry]:
        """Entries of the batch, wanted or not; reading them makes no event."""
        return self._entries

    @property
    def is_silent(self) -> bool:
        """True if no entry has an event."""
        return all(type(entry) is tuple and entry[0] is RESIZED for entry in self._entries)

    def selected(self, wanted: Wanted) -> EventBatch:
        """Return the batch of those events that a sink wants."""
        return self if wanted == self.wanted else EventBatch(self._entries, wanted, self.source)

    def __len__(self) -> int:
        if self._length < 0:
            made = self._events
            self._length = number_of(self._entries, self.wanted) if made is None else len(made)
        return self._length

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        return self._all()[index]

    def __iter__(self) -> Iterator[Event]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str):
            return self._all() == tuple(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of a list, which a batch may be equal to

    def __repr__(self) -> str:
        return f"<EventBatch of {len(self)} events>"

    def _all(self) -> tuple[Event, ...]:
        if self._events is None:
            # Two threads may both come here: they make equal events.
            self._events = tuple(made_of(self._entries, self.wanted))
        return self._events


def made_of(entries: Iterable[Entry], wanted: Wanted) -> list[Event]:
    """Return the wanted events of these entries, in order."""
    events: list[Event] = []
    for entry in entries:
        if isinstance(entry, Event):
            if wanted.takes(entry.type, entry.detail, entry.reason):
                events.append(entry)
        else:
            events += _MAKERS[entry[0]](entry, wanted)
    return events


def _allocated(entry: tuple[Any, ...], wanted: Wanted) -> list[Event]:
    _, now, allocation, resource = entry
    return _of_allocation(allocation, wanted, EventChange.ADD, EventDetail.APP_ALLOC, "", resource, now)


def _released(entry: tuple[Any, ...], wanted: Wanted) -> list[Event]:
    _, now, allocation, resource, detail, message = entry
    return _of_allocation(allocation, wanted, EventChange.REMOVE, detail, message, resource, now)


def _of_allocation(
    allocation: Any,
    wanted: Wanted,
    change: EventChange,
    detail: EventDetail,
    message: str,
    resource: Resource,
    now: int,
) -> list[Event]:
    """Return the events of the application and of the node when an allocation begins or ends."""
    app_id, queue, node_id, uuid = (
        allocation.app.id,
        allocation.queue_name,
        allocation.node.id,
        allocation.uuid,
    )
    where = app_id, queue, node_id
    events = []
    if wanted.takes(EventType.APP, detail):
        events.append(Event(EventType.APP, app_id, uuid, message, change, detail, resource, now, "", *where))
    if wanted.takes(EventType.NODE, EventDetail.NODE_ALLOC):
        detail = EventDetail.NODE_ALLOC
        events.append(Event(EventType.NODE, node_id, uuid, "", change, detail, resource, now, "", *where))
    return events


def _asked(entry: tuple[Any, ...], wanted: Wanted) -> list[Event]:
    _, now, asks, resources, queue = entry
    if not wanted.takes(EventType.APP, EventDetail.APP_REQUEST):
        return []
    add, request, app_id = EventChange.ADD, EventDetail.APP_REQUEST, asks[0].app.id
    return [
        Event(EventType.APP, app_id, ask.key, "", add, request, resource, now, "", app_id, queue)
        for ask, resource in zip(asks, resources, strict=True)
    ]


def _used(entry: tuple[Any, ...], wanted: Wanted) -> list[Event]:
    """Return the events of a user and a group, with the change as its amounts, as in YuniKorn 1.9."""
    _, now, change, path, *names, pairs = entry
    resource = Resource(dict(pairs))
    return [
        Event(EventType.USERGROUP, name, path, "", change, detail, resource, now)
        for name, detail in zip(names, USAGE, strict=True)
        if name and wanted.takes(EventType.USERGROUP, detail)
    ]


_MAKERS: dict[str, Callable[[Any, Wanted], list[Event]]] = {
    ALLOCATED: _allocated,
    RELEASED: _released,
    ASKED: _asked,
    USED: _used,
    RESIZED: lambda *_: [],
}


def number_of(entries: Iterable[Entry], wanted: Wanted) -> int:
    """Return the number of the wanted events of these entries, without making them."""
    if wanted.everything:
        return sum(map(_number_in, entries))
    of_node = wanted.takes(EventType.NODE, EventDetail.NODE_ALLOC)
    of_allocation = of_node + wanted.takes(EventType.APP, EventDetail.APP_ALLOC)
    of_ask = int(wanted.takes(EventType.APP, EventDetail.APP_REQUEST))
    of_user, of_group = (int(wanted.takes(EventType.USERGROUP, one)) for one in USAGE)
    number = 0
    for entry in entries:
        if isinstance(entry, Event):
            number += wanted.takes(entry.type, entry.detail, entry.reason)
        elif entry[0] is ALLOCATED:
            number += of_allocation
        elif entry[0] is USED:
            number += (of_user if entry[4] else 0) + (of_group if entry[5] else 0)
        elif entry[0] is ASKED:
            number += of_ask * len(entry[2])
        elif entry[0] is RELEASED:
            number += of_node + wanted.takes(EventType.APP, entry[4])
    return number


def _number_in(entry: Entry) -> int:
    """Return the number of all events of an entry."""
    if isinstance(entry, Event):
        return 1
    kind = entry[0]
    if kind is ASKED:
        return len(entry[2])
    return bool(entry[4]) + bool(entry[5]) if kind is USED else 2 * (kind is not RESIZED)
