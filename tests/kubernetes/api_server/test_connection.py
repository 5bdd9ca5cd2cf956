"""HTTP connection: TLS with client certificates, rejected credentials, broken, slow and half-sent answers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext

import pytest
import trustme

from yunikorn_kubernetes.api_server.api_connection import ApiConnection
from yunikorn_kubernetes.api_server.api_credentials import CredentialsError, ServerAccess
from yunikorn_kubernetes.api_server.api_resources import PODS
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.api_server.transport import TransportError
from yunikorn_kubernetes.api_server.watch_lines import WatchEvent

pytestmark = pytest.mark.net

Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Tokens:
    """Credentials whose token has a number, which grows with each rejection."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self.url = url
        self.tls = tls
        self.loads = 0
        self.number = 1
        self.fails = False

    async def load(self, *, rejected: bool = False) -> ServerAccess:
        """Return the present token, or the next one."""
        self.loads += 1
        if self.fails:
            raise CredentialsError("plugin failed")
        self.number += rejected
        return ServerAccess(self.url, self.tls, f"Bearer t{self.number}")


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve HTTP on a free port: `handler` gets the head of each request and writes the answer."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await handler(head, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        server.close()


@asynccontextmanager
async def connected(handler: Handler) -> AsyncIterator[tuple[ApiConnection, Tokens]]:
    """Return a connection to a server with `handler`."""
    async with serving(handler) as url:
        tokens = Tokens(url)
        connection = ApiConnection(tokens, user_agent="yunikorn/test")
        try:
            yield connection, tokens
        finally:
            await connection.close()


