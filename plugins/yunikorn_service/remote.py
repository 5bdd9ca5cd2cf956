"""Registration of a remote resource manager as the core's callback, and its streams of responses."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Protocol

import grpc

from yunikorn.errors import UsageError, printable
from yunikorn.interface.callback import Callback
from yunikorn.interface.messages import SchedulerAction, UpdateRequest, UpdateResponse
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.call_endings import CallRefusal, shown
from yunikorn_service.rm_limits import RMAdmission
from yunikorn_service.server_layouts import ServerLayout, entries_of

if TYPE_CHECKING:
    from yunikorn_service.peers import Peer
    from yunikorn_service.service_settings import ServiceLimits


class SessionControl(Protocol):
    """Sessions in the core, as a registration changes them."""

    def is_current(self, remote: RemoteRM) -> bool:
        """Return True if this is the latest registration of its RM."""
        ...

    def pause(self, remote: RemoteRM, reason: str) -> None:
        """Pause the session, because the connection of this registration was lost."""
        ...

    def reconnect(self, remote: RemoteRM) -> None:
        """Send RESYNC to an RM that has connected again without a new registration."""
        ...

    async def stop(self, remote: RemoteRM) -> None:
        """Stop the session of an RM that shuts down."""
        ...

    def forget(self, remote: RemoteRM) -> None:
        """Remove this registration, whose session the core has stopped."""
        ...

    def expect_registration(self, remote: RemoteRM) -> None:
        """Schedule a check that ends the RM's streams if the core stops the session after a RESYNC."""
        ...


class CallbackEnd(Callback, Protocol):
    """Callback stream of an RM, whose end the registration decides."""

    peer: Peer
    """Client that opened the stream."""
    is_open: bool
    """True while the RM is connected."""

    def finish(self, refusal: CallRefusal | None = None) -> None:
        """End the stream after all waiting messages have been sent."""
        ...

    def end(self, refusal: CallRefusal | None) -> None:
        """End the stream now."""
        ...


class ResponseStream:
    """Stream of responses to a resource manager. Used in the event loop only."""

    def __init__(self, kind: str, remote: RemoteRM, peer: Peer) -> None:
        self.kind = kind
        """Name of the gRPC method that was called."""
        self.remote = remote
        """Registration that the stream belongs to."""
        self.peer = peer
        """Client that opened the stream."""
        self.is_stale = False
        """True after RESYNC was sent: updates are ignored until the RM registers again."""
        self.half_closed = False
        """True if the RM sends nothing more."""
        self.ended: asyncio.Future[CallRefusal | None] = asyncio.get_running_loop().create_future()
        """Set when the service ends the stream: to a refusal, or to None for status OK."""
        self._waiting: deque[UpdateResponse] = deque()
        self._some = asyncio.Event()
        self._finished = False
        self.last: CallRefusal | None = None
        """Status with which the stream ends after all responses have been sent."""
        self._confirmed: dict[int, asyncio.Future[None]] = {}

    def put(self, response: UpdateResponse) -> None:
        """Append a response to the queue."""
        self._waiting.append(response)
        self._some.set()

    def clear(self) -> list[UpdateResponse]:
        """Empty the queue, and return its responses."""
        dropped = list(self._waiting)
        self._waiting.clear()
        return dropped

    async def confirm(self) -> None:
        """Wait until all waiting responses, and an empty response after them, have been sent.

        An RM that half-closes its stream and an RM that has vanished look alike until something is sent.
        """
        last = UpdateResponse()
        self._confirmed[id(last)] = arrived = asyncio.get_running_loop().create_future()
        self.put(last)
        await arrived

    def sent(self, response: UpdateResponse) -> None:
        """Note that a response has been sent."""
        arrived = self._confirmed.pop(id(response), None)
        if arrived is not None and not arrived.done():
            arrived.set_result(None)

    def finish(self, refusal: CallRefusal | None = None) -> None:
        """End the stream after all waiting responses have been sent, with a refusal or with status OK."""
        self._finished = True
        self.last = refusal
        self._some.set()

    async def take(self) -> UpdateResponse | None:
        """Return the next response; None when the stream is finished."""
        while not self._waiting:
            if self._finished:
                return None
            self._some.clear()
            await self._some.wait()
        return self._waiting.popleft()

    def end(self, refusal: CallRefusal | None) -> None:
        """End the stream now; only the first refusal counts."""
        if not self.ended.done():
            self.ended.set_result(refusal)


