"""Interface between the calls to an API server and the transport below, which tests replace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import attrs

from yunikorn.errors import YunikornError


class TransportError(YunikornError):
    """Request without an answer.

    `sent` is False if the server cannot have received the request, for example because the connection was
    refused. Otherwise the server may have executed the request.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


@attrs.frozen
class ServerAnswer:
    """Complete answer of the server; keys of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes | bytearray


class BodyStream(Protocol):
    """Answer whose body is read in pieces."""

    @property
    def status(self) -> int:
        """HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers, with keys in lower case."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """Return the body in pieces as they arrive. Raises `TransportError` if the connection breaks."""
        ...


class Transport(Protocol):
    """HTTP to one API server, with its credentials."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = "",
        timeout: float = 0.0,
        may_send: Callable[[], bool] = lambda: True,
    ) -> ServerAnswer:
        """Send a request and return its complete answer within `timeout` seconds.

        `path` includes the query. A body is written only if `may_send` returns True immediately before: the
        process may have been stopped for a while since the call. Raises `TransportError` if there is no
        answer.
        """
        ...

    def stream(self, path: str, *, silence: float) -> AbstractAsyncContextManager[BodyStream]:
        """Open a GET whose answer is read in pieces; without data for `silence` seconds it is broken."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
