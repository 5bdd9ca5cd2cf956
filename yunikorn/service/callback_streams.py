"""The gRPC service `yunikorn.shim.v1.Callbacks`: callbacks of the core to RMs, and calls of the RMs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import grpc

from yunikorn.errors import ConfigError, UsageError, YunikornError
from yunikorn.interface.scheduler import Scheduler
from yunikorn.interface.threaded import CoreStopped
from yunikorn.service.call_refusals import CallRefusal, not_registered, refusal_of
from yunikorn.service.decoding import LARGE, Decoding
from yunikorn.service.endings import Context, refuse, send_headers
from yunikorn.service.open_streams import WHO, first_message
from yunikorn.service.registrations import Registrations
from yunikorn.service.remote import RemoteRM
from yunikorn.service.remote_callback import RemoteCallback
from yunikorn.service.streams import end_of, send
from yunikorn.wire import callbacks
from yunikorn.wire.generated.callbacks_pb2 import (
    Done,
    Failure,
    FromResourceManager,
    FromScheduler,
    Opened,
)

_log = logging.getLogger("yunikorn.grpc")

CALLS = 16
"""Maximum number of concurrent calls of one RM; further calls wait."""


class CallbackStreams:
    """Handler of the callback streams."""

    def __init__(self, registrations: Registrations, decoding: Decoding) -> None:
        self._registrations = registrations
        self._decoding = decoding
        self._settings = registrations.settings

    async def serve(self, messages: AsyncIterator[bytes], context: Context) -> None:
        """Serve one stream from its first message to its end."""
        data = await first_message(messages, self._settings.patience, WHO)
        if data is None:
            return
        await send_headers(context)
        try:
            line = await self._open(await self._decode(data), context)
        except CallRefusal as refusal:
            await refuse(context, refusal, "a new callback stream")
            return
        ending = await self._converse(line, messages, context)
        if ending is not None:
            await refuse(context, ending, f"the callback stream of {line.remote.label}")

    async def _open(self, message: FromResourceManager, context: Context) -> RemoteCallback:
        if not message.HasField("open"):
            text = "open: the first message must name the resource manager and its capabilities"
            raise CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, text)
        remote, peer = self._registrations.of(message.open.rm_id, context)
        methods = callbacks.from_capabilities(message.open.capabilities)
        methods = tuple("node_predicates" if method == "predicates" else method for method in methods)
        line = RemoteCallback(remote, methods, self._settings, peer)
        before = remote.callbacks
        try:
            await self._use(remote, line)
        except BaseException:
            # The core may have received the callback all the same, and must not wait for its answers.
            line.close()
            raise
        if before is not None:
            text = f"a newer callback stream of {remote.label} replaced this stream"
            before.end(CallRefusal(grpc.StatusCode.ABORTED, text))
        opened = Opened(
            timeout_milliseconds=round(self._settings.patience.callback * 1000),
            capabilities=callbacks.to_capabilities(methods),
        )
        line.answer(FromScheduler(opened=opened))
        _log.info(
            "%s opened its callback stream from %s%s: %s",
            remote.label,
            peer,
            "" if before is None else f", replacing the one from {before.peer}",
            ", ".join(methods) or "none",
        )
        return line

    async def _use(self, remote: RemoteRM, line: RemoteCallback | None) -> None:
        """Make the core use this callback, or no callback if `line` is None; raises `CallRefusal`."""

        def operation(core: Scheduler) -> None:
            if remote.is_current:
                core.use_callback(remote.rm_id, remote if line is None else line)

        try:
            await self._registrations.core.carry_out(operation)
        except UsageError as error:
            refusal = refusal_of(error) if isinstance(error, CoreStopped) else not_registered(remote.rm_id)
            raise refusal from error
        except ConfigError as error:
            raise refusal_of(error) from error
        remote.callbacks = line

    async def _converse(
        self, line: RemoteCallback, messages: AsyncIterator[bytes], context: Context
    ) -> CallRefusal | None:
        hearing = asyncio.create_task(self._hear(line, messages))
        telling = asyncio.create_task(_tell(line, context))
        try:
            return await end_of(line, hearing, telling)
        finally:
            line.close()
            hearing.cancel()
            telling.cancel()
            await asyncio.gather(hearing, telling, return_exceptions=True)

    async def _hear(self, line: RemoteCallback, messages: AsyncIterator[bytes]) -> None:
        room = asyncio.Semaphore(CALLS)
        calls: set[asyncio.Task[None]] = set()
        try:
            async for data in messages:
                message = await self._decode(data)
                content = message.WhichOneof("content")
                if content in ("update_configuration", "fail_application"):
                    await room.acquire()
                    call = asyncio.create_task(self._carry_out(line, message, room))
                    calls.add(call)
                    call.add_done_callback(calls.discard)
                elif content == "open":
                    text = "open: the stream is open already"
                    raise CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, text)
                else:
                    line.heard(message)
        finally:
            # The core completes calls that have begun; a broken stream only loses their answers.
            await asyncio.gather(*calls, return_exceptions=True)
        await line.confirm()
        # A half-closed stream withdraws all callbacks. An RM whose stream broke opens another one.
        if line.remote.callbacks is line:
            await self._use(line.remote, None)
        line.finish()

    async def _decode(self, data: bytes) -> FromResourceManager:
        try:
            return await self._decoding.decode(callbacks.FROM_RESOURCE_MANAGER.decode, data)
        except YunikornError as error:
            raise CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from error

    # -- calls of the RM ----------------------------------------------------------------------------------

    async def _carry_out(
        self, line: RemoteCallback, message: FromResourceManager, room: asyncio.Semaphore
    ) -> None:
        core = self._registrations.core
        try:
            configs = message.update_configuration.configs
            if len(configs) >= LARGE:
                await core.load_ahead(configs)
            answer = await core.carry_out(
                lambda core: (
                    _fail(core, line.remote, message)
                    if message.HasField("fail_application")
                    else _configure(core, line.remote, message)
                )
            )
        except YunikornError as error:
            answer = FromScheduler(failure=Failure(reason=str(error)))
        finally:
            room.release()
        answer.call = message.call
        line.answer(answer)


def _fail(core: Scheduler, remote: RemoteRM, message: FromResourceManager) -> FromScheduler:
    wanted = message.fail_application
    remote.check_current()
    core.fail_application(remote.rm_id, wanted.partition_name, wanted.application_id, wanted.reason)
    return FromScheduler(done=Done())


def _configure(core: Scheduler, remote: RemoteRM, message: FromResourceManager) -> FromScheduler:
    request = callbacks.from_configuration(message.update_configuration)
    remote.check_current()
    answer = core.update_configuration(remote.rm_id, request)
    return FromScheduler(configuration_updated=callbacks.to_configured(answer))


async def _tell(line: RemoteCallback, context: Context) -> None:
    while (message := await line.take()) is not None:
        await send(context, message.SerializeToString())
        line.sent(message)
