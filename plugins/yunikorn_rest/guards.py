"""Protection against hostile or broken clients: other host names, many requests, clients that have gone.

Limit on failed credentials per address, so that guessing is slow and the audit log stays small.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import TypeVar

import attrs
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from yunikorn.clock import SECOND
from yunikorn_rest.answers import error
from yunikorn_service.background import begin_watched

BURST = 20
"""Failures of one address that are answered at once."""
PERIOD = 3 * SECOND
"""Time after which an address may fail once more (ns)."""
ADDRESSES = 10_000
"""Maximum number of addresses that are remembered; the one that failed longest ago is forgotten."""
KNOWN = 16
"""Maximum number of credentials per address that are remembered as valid."""


@attrs.define
class _Failures:
    """Failures of one address."""

    count: float
    since: int
    """Time to which the count belongs (ns)."""


class Throttle:
    """Failures of addresses within a short time.

    An address beyond the limit gets no more answers about credentials, right or wrong, except for those that
    were valid from this address before. Guesses thus learn nothing, and clients behind the same address that
    work already are not affected.
    """

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        """Measure time with `stopwatch` (ns)."""
        self._stopwatch = stopwatch
        self._failures: OrderedDict[str, _Failures] = OrderedDict()
        self._valid: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    def is_over(self, address: str, name: str = "") -> bool:
        """Return True if the address is beyond the limit, and `name` was not valid from there before."""
        network = network_of(address)
        if name and name in self._valid.get(network, ()):
            return False
        return self._count(network) > BURST - 1

    def fail(self, address: str) -> None:
        """Count a failure."""
        network = network_of(address)
        self._failures[network] = _Failures(min(self._count(network) + 1, BURST), self._stopwatch())
        self._failures.move_to_end(network)
        while len(self._failures) > ADDRESSES:
            self._failures.popitem(last=False)

    def succeed(self, address: str, name: str) -> None:
        """Remember that a credential was valid from this address."""
        network = network_of(address)
        names = self._valid.setdefault(network, OrderedDict())
        names[name] = None
        names.move_to_end(name)
        self._valid.move_to_end(network)
        while len(names) > KNOWN:
            names.popitem(last=False)
        while len(self._valid) > ADDRESSES:
            self._valid.popitem(last=False)

    def _count(self, network: str) -> float:
        found = self._failures.get(network)
        if found is None:
            return 0
        return max(0.0, found.count - (self._stopwatch() - found.since) / PERIOD)


def network_of(address: str) -> str:
    """Return what counts as one address: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False))


_log = logging.getLogger("yunikorn.rest")

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""Names of this machine in the `Host` header."""


class HostCheck:
    """Answers only requests that name one of the known hosts, with any port.

    A server on the loopback interface needs this: the page of a foreign site could otherwise reach it under
    the name of that site, whose address the site changes to 127.0.0.1 (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        host = Headers(scope=scope).get("host", "").lower()
        if host_name(host) in self._hosts:
            await self._app(scope, receive, send)
        else:
            text = "the host name of the request is unknown here: use localhost, or start with --rest-host"
            await error(421, text)(scope, receive, send)


def host_name(host: str) -> str:
    """Return a `Host` header without the port."""
    name, colon, port = host.rpartition(":")
    return name if colon and (port.isdigit() or not port) and not host.endswith("]") else host


class SharedPlaces:
    """Limits how many of something are in progress, with a share for each client address.

    An address may take a place while it has fewer places than are free. One address alone thus gets half of
    the places, and two get a third each; a new address finds a free place whatever the others do.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._taken: Counter[str] = Counter()

    @contextlib.contextmanager
    def taken(self, address: str) -> Iterator[bool]:
        """Take a place while the context lasts; the value is False if the address gets none."""
        network = network_of(address)
        if self._taken[network] >= self._free:
            yield False
            return
        self._taken[network] += 1
        self._free -= 1
        try:
            yield True
        finally:
            self._free += 1
            self._taken[network] -= 1
            if not self._taken[network]:
                del self._taken[network]


class UnreadBodies:
    """Announces the end of the connection with an answer that is given before the body has been read.

    The rest of the body stays unread, so that no further request can follow on the connection.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add `Connection: close` to an early answer."""
        headers = Headers(scope=scope)
        is_unread = "transfer-encoding" in headers or headers.get("content-length", "0").strip("0") != ""
        if not is_unread:
            await self._app(scope, receive, send)
            return

        async def receiving() -> Message:
            nonlocal is_unread
            message = await receive()
            is_unread = is_unread and message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if is_unread and message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receiving, sending)


T = TypeVar("T")


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T | None:
    """Return the result of `work`, or None if the client disconnects first, which cancels the work.

    Nothing else may receive meanwhile, apart from further questions whether the client has disconnected.
    """
    worker, is_gone = asyncio.current_task(), False
    assert worker is not None

    async def watch() -> None:
        nonlocal is_gone
        while (await receive())["type"] != "http.disconnect":
            pass
        is_gone = True
        worker.cancel()

    watcher = begin_watched(watch(), "the wait for a client to disconnect", _log)
    try:
        return await work
    except asyncio.CancelledError:
        if not is_gone or worker.uncancel():
            raise
        return None
    finally:
        watcher.cancel()
