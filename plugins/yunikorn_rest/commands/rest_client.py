"""Client of the REST interface for the commands of operators: requests, pages, and clear errors.

The package `httpx` is imported when a server is opened, so that help needs no extra.

Recognition of a gRPC server, for an address that was meant to be that of REST.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlsplit

import attrs
import click

from yunikorn.clock import Clock, SystemClock
from yunikorn.errors import UsageError, printable
from yunikorn.text import suggest
from yunikorn_commands.extras import importing_extra

if TYPE_CHECKING:
    import httpx


PATIENCE = 2.0
"""Seconds to connect, and to wait for the first bytes."""
HEADER = 9
"""Size of the header of a frame of HTTP/2 (RFC 9113, section 4.1)."""
SETTINGS = 4
"""Type of the frame that a server sends first."""


def speaks_http2(host: str, port: int, *, tls: bool) -> bool:
    """Return True if a server sends what HTTP/2 begins with, as those of gRPC do at once."""
    with contextlib.suppress(OSError), _connected(host, port, tls=tls) as connected:
        head = b""
        while len(head) < HEADER and (more := connected.recv(HEADER - len(head))):
            head += more
        return head[3:4] == bytes([SETTINGS]) and head[4:] == bytes(5)
    return False


@contextlib.contextmanager
def _connected(host: str, port: int, *, tls: bool) -> Iterator[socket.socket]:
    with socket.create_connection((host, port), PATIENCE) as plain:
        if not tls:
            yield plain
            return
        # The certificate does not matter: nothing is sent.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        with context.wrap_socket(plain, server_hostname=host) as wrapped:
            yield wrapped


Record = Mapping[str, Any]
"""JSON object of an answer."""

ROOT = "/ws/v1"
PAGE = 500
"""Number of objects in a request for a page."""
MOST_NAMES = 5000
"""Largest number of names that a suggestion considers."""
LONGEST_MESSAGE = 300
"""Largest number of characters of a server's message that an error shows."""
NO_OBJECT = frozenset({301, 307, 308, 400, 404})
"""Statuses of a request for an object that does not exist, or whose name cannot be part of a path."""

NO_QUEUE, NO_PARTITION = "Queue not found", "Partition not found"
ABOUT_NAMES = (
    "no resource manager ",
    "no policy group ",
    "give policyGroup ",
    "resource manager ",
)
"""Beginnings of the messages about a name that was given, which need no address in front."""
NO_ROUTE = "the server has no such route: YuniKorn 1.9 and older cannot be changed by REST"
"""Message for a path that the server does not know, because of its version or of an odd name."""

IS_GRPC = (
    "is the gRPC address of a scheduler, for resource managers: --server is the address of REST,"
    " http://127.0.0.1:9080 unless `yunikorn serve --rest` says otherwise"
)

NO_HTTP = ("without sending a response", "illegal request line")
"""Parts of the errors of a plain connection to a server with TLS."""


class NotFound(click.ClickException):
    """The server has no object of the wanted name: exit status 1."""

    exit_code = 1


class QueueNotFound(NotFound):
    """The partition has no queue of the name in a filter."""


class UnknownCredentials(UsageError):
    """The server does not know the client; trying often only looks like an attack."""


