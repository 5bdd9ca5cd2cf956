"""Page with the latest events.

Rows of events on pages, with links to the objects that the events are about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import attrs

from yunikorn.api import Event
from yunikorn.event_types import EventType
from yunikorn_rest.endpoints import Call
from yunikorn_rest.event_json import cut
from yunikorn_rest.event_store import EventStore
from yunikorn_rest.web.frame import address, frame_of
from yunikorn_rest.web.page_server import PageContent

LOOKED_AT = 20_000
"""Number of the latest events among which a filter looks."""
STEP = 500
"""Number of events that are made at a time."""

Wanted = Callable[[Event], bool]


@attrs.frozen(kw_only=True)
class EventRow:
    """An event."""

    id: int
    time: int
    type: str
    """Type in words."""
    kind: str
    """Type as in the protocol."""
    detail: str
    """Change and its detail in words."""
    name: str
    """Object that the event is about."""
    url: str
    """Page of the object; empty without one."""
    reference: str
    message: str


NAMES: Mapping[str, str] = {
    EventType.REQUEST: "request",
    EventType.APP: "application",
    EventType.NODE: "node",
    EventType.QUEUE: "queue",
    EventType.USERGROUP: "user or group",
    EventType.PLUGIN: "plugin",
}
"""Types of events in words."""
_CHANGES = {"ADD": "added", "REMOVE": "removed", "SET": "set"}


async def latest_rows(call: Call, count: int, wanted: Wanted | None = None) -> list[EventRow]:
    """Return the latest events, newest first, among the latest `LOOKED_AT`."""
    hub = call.context.events
    if hub is None:
        return []
    found: list[EventRow] = []
    lowest, following = hub.store.bounds
    oldest = max(lowest, following - LOOKED_AT)
    step = STEP if wanted is not None else count
    while following > oldest and len(found) < count:
        start = max(oldest, following - step)
        # The first reader of an event makes it.
        found += await asyncio.to_thread(_rows, hub.store, start, following, wanted)
        following = start
    return found[:count]


def _rows(store: EventStore, start: int, stop: int, wanted: Wanted | None) -> Sequence[EventRow]:
    found = []
    for window in store.windows(start, stop - start):
        for index, event in enumerate(window.events):
            if wanted is None or wanted(event):
                found.append(row_of(window.first + window.begin + index, event))
    return found[::-1]


def row_of(number: int, event: Event) -> EventRow:
    """Return the row of an event."""
    prefix, _, detail = event.detail.partition("_")
    words = detail.replace("_", " ").lower() if prefix != "DETAILS" else ""
    change = _CHANGES.get(event.change, "")
    return EventRow(
        id=number,
        time=event.timestamp,
        type=NAMES.get(event.type, event.type.lower()),
        kind=event.type,
        detail=f"{words} {change}".strip() if words != change else words,
        name=event.object_id,
        url=_url(event),
        reference=event.reference_id,
        message=cut(event.message),
    )


def _url(event: Event) -> str:
    match event.type:
        case EventType.APP:
            return address("/application", id=event.object_id)
        case EventType.NODE:
            return address("/node", id=event.object_id)
        case EventType.QUEUE:
            return address("/queue", name=event.object_id)
        case EventType.USERGROUP:
            return address("/user", name=event.object_id)
        case EventType.REQUEST:
            return address("/application", id=event.application_id or event.reference_id)
        case EventType.PLUGIN:
            return "/plugins"
    return ""


COUNT = 100
"""Number of events on the page."""


def _filter(kind: str, text: str) -> Wanted | None:
    if not kind and not text:
        return None

    def wanted(event: Event) -> bool:
        if kind and event.type != kind:
            return False
        words = (event.object_id, event.reference_id, event.message, event.application_id)
        return not text or any(text in one.lower() for one in words)

    return wanted


async def view(call: Call) -> PageContent:
    """Return the page."""
    kind, text = call.query("type").upper(), call.query("q").strip()
    kind = kind if kind in NAMES else ""
    frame = await frame_of(call)
    rows = await latest_rows(call, COUNT, _filter(kind, text.lower()))
    return PageContent(
        template="events.html",
        title="Events",
        section="/events",
        frame=frame,
        content={
            "rows": rows,
            "kind": kind,
            "q": text,
            "kinds": NAMES,
            "is_kept": call.context.events is not None,
            "looked_at": LOOKED_AT,
            "count": COUNT,
        },
    )
