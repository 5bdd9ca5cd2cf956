"""Streams of events to HTTP clients, as lines of JSON or as Server-Sent Events.

A stream has a position in the store and no queue: a client that reads slowly delays neither the core nor
other streams. When the store has forgotten the event at its position, the stream ends with the number of
events that the client has missed (`docs/decisions/archive/0092`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence

import attrs
from starlette.types import Receive, Scope, Send

from yunikorn_rest import shapes
from yunikorn_rest.answers import JSON, Answer
from yunikorn_rest.encoding import json_pieces, to_bytes
from yunikorn_rest.event_json import instance_line, line_of
from yunikorn_rest.event_store import EventStore, EventWindow
from yunikorn_rest.metrics import families
from yunikorn_service.background import begin_watched

_log = logging.getLogger("yunikorn.rest")

CHUNK = 100
"""Number of events that are encoded at a time; encoding takes about a millisecond."""
CHUNKS = 256
"""Number of encoded chunks that are kept for other streams."""
LARGE = 500
"""Number of events from which a batch makes its events outside of the event loop."""
HEARTBEAT = 15.0
"""Seconds without events after which a Server-Sent Events client receives a comment."""
CLOSED = "Event stream was closed by the producer"
EVENT_STREAM = "text/event-stream"


@attrs.frozen
class StreamLimits:
    """Limits of streams and of answers with events, as in YuniKorn 1.9."""

    streams: int = 100
    """Number of streams."""
    per_host: int = 15
    """Number of streams of clients with the same address."""
    records: int = 10_000
    """Number of events in one answer."""


@attrs.define(eq=False)
class OpenStream:
    """A stream in progress."""

    host: str
    """Address of the client."""
    created: int
    """Time of its begin (ns since 1970)."""
    position: int
    """Id of the next event to be sent."""
    wake: asyncio.Event = attrs.field(factory=asyncio.Event)
    is_over: bool = False
    """True if the client has gone, or the service stops."""


class EventHub:
    """The streams of one event loop, over one store."""

    def __init__(self, store: EventStore, now: Callable[[], int], limits: StreamLimits | None = None) -> None:
        """Create without streams; `now` is the time in nanoseconds since 1970."""
        self.store = store
        self._limits = limits or StreamLimits()
        self.streams: list[OpenStream] = []
        """Streams in progress, oldest first."""
        self.refused = 0
        """Number of streams that were refused."""
        self.missed = 0
        """Number of events that streams missed."""
        self._now = now
        self._loop: asyncio.AbstractEventLoop | None = None
        self._noticed = False
        """True while a notice of the core's thread is on its way to the event loop."""
        self._chunks: OrderedDict[tuple[int, int, bool], Sequence[bytes]] = OrderedDict()
        """Encoded events by the first id of their batch, the number of the chunk in the batch, and detail."""

    @property
    def limits(self) -> StreamLimits:
        """Limits in force: those of the service, or of the resource managers that set some."""
        base, settings = self._limits, self.store.settings
        return StreamLimits(
            base.streams if settings.streams is None else settings.streams,
            base.per_host if settings.per_host is None else settings.per_host,
            base.records if settings.records is None else settings.records,
        )

    # -- streams ------------------------------------------------------------------------------------

    def has_room(self, host: str) -> bool:
        """Return True if a client with this address may open another stream."""
        of_host, limits = sum(stream.host == host for stream in self.streams), self.limits
        return len(self.streams) < limits.streams and of_host < limits.per_host

    def open(self, host: str, position: int) -> OpenStream:
        """Return a new stream from a position on; `close` must follow."""
        if not self.streams:
            self._loop = asyncio.get_running_loop()
            self._noticed = False
            self.store.add_waker(self._notice)
        stream = OpenStream(host, self._now(), position)
        self.streams.append(stream)
        return stream

    def close(self, stream: OpenStream) -> None:
        """Remove a stream."""
        self.streams.remove(stream)
        if not self.streams:
            self.store.remove_waker(self._notice)
            self._chunks.clear()

    def end_all(self) -> None:
        """End all streams, because the service stops."""
        for stream in self.streams:
            end(stream)

    def position_for(self, count: int) -> int:
        """Return the position of a stream that begins with up to `count` of the latest events."""
        lowest, following = self.store.bounds
        return max(lowest, following - count)

    def _notice(self) -> None:
        """Wake the streams; called in the core's thread."""
        if not self._noticed and self._loop is not None:
            self._noticed = True
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        self._noticed = False
        for stream in self.streams:
            stream.wake.set()

    def figures(self) -> dict[families.Family, float]:
        """Return the figures of the store and the streams, for metrics."""
        lowest, following = self.store.bounds
        decisions = self.store.decisions
        return {
            families.EVENTS: following,
            families.EVENTS_STORED: following - lowest,
            families.EVENTS_CAPACITY: self.store.capacity,
            families.DECISIONS_STORED: 0 if decisions is None else len(decisions),
            families.EVENT_STREAMS: len(self.streams),
            families.EVENT_STREAMS_REFUSED: self.refused,
            families.EVENTS_MISSED: self.missed,
        }

    # -- events -------------------------------------------------------------------------------------

    async def next_lines(self, position: int, *, detailed: bool = False) -> Sequence[bytes]:
        """Return the records of some events from a position on, each with a line break; empty at the end."""
        windows = self.store.windows(position, 1)
        if not windows:
            return ()
        (window,) = windows
        number, skipped = divmod(window.begin, CHUNK)
        key = window.first, number, detailed
        lines = self._chunks.get(key)
        if lines is None:
            lines = await self._encoded(window, number, detailed=detailed)
            self._chunks[key] = lines
            if len(self._chunks) > CHUNKS:
                self._chunks.popitem(last=False)
        return lines[skipped:] if skipped else lines

    async def _encoded(self, window: EventWindow, number: int, *, detailed: bool) -> Sequence[bytes]:
        batch = window.batch
        if len(batch) >= LARGE:
            # The first access makes all events of the batch.
            await asyncio.to_thread(batch.__getitem__, 0)
        source = batch.source if detailed else None
        return [line_of(event, source) for event in batch[number * CHUNK : (number + 1) * CHUNK]]

    async def lines(self, start: int, count: int, *, detailed: bool = False) -> list[bytes]:
        """Return the records of up to `count` events from an id on, each with a line break."""
        found: list[bytes] = []
        while len(found) < count and (more := await self.next_lines(start + len(found), detailed=detailed)):
            found += more
            await asyncio.sleep(0)
        return found[:count]


