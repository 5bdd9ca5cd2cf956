"""HTTP server of the REST interface, in the event loop of the service.

uvicorn serves the application. It leaves connections open whose request never arrives, and waits without
limit for clients that take no data; `ClientConnection` closes both.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import attrs
import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from yunikorn.rest.guards import LOOPBACK, Crowd, HostCheck
from yunikorn.rest.joined_writes import JoinedWrites
from yunikorn.rest.route_access import CERTIFICATE

TOO_LARGE = "The header of the request is too large."


@attrs.frozen
class ServerLimits:
    """Limits of the server; times in seconds."""

    requests: int = 200
    """Number of requests in progress."""
    header: float = 10.0
    """Time for a request to arrive, from the connection or the first byte on."""
    idle: int = 30
    """Time for which a connection is kept open between two requests."""
    reading: float = 30.0
    """Time for a client to take the next piece of an answer."""
    stop: int = 5
    """Time for requests in progress when the server stops."""
    header_bytes: int = 64 << 10
    """Maximum size of the header of a request."""


class ClientConnection(HttpToolsProtocol):
    """Connection of a client, closed if a request header or the reading of an answer takes too long."""

    limits = ServerLimits()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._header: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._arrived = 0
        """Bytes that have arrived of a header that is incomplete."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit of the first request."""
        connected = transport.get_extra_info("socket")
        # asyncio does this only for sockets that were made with the number of the protocol. Without it the
        # body of an answer waits until the client acknowledges the header, which takes up to 40 ms.
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._joined = JoinedWrites(transport, self.loop)
        super().connection_made(self._joined)
        # uvicorn passes a copy of this mapping on with every request of the connection.
        self.app_state = {**self.app_state, CERTIFICATE: common_name(transport)}
        self._await_header()

    def data_received(self, data: bytes) -> None:
        """Process data, within the limits of a header unless they belong to a body."""
        self._unset_keepalive_if_required()
        self._feed(data)
        if self.transport.is_closing():
            return
        is_idle = self.cycle is None or self.cycle.response_complete
        if self._header is None and self.timeout_keep_alive_task is None and is_idle:
            # Between two requests: empty lines, or the rest of a body that is not wanted.
            self._await_header()
        elif self._header is not None:
            self._arrived += len(data)
            if self._arrived > self.limits.header_bytes:
                self.send_400_response(TOO_LARGE)

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # Another protocol is never used, so requests may follow. The base class would drop them.
            self._feed(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")

    def on_message_begin(self) -> None:
        """Start the time limit of the header."""
        super().on_message_begin()
        if self._header is None:
            self._await_header()

    def on_headers_complete(self) -> None:
        """Begin to answer a request; its header is complete.

        Raises `ValueError` if the header is too large. The parser then refuses the request.
        """
        self._stop_header()
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.limits.header_bytes:
            raise ValueError(TOO_LARGE)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Send the end of an answer without another turn of the event loop."""
        self._joined.flush()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start the time limit of a client that takes no data."""
        super().pause_writing()
        self._reading = self.loop.call_later(self.limits.reading, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the time limit of a client that takes data again."""
        self._stop_reading()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all time limits."""
        self._stop_header()
        self._stop_reading()
        super().connection_lost(exc)

    def _await_header(self) -> None:
        self._header = self.loop.call_later(self.limits.header, self.transport.abort)

    def _stop_header(self) -> None:
        self._arrived = 0
        if self._header is not None:
            self._header.cancel()
            self._header = None

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None


def common_name(transport: asyncio.BaseTransport) -> str:
    """Return the common name of the client's verified certificate; empty unless there is exactly one."""
    tls = transport.get_extra_info("ssl_object")
    found = None if tls is None else tls.getpeercert()
    subject = [] if not found else [pair for part in found.get("subject", ()) for pair in part]
    names = [value for key, value in subject if key == "commonName"]
    return names[0] if len(names) == 1 else ""


class _Server(uvicorn.Server):
    """Server without signal handlers, which belong to the service."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class RestServer:
    """HTTP server of one application on a socket that listens already."""

    def __init__(
        self,
        app: ASGIApp,
        listening: socket.socket,
        tls: ssl.SSLContext | None = None,
        hosts: tuple[str, ...] = (),
        limits: ServerLimits | None = None,
    ) -> None:
        """Serve `app`; with `hosts`, only requests that name one of them or the loopback interface."""
        limits = limits or ServerLimits()
        guarded: ASGIApp = HostCheck(app, {*LOOPBACK, *hosts}) if hosts else app
        guarded = Crowd(guarded, limits.requests)
        protocol = type("Connection", (ClientConnection,), {"limits": limits})
        config = uvicorn.Config(
            guarded,
            http=protocol,
            ws="none",
            loop="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            # Its warnings are about requests of clients, and would fill the log.
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=limits.idle,
            timeout_graceful_shutdown=limits.stop,
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )
        self._server = _Server(config)
        self._socket = listening
        self._task: asyncio.Task[None] | None = None

    @property
    def connections(self) -> set[ClientConnection]:
        """Open connections."""
        return self._server.server_state.connections  # type: ignore[return-value]

    async def start(self) -> None:
        """Begin to serve; returns when connections are accepted."""
        self._task = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started:
            if self._task.done():
                self._task.result()
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Answer the requests in progress, within a time limit, and close all connections."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
