"""The HTTP server of the REST interface: hostile, slow and idle clients, over real connections."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import attrs
import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.core.kit import RM
from tests.rest.kit import Rest as RestKit
from tests.service.kit import PATIENCE
from yunikorn_rest.answers import Answer
from yunikorn_rest.app import rest_app
from yunikorn_rest.guards import SharedPlaces, host_name
from yunikorn_rest.rest_server import ENOUGH, SEND_BUFFER, JoinedWrites, RestServer, ServerLimits
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_service.descriptors import raise_descriptor_limit

Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]
GET = b"GET /ws/v1/partitions HTTP/1.1\r\nHost: localhost\r\n"


ADDRESSES = pytest.mark.skipif(sys.platform != "linux", reason="needs several loopback addresses")


class Client:
    """Connections to a server that runs in the same event loop."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def connect(self, source: str = "127.0.0.1") -> Connected:
        """Open a connection from an address of this machine."""
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0))

    async def send(self, data: bytes, source: str = "127.0.0.1") -> bytes:
        """Send bytes over a new connection, and return everything that the server sends until it closes."""
        reader, writer = await self.connect(source)
        with contextlib.suppress(ConnectionError):
            writer.write(data)
            await writer.drain()
        return await rest_of((reader, writer))


async def rest_of(connection: Connected) -> bytes:
    """Return what the server sends until it closes or aborts the connection."""
    reader, writer = connection
    found = b""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            while part := await reader.read(1 << 16):
                found += part
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return found


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, limits: ServerLimits, hosts: tuple[str, ...]) -> AsyncIterator[Client]:
    """Serve an application on a free port."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = RestServer(app, listening, None, hosts, limits)
    port = listening.getsockname()[1]
    await server.start()
    try:
        yield Client(port)
    finally:
        await server.stop()


def run(
    scenario: Callable[[Client], Awaitable[None]],
    limits: ServerLimits | None = None,
    *,
    app: ASGIApp | None = None,
    hosts: tuple[str, ...] = (),
) -> None:
    """Run a scenario against a server."""

    async def whole() -> None:
        served = app or RestKit(RM()).app
        async with serving(served, limits or ServerLimits(), hosts) as client:
            await scenario(client)

    asyncio.run(whole())


def test_a_connection_serves_several_requests() -> None:
    async def scenario(client: Client) -> None:
        found = await client.send(GET + b"\r\n" + GET + b"Connection: close\r\n\r\n")
        assert found.count(b"HTTP/1.1 200 OK") == 2
        assert b"server:" not in found.lower()

    run(scenario)


def test_a_request_that_never_arrives_ends_its_connection() -> None:
    async def scenario(client: Client) -> None:
        assert await client.send(b"") == b""
        assert await client.send(b"GET /ws/v1") == b""
        assert await client.send(GET) == b""

    run(scenario, ServerLimits(header=0.05))


def test_a_second_request_that_never_arrives_ends_its_connection() -> None:
    async def scenario(client: Client) -> None:
        found = await client.send(GET + b"\r\n" + b"GET /ws")
        assert found.count(b"HTTP/1.1") == 1

    run(scenario, ServerLimits(header=0.05))


def test_an_answer_that_is_not_taken_ends_its_connection() -> None:
    ended = asyncio.Event()

    async def large(scope: Scope, receive: Receive, send: Send) -> None:
        await Answer(pieces=[b"x" * 65536] * 400)(scope, receive, send)
        ended.set()

    async def scenario(client: Client) -> None:
        connection = await client.connect()
        connection[1].write(GET + b"\r\n")
        async with asyncio.timeout(PATIENCE):
            await ended.wait()
        found = await rest_of(connection)
        assert len(found) < 65536 * 400

    run(scenario, ServerLimits(reading=0.1), app=large)


def test_a_thousand_idle_connections_do_not_prevent_an_answer() -> None:
    raise_descriptor_limit()

    async def scenario(client: Client) -> None:
        idle = [await client.connect() for _ in range(1000)]
        assert b"200 OK" in await client.send(GET + b"Connection: close\r\n\r\n")
        for _, writer in idle:
            writer.close()

    run(scenario)


UNFINISHED = b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nparti"


@ADDRESSES
def test_an_address_gets_half_of_the_places_and_probes_need_none() -> None:
    kit = RestKit(RM())
    app = rest_app(attrs.evolve(kit.context, places=SharedPlaces(4)), ENDPOINTS)

    async def scenario(client: Client) -> None:
        unfinished = [await client.connect() for _ in range(2)]
        for _, writer in unfinished:
            writer.write(UNFINISHED)
        refused = b""
        while not refused.startswith(b"HTTP/1.1 503"):
            refused = await client.send(GET + b"Connection: close\r\n\r\n")
        assert b"retry-after: 1" in refused
        for path in (b"/livez", b"/readyz", b"/ws/v1/metrics"):
            probe = b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            assert not (await client.send(probe)).startswith(b"HTTP/1.1 503")
        other = await client.send(GET + b"Connection: close\r\n\r\n", source="127.0.0.2")
        assert other.startswith(b"HTTP/1.1 200")
        for one in unfinished:
            one[1].write(b"x" * 95)
            assert (await one[0].readline()).startswith(b"HTTP/1.1 200")
            one[1].close()
        found = b""
        while not found.startswith(b"HTTP/1.1 200"):
            found = await client.send(GET + b"Connection: close\r\n\r\n")

    run(scenario, app=app)


def test_places_are_shared_between_addresses() -> None:
    places = SharedPlaces(8)

    def take(address: str, times: int) -> int:
        return sum(held.enter_context(places.taken(address)) for _ in range(times))

    with contextlib.ExitStack() as held:
        assert take("10.0.0.1", 8) == 4
        assert take("10.0.0.2", 8) == 2
        assert take("2001:db8::1", 1) == 1
        assert take("2001:db8::2", 8) == 0, "a /64 network counts as one address"
        assert take("10.0.0.3", 8) == 1
    with contextlib.ExitStack() as held:
        assert take("10.0.0.1", 8) == 4


@ADDRESSES
def test_a_new_connection_ends_an_idle_one_of_the_address_with_most() -> None:
    async def scenario(client: Client) -> None:
        waiting = await client.connect()
        waiting[1].write(UNFINISHED)
        idle = [await client.connect() for _ in range(2)]
        other = await client.connect("127.0.0.2")
        assert b"200 OK" in await client.send(GET + b"Connection: close\r\n\r\n", source="127.0.0.2")
        assert await rest_of(idle[0]) == b""
        waiting[1].write(b"x" * 95)
        assert (await waiting[0].readline()).startswith(b"HTTP/1.1 200")
        other[1].write(GET + b"\r\n")
        assert (await other[0].readline()).startswith(b"HTTP/1.1 200")
        for _, writer in (waiting, idle[1], other):
            writer.close()

    run(scenario, ServerLimits(connections=4))


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n\r\nnonsense\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\n\x00: x\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_malformed_requests_are_refused(request_bytes: bytes) -> None:
    async def scenario(client: Client) -> None:
        found = await client.send(request_bytes)
        assert found.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404")) or found == b""
        assert b"200 OK" in await client.send(GET + b"Connection: close\r\n\r\n")

    run(scenario, ServerLimits(header=0.2, idle=0))


@pytest.mark.parametrize("path", [b"/ws/v1/partition/%00/queues", b"/ws/v1/partition/%ff%fe/queues", b"*"])
def test_odd_paths_are_answered(path: bytes) -> None:
    async def scenario(client: Client) -> None:
        found = await client.send(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"HTTP/1.1 404" in found

    run(scenario)


def test_a_body_that_arrives_too_slowly_is_refused() -> None:
    kit = RestKit(RM())
    app = rest_app(attrs.evolve(kit.context, patience=0.05), ENDPOINTS)
    post = b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nparti"

    async def scenario(client: Client) -> None:
        found = await client.send(post)
        assert found.startswith(b"HTTP/1.1 408")
        assert b"the body has not arrived within 0.05 s" in found

    run(scenario, ServerLimits(header=0.2, idle=0), app=app)


def test_websockets_are_not_served() -> None:
    async def scenario(client: Client) -> None:
        upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n"
        found = await client.send(GET + upgrade + GET + b"Connection: close\r\n\r\n")
        assert b"101" not in found.partition(b"\r\n")[0]

    run(scenario)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"localhost:9080", b"200"),
        (b"LOCALHOST", b"200"),
        (b"127.0.0.1:1", b"200"),
        (b"[::1]:9080", b"200"),
        (b"scheduler.example:80", b"200"),
        (b"evil.example", b"421"),
        (b"localhost.evil.example", b"421"),
        (b"127.0.0.1.evil.example:9080", b"421"),
        (b"evil.example:localhost", b"421"),
        (b"", b"421"),
    ],
)
def test_foreign_host_names_are_refused(host: bytes, status: bytes) -> None:
    async def scenario(client: Client) -> None:
        found = await client.send(
            b"GET /ws/v1/partitions HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"
        )
        assert found.startswith(b"HTTP/1.1 " + status)

    run(scenario, hosts=("scheduler.example",))


@pytest.mark.parametrize(
    "header",
    [
        b"/ws/v1/partitions HTTP/1.1\r\nHost: localhost\r\nHost: localhost",
        b"/ws/v1/partitions HTTP/1.1\r\nHost: localhost\r\nhost: evil.example",
        b"/ws/v1/partitions HTTP/1.1\r\nX: y",
        b"http://evil.example/ws/v1/partitions HTTP/1.1\r\nHost: localhost",
        b"http://evil.example/ws/v1/partitions HTTP/1.0",
        b"http://evil.example?/ws/v1/partitions HTTP/1.1\r\nHost: localhost",
        b"http://a@localhost/ws/v1/partitions HTTP/1.1\r\nHost: localhost",
    ],
)
def test_requests_for_two_hosts_or_none_are_refused(header: bytes) -> None:
    async def scenario(client: Client) -> None:
        found = await client.send(b"GET " + header + b"\r\nConnection: close\r\n\r\n")
        assert found.startswith(b"HTTP/1.1 400")
        assert found.endswith(b"The request needs one Host header, and its target must be at that host.")

    run(scenario)


def test_an_absolute_target_names_the_host_of_the_header() -> None:
    async def scenario(client: Client) -> None:
        target = b"GET http://%b/ws/v1/partitions HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n"
        assert (await client.send(target % (b"LocalHost:80", b"localhost:80"))).startswith(b"HTTP/1.1 200")
        assert (await client.send(target % (b"evil.example", b"evil.example"))).startswith(b"HTTP/1.1 421")
        old = b"GET /ws/v1/partitions HTTP/1.0\r\n\r\n"
        assert (await client.send(old)).startswith(b"HTTP/1.1 421")

    run(scenario, hosts=("scheduler.example",))


async def put(client: Client, size: int, more: bytes = b"") -> tuple[bytes, bool]:
    """Send a change with a large body and no credentials; return the answer, and whether all was sent."""
    reader, writer = await client.connect()
    head = b"PUT /ws/v1/config HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: %d\r\n\r\n" % (more, size)
    writer.write(head)
    async with asyncio.timeout(PATIENCE):
        is_sent = True
        try:
            for _ in range(0, size, 1 << 16):
                writer.write(b"x" * (1 << 16))
                await writer.drain()
        except ConnectionError:
            is_sent = False
    return await rest_of((reader, writer)), is_sent


@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n", b"Expect: 100-continue\r\n"])
def test_a_refusal_before_the_body_is_read_reaches_a_client_that_sends_it_all(more: bytes) -> None:
    async def scenario(client: Client) -> None:
        found, is_sent = await put(client, 4 << 20, more)
        assert found.startswith(b"HTTP/1.1 403")
        assert b"connection: close\r\n" in found
        assert b"changes need credentials" in found
        assert is_sent

    run(scenario)


def test_a_stock_client_gets_a_refusal_before_the_body_is_read() -> None:
    async def scenario(client: Client) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{client.port}", timeout=PATIENCE) as stock:
            for _ in range(2):
                answer = await stock.put("/ws/v1/config", content=b"x" * (2 << 20))
                assert answer.status_code == 403
            assert (await stock.get("/ws/v1/partitions")).status_code == 200

    run(scenario)


async def _write_until_refused(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0)


def test_the_rest_of_a_body_is_not_awaited_without_end() -> None:
    async def scenario(client: Client) -> None:
        reader, writer = await client.connect()
        writer.write(b"PUT /ws/v1/config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")
        async with asyncio.timeout(PATIENCE):
            assert (await reader.read()).startswith(b"HTTP/1.1 403")
            with pytest.raises(ConnectionError):
                await _write_until_refused(writer)

    run(scenario, ServerLimits(linger=0.05))


def test_a_client_that_takes_little_at_a_time_ends_its_connection() -> None:
    ended = asyncio.Event()

    async def large(scope: Scope, receive: Receive, send: Send) -> None:
        await Answer(pieces=[b"x" * 65536] * 1000)(scope, receive, send)
        ended.set()

    async def scenario(client: Client) -> None:
        reader, writer = await client.connect()
        writer.write(GET + b"\r\n")
        taken = 0
        async with asyncio.timeout(PATIENCE):
            while not ended.is_set():
                taken += len(await reader.read(1 << 10))
                await asyncio.sleep(0)
        assert taken < 65536 * 1000
        writer.close()

    run(scenario, ServerLimits(reading=0.2, slowest=1 << 40), app=large)


def test_host_names_without_their_ports() -> None:
    assert host_name("[::1]") == "[::1]"
    assert host_name("[::1]:80") == "[::1]"
    assert host_name("a") == "a"
    assert host_name("a:80") == "a"
    assert host_name("a:") == "a"
    assert host_name("a:b") == "a:b"


def test_answers_leave_at_once() -> None:
    """Header and body are one write, and the system does not hold it back for an acknowledgement."""

    async def whole() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        server = RestServer(RestKit(RM()).app, listening)
        await server.start()
        try:
            reader, writer = await Client(listening.getsockname()[1]).connect()
            writer.write(GET + b"\r\n")
            await reader.readuntil(b"\r\n\r\n")
            (connection,) = server.connections
            connected = connection.transport.get_extra_info("socket")
            assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            # Linux doubles the number. Without it, a thousand clients that read nothing take gigabytes.
            assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 2 * SEND_BUFFER
            writer.close()
        finally:
            await server.stop()

    asyncio.run(whole())


class Written(asyncio.Transport):
    """Transport that remembers what is written."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Remember data."""
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        """Return True after `close`."""
        return self.closed

    def close(self) -> None:
        """Close."""
        self.closed = True

    abort = close


