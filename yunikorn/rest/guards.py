"""Protection against hostile or broken clients: other host names, many requests, clients that have gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection
from typing import TypeVar

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from yunikorn.rest.answers import error, plain_error

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


class Crowd:
    """Limits the number of requests in progress; others are refused at once."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most
        self._current = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if self._current >= self._most:
            answer = plain_error(503, "too many requests at the same time", {"retry-after": "1"})
            await answer(scope, receive, send)
            return
        self._current += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._current -= 1


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

    watcher = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if not is_gone or worker.uncancel():
            raise
        return None
    finally:
        watcher.cancel()
