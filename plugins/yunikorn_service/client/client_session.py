"""One session: one registration and its streams, until the first of them ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

import attrs
import grpc.aio

from yunikorn.errors import UsageError
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    SchedulerAction,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn_service.background import begin_shared
from yunikorn_service.client.callback_stream import CallbackStream
from yunikorn_service.client.client_options import ClientOptions
from yunikorn_service.client.connection import (
    CallFailed,
    OutOfStep,
    SessionInterrupted,
    channel_to,
    receive,
    register,
)
from yunikorn_service.wire.protocol import SCHEDULER, path

BROKEN = (grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError)
"""Errors of writing to an ended stream; reading from the stream has the reason of its end."""


class AwaitedAnswers:
    """New nodes and applications whose answer must precede updates about their allocations."""

    def __init__(self) -> None:
        self._awaited: dict[tuple[str, str], int] = {}
        """Nodes and applications in their order, each with the number of the latest update that has it."""
        self._updates = 0
        self._heard = asyncio.Event()

    def asked(self, request: UpdateRequest) -> int:
        """Add the new nodes and applications of an update about to be sent; return the update's number."""
        self._updates += 1
        new = [("node", node.node_id) for node in request.new_schedulable_nodes]
        new += [("application", app.application_id) for app in request.new_applications]
        for one in new:
            self._awaited.pop(one, None)
            self._awaited[one] = self._updates
        return self._updates

    def heard(self, response: UpdateResponse) -> None:
        """Remove the nodes and applications that a response answers."""
        answered = [("node", one.node_id) for one in response.accepted_nodes]
        answered += [("node", one.node_id) for one in response.rejected_nodes]
        answered += [("application", one.application_id) for one in response.accepted_applications]
        answered += [("application", one.application_id) for one in response.rejected_applications]
        for one in answered:
            self._awaited.pop(one, None)
        self._heard.set()

    async def all_until(self, number: int) -> None:
        """Wait until all nodes and applications of the updates up to this number are answered."""
        while self._awaited and next(iter(self._awaited.values())) <= number:
            self._heard.clear()
            await self._heard.wait()


class Outgoing:
    """Outgoing messages of one stream of a session; used in one event loop."""

    def __init__(self, call: Any, awaited: AwaitedAnswers | None = None) -> None:
        self.call = call
        self._awaited = awaited
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._finished = False

    def put(self, data: bytes, number: int = 0) -> None:
        """Queue bytes for sending.

        Where answers are awaited, the bytes wait until all updates up to `number` are answered.
        """
        self._waiting.append((number, data))
        self._some.set()

    def finish(self) -> None:
        """Half-close the stream after all queued messages."""
        self._finished = True
        self._some.set()

    @property
    def waits(self) -> int:
        """Number of queued messages."""
        return len(self._waiting)

    async def room(self, most: int) -> None:
        """Wait until fewer than `most` messages are queued."""
        while len(self._waiting) >= most:
            self._room.clear()
            await self._room.wait()

    async def send(self) -> None:
        """Send messages until the stream is finished."""
        while True:
            while self._waiting:
                number, data = self._waiting[0]
                if self._awaited is not None:
                    await self._awaited.all_until(number)
                await self.call.write(data)
                self._waiting.popleft()
                self._room.set()
            if self._finished:
                break
            self._some.clear()
            await self._some.wait()
        await self.call.done_writing()