@attrs.frozen
class ServerAddress:
    """Address of a server, and the files for TLS."""

    url: str
    timeout: float
    """Seconds to connect, and to wait for each part of an answer."""
    ca: Path | None = None
    """Certificates of the authorities to trust; None for those of the system."""
    certificate: Path | None = None
    """Certificate of the client."""
    key: Path | None = None
    token: str | None = attrs.field(default=None, repr=False)
    """Bearer token; never part of a message."""
    insecure: bool = False
    """True to send the token without TLS to another machine."""

    def base(self) -> str:
        """Return the URL with a scheme and without a final slash; raises `UsageError`."""
        whole = (self.url if "://" in self.url else f"http://{self.url}").rstrip("/")
        try:
            parts = urlsplit(whole)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable or parts.query or parts.fragment or not whole.isprintable() or " " in whole:
            raise UsageError("--server: expected http://HOST:PORT or https://HOST:PORT")
        return whole

    def shown(self) -> str:
        """Return the URL for messages, without a password."""
        parts = urlsplit(self.base())
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def is_loopback(self) -> bool:
        """Return True for an address of this machine, which is never reached by a proxy."""
        host = urlsplit(self.base()).hostname or ""
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def headers(self) -> dict[str, str]:
        """Return the header with the token; raises `UsageError` if others could read it on the way."""
        if self.token is None:
            return {}
        if urlsplit(self.base()).scheme != "https" and not self.is_loopback() and not self.insecure:
            raise UsageError(
                f"the token is not sent to {self.shown()}, because others could read it on the way:"
                " use an address with https, or --insecure"
            )
        return {"Authorization": f"Bearer {self.token}"}

    def tls(self) -> ssl.SSLContext | bool:
        """Return the settings of TLS, True for the defaults; raises `UsageError` for unusable files."""
        if self.key is not None and self.certificate is None:
            raise UsageError("--tls-key needs --tls-cert")
        if self.ca is None and self.certificate is None:
            return True
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except OSError as error:
            raise UsageError(f"--tls-ca {self.ca}: {error.strerror or error}") from error
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key)
            except OSError as error:
                raise UsageError(f"--tls-cert {self.certificate}: {error.strerror or error}") from error
        return context


@attrs.frozen
class JsonPart:
    """A JSON value, which may be a page of a list."""

    value: Any
    etag: str
    """Version of the value; empty if the server sends none."""
    following: str
    """Token of the next page; empty for the last page."""


def quoted(name: str) -> str:
    """Return a name as a segment of a path."""
    return quote(name, safe="", errors="replace")