def reply(body: bytes, status: str = "200 OK") -> bytes:
    """Return an answer."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nRetry-After: 3\r\n\r\n".encode() + body


def test_requests_have_credentials_agent_and_query() -> None:
    heads = []

    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(head.decode())
        writer.write(reply(b"hello"))

    async def scenario() -> None:
        async with connected(handler) as (connection, _):
            answer = await connection.request("GET", "/api/v1/pods?fieldSelector=a%3Db%2Cc")
            assert (answer.status, bytes(answer.body)) == (200, b"hello")
            assert answer.headers["retry-after"] == "3"

    asyncio.run(scenario())
    assert heads[0].startswith("GET /api/v1/pods?fieldSelector=a%3Db%2Cc HTTP/1.1")
    assert "Authorization: Bearer t1\r\n" in heads[0]
    assert "User-Agent: yunikorn/test\r\n" in heads[0]
    assert "Accept-Encoding" not in heads[0]


def only_token(number: int) -> Handler:
    """Return a handler that accepts one token."""

    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        accepted = f"Bearer t{number}\r\n".encode() in head
        writer.write(reply(b"hello") if accepted else reply(b"", "401 Unauthorized"))

    return handler


def test_rejected_credentials_are_loaded_again_once() -> None:
    async def scenario() -> None:
        async with connected(only_token(2)) as (connection, tokens):
            answers = await asyncio.gather(*(connection.request("GET", "/a") for _ in range(20)))
            assert {answer.status for answer in answers} == {200}
            assert (tokens.loads, tokens.number) == (2, 2)
            tokens.number = 5
            connection._access = None
            for _ in range(10):
                assert (await connection.request("GET", "/a")).status == 401
            assert tokens.number == 5

    asyncio.run(scenario())


def test_a_stream_with_rejected_credentials_is_opened_again() -> None:
    async def scenario() -> None:
        async with connected(only_token(2)) as (connection, tokens):
            async with connection.stream("/a", silence=10.0) as stream:
                assert stream.status == 200
                assert [piece async for piece in stream.pieces()] == [b"hello"]
            assert tokens.number == 2

    asyncio.run(scenario())


def test_credentials_that_cannot_be_renewed_remain_in_use(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with connected(only_token(1)) as (connection, tokens):
            assert (await connection.request("GET", "/a")).status == 200
            tokens.fails = True
            connection._loaded_at -= 61.0
            assert (await connection.request("GET", "/a")).status == 200
            await asyncio.sleep(0)
            assert (await connection.request("GET", "/a")).status == 200
            assert tokens.loads == 2

    asyncio.run(scenario())
    assert "credentials cannot be read again, the former ones remain in use: plugin failed" in caplog.text


def test_missing_credentials_are_a_request_that_was_not_sent() -> None:
    async def scenario() -> None:
        async with connected(only_token(1)) as (connection, tokens):
            tokens.fails = True
            with pytest.raises(TransportError, match="plugin failed") as caught:
                await connection.request("POST", "/a", body=b"{}", content_type="application/json")
            assert not caught.value.sent

    asyncio.run(scenario())


def test_a_body_is_not_written_once_it_may_not_be_sent() -> None:
    heads = []

    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        writer.write(reply(b"hello"))

    async def scenario() -> None:
        async with connected(handler) as (connection, tokens):

            def leads() -> bool:
                # The first load of the credentials comes before the connection.
                return tokens.loads == 0

            with pytest.raises(TransportError, match="may not be sent any more") as caught:
                await connection.request("DELETE", "/api/v1/x", body=b"{}", may_send=leads)
            assert not caught.value.sent
            answer = await connection.request("DELETE", "/api/v1/y", body=b"{}")
            assert answer.status == 200

    asyncio.run(scenario())
    assert [head.split()[1] for head in heads] == [b"/api/v1/y"]


def test_a_refused_connection_was_not_sent_and_a_lost_answer_was() -> None:
    async def drop(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def scenario() -> None:
        async with connected(drop) as (connection, tokens):
            with pytest.raises(TransportError) as caught:
                await connection.request("POST", "/a", body=b"{}")
            assert caught.value.sent
        tokens.url = "http://127.0.0.1:1"
        closed = ApiConnection(tokens, user_agent="yunikorn/test")
        with pytest.raises(TransportError) as caught:
            await closed.request("POST", "/a", body=b"{}")
        assert not caught.value.sent
        await closed.close()

    asyncio.run(scenario())


def test_a_slow_answer_and_a_silent_stream_end_in_time() -> None:
    async def silent(head: bytes, writer: asyncio.StreamWriter) -> None:
        if b"/stream" in head:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")

    async def scenario() -> None:
        async with connected(silent) as (connection, _):
            with pytest.raises(TransportError, match=r"(?i)time"):
                await connection.request("GET", "/a", timeout=0.05)
            async with connection.stream("/stream", silence=0.05) as stream:
                pieces = stream.pieces()
                assert await anext(pieces) == b"hello"
                with pytest.raises(TransportError, match=r"(?i)time"):
                    await anext(pieces)

    asyncio.run(scenario())


def test_an_answer_of_unknown_length_is_complete_or_lost() -> None:
    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(50):
            writer.write(b"5\r\nhello\r\n")
            await writer.drain()
        if b"/broken" in head:
            writer.close()
        else:
            writer.write(b"0\r\n\r\n")

    async def scenario() -> None:
        async with connected(handler) as (connection, _):
            assert bytes((await connection.request("GET", "/list")).body) == b"hello" * 50
            with pytest.raises(TransportError) as caught:
                await connection.request("GET", "/broken")
            assert caught.value.sent

    asyncio.run(scenario())


LINE = b'{"type":"ADDED","object":{"metadata":{"name":"a","uid":"u"}}}\n'


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        (b"", None),
        (b'{"type":"ADDED","obj', None),
        (b"not json\n", None),
        (b'{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old"}}\n', "410 too old"),
    ],
)
def test_a_watch_over_http_ends_with_half_lines_and_errors(ending: bytes, message: str | None) -> None:
    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        body = LINE + ending
        for start in range(0, len(body), 7):
            piece = body[start : start + 7]
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async def scenario() -> None:
        seen = []
        async with connected(handler) as (connection, _):
            with pytest.raises(ApiError, match=message) if message else nullcontext():
                async for event in ApiServer(connection).watch(PODS, resource_version="1"):
                    assert isinstance(event, WatchEvent)
                    seen.append(event.object.metadata.name)
        assert seen == ["a"]

    asyncio.run(scenario())


@pytest.mark.parametrize("ending", [b"zz\r\n", b"ff\r\nhello", b""])
def test_a_broken_chunk_is_a_lost_connection(ending: bytes) -> None:
    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        chunk = f"{len(LINE):x}\r\n".encode() + LINE + b"\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + ending)
        await writer.drain()
        writer.close()

    async def scenario() -> None:
        async with connected(handler) as (connection, _):
            with pytest.raises(ApiError, match="no answer from the API server") as caught:
                async for _ in ApiServer(connection).watch(PODS, resource_version="1"):
                    pass
            assert caught.value.status == 0

    asyncio.run(scenario())


def test_a_client_certificate_and_another_name_of_the_server() -> None:
    authority, clients = trustme.CA(), trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("kubernetes.default").configure_cert(server)
    clients.configure_trust(server)
    server.verify_mode = ssl.CERT_REQUIRED
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    clients.issue_cert("scheduler").configure_cert(client)

    class Named(Tokens):
        async def load(self, *, rejected: bool = False) -> ServerAccess:
            return ServerAccess(self.url, self.tls, server_name="kubernetes.default")

    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b"hello"))

    async def scenario() -> None:
        async with serving(handler, server) as url:
            for tls, works in ((client, True), (trusting, False), (ssl.create_default_context(), False)):
                connection = ApiConnection(Named(url, tls), user_agent="yunikorn/test")
                if works:
                    assert (await connection.request("GET", "/a")).status == 200
                else:
                    with pytest.raises(TransportError):
                        await connection.request("GET", "/a")
                await connection.close()

    asyncio.run(scenario())
