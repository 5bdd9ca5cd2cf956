"""HTTP server of the REST interface, in the event loop of the service.

uvicorn serves the application. It leaves connections open whose request never arrives, waits without limit
for clients that take no data, and resets connections whose body it does not read; `ClientConnection` closes
the first two, and reads the rest of such a body. It also refuses requests for two hosts.

A transport that sends the header of an answer and its body together.

The HTTP server writes both one after the other. Two writes are two system calls, and in a process with a busy
thread the event loop may lose the interpreter's lock for some milliseconds at each.

The connections of a server, bounded in number: beyond the bound, a new one ends an old one.

Each connection takes a file descriptor, and a server without any left accepts none, probes included. So the
new connection is accepted, and one of the address with most connections ends, an idle one if there is any.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import attrs
import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from yunikorn_rest.guards import LOOPBACK, HostCheck, UnreadBodies, network_of
from yunikorn_rest.route_access import CERTIFICATE
from yunikorn_service.background import begin_watched

ENOUGH = 64 << 10
"""Number of bytes from which data are sent at once."""


class JoinedWrites(asyncio.Transport):
    """Transport that collects what is written in one turn of the event loop."""

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._inner, self._loop = inner, loop
        self._parts: list[bytes | bytearray | memoryview] = []
        self._size = 0
        self.sent = 0
        """Number of bytes that were passed on."""
        self.lingers = False
        """True while a body arrives that is not complete."""
        self.is_lingering = False
        """True if only the rest of a body is awaited."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data at the end of this turn of the event loop, or now if they are large."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size >= ENOUGH:
            self.flush()

    def flush(self) -> None:
        """Send everything that was collected."""
        parts, size, self._parts, self._size = self._parts, self._size, [], 0
        self.sent += size
        if parts and not self._inner.is_closing():
            self._inner.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        """Send everything, and close the connection.

        If `lingers` is set, the first call only ends what is sent. A connection that is closed while data
        arrive is reset, and the client then loses what it has not read yet.
        """
        self.flush()
        if not self.lingers or self.is_lingering or self._inner.is_closing():
            self._inner.close()
            return
        self.is_lingering = True
        self._inner.resume_reading()
        if self._inner.can_write_eof():
            self._inner.write_eof()

    def abort(self) -> None:
        """Close the connection without sending anything more."""
        self._parts.clear()
        self._inner.abort()

    def is_closing(self) -> bool:
        """Return True after `close` or `abort`."""
        return self.is_lingering or self._inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a property of the connection."""
        return self._inner.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Stop to read."""
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        """Continue to read."""
        self._inner.resume_reading()


class HeldConnection(Protocol):
    """Connection in a table."""

    @property
    def is_idle(self) -> bool:
        """True while no request is in progress."""
        ...

    def abort(self) -> None:
        """End the connection at once."""
        ...


class ConnectionTable:
    """Connections by the address of their client, oldest first."""

    def __init__(self, most: int) -> None:
        """Create an empty table for at most so many connections."""
        self._most = most
        self._size = 0
        self._by_address: dict[str, dict[HeldConnection, None]] = {}

    def add(self, connection: HeldConnection, address: str) -> None:
        """Add a connection, and end another one if there are too many."""
        if self._size >= self._most:
            crowded = max(self._by_address, key=lambda each: len(self._by_address[each]))
            of_address = self._by_address[crowded]
            ended = next((one for one in of_address if one.is_idle), next(iter(of_address)))
            self._remove(ended, crowded)
            ended.abort()
        self._by_address.setdefault(network_of(address), {})[connection] = None
        self._size += 1

    def remove(self, connection: HeldConnection, address: str) -> None:
        """Remove a connection that has ended."""
        self._remove(connection, network_of(address))

    def _remove(self, connection: HeldConnection, network: str) -> None:
        found = self._by_address.get(network)
        if found is None or connection not in found:
            return
        del found[connection]
        self._size -= 1
        if not found:
            del self._by_address[network]


_log = logging.getLogger("yunikorn.rest")

TOO_LARGE = "The header of the request is too large."
INVALID = "Invalid HTTP request received."
SEND_BUFFER = 128 << 10
"""Size (bytes) of the system's buffer for what a client has not read; by default it grows to megabytes."""
ONE_HOST = "The request needs one Host header, and its target must be at that host."


@attrs.frozen
class ServerLimits:
    """Limits of the server; times in seconds."""

    connections: int = 8000
    """Number of connections; beyond it, the oldest of the address with most connections ends."""
    header: float = 10.0
    """Time for a request to arrive, from the connection or the first byte on."""
    idle: int = 30
    """Time for which a connection is kept open between two requests."""
    reading: float = 30.0
    """Time for a client to take the next piece of an answer."""
    slowest: float = 16 << 10
    """Bytes in a second that a client takes at least, apart from `reading`, while some wait for it."""
    linger: float = 30.0
    """Time in which the rest of a body is read that has been answered already."""
    stop: int = 5
    """Time for requests in progress when the server stops."""
    header_bytes: int = 64 << 10
    """Maximum size of the header of a request."""


