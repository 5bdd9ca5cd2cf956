"""HTTP server of the REST interface, in the event loop of the service.

uvicorn serves the application. It leaves connections open whose request never arrives, and waits without
limit for clients that take no data; `Connection` closes both.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import attrs
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from yunikorn.rest.guards import LOOPBACK, Crowd, HostCheck


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


class Connection(H11Protocol):
    """Connection of a client, closed if a request header or the reading of an answer takes too long."""

    limits = ServerLimits()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._header: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit of the first request."""
        super().connection_made(transport)
        self._await_header()

    def data_received(self, data: bytes) -> None:
        """Process data; the time limit ends when a header is complete."""
        if self._header is None and (self.cycle is None or self.cycle.response_complete):
            self._await_header()
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_header()

    def on_response_complete(self) -> None:
        """Start the time limit of the next request if its first bytes have come with the last one."""
        super().on_response_complete()
        if self._header is None and self.conn.trailing_data[0] and self.cycle.response_complete:
            self._await_header()

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
        if self._header is not None:
            self._header.cancel()
            self._header = None

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None


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
        protocol = type("Connection", (Connection,), {"limits": limits})
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
            h11_max_incomplete_event_size=limits.header_bytes,
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )
        self._server = _Server(config)
        self._socket = listening
        self._task: asyncio.Task[None] | None = None

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
