"""HTTP connection to an API server, by aiohttp, with credentials that are renewed while it is open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from yunikorn_kubernetes.api_server.api_credentials import ApiCredentials, CredentialsError, ServerAccess
from yunikorn_kubernetes.api_server.transport import ServerAnswer, TransportError
from yunikorn_service.background import begin_watched

_log = logging.getLogger("yunikorn.kubernetes")

RENEWAL = 60.0
"""Seconds after which files of credentials are read again; the tokens of pods rotate."""
CONNECT_LIMIT = 10.0
"""Seconds to establish a connection."""
REJECTION_PAUSE = 5.0
"""Seconds after a rejection before a rejection loads credentials again: an exec plugin may be expensive."""
REJECTED = 401


class HttpStream:
    """Answer of aiohttp that is read in pieces."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = _headers_of(response)
        """Headers, with keys in lower case."""

    async def pieces(self) -> AsyncIterator[bytes]:
        """Return the body in pieces as they arrive. Raises `TransportError` if the connection breaks."""
        try:
            while piece := await self._response.content.readany():
                yield piece
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransportError(text_of(error)) from error


class _Body(aiohttp.BytesPayload):
    """Body of a request, which is written only if `may_send` returns True at that moment.

    The headers wait for the body, and a server does not execute a request without its body.
    """

    def __init__(self, content: bytes, may_send: Callable[[], bool]) -> None:
        super().__init__(content)
        self._may_send = may_send
        self.was_stopped = False
        """True if the body was not written for that reason."""

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the body. Raises `OSError` if it may not be sent any more."""
        self._check()
        await super().write(writer)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Write at most `content_length` bytes of the body, as newer versions of aiohttp call it."""
        self._check()
        await super().write_with_length(writer, content_length)

    def _check(self) -> None:
        if not self._may_send():
            self.was_stopped = True
            raise ConnectionAbortedError


