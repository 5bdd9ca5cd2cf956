"""Page with the latest events."""

from __future__ import annotations

from collections.abc import Generator

from yunikorn.api import Event
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.endpoints import Call
from yunikorn_rest.web.event_rows import LOOKED_AT, NAMES, Wanted, latest_rows
from yunikorn_rest.web.frame import PageFrame, read_frame
from yunikorn_rest.web.page_server import PageContent

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
    key = call.query("partition")

    def read(scheduler: Scheduler) -> Generator[None, None, PageFrame]:
        yield
        return read_frame(scheduler, key)[0]

    frame = await call.read(read)
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
