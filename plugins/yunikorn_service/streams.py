"""Update streams of the interface: updates from RMs to the core, and responses from the core to RMs."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Any, Protocol

import grpc
import grpc.aio

from yunikorn.errors import UsageError, YunikornError, printable
from yunikorn.interface.messages import UpdateRequest
from yunikorn_service.background import begin_shared
from yunikorn_service.call_endings import (
    CallRefusal,
    Context,
    not_registered,
    refusal_of,
    refuse,
    send_headers,
    shown,
)
from yunikorn_service.open_streams import RM_MISSING, first_message
from yunikorn_service.registrations import Registrations
from yunikorn_service.remote import ResponseStream
from yunikorn_service.runtime.threaded import CoreStopped
from yunikorn_service.server_layouts import Decoding, ServerLayout, pieces

_log = logging.getLogger("yunikorn.grpc")


class UpdateStreams:
    """Handler of the update streams."""

    def __init__(self, registrations: Registrations, decoding: Decoding) -> None:
        self._registrations = registrations
        self._limits = registrations.settings.limits
        self._decoding = decoding

    async def serve(
        self, layout: ServerLayout, kind: str, messages: AsyncIterator[bytes], context: Context
    ) -> None:
        """Serve one stream from its first message to its end."""
        data = await first_message(messages, self._registrations.settings.patience, RM_MISSING)
        if data is None:
            return
        await send_headers(context)
        try:
            updates = await self._decode(layout, kind, data)
            line = self._open(layout, kind, updates, context)
        except CallRefusal as refusal:
            await refuse(context, refusal, f"a new {kind} stream")
            return
        _log.debug("resource manager %s: %s opened", printable(line.remote.rm_id), kind)
        ending = await self._converse(layout, line, updates, messages, context)
        if ending is not None:
            await refuse(context, ending, f"{kind} of {line.remote.label}")

    def _open(
        self, layout: ServerLayout, kind: str, updates: list[UpdateRequest], context: Context
    ) -> ResponseStream:
        rm_id = updates[0].rm_id if updates else ""
        if not rm_id:
            text = f"rmID: the first message of {kind} must name the resource manager"
            raise CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, text)
        remote, peer = self._registrations.of(rm_id, context)
        line = ResponseStream(kind, remote, peer)
        remote.attach(line, layout)
        return line

    async def _converse(
        self,
        layout: ServerLayout,
        line: ResponseStream,
        first: list[UpdateRequest],
        messages: AsyncIterator[bytes],
        context: Context,
    ) -> CallRefusal | None:
        """Receive and send until either side ends the stream; returns the final refusal, or None."""
        receiving = begin_shared(self._receive(layout, line, first, messages))
        sending = begin_shared(self._send(layout, line, context))
        try:
            refusal = await end_of(line, receiving, sending)
        except asyncio.CancelledError:
            line.remote.lost(line, "the connection was lost")
            raise
        finally:
            receiving.cancel()
            sending.cancel()
            await asyncio.gather(receiving, sending, return_exceptions=True)
        if refusal is not None and refusal is not line.last and not line.ended.done():
            line.remote.lost(line, f"its stream ended: {refusal.text}")
        line.remote.detach(line)
        return refusal

    # -- from the RM ------------------------------------------------------------------------------------

    async def _receive(
        self,
        layout: ServerLayout,
        line: ResponseStream,
        first: list[UpdateRequest],
        messages: AsyncIterator[bytes],
    ) -> None:
        begun: deque[asyncio.Future[None]] = deque()
        updates: list[UpdateRequest] | None = first
        while updates is not None:
            if line.remote.accepts_from(line):
                begun.append(await self._take(line, updates))
                if len(begun) >= self._limits.in_flight:
                    await asyncio.wait([begun.popleft()])
            data = await anext(messages, None)
            updates = None if data is None else await self._decode(layout, line.kind, data)
            _check_rm(updates or (), line)
        if begun:
            await asyncio.wait(begun)
        await line.confirm()
        await line.remote.half_closed(line)

    async def _take(self, line: ResponseStream, updates: list[UpdateRequest]) -> asyncio.Future[None]:
        remote = line.remote
        for update in updates:
            update.rm_id = remote.rm_id
        core = self._registrations.core
        try:
            taken = await core.begin(lambda scheduler: remote.update(scheduler, updates))
        except CoreStopped as error:
            if core.threaded.failure is None:
                # The service stops: the waiting responses and the final status are still to be sent.
                await asyncio.get_running_loop().create_future()
            raise refusal_of(error) from error
        taken.add_done_callback(functools.partial(_settle, line))
        return taken

    async def _decode(self, layout: ServerLayout, kind: str, data: bytes) -> list[UpdateRequest]:
        try:
            return await self._decoding.decode(layout.decode[kind], data)
        except YunikornError as error:
            raise CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from error

    # -- to the RM --------------------------------------------------------------------------------------

    async def _send(self, layout: ServerLayout, line: ResponseStream, context: Context) -> None:
        encode = layout.encode[line.kind]
        while (response := await line.take()) is not None:
            remote = line.remote
            try:
                for piece in pieces(response, self._limits.entries):
                    await send(context, encode(piece))
                line.sent(response)
            except YunikornError as error:
                _log.error("%s: a response cannot be sent: %s", remote.label, error)
                raise CallRefusal(grpc.StatusCode.INTERNAL, f"a response cannot be sent: {error}") from error
            finally:
                remote.sent(response)


async def send(context: Context, data: bytes) -> None:
    """Send a message; raises `CallRefusal` if the connection is lost."""
    try:
        await context.write(data)
    except Exception as error:
        # gRPC raises several types of errors here.
        text = f"the connection was lost: {type(error).__name__}: {error}"
        raise CallRefusal(grpc.StatusCode.UNAVAILABLE, text) from error


class EndableStream(Protocol):
    """Part of a stream that `end_of` uses."""

    ended: asyncio.Future[CallRefusal | None]
    """Set when the service ends the stream: to a refusal, or to None for status OK."""
    last: CallRefusal | None
    """Status with which the stream ends after everything has been sent."""


async def end_of(
    line: EndableStream, receiving: asyncio.Task[None], sending: asyncio.Task[None]
) -> CallRefusal | None:
    """Wait until a stream ends; returns the refusal with which the stream ends, or None.

    A stream ends when the service ends it, when everything has been sent, or when receiving or sending fails.
    The end of the received messages does not end the stream.
    """
    parts: set[asyncio.Future[Any]] = {receiving, sending, line.ended}
    while True:
        done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        if line.ended in done:
            return line.ended.result()
        for part in (receiving, sending):
            if part in done and part.exception() is not None:
                return _refusal_for(part.exception())
        if sending in done:
            return line.last
        parts.discard(receiving)


def _refusal_for(error: BaseException | None) -> CallRefusal:
    if isinstance(error, CallRefusal):
        return error
    if isinstance(error, YunikornError):
        return refusal_of(error)
    _log.error("a stream failed: %s: %s", type(error).__name__, error, exc_info=error)
    return CallRefusal(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}")


def _check_rm(updates: Iterable[UpdateRequest], line: ResponseStream) -> None:
    for update in updates:
        if update.rm_id and update.rm_id != line.remote.rm_id:
            text = (
                f"rmID: '{shown(update.rm_id)}' on a stream of resource manager '{shown(line.remote.rm_id)}'"
            )
            raise CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, text)


def _settle(line: ResponseStream, taken: asyncio.Future[None]) -> None:
    """End a stream whose updates the core cannot apply."""
    error = None if taken.cancelled() else taken.exception()
    if error is None:
        return
    remote = line.remote
    remote.detach(line)
    if isinstance(error, UsageError) and not isinstance(error, CoreStopped):
        # The core has no session of the RM any more, because the RM was away for too long.
        remote.forget()
        line.end(not_registered(remote.rm_id))
    else:
        line.end(_refusal_for(error))
