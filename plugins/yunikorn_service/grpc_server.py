"""The gRPC server: the scheduler interface in both layouts, callbacks, health and reflection on one port."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from yunikorn.errors import ConfigError, UsageError, YunikornError
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn_service.address import SocketLock, bind, socket_lock
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.call_endings import CallRefusal, Context, end_with, refusal_of, refuse, shown
from yunikorn_service.callback_streams import CallbackStreams
from yunikorn_service.certificates import ServerCertificates
from yunikorn_service.grpc_health import Health
from yunikorn_service.open_streams import OpenStreams, answered
from yunikorn_service.peers import Peer
from yunikorn_service.reflection import reflect
from yunikorn_service.registrations import Registrations, TooMany, decode_registration
from yunikorn_service.runtime.threaded import CoreStopped
from yunikorn_service.server_layouts import SERVER_LAYOUTS, Decoding, ServerLayout
from yunikorn_service.service_settings import ServerSettings
from yunikorn_service.streams import UpdateStreams
from yunikorn_service.wire import protocol
from yunikorn_service.wire.codec import MalformedMessage

_log = logging.getLogger("yunikorn.grpc")

LAST = 0.5
"""Seconds for the remaining calls to end after all streams of RMs have ended."""
BESIDE = 100
"""Maximum number of concurrent calls per connection beside the streams of its RMs."""
STOPPING = CallRefusal(grpc.StatusCode.UNAVAILABLE, "the scheduler is stopping: connect again later")
DIED = CallRefusal(grpc.StatusCode.INTERNAL, "the scheduler stopped because of a bug, see its log")


class Server:
    """Network server of a core. `start` and `stop` must be called in the same event loop."""

    ended: asyncio.Future[int] | None = None
    """None: the server ends only by `stop`."""
    unready = ""
    """The server is ready as long as its core is."""
    config_source = ""
    """Configurations are those of the service and of resource managers."""

    def __init__(self, core: AsyncScheduler, settings: ServerSettings) -> None:
        self.registrations = Registrations(core, settings)
        self.health = Health()
        self._core, self._settings = core, settings
        self._open = OpenStreams(settings.limits)
        self._decoding = Decoding()
        self._streams = UpdateStreams(self.registrations, self._decoding)
        self._callbacks = CallbackStreams(self.registrations, self._decoding)
        self._socket_lock: SocketLock | None = None
        self._certificates: ServerCertificates | None = None
        self._server = grpc.aio.server(options=_options(settings))
        self._server.add_generic_rpc_handlers((self._scheduler(), self._callback_handler()))
        self.health.serve(self._server, settings.patience)
        reflect(self._server)

    async def start(self) -> str:
        """Listen; returns the address with the bound port. Raises `UsageError` if that is not possible."""
        try:
            self._socket_lock = socket_lock(self._settings)
            tls = self._settings.tls
            self._certificates = None if tls is None else ServerCertificates(tls)
            address = bind(self._server, self._settings, self._certificates)
        except UsageError:
            await self._server.stop(None)
            self._release()
            raise
        await self._server.start()
        await self.health.set(True)
        return address

    async def stop(self) -> None:
        """Stop the core, send the waiting responses to every RM, and end all streams.

        The core completes its current work first. No session is stopped, because the RMs reconnect to the
        next service.
        """
        await self.health.set(False)
        await self._core.close()
        failure = self._core.threaded.failure
        for remote in list(self.registrations.current.values()):
            remote.wind_up(STOPPING if failure is None else DIED)
        if self._open.tasks:
            await asyncio.wait(self._open.tasks, timeout=self._settings.patience.stop)
        # The calls of clients that watch the health do not end by themselves.
        await self._server.stop(LAST)
        self._decoding.close()
        self._release()

    def _release(self) -> None:
        if self._socket_lock is not None:
            self._socket_lock.release()

    def reload_certificates(self) -> bool:
        """Use the current certificate files; returns True if they have changed, raises `UsageError`."""
        return self._certificates is not None and self._certificates.reload()

    async def report(self, green: bool) -> None:
        """Report through the health service whether the core makes progress."""
        await self.health.set(green)

    # -- handlers -------------------------------------------------------------------------------------

    def _scheduler(self) -> grpc.GenericRpcHandler[Any, Any]:
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            protocol.REGISTER: answered(self._register, protocol.REGISTER, self._settings.patience)
        }
        for layout in SERVER_LAYOUTS:
            for kind in layout.decode:
                serve = functools.partial(self._update, layout, kind)
                handlers[kind] = grpc.stream_stream_rpc_method_handler(serve)
        return grpc.method_handlers_generic_handler(protocol.SCHEDULER, handlers)

    def _callback_handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        connect = grpc.stream_stream_rpc_method_handler(self._connect)
        return grpc.method_handlers_generic_handler(protocol.CALLBACKS, {protocol.CONNECT: connect})

    async def _update(
        self, layout: ServerLayout, kind: str, messages: AsyncIterator[bytes], context: Context
    ) -> None:
        await self._serve(functools.partial(self._streams.serve, layout, kind), messages, context)

    async def _connect(self, messages: AsyncIterator[bytes], context: Context) -> None:
        await self._serve(self._callbacks.serve, messages, context)

    async def _serve(
        self,
        serve: Callable[[AsyncIterator[bytes], Context], Awaitable[None]],
        messages: AsyncIterator[bytes],
        context: Context,
    ) -> None:
        """Serve a stream if the limits allow; the limit per connection covers all kinds together."""
        try:
            with self._open.counted(context.peer()):
                await serve(messages, context)
        except CallRefusal as refusal:
            await refuse(context, refusal, f"a new stream from {context.peer()}")

    async def _register(self, data: bytes, context: Context) -> bytes:
        request = RegisterResourceManagerRequest("")
        try:
            request = await self._decoding.decode(decode_registration, data)
            await self.registrations.register(request, Peer.of(context, self._settings.identity))
        except (YunikornError, CallRefusal) as error:
            refusal = error if isinstance(error, CallRefusal) else _registration_refused(error)
            # Texts from the service's own files are not secret.
            reason = refusal.logged if request.config else refusal.details
            _log.warning(
                "the registration of %s by %s was refused: %s", _named(request), Peer.of(context), reason
            )
            await end_with(context, refusal, "a registration")
        return b""


def _named(request: RegisterResourceManagerRequest) -> str:
    return f"resource manager {shown(request.rm_id)}" if request.rm_id else "a resource manager"


def _registration_refused(error: YunikornError) -> CallRefusal:
    if isinstance(error, (CoreStopped, ConfigError, MalformedMessage)):
        return refusal_of(error)
    if isinstance(error, TooMany):
        return CallRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
    if isinstance(error, UsageError):
        return CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    return refusal_of(error)


def _options(settings: ServerSettings) -> list[tuple[str, int]]:
    keepalive = round(settings.patience.keepalive * 1000)
    return [
        ("grpc.max_receive_message_length", settings.limits.message_bytes),
        ("grpc.max_send_message_length", -1),
        # Besides the counted streams, a connection has calls such as registrations.
        ("grpc.max_concurrent_streams", settings.limits.connection + BESIDE),
        # Otherwise two schedulers at one port would silently share its connections.
        ("grpc.so_reuseport", 0),
        # Keepalive detects peers that vanish without closing the connection, so their sessions are paused.
        ("grpc.keepalive_time_ms", keepalive),
        ("grpc.keepalive_timeout_ms", keepalive // 2),
        ("grpc.http2.ping_timeout_ms", keepalive // 2),  # the default is a minute, whatever the keepalive
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        # gRPC disconnects peers that probe idle connections more often, by default than every five minutes.
        ("grpc.http2.min_ping_interval_without_data_ms", round(settings.patience.pings * 1000)),
    ]