def end(stream: OpenStream) -> None:
    """End a stream soon."""
    stream.is_over = True
    stream.wake.set()


@attrs.frozen(kw_only=True)
class EventStream(Answer):
    """Answer that sends events as they occur: lines of JSON, or Server-Sent Events."""

    hub: EventHub
    host: str
    position: int
    missed: int = 0
    """Number of events between the last one that the client has and the position."""
    as_messages: bool = False
    """True for Server-Sent Events."""
    detailed: bool = False
    """True for records with resource manager, partition, application, queue and node."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client has gone, is too slow, or the service stops."""
        stream = self.hub.open(self.host, self.position)
        self.hub.missed += self.missed
        watcher = begin_watched(_watch(receive, stream), "the wait for a client to disconnect", _log)
        headers = {"content-type": EVENT_STREAM if self.as_messages else JSON, **self.headers}
        if self.as_messages:
            headers["cache-control"] = "no-cache"
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": raw})
            async for piece in self._pieces(stream):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self.hub.close(stream)
            watcher.cancel()

    async def _pieces(self, stream: OpenStream) -> AsyncIterator[bytes]:
        store = self.hub.store
        yield self._begin(store.instance)
        while not stream.is_over:
            stream.wake.clear()
            lowest, following = store.bounds
            if stream.position < lowest:
                yield self._end(lowest - stream.position)
                return
            if stream.position < following:
                # Empty if the store has forgotten these events meanwhile.
                if lines := await self.hub.next_lines(stream.position, detailed=self.detailed):
                    yield self._encoded(stream.position, lines)
                    stream.position += len(lines)
                await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(HEARTBEAT if self.as_messages else None):
                    await stream.wake.wait()
            except TimeoutError:
                yield b":\n\n"
        yield self._end(0)

    def _begin(self, instance: str) -> bytes:
        line = instance_line(instance)
        if not self.as_messages:
            return line
        missed = b'event: missed\ndata: {"missed":%d}\n\n' % self.missed if self.missed else b""
        return b"retry: 3000\nevent: instance\ndata: %b\n%b" % (line, missed)

    def _encoded(self, position: int, lines: Sequence[bytes]) -> bytes:
        if not self.as_messages:
            return b"".join(lines)
        instance = self.hub.store.instance.encode()
        return b"".join(
            b"id: %b:%d\ndata: %b\n" % (instance, position + index, line) for index, line in enumerate(lines)
        )

    def _end(self, missed: int) -> bytes:
        """Return the last record; its description has the number of missed events."""
        self.hub.missed += missed
        why = (
            f"{CLOSED}: {missed} events were missed, because they were read too slowly" if missed else CLOSED
        )
        body = shapes.Error(status_code=200, message=CLOSED, description=why)
        line = to_bytes("".join(json_pieces(body)) + "\n")
        return b"event: closed\ndata: %b\n" % line if self.as_messages else line


async def _watch(receive: Receive, stream: OpenStream) -> None:
    """End a stream when its client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    end(stream)