def test_writes_of_one_turn_are_one() -> None:
    async def whole() -> None:
        inner = Written()
        joined = JoinedWrites(inner, asyncio.get_running_loop())
        joined.write(b"header ")
        joined.write(b"body")
        assert inner.writes == []
        await asyncio.sleep(0)
        assert inner.writes == [b"header body"]
        joined.write(b"x" * ENOUGH)
        assert len(inner.writes) == 2, "a large write is sent at once"
        joined.write(b"last")
        joined.close()
        await asyncio.sleep(0)
        assert inner.writes[2:] == [b"last"]
        assert inner.closed

    asyncio.run(whole())


def test_nothing_is_written_to_an_aborted_connection() -> None:
    async def whole() -> None:
        inner = Written()
        joined = JoinedWrites(inner, asyncio.get_running_loop())
        joined.write(b"late")
        joined.abort()
        await asyncio.sleep(0)
        assert inner.writes == []
        assert joined.is_closing()

    asyncio.run(whole())


def test_blank_lines_do_not_keep_a_connection_open() -> None:
    async def scenario(client: Client) -> None:
        reader, writer = await client.connect()
        writer.write(GET + b"\r\n")
        await reader.readuntil(b"\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE):
                while not reader.at_eof():
                    writer.write(b"\r\n")
                    await writer.drain()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(1 << 16), 0.01)
        writer.close()

    run(scenario, ServerLimits(header=0.1, idle=60))