class RestConnection:
    """An open connection to the REST interface of a scheduler."""

    def __init__(self, client: httpx.Client, shown: str, clock: Clock | None = None) -> None:
        """Use a client; `shown` names the server in messages, and `clock` is that of the server."""
        self._client = client
        self._shown = shown
        self.now = (clock or SystemClock()).now

    @property
    def has_token(self) -> bool:
        """True if requests have a token."""
        return "authorization" in self._client.headers

    # -- requests --------------------------------------------------------------------------------------

    def value(self, path: str, **query: str | int) -> Any:
        """Return the JSON value below `/ws/v1`; raises `UsageError`."""
        return self._json(self._accepted(self._get(path, query)))

    def record(self, path: str, **query: str | int) -> Record:
        """Return a JSON object; raises `UsageError`."""
        found = self.value(path, **query)
        if not isinstance(found, dict):
            self._is_foreign("the answer is not a JSON object")
        return found

    def listed(self, path: str, **query: str) -> Iterator[Record]:
        """Yield the objects of a list, page by page of `PAGE` or `limit` objects; raises `UsageError`."""
        wanted = {name: value for name, value in query.items() if value}
        seen: set[str] = set()
        token = ""
        while True:
            paging = {"continue": token} if token else {}
            answer = self._accepted(self._get(path, {"limit": PAGE, **wanted, **paging}))
            found = self._json(answer)
            if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
                self._is_foreign("the answer is not a list of JSON objects")
            yield from found
            token = answer.headers.get("x-continue", "")
            if not token:
                return
            if token in seen:
                self._is_foreign("the same page is sent again")
            seen.add(token)

    def lines(self, path: str, **query: int) -> Iterator[Record]:
        """Yield the JSON objects of a stream as they arrive, until it ends; raises `UsageError`."""
        httpx = _httpx()
        timeout = httpx.Timeout(self._client.timeout.connect, read=None)
        with (
            self._errors(),
            self._client.stream("GET", self._url(path), params=query, timeout=timeout) as answer,
        ):
            for line in self._accepted(answer).iter_lines():
                if line.strip():
                    found = self._parsed(line)
                    if not isinstance(found, dict):
                        self._is_foreign("a line of the stream is not a JSON object")
                    yield found

    def part(self, path: str, etag: str, **query: str | int) -> JsonPart | None:
        """Return a JSON value with its ETag and the token of the next page; raises `UsageError`.

        None if the value is still that of `etag`.
        """
        given = {"If-None-Match": etag} if etag else {}
        with self._errors():
            answer = self._client.get(self._url(path), params=query or None, headers=given)
        if etag and answer.status_code == 304:
            return None
        headers = self._accepted(answer).headers
        return JsonPart(self._json(answer), headers.get("etag", ""), headers.get("x-continue", ""))

    def pieces(self, path: str, longest: float | None = None) -> Iterator[bytes]:
        """Yield the body of an answer in pieces, as they arrive; raises `UsageError`.

        `path` begins with a slash. The server may take `longest` seconds for the first piece, if that is more
        than for other requests.
        """
        url = f"{str(self._client.base_url).rstrip('/')}{path}"
        usual = self._client.timeout
        timeout = _httpx().Timeout(usual.connect, read=max(usual.read or 0, longest or 0))
        with self._errors(), self._client.stream("GET", url, timeout=timeout) as answer:
            yield from self._accepted(answer).iter_bytes()

    # -- changes ---------------------------------------------------------------------------------------

    def change(
        self, method: str, path: str, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> tuple[int, Record]:
        """Send a change; return the status and the JSON object of the answer.

        The status is 200, or 400 and more with the reason in `message`. Raises `UsageError` if the server
        does not answer, or does not know the client.
        """
        with self._errors(changes=True):
            answer = self._client.request(method, self._url(path), content=content, headers=headers)
        status = answer.status_code
        if status == 401:
            raise UnknownCredentials(self._unknown_credentials())
        try:
            found = json.loads(answer.content)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and (status == 200 or "message" in found or "problems" in found):
            return status, found
        if status in NO_OBJECT or status in (405, 501):
            return 404, {"message": NO_ROUTE}
        if status in (403, 421):
            raise UsageError(f"{self._shown} refuses the request: status {status}")
        self._is_foreign(f"status {status}")

    # -- objects ---------------------------------------------------------------------------------------

    def find(self, what: str, name: str, path: str, lists: Iterator[Record], field: str) -> Record:
        """Return an object by its name; raises `NotFound` with a suggestion.

        An object without a route is searched in the lists: an ended application, or a name that cannot be
        part of a path. `field` has the name in the objects of the lists.
        """
        answer = self._get(path, {})
        if answer.status_code == 200:
            found = self._json(answer)
            if isinstance(found, dict):
                return found
            self._is_foreign("the answer is not a JSON object")
        if answer.status_code not in NO_OBJECT:
            self._refuse(answer)
        known = []
        for one in lists:
            if one.get(field) == name:
                return one
            known.append(str(one.get(field, "")))
        near = suggest(name, islice(known, MOST_NAMES))
        raise NotFound(printable(f"there is no {what} '{name}'{near}"))

    def no_partition(self) -> str:
        """Return the message about an unknown partition, with the names of those that there are."""
        known = ", ".join(str(one.get("name", "")) for one in self.listed("partitions"))
        return printable(f"there is no such partition; known: {known} (--partition)")

    # -- answers ---------------------------------------------------------------------------------------

    def _url(self, path: str) -> str:
        return f"{str(self._client.base_url).rstrip('/')}{ROOT}/{path}"

    def _get(self, path: str, query: Mapping[str, str | int]) -> httpx.Response:
        with self._errors():
            return self._client.get(self._url(path), params=query or None)

    @contextlib.contextmanager
    def _errors(self, *, changes: bool = False) -> Iterator[None]:
        """Turn failures of the connection into `UsageError`."""
        unknown = ", so it is unknown whether the change was made" if changes else ""
        httpx = _httpx()
        try:
            yield
        except httpx.TimeoutException as error:
            raise UsageError(f"{self._shown} does not answer in time (--timeout){unknown}") from error
        except (httpx.ConnectError, httpx.ProxyError) as error:
            self._check_grpc()
            raise UsageError(
                f"{self._shown} cannot be reached: {_brief(error)}"
                " (--server or YUNIKORN_SERVER has the address)"
            ) from error
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
            hint = ""
            if isinstance(error, httpx.RemoteProtocolError):
                self._check_grpc()
                if self._client.base_url.scheme == "http" and any(one in str(error) for one in NO_HTTP):
                    hint = " (a server with TLS has an address with https://)"
            raise UsageError(f"{self._shown}: {_brief(error)}{unknown}{hint}") from error

    def _check_grpc(self) -> None:
        """Raise `UsageError` if the address is that of gRPC; used after a failure."""
        url = self._client.base_url
        is_tls = url.scheme == "https"
        if speaks_http2(url.host, url.port or (443 if is_tls else 80), tls=is_tls):
            raise UsageError(f"{self._shown} {IS_GRPC}")

    def _json(self, answer: httpx.Response) -> Any:
        return self._parsed(answer.content)

    def _parsed(self, text: str | bytes) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            self._is_foreign("the answer is not JSON")

    def _accepted(self, answer: httpx.Response) -> httpx.Response:
        """Return an answer with status 200; raises the error that another one contains."""
        if answer.status_code != 200:
            self._refuse(answer)
        return answer

    def _refuse(self, answer: httpx.Response) -> NoReturn:
        """Raise the error that an answer contains."""
        status = answer.status_code
        try:
            body = json.loads(answer.read())
            message = body["message"]
        except (ValueError, RecursionError, KeyError, TypeError):
            message = None
        if status == 401:
            raise UnknownCredentials(self._unknown_credentials())
        if not isinstance(message, str):
            if status in (403, 421):
                raise UsageError(f"{self._shown} refuses the request: status {status}")
            self._is_foreign(f"status {status}")
        if message == NO_PARTITION:
            raise NotFound(self.no_partition())
        brief = printable(message[:LONGEST_MESSAGE])
        if message.startswith(NO_QUEUE):
            raise QueueNotFound(brief)
        if status in (404, 409) and message.startswith(ABOUT_NAMES):
            raise NotFound(brief) if status == 404 else UsageError(brief)
        raise UsageError(f"{self._shown}: status {status}: {brief}")

    def _unknown_credentials(self) -> str:
        if self.has_token:
            return f"{self._shown} does not know this token: check --token-file or YUNIKORN_TOKEN"
        return f"{self._shown} wants credentials: --token-file FILE, YUNIKORN_TOKEN or --tls-cert FILE"

    def _is_foreign(self, why: str) -> NoReturn:
        raise UsageError(f"{self._shown} is not the REST interface of YuniKorn: {why}")


def _brief(error: Exception) -> str:
    return printable(str(error)[:LONGEST_MESSAGE]) or type(error).__name__


def _httpx() -> Any:
    """Return the package `httpx`; raises `UsageError` if it is not installed."""
    with importing_extra("web", "to reach a scheduler"):
        import httpx
    return httpx


@contextlib.contextmanager
def open_server(address: ServerAddress) -> Iterator[RestConnection]:
    """Open a connection to a server; raises `UsageError` if the address or the files are unusable."""
    base, tls, headers = address.base(), address.tls(), address.headers()
    httpx = _httpx()
    try:
        client = httpx.Client(
            base_url=base,
            headers=headers,
            timeout=address.timeout,
            verify=tls,
            trust_env=not address.is_loopback(),
        )
    except (ValueError, httpx.InvalidURL) as error:
        raise UsageError(f"--server: {_brief(error)}") from error
    with client:
        yield RestConnection(client, address.shown())
