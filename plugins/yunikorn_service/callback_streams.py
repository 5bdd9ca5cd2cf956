"""The gRPC service `yunikorn.shim.v1.Callbacks`: callbacks of the core to RMs, on streams of their own."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import grpc

from yunikorn.containment import describe_error
from yunikorn.errors import CONTAINED, ConfigError, UsageError, YunikornError, printable
from yunikorn.interface.callback import OPTIONAL
from yunikorn.interface.messages import (
    EventRecord,
    NodePredicatesArgs,
    ReSyncSchedulerCacheArgs,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateContainerSchedulingStateRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.background import begin_shared
from yunikorn_service.call_endings import (
    CallRefusal,
    Context,
    not_registered,
    refusal_of,
    refuse,
    send_headers,
)
from yunikorn_service.open_streams import RM_MISSING, first_message
from yunikorn_service.peers import Peer
from yunikorn_service.registrations import Registrations
from yunikorn_service.remote import RemoteRM
from yunikorn_service.runtime.threaded import CoreStopped
from yunikorn_service.server_layouts import LARGE, Decoding
from yunikorn_service.service_settings import ServerSettings
from yunikorn_service.streams import end_of, send
from yunikorn_service.wire import callbacks
from yunikorn_service.wire.generated.callbacks_pb2 import (
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
        data = await first_message(messages, self._settings.patience, RM_MISSING)
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
        receiving = begin_shared(self._receive(line, messages))
        sending = begin_shared(_send(line, context))
        try:
            return await end_of(line, receiving, sending)
        finally:
            line.close()
            receiving.cancel()
            sending.cancel()
            await asyncio.gather(receiving, sending, return_exceptions=True)

    async def _receive(self, line: RemoteCallback, messages: AsyncIterator[bytes]) -> None:
        room = asyncio.Semaphore(CALLS)
        calls: set[asyncio.Task[None]] = set()
        try:
            async for data in messages:
                message = await self._decode(data)
                content = message.WhichOneof("content")
                if content in ("update_configuration", "fail_application"):
                    await room.acquire()
                    call = begin_shared(self._carry_out(line, message, room))
                    calls.add(call)
                    call.add_done_callback(calls.discard)
                elif content == "open":
                    text = "open: the stream is open already"
                    raise CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, text)
                else:
                    line.received(message)
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
            answer = await core.carry_out(lambda core: _apply(core, line.remote, message))
        except YunikornError as error:
            answer = FromScheduler(failure=Failure(reason=str(error)))
        except CONTAINED as error:
            _log.exception("bug: a call of resource manager %s failed", line.remote.rm_id)
            reason = f"bug of the scheduler, see its log: {describe_error(error)}"
            answer = FromScheduler(failure=Failure(reason=reason))
        finally:
            room.release()
        answer.call = message.call
        line.answer(answer)


def _apply(core: Scheduler, remote: RemoteRM, message: FromResourceManager) -> FromScheduler:
    """Apply the call in a message, and return the answer to the RM."""
    remote.check_current()
    if message.HasField("fail_application"):
        wanted = message.fail_application
        core.fail_application(remote.rm_id, wanted.partition_name, wanted.application_id, wanted.reason)
        return FromScheduler(done=Done())
    request = callbacks.CONFIGURATION.from_wire(message.update_configuration)
    answer = core.update_configuration(remote.rm_id, request)
    return FromScheduler(configuration_updated=callbacks.CONFIGURED.to_wire(answer))


async def _send(line: RemoteCallback, context: Context) -> None:
    while (message := await line.take()) is not None:
        await send(context, message.SerializeToString())
        line.sent(message)


MERGED = 1000
"""Maximum number of states, or of events, in one message."""


class RemoteCallback:
    """Callback of a remote RM that has opened a callback stream.

    The core calls the optional methods in its thread; methods that the RM does not implement are `None`. The
    core waits for an answer for a limited time, then a default applies. An RM that did not answer in time is
    not asked for a while, because all other RMs would wait as well. Late answers are ignored.
    """

    def __init__(
        self, remote: RemoteRM, methods: Iterable[str], settings: ServerSettings, peer: Peer
    ) -> None:
        self.remote = remote
        self.peer = peer
        self.methods = tuple(methods)
        self.ended: asyncio.Future[CallRefusal | None] = asyncio.get_running_loop().create_future()
        """Set when the service ends the stream: to a refusal, or to None for status OK."""
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self.is_open = True
        """True while the RM is connected."""
        self._silent_until = 0.0
        """Time on the loop's clock before which the RM is not asked."""
        self._calls: dict[int, Future[FromResourceManager | None]] = {}
        self._last_call = 0
        self._notices: deque[Any] = deque()
        self._some = asyncio.Event()
        self._finished = False
        self.last: CallRefusal | None = None
        """Status with which the stream ends after all messages have been sent."""
        self._last: FromScheduler | None = None
        self._confirmed: asyncio.Future[None] | None = None
        self._handed = 0
        """Number of notices handed over by the core; changed in the core's thread."""
        self._gone = 0
        """Number of notices sent or dropped; changed in the event loop."""
        for method in OPTIONAL:
            if method not in self.methods:
                setattr(self, method, None)

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Send a response on the update streams."""
        self.remote.recv_update_response(response)

    # -- questions of the core, in its thread -----------------------------------------------------------

    def node_predicates(self, args: NodePredicatesArgs) -> Mapping[str, str]:
        """Return the nodes that must not take the request, with reasons; a default if the RM is too late."""
        answer = self._ask(FromScheduler(predicates=callbacks.NODE_PREDICATES.to_wire(args)))
        if answer is None:
            if self._settings.accept_unanswered:
                return {}
            return dict.fromkeys(args.node_ids, f"resource manager {self.remote.rm_id} does not answer")
        if answer.HasField("failure"):
            return dict.fromkeys(args.node_ids, answer.failure.reason or "the resource manager failed")
        return dict(answer.predicates.refused)

    def update_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Ask the RM to save a configuration; without an answer in time, the configuration is not saved."""
        answer = self._ask(FromScheduler(configuration=callbacks.CONFIGURATION.to_wire(request)))
        if answer is None:
            reason = f"resource manager {self.remote.rm_id} does not answer"
            return UpdateConfigurationResponse(success=False, reason=reason)
        if answer.HasField("failure"):
            return UpdateConfigurationResponse(success=False, reason=answer.failure.reason)
        return callbacks.CONFIGURED.from_wire(answer.configuration)

    def _ask(self, question: FromScheduler) -> FromResourceManager | None:
        if not self.is_open or self._loop.time() < self._silent_until:
            return None
        self._last_call += 1
        question.call = self._last_call
        answer: Future[FromResourceManager | None] = Future()
        self._calls[question.call] = answer
        self._loop.call_soon_threadsafe(self._add, question)
        patience = self._settings.patience
        try:
            return answer.result(patience.callback)
        except TimeoutError:
            self._silent_until = self._loop.time() + patience.silence
            _log.warning(
                "resource manager %s did not answer a callback within %g s: no further callbacks for %g s"
                " unless it answers; meanwhile %s",
                printable(self.remote.rm_id),
                patience.callback,
                patience.silence,
                "all its nodes pass its predicates"
                if self._settings.accept_unanswered
                else "no node passes its predicates",
            )
            return None
        finally:
            self._calls.pop(question.call, None)

    # -- notices of the core, in its thread -------------------------------------------------------------

    def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
        """Send the scheduling state of a request."""
        self._notify([request])

    def send_events(self, events: Sequence[EventRecord]) -> None:
        """Send events."""
        self._notify(events)

    def resync_scheduler_cache(self, args: ReSyncSchedulerCacheArgs) -> None:
        """Send the allocations that the RM's cache must assume or forget."""
        self._notify([args])

    def _notify(self, notices: Sequence[object]) -> None:
        if not self.is_open:
            return
        waiting = self._handed - self._gone
        if waiting and waiting + len(notices) > self._settings.limits.notices:
            self.is_open = False
            text = f"it does not read its notices: {waiting} notices wait"
            self._loop.call_soon_threadsafe(self.end, CallRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, text))
            return
        self._handed += len(notices)
        self._loop.call_soon_threadsafe(self._add, *notices)

    # -- in the event loop --------------------------------------------------------------------------------

    def _add(self, *notices: object) -> None:
        self._notices.extend(notices)
        self._some.set()

    def answer(self, message: FromScheduler) -> None:
        """Send an answer to a call of the RM, which does not count as a notice."""
        self._add(message)

    async def take(self) -> FromScheduler | None:
        """Return the next message for the RM; None when the stream is finished."""
        while not self._notices:
            if self._finished:
                return None
            self._some.clear()
            await self._some.wait()
        first = self._notices.popleft()
        if isinstance(first, FromScheduler):
            return first
        kind = type(first)
        run = [first]
        if kind is not ReSyncSchedulerCacheArgs:
            while self._notices and len(run) < MERGED and type(self._notices[0]) is kind:
                run.append(self._notices.popleft())
        self._gone += len(run)
        return _envelope(run)

    def received(self, message: FromResourceManager) -> None:
        """Process an answer; a late answer only shows that the RM responds again."""
        self._silent_until = 0.0
        waiting = self._calls.pop(message.call, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def confirm(self) -> None:
        """Wait until all waiting messages, and an empty message after them, have been sent.

        See `ResponseStream.confirm`.
        """
        self._last, self._confirmed = FromScheduler(done=Done()), self._loop.create_future()
        self._add(self._last)
        await self._confirmed

    def sent(self, message: FromScheduler) -> None:
        """Note that a message has been sent."""
        if message is self._last and self._confirmed is not None and not self._confirmed.done():
            self._confirmed.set_result(None)

    def finish(self, refusal: CallRefusal | None = None) -> None:
        """End the stream after all waiting messages have been sent, with a refusal or with status OK."""
        self._finished = True
        self.last = refusal
        self._some.set()

    def close(self) -> None:
        """Close the stream: drop waiting notices, and end calls that wait for an answer."""
        self.is_open = False
        self._notices.clear()
        while self._calls:
            _, waiting = self._calls.popitem()
            if not waiting.done():
                waiting.set_result(None)

    def end(self, refusal: CallRefusal | None) -> None:
        """End the stream now; only the first refusal counts."""
        self.close()
        if not self.ended.done():
            self.ended.set_result(refusal)


def _envelope(run: list[Any]) -> FromScheduler:
    if isinstance(run[0], EventRecord):
        return FromScheduler(events=callbacks.to_events(run))
    if isinstance(run[0], ReSyncSchedulerCacheArgs):
        return FromScheduler(cache=callbacks.CACHE.to_wire(run[0]))
    return FromScheduler(states=callbacks.to_states(run))
