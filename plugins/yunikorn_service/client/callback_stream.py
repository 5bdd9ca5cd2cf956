"""The callback stream: queries and notifications of the scheduler for the resource manager's own object."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
from typing import Any

import grpc.aio

from yunikorn.errors import CONTAINED
from yunikorn.interface.callback import OPTIONAL, implements
from yunikorn.interface.messages import (
    NodePredicatesArgs,
    PredicatesArgs,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
)
from yunikorn_service.client.connection import CallFailed, SessionInterrupted, receive
from yunikorn_service.wire import callbacks
from yunikorn_service.wire.generated.callbacks_pb2 import FailApplication as WireFailApplication
from yunikorn_service.wire.generated.callbacks_pb2 import (
    Failure,
    FromResourceManager,
    FromScheduler,
    Open,
    PredicatesResponse,
)
from yunikorn_service.wire.protocol import CALLBACKS, CONNECT, path

_log = logging.getLogger("yunikorn.client")

ANSWERS = ("configuration_updated", "done", "failure")
"""Content of messages that answer a call of the client."""
WAITING = 1000
"""Number of messages that wait for the callback before the client stops reading the stream."""
WHAT = "the stream of callbacks"


async def perform(callback: object, method: str, argument: object) -> Any:
    """Call a method of a callback, and await the result if it is awaitable."""
    result = getattr(callback, method)(argument)
    return await result if inspect.isawaitable(result) else result


class CallbackStream:
    """A callback stream, from its opening to its end; used in one event loop."""

    def __init__(self, channel: Any, rm_id: str, callback: object) -> None:
        self._call = channel.stream_stream(path(CALLBACKS, CONNECT))()
        self._rm_id = rm_id
        self._callback = callback
        self._methods = [method for method in OPTIONAL if implements(callback, method)]
        self._numbers = itertools.count(1)
        self._open_calls: dict[int, asyncio.Future[FromScheduler]] = {}
        self._told: asyncio.Queue[FromScheduler] = asyncio.Queue(WAITING)
        self._writing = asyncio.Lock()

    async def open(self, patience: float) -> None:
        """Send the RM's id and capabilities, and wait for the confirmation; raise `SessionInterrupted`."""
        capabilities = callbacks.to_capabilities(self._methods)
        await self._send(FromResourceManager(open=Open(rm_id=self._rm_id, capabilities=capabilities)))
        try:
            async with asyncio.timeout(patience):
                data = await receive(self._call, WHAT)
        except TimeoutError:
            raise SessionInterrupted(f"{WHAT} was not opened within {patience:g} s") from None
        if data is None:
            raise SessionInterrupted(f"{WHAT} ended before it was open")

    async def hear(self) -> None:
        """Receive messages until the end of the stream."""
        while (data := await receive(self._call, WHAT)) is not None:
            message = callbacks.FROM_SCHEDULER.decode(data)
            if message.WhichOneof("content") in ANSWERS:
                waiting = self._open_calls.pop(message.call, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
            else:
                await self._told.put(message)

    async def work(self) -> None:
        """Pass received messages to the callback, one after the other, until cancelled."""
        while True:
            await self._handle(await self._told.get())

    def close(self) -> None:
        """Cancel the stream, and raise `CallFailed` in calls that wait for an answer."""
        self._call.cancel()
        while self._open_calls:
            _, waiting = self._open_calls.popitem()
            if not waiting.done():
                waiting.set_exception(CallFailed("the connection was lost before the scheduler answered"))

    # -- calls of the resource manager --------------------------------------------------------------------

    async def update_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Request the use of a configuration; raise `CallFailed` without an answer."""
        message = callbacks.CONFIGURATION.to_wire(request)
        answer = await self._ask(FromResourceManager(update_configuration=message))
        return callbacks.CONFIGURED.from_wire(answer.configuration_updated)

    async def fail_application(self, application_id: str, partition_name: str, reason: str) -> None:
        """Request the failure of an application; raise `CallFailed` if the request fails."""
        wanted = WireFailApplication(
            application_id=application_id, partition_name=partition_name, reason=reason
        )
        await self._ask(FromResourceManager(fail_application=wanted))

    async def _ask(self, message: FromResourceManager) -> FromScheduler:
        message.call = next(self._numbers)
        answer = self._open_calls[message.call] = asyncio.get_running_loop().create_future()
        try:
            await self._send(message)
            found: FromScheduler = await answer
        except SessionInterrupted as error:
            raise CallFailed(str(error)) from error
        finally:
            self._open_calls.pop(message.call, None)
        if found.HasField("failure"):
            raise CallFailed(found.failure.reason)
        return found

    async def _send(self, message: FromResourceManager) -> None:
        try:
            async with self._writing:
                await self._call.write(message.SerializeToString())
        except (grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError) as error:
            raise SessionInterrupted(f"{WHAT} broke: {error}") from error

    # -- calls of the scheduler ---------------------------------------------------------------------------

    async def _handle(self, message: FromScheduler) -> None:
        content = message.WhichOneof("content")
        if content == "predicates":
            await self._answer(message, self._predicates(message))
        elif content == "configuration":
            await self._answer(message, self._configuration(message))
        elif content == "states":
            for state in callbacks.from_states(message.states):
                await self._tell("update_container_scheduling_state", state)
        elif content == "events":
            await self._tell("send_events", callbacks.from_events(message.events))
        elif content == "cache":
            await self._tell("resync_scheduler_cache", callbacks.CACHE.from_wire(message.cache))

    async def _answer(self, question: FromScheduler, finding: Any) -> None:
        try:
            answer: FromResourceManager = await finding
        except CONTAINED as error:
            _log.error("the callback failed to answer: %s: %s", type(error).__name__, error, exc_info=error)
            answer = FromResourceManager(failure=Failure(reason=f"{type(error).__name__}: {error}"))
        answer.call = question.call
        await self._send(answer)

    async def _predicates(self, question: FromScheduler) -> FromResourceManager:
        args = callbacks.NODE_PREDICATES.from_wire(question.predicates)
        if "node_predicates" in self._methods:
            refused = await perform(self._callback, "node_predicates", args)
        else:
            refused = await self._one_by_one(args)
        return FromResourceManager(predicates=PredicatesResponse(refused=refused))

    async def _one_by_one(self, args: NodePredicatesArgs) -> dict[str, str]:
        refused = {}
        for node_id in args.node_ids:
            one = PredicatesArgs(args.allocation_key, node_id, args.allocate, args.application_id)
            try:
                reason = await perform(self._callback, "predicates", one)
            except CONTAINED as error:
                _log.error("the predicate failed: %s: %s", type(error).__name__, error, exc_info=error)
                reason = f"{type(error).__name__}: {error}"
            if reason is not None:
                refused[node_id] = reason
        return refused

    async def _configuration(self, question: FromScheduler) -> FromResourceManager:
        request = callbacks.CONFIGURATION.from_wire(question.configuration)
        response = await perform(self._callback, "update_configuration", request)
        return FromResourceManager(configuration=callbacks.CONFIGURED.to_wire(response))

    async def _tell(self, method: str, argument: object) -> None:
        try:
            await perform(self._callback, method, argument)
        except CONTAINED as error:
            _log.error("%s failed: %s: %s", method, type(error).__name__, error, exc_info=error)
