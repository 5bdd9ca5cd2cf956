"""The callbacks of a remote resource manager: what the core asks and tells it, on a stream of its own."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import grpc

from yunikorn.errors import printable
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
from yunikorn.interface.wire import callbacks
from yunikorn.interface.wire.generated.callbacks_pb2 import Done, FromResourceManager, FromScheduler
from yunikorn.service.call_refusals import CallRefusal
from yunikorn.service.peers import Peer
from yunikorn.service.remote import RemoteRM
from yunikorn.service.settings import Settings

_log = logging.getLogger("yunikorn.grpc")

MERGED = 1000
"""States, or events, that go into one message."""


class RemoteCallback:
    """The callback of a remote RM that has opened a stream of callbacks.

    The core calls its optional methods in its thread; `None` stands for those that the RM does not
    implement. The core waits for answers for a limited time, then a default holds. An RM that did not answer
    is not asked for a while, since everybody else would wait with it. Late answers are passed over.
    """

    def __init__(self, remote: RemoteRM, methods: Iterable[str], settings: Settings, peer: Peer) -> None:
        self.remote = remote
        self.peer = peer
        self.methods = tuple(methods)
        self.ended: asyncio.Future[CallRefusal | None] = asyncio.get_running_loop().create_future()
        """Set once the service wants the stream to end."""
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self.is_open = True
        """Whether somebody is at the other end."""
        self._silent_until = 0.0
        """The moment, on the loop's clock, until which it is not asked."""
        self._calls: dict[int, Future[FromResourceManager | None]] = {}
        self._last_call = 0
        self._notices: deque[Any] = deque()
        self._some = asyncio.Event()
        self._finished = False
        self.last: CallRefusal | None = None
        """The status with which the stream ends when all has been said."""
        self._last: FromScheduler | None = None
        self._confirmed: asyncio.Future[None] | None = None
        self._handed = 0
        """Notices that the core handed over; counted in its thread."""
        self._gone = 0
        """Those that were sent or dropped; counted in the loop."""
        for method in OPTIONAL:
            if method not in self.methods:
                setattr(self, method, None)

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Responses go over the streams of the interface."""
        self.remote.recv_update_response(response)

    # -- asked by the core, in its thread ---------------------------------------------------------------

    def node_predicates(self, args: NodePredicatesArgs) -> Mapping[str, str]:
        """Which of these nodes may not take the request; the default answer where it does not say in time."""
        answer = self._ask(FromScheduler(predicates=callbacks.to_node_predicates(args)))
        if answer is None:
            if self._settings.accept_unanswered:
                return {}
            return dict.fromkeys(args.node_ids, f"resource manager {self.remote.rm_id} does not answer")
        if answer.HasField("failure"):
            return dict.fromkeys(args.node_ids, answer.failure.reason or "the resource manager failed")
        return callbacks.from_refusals(answer.predicates)

    def update_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Have the RM save a configuration; without an answer in time it was not saved."""
        answer = self._ask(FromScheduler(configuration=callbacks.to_configuration(request)))
        if answer is None:
            reason = f"resource manager {self.remote.rm_id} does not answer"
            return UpdateConfigurationResponse(success=False, reason=reason)
        if answer.HasField("failure"):
            return UpdateConfigurationResponse(success=False, reason=answer.failure.reason)
        return callbacks.from_configured(answer.configuration)

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
                "resource manager %s did not answer a callback within %g s: it is not asked again for %g s,"
                " unless it answers; meanwhile %s",
                printable(self.remote.rm_id),
                patience.callback,
                patience.silence,
                "its nodes may take everything"
                if self._settings.accept_unanswered
                else "its predicates refuse all nodes",
            )
            return None
        finally:
            self._calls.pop(question.call, None)

    # -- told by the core, in its thread ----------------------------------------------------------------

    def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
        """Tell how a request fares."""
        self._notify([request])

    def send_events(self, events: Sequence[EventRecord]) -> None:
        """Tell what happened."""
        self._notify(events)

    def resync_scheduler_cache(self, args: ReSyncSchedulerCacheArgs) -> None:
        """Tell what the RM's cache has to assume and to forget."""
        self._notify([args])

    def _notify(self, notices: Sequence[object]) -> None:
        if not self.is_open:
            return
        waiting = self._handed - self._gone
        if waiting and waiting + len(notices) > self._settings.limits.notices:
            self.is_open = False
            text = f"it does not read what it is told: {waiting} notices wait"
            self._loop.call_soon_threadsafe(self.end, CallRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, text))
            return
        self._handed += len(notices)
        self._loop.call_soon_threadsafe(self._add, *notices)

    # -- in the event loop --------------------------------------------------------------------------------

    def _add(self, *notices: object) -> None:
        self._notices.extend(notices)
        self._some.set()

    def answer(self, message: FromScheduler) -> None:
        """Send something that is not counted: an answer to a call of the RM."""
        self._add(message)

    async def take(self) -> FromScheduler | None:
        """The next message for the RM; None when all has been said."""
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

    def heard(self, message: FromResourceManager) -> None:
        """An answer arrived; one that nobody waits for any more only shows that somebody is there."""
        self._silent_until = 0.0
        waiting = self._calls.pop(message.call, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def confirm(self) -> None:
        """Wait until all that waits has been sent, and a message that says nothing after it.

        See `ResponseStream.confirm`.
        """
        self._last, self._confirmed = FromScheduler(done=Done()), self._loop.create_future()
        self._add(self._last)
        await self._confirmed

    def sent(self, message: FromScheduler) -> None:
        """This message has left."""
        if message is self._last and self._confirmed is not None and not self._confirmed.done():
            self._confirmed.set_result(None)

    def finish(self, refusal: CallRefusal | None = None) -> None:
        """Have the stream end when everything that waits has been sent: in peace, or with a status."""
        self._finished = True
        self.last = refusal
        self._some.set()

    def close(self) -> None:
        """Nobody is at the other end: whatever waits for an answer gets none."""
        self.is_open = False
        self._notices.clear()
        while self._calls:
            _, waiting = self._calls.popitem()
            if not waiting.done():
                waiting.set_result(None)

    def end(self, refusal: CallRefusal | None) -> None:
        """End the stream now; the first reason counts."""
        self.close()
        if not self.ended.done():
            self.ended.set_result(refusal)


def _envelope(run: list[Any]) -> FromScheduler:
    if isinstance(run[0], EventRecord):
        return FromScheduler(events=callbacks.to_events(run))
    if isinstance(run[0], ReSyncSchedulerCacheArgs):
        return FromScheduler(cache=callbacks.to_cache(run[0]))
    return FromScheduler(states=callbacks.to_states(run))