class ClientSession:
    """A connection with all its streams; made for one attempt, used in one event loop."""

    def __init__(
        self,
        address: str,
        registration: RegisterResourceManagerRequest,
        callback: object,
        take: Callable[[UpdateResponse], Awaitable[None]],
        options: ClientOptions,
    ) -> None:
        self._registration = registration
        self._options = options
        self._take = take
        self._channel: Any = channel_to(address, options)
        self._callbacks = callback
        self._callback_stream: CallbackStream | None = None
        self._streams: dict[str, Outgoing] = {}
        self._answers = AwaitedAnswers()
        self._taking = asyncio.Lock()
        self._leaving = False
        self._ended = asyncio.Event()

    # -- from the beginning to the end --------------------------------------------------------------------

    async def open(self) -> None:
        """Register, and open all streams; raise `SessionInterrupted` or an error for users."""
        await register(self._channel, self._registration, self._options.patience)
        layout = self._options.layout
        rm_id = self._registration.rm_id
        for kind in layout.decode:
            call = self._channel.stream_stream(path(SCHEDULER, kind))()
            stream = Outgoing(call, self._answers if kind == layout.after_answers else None)
            stream.put(layout.greet[kind](rm_id))
            self._streams[kind] = stream
        self._callback_stream = CallbackStream(self._channel, rm_id, self._callbacks)
        await self._callback_stream.open(self._options.patience)

    async def run(self) -> None:
        """Send and receive until the end of the session; return if this side ended it, raise otherwise."""
        callbacks = self._callback_stream
        assert callbacks is not None
        hearing = [begin_shared(self._hear(kind, stream)) for kind, stream in self._streams.items()]
        sending = [begin_shared(_quietly(stream.send())) for stream in self._streams.values()]
        asking = begin_shared(self._keep_hearing(callbacks))
        beside = [*sending, asking, begin_shared(callbacks.work())]
        tasks = [*hearing, *beside]
        try:
            await _first_failure(hearing, beside)
        finally:
            self._ended.set()
            callbacks.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Close the connection, which breaks all open streams."""
        if self._callback_stream is not None:
            self._callback_stream.close()
        await self._channel.close(None)

    def leave(self) -> None:
        """Shut the resource manager down: send all queued messages, then half-close the streams."""
        self._leaving = True
        for stream in self._streams.values():
            stream.finish()

    # -- updates ------------------------------------------------------------------------------------------

    def encode(self, request: UpdateRequest) -> list[tuple[str, bytes]]:
        """Encode an update; raise `UsageError` or `MalformedMessage` if it cannot be sent."""
        rm_id = self._registration.rm_id
        if request.rm_id not in ("", rm_id):
            raise UsageError(f"rm_id: '{request.rm_id}' in an update of the client of '{rm_id}'")
        parts = self._options.layout.encode(attrs.evolve(request, rm_id=rm_id))
        for _, data in parts:
            if len(data) > self._options.message_bytes:
                raise UsageError(
                    f"an update of {len(data):,} bytes is too large for the scheduler, which accepts"
                    f" {self._options.message_bytes:,}: split it into several"
                )
        return parts

    def put(self, request: UpdateRequest, parts: Iterable[tuple[str, bytes]]) -> None:
        """Queue an encoded update."""
        number = self._answers.asked(request) if self._options.layout.after_answers else 0
        for kind, data in parts:
            self._streams[kind].put(data, number)

    async def room(self) -> bool:
        """Wait until there is room for an update; return False if the session has ended meanwhile."""
        ended = begin_shared(self._ended.wait())
        room = begin_shared(self._room_everywhere())
        try:
            await asyncio.wait({ended, room}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            room.cancel()
        return not self._ended.is_set()

    async def _room_everywhere(self) -> None:
        for stream in self._streams.values():
            await stream.room(self._options.waiting)

    @property
    def is_full(self) -> bool:
        """True if so many messages are queued that the next update should wait."""
        return any(stream.waits >= self._options.waiting for stream in self._streams.values())

    @property
    def callbacks(self) -> CallbackStream:
        """The callback stream, also used for calls; raises `CallFailed` if the connection has ended."""
        if self._callback_stream is None or self._ended.is_set():
            raise CallFailed("there is no connection to the scheduler at present")
        return self._callback_stream

    # -- the parts ----------------------------------------------------------------------------------------

    async def _hear(self, kind: str, stream: Outgoing) -> None:
        decode = self._options.layout.decode[kind]
        what = f"the stream {kind} ended"
        while (data := await receive(stream.call, what)) is not None:
            response = decode(data)
            self._answers.heard(response)
            async with self._taking:
                await self._take(response)
            if response.action is SchedulerAction.RESYNC and not self._leaving:
                raise OutOfStep("the scheduler requests a full report")
        if not self._leaving:
            raise SessionInterrupted(f"{what}, although the client did not end it")

    async def _keep_hearing(self, callbacks: CallbackStream) -> None:
        await callbacks.hear()
        if not self._leaving:
            raise SessionInterrupted("the stream of callbacks ended, although the client did not end it")


async def _first_failure(needed: list[asyncio.Task[None]], beside: list[asyncio.Task[None]]) -> None:
    """Wait for the end of all `needed` tasks; raise the first error of one of them, or of `beside`."""
    pending = {*needed, *beside}
    while not all(task.done() for task in needed):
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


async def _quietly(sending: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(*BROKEN):
        await sending
