"""Registrations of remote RMs, and the state of their connections."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import weakref
from collections.abc import Callable

import grpc

from yunikorn.errors import UsageError, printable
from yunikorn.interface.commands import Pause
from yunikorn.interface.configurations import refused_registration_logged_by_caller
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn.states import PAUSED, STOPPED
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.call_endings import CallRefusal, Context, not_registered
from yunikorn_service.peers import Peer
from yunikorn_service.remote import RemoteRM
from yunikorn_service.runtime.threaded import CoreStopped
from yunikorn_service.server_layouts import LARGE
from yunikorn_service.service_settings import ServerSettings
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.codec import Decoder
from yunikorn_service.wire.generated import si_v0_11_pb2 as wire

GRACE = 1.0
"""Seconds by which the service waits longer than the core's session timeout."""

MOST_ENTRIES = 1000
"""Maximum number of entries in `buildInfo` and in `extraConfig`: the core checks and copies each entry."""

_log = logging.getLogger("yunikorn.grpc")


class TooMany(UsageError):
    """Error for a registration beyond the maximum number of resource managers."""


class Registrations:
    """Current registrations by RM. Used in the event loop, except where a comment says otherwise."""

    def __init__(self, core: AsyncScheduler, settings: ServerSettings) -> None:
        self.core = core
        self.settings = settings
        self.current: dict[str, RemoteRM] = {}
        """Latest registration of each RM; changed in the core's thread only."""
        self._loop = asyncio.get_running_loop()

    def of(self, rm_id: str, context: Context) -> tuple[RemoteRM, Peer]:
        """Return the registration that a new stream belongs to, and its client; raises `CallRefusal`."""
        peer = Peer.of(context, self.settings.identity)
        peer.check(rm_id, self.settings.identity)
        remote = self.current.get(rm_id)
        if remote is None:
            raise not_registered(rm_id)
        return remote, peer

    async def register(self, request: RegisterResourceManagerRequest, peer: Peer) -> None:
        """Register a resource manager; raises `TooMany`, `CallRefusal`, and the errors of the core."""
        if request.rm_id:
            peer.check(request.rm_id, self.settings.identity)
        remote = RemoteRM(request.rm_id, self, self.settings.limits, peer)

        def operation(core: Scheduler) -> RemoteRM | None:
            most = self.settings.limits.rms
            if request.rm_id not in self.current and len(self.current) >= most:
                self._forget_ended(core)
            if request.rm_id not in self.current and len(self.current) >= most:
                text = f"{len(self.current)} resource managers are registered, which is the limit"
                raise TooMany(text)
            with refused_registration_logged_by_caller():
                core.register_resource_manager(request, remote)
            before = self.current.get(request.rm_id)
            self.current[request.rm_id] = remote
            return before

        if len(request.config) >= LARGE:
            await self.core.load_ahead(request.config)
        await self.core.prepare()
        before = await self.core.carry_out(operation)
        _log.info(
            "resource manager %s registered from %s: version '%s', policy group '%s'%s",
            printable(request.rm_id),
            peer,
            printable(request.version),
            printable(request.policy_group),
            f", replacing its registration from {before.peer}" if before is not None else "",
        )
        if before is not None:
            # Streams that received RESYNC end too: messages that the RM sent before reading it may still
            # arrive.
            text = f"{remote.label} registered again: open a new stream and use that"
            before.end(CallRefusal(grpc.StatusCode.ABORTED, text))
        self._expect_stream(remote)

    def _forget_ended(self, core: Scheduler) -> None:
        # The core ends sessions of RMs that do not come back. This lookup is only needed when the limit is
        # reached.
        for rm_id in [rm_id for rm_id in self.current if core.session_state(rm_id) == STOPPED]:
            del self.current[rm_id]

    def _expect_stream(self, remote: RemoteRM) -> None:
        # Without a stream there is no connection whose loss would pause the session.
        if remote.is_deserted:
            # The weak reference allows a replaced registration to be freed before the timer fires.
            delay = self.settings.patience.stream
            self._loop.call_later(delay, self._check_deserted, weakref.ref(remote))

    def _check_deserted(self, known: weakref.ref[RemoteRM]) -> None:
        remote = known()
        if remote is None or not remote.is_deserted:
            return
        _log.info("%s did not open a stream within %g s", remote.label, self.settings.patience.stream)

        def end(core: Scheduler) -> None:
            # The RM has reported nothing yet, so nothing is lost.
            core.stop(remote.rm_id)
            raise UsageError("it did not open a stream")

        self._notify(remote, end)

    def is_current(self, remote: RemoteRM) -> bool:
        """Return True if this is the latest registration of its RM."""
        return self.current.get(remote.rm_id) is remote

    def expect_registration(self, remote: RemoteRM) -> None:
        """Schedule a check that ends the RM's streams if the core stops the session after a RESYNC."""
        delay = self.settings.patience.session
        if delay is not None and not remote.is_awaited:
            remote.is_awaited = True
            self._loop.call_later(delay + GRACE, self._check_given_up, remote, delay)

    def _check_given_up(self, remote: RemoteRM, delay: float) -> None:
        def check(core: Scheduler) -> None:
            state = core.session_state(remote.rm_id)
            if state == STOPPED:
                raise UsageError("its session was stopped")
            if state == PAUSED:
                # The core was busy, or its timeout has restarted since: the session may still end.
                self._loop.call_soon_threadsafe(self._loop.call_later, later, check_again)
            else:
                remote.is_awaited = False

        later = max(GRACE, delay / 10)
        check_again = functools.partial(self._check_given_up, remote, delay)
        self._notify(remote, check)

    # -- connections: from any thread -----------------------------------------------------------------

    def pause(self, remote: RemoteRM, reason: str) -> None:
        """Pause the session, because the connection of this registration was lost."""
        self._notify(remote, Pause(remote.rm_id, reason))

    def reconnect(self, remote: RemoteRM) -> None:
        """Send RESYNC to an RM that has connected again without a new registration."""
        # The callback may change until the core gets here.
        self._notify(remote, lambda core: core.reconnect(remote.rm_id, remote.callback))

    async def stop(self, remote: RemoteRM) -> None:
        """Stop the session of an RM that shuts down; a session that is paused stays paused."""

        def operation(core: Scheduler) -> None:
            if not remote.is_current:
                return
            if core.session_state(remote.rm_id) == PAUSED:
                core.pause(remote.rm_id, "the connection was closed")
            else:
                core.stop(remote.rm_id)
                del self.current[remote.rm_id]

        try:
            await self.core.carry_out(operation)
        except CoreStopped:
            return
        except UsageError:
            # The core has stopped the session meanwhile, because the RM was away for too long.
            self.forget(remote)

    def forget(self, remote: RemoteRM) -> None:
        """Remove this registration, whose session the core has stopped."""

        def operation(_: Scheduler) -> None:
            if remote.is_current:
                del self.current[remote.rm_id]

        with contextlib.suppress(CoreStopped):
            self.core.threaded.notify(operation)

    def _notify(self, remote: RemoteRM, operation: Callable[[Scheduler], None]) -> None:
        def end_if_stopped(core: Scheduler) -> None:
            if not remote.is_current:
                return
            try:
                operation(core)
            except UsageError:
                # The core has stopped the session, because the RM was away for too long.
                del self.current[remote.rm_id]
                self._loop.call_soon_threadsafe(remote.end, not_registered(remote.rm_id))

        with contextlib.suppress(CoreStopped):
            self.core.threaded.notify(end_if_stopped)


def decode_registration(data: bytes) -> RegisterResourceManagerRequest:
    """Decode a registration; raises `MalformedMessage`, and `CallRefusal` for too many entries."""
    codec = v0_11.REGISTER_REQUEST

    def convert(message: wire.RegisterResourceManagerRequest) -> RegisterResourceManagerRequest:
        # Checked before the conversion, which blocks the other threads while the entries are copied.
        _check_entries(message)
        return codec.from_wire(message)

    return Decoder(codec.wire, convert).decode(data)


def _check_entries(message: wire.RegisterResourceManagerRequest) -> None:
    for name, entries in (("buildInfo", message.buildInfo), ("extraConfig", message.extraConfig)):
        if len(entries) > MOST_ENTRIES:
            text = f"{name}: has {len(entries)} entries, the limit is {MOST_ENTRIES}"
            raise CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, text)