class ClientConnection(HttpToolsProtocol):
    """Connection of a client, closed if a request header or the reading of an answer takes too long."""

    limits = ServerLimits()
    table = ConnectionTable(limits.connections)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._header: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._arrived = 0
        """Bytes that have arrived of a header that is incomplete."""
        self._lingering: asyncio.TimerHandle | None = None
        self._paused_at = 0.0
        self._paused = 0.0
        """Time for which data waited for the client (s)."""
        self._refusal = INVALID

    @property
    def is_idle(self) -> bool:
        """True while no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit of the first request."""
        connected = transport.get_extra_info("socket")
        # asyncio does this only for sockets that were made with the number of the protocol. Without it the
        # body of an answer waits until the client acknowledges the header, which takes up to 40 ms.
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self._joined = JoinedWrites(transport, self.loop)
        super().connection_made(self._joined)
        # uvicorn passes a copy of this mapping on with every request of the connection.
        self.app_state = {**self.app_state, CERTIFICATE: common_name(transport)}
        self._await_header()
        self.table.add(self, self._address)

    def abort(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Process data, within the limits of a header unless they belong to a body."""
        if self._joined.is_lingering:
            return
        self._unset_keepalive_if_required()
        self._feed(data)
        if self.transport.is_closing():
            return
        if self._header is None and self.timeout_keep_alive_task is None and self.is_idle:
            # Empty lines between two requests.
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
            self.send_400_response(self._refusal)

    def on_message_begin(self) -> None:
        """Start the time limit of the header."""
        super().on_message_begin()
        if self._header is None:
            self._await_header()

    def on_headers_complete(self) -> None:
        """Begin to answer a request; its header is complete.

        Raises `ValueError` if the header is too large, or names two hosts or none. The parser then refuses
        the request.
        """
        self._stop_header()
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.limits.header_bytes:
            self._refusal = TOO_LARGE
            raise ValueError(TOO_LARGE)
        if not is_for_one_host(self.url, self.headers, self.parser.get_http_version()):
            self._refusal = ONE_HOST
            raise ValueError(ONE_HOST)
        super().on_headers_complete()
        self._joined.lingers = True

    def on_message_complete(self) -> None:
        """Note that the body is complete."""
        self._joined.lingers = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Send the end of an answer without another turn of the event loop."""
        self._joined.flush()
        self._await_rest()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request, and read what follows."""
        self._stop_header()
        self._joined.lingers = True
        super().send_400_response(msg)
        self._await_rest()

    def pause_writing(self) -> None:
        """Start the time limit of a client that takes no data."""
        super().pause_writing()
        self._paused_at = self.loop.time()
        rest = self.limits.reading + self._joined.sent / self.limits.slowest - self._paused
        self._reading = self.loop.call_later(max(0, min(self.limits.reading, rest)), self.abort)

    def resume_writing(self) -> None:
        """Stop the time limit of a client that takes data again."""
        self._paused += self.loop.time() - self._paused_at
        self._stop_reading()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all time limits."""
        self._stop_header()
        self._stop_reading()
        if self._lingering is not None:
            self._lingering.cancel()
        self.table.remove(self, self._address)
        super().connection_lost(exc)

    @property
    def _address(self) -> str:
        return "" if self.client is None else self.client[0]

    def _await_rest(self) -> None:
        if self._joined.is_lingering and self._lingering is None:
            self._lingering = self.loop.call_later(self.limits.linger, self.abort)

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


def is_for_one_host(target: bytes, headers: Iterable[tuple[bytes, bytes]], version: str) -> bool:
    """Return True if a request has one `Host` header, which an absolute target does not contradict.

    Only requests of HTTP/1.0 may have no such header (RFC 9112, section 3.2).
    """
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) != 1:
        return not hosts and version == "1.0" and target.startswith(b"/")
    if target.startswith(b"/") or target == b"*":
        return True
    _, mark, rest = target.partition(b"://")
    authority = rest.partition(b"/")[0].partition(b"?")[0]
    return bool(mark) and authority.lower() == hosts[0].strip().lower()


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
        members = {"limits": limits, "table": ConnectionTable(limits.connections)}
        protocol = type("Connection", (ClientConnection,), members)
        config = uvicorn.Config(
            UnreadBodies(guarded),
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
        self._task = begin_watched(self._server.serve([self._socket]), "the REST server", _log)
        while not self._server.started:
            if self._task.done():
                self._task.result()
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Answer the requests in progress, within a time limit, and close all connections."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