_log = logging.getLogger("yunikorn.grpc")


class RemoteRM:
    """One registration of a remote resource manager; another registration of the RM is another object.

    The core calls `recv_update_response` in its thread. Everything else is for the event loop, unless marked
    otherwise.
    """

    def __init__(self, rm_id: str, sessions: SessionControl, limits: ServiceLimits, peer: Peer) -> None:
        self.rm_id = rm_id
        self.label = f"resource manager {shown(rm_id)}"
        """Name of the RM in texts."""
        self.peer = peer
        """Client that registered the RM."""
        self.lines: dict[str, ResponseStream] = {}
        """Open streams by kind."""
        self.is_awaited = False
        """True while a check for a new registration is scheduled."""
        self.layout: ServerLayout | None = None
        """Layout that the RM uses; set by its first stream."""
        self.callbacks: CallbackEnd | None = None
        """Latest callback stream of the RM, which may be broken; None if no callbacks are in use."""
        self._sessions = sessions
        self._limits = limits
        self._admission = RMAdmission(rm_id, self._limits.per_rm)
        self._loop = asyncio.get_running_loop()
        self._used: set[str] = set()
        """Kinds of streams opened in this registration; a stream opened again has missed responses."""
        self._lost = False
        """True from the loss of a connection until the next stream is opened."""
        self._unsent: dict[str, list[UpdateResponse]] = defaultdict(list)
        """Responses by kind that wait for their stream to be opened."""
        self._early: list[UpdateResponse] = []
        """Responses that wait for `layout` to be set."""
        self._handed = 0
        """Number of entries handed over by the core; changed in the core's thread."""
        self._gone = 0
        """Number of entries sent or dropped; changed in the event loop."""
        self._cut = False

    # -- in the core's thread -------------------------------------------------------------------------

    @property
    def is_current(self) -> bool:
        """True if there is no later registration of the same RM; exact in the core's thread."""
        return self._sessions.is_current(self)

    @property
    def callback(self) -> Callback:
        """Callback that the core uses."""
        return self if self.callbacks is None else self.callbacks

    def check_current(self) -> None:
        """Raise `UsageError` if there is a later registration of the same RM. For the core's thread."""
        if not self.is_current:
            raise UsageError(f"{self.label} has registered again: open new streams")

    def update(self, core: Scheduler, updates: list[UpdateRequest]) -> None:
        """Pass updates to the core, unless there is a later registration of the RM."""
        for update in updates if self.is_current else ():
            refused = self._admission.apply_limits(core, update)
            core.update(update)
            if refused is not None:
                self.recv_update_response(refused)

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Pass a response to the event loop; pause the session and end its streams if too many wait."""
        if self._cut:
            return
        weight = entries_of(response)
        waiting = self._handed - self._gone
        if waiting and waiting + weight > self._limits.waiting:
            self._cut = True
            reason = f"it does not read its responses: {waiting} entries wait"
            self._sessions.pause(self, reason)
            self._loop.call_soon_threadsafe(self._cut_off, reason)
            return
        self._handed += weight
        self._loop.call_soon_threadsafe(self._deliver, response)

    def forget(self) -> None:
        """Remove this registration, whose session the core has stopped."""
        self._sessions.forget(self)

    # -- responses to the RM --------------------------------------------------------------------------

    def _deliver(self, response: UpdateResponse) -> None:
        for failed in response.failed_node_updates:
            # Not every layout has a message for failed node updates (`docs/decisions/archive/0036`).
            _log.warning(
                "resource manager %s: node %s was not updated: %s",
                printable(self.rm_id),
                printable(failed.node_id),
                printable(failed.reason),
            )
        if self.layout is None:
            self._early.append(response)
            return
        self._gone += entries_of(response)
        for kind, part in self.layout.parts(response):
            self._gone -= entries_of(part)
            line = self.lines.get(kind)
            if line is None:
                self._unsent[kind].append(part)
            else:
                line.put(part)
        if response.action is SchedulerAction.RESYNC:
            self._resync()
            self._sessions.expect_registration(self)

    def _resync(self) -> None:
        assert self.layout is not None
        for line in list(self.lines.values()):
            line.is_stale = True
            if not self.layout.sends_resync:
                line.end(resync("the scheduler needs a full report"))

    def sent(self, response: UpdateResponse) -> None:
        """Subtract a response that was sent or dropped from the waiting entries."""
        self._gone += entries_of(response)

    def _cut_off(self, reason: str) -> None:
        text = f"{reason}; open a new stream, and register again after RESYNC"
        self.end(CallRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, text))

    # -- streams --------------------------------------------------------------------------------------

    def attach(self, line: ResponseStream, layout: ServerLayout) -> None:
        """Add a new stream, which replaces an earlier stream of its kind; raises `CallRefusal`.

        A stream that follows an earlier one of the same registration receives RESYNC, because messages of the
        earlier stream may be lost (`docs/decisions/0031`).
        """
        if self.layout is not None and self.layout is not layout:
            raise CallRefusal(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"{self.label} already uses {self.layout.name}: use that, or register again",
            )
        before = self.lines.pop(line.kind, None)
        if before is not None:
            text = f"a newer {line.kind} stream of {self.label} replaced this stream"
            before.end(CallRefusal(grpc.StatusCode.ABORTED, text))
            self._drop(before.clear())
            _log.info("%s: %s from %s replaces that from %s", self.label, line.kind, line.peer, before.peer)
        elif line.peer != self.peer:
            _log.info("%s: %s from %s, registered from %s", self.label, line.kind, line.peer, self.peer)
        returning = self._lost or (line.kind in self._used)
        self.layout = layout
        self._used.add(line.kind)
        self.lines[line.kind] = line
        early, self._early = self._early, []
        for response in early:
            self._deliver(response)
        for part in self._unsent.pop(line.kind, []):
            line.put(part)
        if returning:
            line.is_stale = True
            self._lost, self._cut = False, False
            self._sessions.reconnect(self)

    def accepts_from(self, line: ResponseStream) -> bool:
        """Return True if messages received on a stream are to be processed."""
        return not line.is_stale and self.lines.get(line.kind) is line

    def detach(self, line: ResponseStream) -> None:
        """Remove a stream that has ended, without pausing the session."""
        self._drop(line.clear())
        if self.lines.get(line.kind) is line:
            del self.lines[line.kind]

    def lost(self, line: ResponseStream, reason: str) -> None:
        """Remove a broken stream: the session is paused, and the RM's other streams end."""
        self._drop(line.clear())
        if self.lines.get(line.kind) is not line:
            return
        del self.lines[line.kind]
        if line.half_closed:
            return
        self._lost = True
        self._sessions.pause(self, reason)
        for other in list(self.lines.values()):
            other.end(resync(f"the {line.kind} stream broke"))

    async def half_closed(self, line: ResponseStream) -> None:
        """Process the half-close of a stream; the RM shuts down when all its streams are half-closed.

        A half-closed stream that received RESYNC is only removed. See `docs/decisions/0031`.
        """
        line.half_closed = True
        if self.lines.get(line.kind) is not line:
            line.finish()
        elif line.is_stale:
            del self.lines[line.kind]
            line.finish()
        elif all(each.half_closed for each in self.lines.values()):
            await self._sessions.stop(self)
            for each in self.lines.values():
                each.finish()
            self.lines.clear()
            if self.callbacks is not None:
                self.callbacks.finish()

    def end(self, refusal: CallRefusal | None) -> None:
        """End all streams now."""
        if self.callbacks is not None:
            self.callbacks.end(refusal)
        lines, self.lines = list(self.lines.values()), {}
        for line in lines:
            self._drop(line.clear())
            line.end(refusal)

    def wind_up(self, refusal: CallRefusal) -> None:
        """End all streams after the waiting responses have been sent."""
        for line in self.lines.values():
            line.finish(refusal)
        self.lines = {}
        if self.callbacks is not None:
            self.callbacks.finish(refusal)

    @property
    def is_deserted(self) -> bool:
        """True if no stream has been opened in this registration."""
        return not self.lines and not self._used

    def _drop(self, responses: list[UpdateResponse]) -> None:
        for response in responses:
            self.sent(response)


def resync(reason: str) -> CallRefusal:
    """Return the status that stands for RESYNC on streams without a field for it."""
    return CallRefusal(
        grpc.StatusCode.ABORTED, f"RESYNC: {reason}; register again, open new streams, and report everything"
    )
