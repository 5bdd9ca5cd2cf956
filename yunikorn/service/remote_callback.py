"""Callbacks of a remote resource manager, on a stream of their own."""

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
from yunikorn.service.call_refusals import CallRefusal
from yunikorn.service.peers import Peer
from yunikorn.service.remote import RemoteRM
from yunikorn.service.settings import Settings
from yunikorn.wire import callbacks
from yunikorn.wire.generated.callbacks_pb2 import Done, FromResourceManager, FromScheduler

_log = logging.getLogger("yunikorn.grpc")

MERGED = 1000
"""Maximum number of states, or of events, in one message."""


class RemoteCallback:
    """Callback of a remote RM that has opened a callback stream.

    The core calls the optional methods in its thread; methods that the RM does not implement are `None`. The
    core waits for an answer for a limited time, then a default applies. An RM that did not answer in time is
    not asked for a while, because all other RMs would wait as well. Late answers are ignored.
    """

    def __init__(self, remote: RemoteRM, methods: Iterable[str], settings: Settings, peer: Peer) -> None:
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
        answer = self._ask(FromScheduler(predicates=callbacks.to_node_predicates(args)))
        if answer is None:
            if self._settings.accept_unanswered:
                return {}
            return dict.fromkeys(args.node_ids, f"resource manager {self.remote.rm_id} does not answer")
        if answer.HasField("failure"):
            return dict.fromkeys(args.node_ids, answer.failure.reason or "the resource manager failed")
        return callbacks.from_refusals(answer.predicates)

    def update_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Ask the RM to save a configuration; without an answer in time, the configuration is not saved."""
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

    def heard(self, message: FromResourceManager) -> None:
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
        return FromScheduler(cache=callbacks.to_cache(run[0]))
    return FromScheduler(states=callbacks.to_states(run))