class ApiConnection:
    """HTTP to one API server, with its credentials.

    `connections` is the maximum number of simultaneous requests and streams. To be created,
    used and closed in one event loop. Nothing connects before the first request.
    """

    def __init__(self, credentials: ApiCredentials, *, user_agent: str, connections: int = 64) -> None:
        self._credentials = credentials
        self._user_agent = user_agent
        self._limit = connections
        self._session: aiohttp.ClientSession | None = None
        self._access: ServerAccess | None = None
        self._loaded_at = 0.0
        self._rejected_at: float | None = None
        """Time of the loop when credentials were last loaded because of a rejection."""
        self._is_rejected = False
        """True while the server rejects the credentials."""
        self._lock = asyncio.Lock()
        self._renewal: asyncio.Task[None] | None = None

    async def access(self) -> ServerAccess:
        """Return the credentials in force, loaded at the first call. Raises `CredentialsError`."""
        loop = asyncio.get_running_loop()
        if self._access is None:
            await self._load(None)
        elif loop.time() - self._loaded_at > RENEWAL and self._renewal is None:
            # Requests do not wait for this, since the credentials in force are still valid.
            self._renewal = begin_watched(self._renew(self._access), "the renewal of credentials", _log)
        assert self._access is not None
        return self._access

    async def _load(self, seen: ServerAccess | None, *, rejected: bool = False) -> None:
        """Load credentials, unless another task has loaded some since `seen`."""
        async with self._lock:
            if self._access is seen:
                # Set first, so that credentials that cannot be read are not tried again with every request.
                self._loaded_at = asyncio.get_running_loop().time()
                self._access = await self._credentials.load(rejected=rejected)

    async def _renew(self, seen: ServerAccess) -> None:
        try:
            await self._load(seen)
        except CredentialsError as error:
            _log.warning("credentials cannot be read again, the former ones remain in use: %s", error)
        finally:
            self._renewal = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = "",
        timeout: float = 30.0,
        may_send: Callable[[], bool] = lambda: True,
    ) -> ServerAnswer:
        """Send a request, and return its complete answer within `timeout` seconds.

        `path` includes the query. A body is written only if `may_send` returns True immediately before: the
        process may have been stopped for a while since the call. Credentials that the server rejects are
        loaded again, once. Raises `TransportError` if there is no answer.
        """
        access = await self._usable()
        data = _Body(body, may_send) if body is not None else None
        answer = await self._send(access, method, path, data, content_type, timeout)
        if answer.status == REJECTED and (renewed := await self._replaced(access)) is not None:
            answer = await self._send(renewed, method, path, data, content_type, timeout)
        self._note(answer.status)
        return answer

    def _note(self, status: int) -> None:
        """Log once that the server rejects all credentials, and the end of that."""
        is_rejected = status == REJECTED
        if is_rejected and not self._is_rejected:
            _log.warning(
                "the API server rejects the credentials (401): renew the token or the client certificate."
                " They are read again with each attempt"
            )
        elif self._is_rejected and not is_rejected:
            _log.info("the API server accepts the credentials again")
        self._is_rejected = is_rejected

    async def _usable(self) -> ServerAccess:
        try:
            return await self.access()
        except CredentialsError as error:
            raise TransportError(str(error), sent=False) from error

    async def _replaced(self, rejected: ServerAccess) -> ServerAccess | None:
        """Return other credentials than those that were rejected, or None."""
        now = asyncio.get_running_loop().time()
        if self._access is rejected:
            if self._rejected_at is not None and now - self._rejected_at < REJECTION_PAUSE:
                return None
            self._rejected_at = now
        try:
            await self._load(rejected, rejected=True)
        except CredentialsError as error:
            _log.warning("the API server rejects the credentials, and there are no others: %s", error)
            return None
        return self._access

    async def _send(
        self,
        access: ServerAccess,
        method: str,
        path: str,
        body: _Body | None,
        content_type: str,
        timeout: float,
    ) -> ServerAnswer:
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_LIMIT)
        try:
            async with await self._open(access, method, path, body, content_type, limits) as response:
                return ServerAnswer(response.status, _headers_of(response), await _body_of(response))
        except aiohttp.ClientConnectorError as error:
            raise TransportError(text_of(error), sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if body is not None and body.was_stopped:
                raise TransportError("the request may not be sent any more", sent=False) from error
            raise TransportError(text_of(error)) from error

    @asynccontextmanager
    async def stream(self, path: str, *, silence: float) -> AsyncIterator[HttpStream]:
        """Open a GET whose answer is read in pieces; without data for `silence` seconds it is broken."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_LIMIT, sock_read=silence)
        access = await self._usable()
        for _ in range(2):
            try:
                response = await self._open(access, "GET", path, None, "", limits)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise TransportError(text_of(error), sent=False) from error
            try:
                renewed = await self._replaced(access) if response.status == REJECTED else None
                if renewed is None or renewed is access:
                    self._note(response.status)
                    yield HttpStream(response)
                    return
                access = renewed
            finally:
                _abort(response)
        raise TransportError("the API server rejects the credentials", sent=False)

    async def _open(
        self,
        access: ServerAccess,
        method: str,
        path: str,
        body: _Body | None,
        content_type: str,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._limit, keepalive_timeout=60.0),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self._user_agent, "Accept": "application/json"},
                # Compression costs both sides more time than it saves on the network of a cluster.
                skip_auto_headers=["Accept-Encoding"],
                read_bufsize=2**20,
            )
        headers = {"Authorization": access.authorization} if access.authorization else {}
        if content_type:
            headers["Content-Type"] = content_type
        return await self._session.request(
            method,
            URL(access.url + path, encoded=True),
            data=body,
            headers=headers,
            ssl=access.tls if access.tls is not None else True,
            server_hostname=access.server_name or None,
            proxy=access.proxy or None,
            timeout=limits,
            allow_redirects=False,
        )

    async def close(self) -> None:
        """Close all connections; no effect if none was opened."""
        if self._renewal is not None:
            self._renewal.cancel()
        if self._session is not None:
            await self._session.close()
            self._session = None
            # The loop may end right after this, and transports are closed by its next turn.
            await asyncio.sleep(0)


def _headers_of(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _abort(response: aiohttp.ClientResponse) -> None:
    """End a connection whose answer is not read to its end, without waiting for the farewell of TLS."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def _body_of(response: aiohttp.ClientResponse) -> bytes | bytearray:
    """Return the body; one of unknown length may have many megabytes, which are not copied at its end."""
    if response.content_length is not None:
        return await response.read()
    body = bytearray()
    while piece := await response.content.readany():
        body += piece
    return body


def text_of(error: BaseException) -> str:
    """Return a failure of a connection in words, with what to check."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", "") or error.certificate_error
        return (
            f"the certificate of {error.host}:{error.port} is not trusted: {reason}. Check the authority"
            " (certificate-authority) and the name of the server in the kubeconfig"
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {error.strerror or error.os_error}"
    if isinstance(error, TimeoutError):
        return str(error) or "no answer in time"
    return f"{error}" or type(error).__name__
