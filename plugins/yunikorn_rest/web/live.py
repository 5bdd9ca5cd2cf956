"""Notices of changes to open pages, as Server-Sent Events, at most one each second.

A page needs to know that something has changed, and then fetches itself again. The stream of all events would
tell a browser the same with tens of thousands of messages a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import attrs

from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.endpoints import Call, Route
from yunikorn_rest.event_streams import EVENT_STREAM, HEARTBEAT, EventStream, OpenStream
from yunikorn_rest.web.rendering import HEADERS

PAUSE = 1.0
"""Seconds between two notices."""


@attrs.frozen(kw_only=True)
class ChangeStream(EventStream):
    """Answer that sends a message after each change, and another one when the changes have ended.

    The last message is later than the last change by more than the time for which a page is kept.
    """

    pause: float = PAUSE

    async def _pieces(self, stream: OpenStream) -> AsyncIterator[bytes]:
        store = self.hub.store
        yield b"retry: 2000\nevent: open\ndata: %b\n\n" % store.instance.encode()
        is_settled = True
        while not stream.is_over:
            stream.wake.clear()
            _, following = store.bounds
            if following == stream.position and is_settled:
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await stream.wake.wait()
                except TimeoutError:
                    yield b"event: beat\ndata:\n\n"
                continue
            is_settled = following == stream.position
            stream.position = following
            yield b"event: change\ndata: %d\n\n" % following
            await asyncio.sleep(self.pause)


@Route("/live", content_type=EVENT_STREAM, errors=(404, 503), cross_origin=False, is_unlimited=True)
async def live(call: Call) -> Answer:
    """Notices of changes for open pages."""
    hub = call.context.events
    if hub is None:
        raise RequestRefused(404, "no events are kept, so there are no notices of changes")
    host = call.caller.address
    if not hub.has_room(host):
        raise RequestRefused(503, "Too many streaming connections")
    return ChangeStream(hub=hub, host=host, position=hub.store.bounds[1], as_messages=True, headers=HEADERS)
