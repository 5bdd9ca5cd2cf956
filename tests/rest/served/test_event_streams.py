"""Streams of events over real connections: clients that read nothing, and the end of the service."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable

from tests.rest.test_events import FIRST, RestContext, record
from tests.service.kit import PATIENCE
from yunikorn_rest.event_streams import CLOSED
from yunikorn_rest.rest_server import RestServer

REQUEST = b"GET /ws/v1/events/stream HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"


class Connection:
    """A connection with a stream, whose chunks are read as lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._lines: list[bytes] = []
        self.header = ""

    async def ask(self) -> None:
        """Request a stream, and read the header of the answer."""
        self._writer.write(REQUEST)
        async with asyncio.timeout(PATIENCE):
            self.header = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def lines(self, number: int) -> list[object]:
        """Return the JSON objects of the next lines; fewer at the end of the stream."""
        async with asyncio.timeout(PATIENCE):
            while len(self._lines) < number:
                size = int(await self._reader.readline(), 16)
                chunk = (await self._reader.readexactly(size + 2))[:-2]
                if not chunk:
                    break
                self._lines += chunk.splitlines()
        found, self._lines = self._lines[:number], self._lines[number:]
        return [json.loads(line) for line in found]


Open = Callable[[], Awaitable[Connection]]


def run(site: RestContext, scenario: Callable[[Open, RestServer], Awaitable[None]]) -> None:
    """Run a scenario with a function that opens streams of a server."""

    async def whole() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        server = RestServer(site.app, listening)
        port = listening.getsockname()[1]
        await server.start()
        connections: list[Connection] = []

        async def connect() -> Connection:
            connections.append(Connection(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)))
            await connections[-1].ask()
            return connections[-1]

        try:
            await scenario(connect, server)
        finally:
            for one in connections:
                await one.close()
            site.hub.end_all()
            await server.stop()

    asyncio.run(whole())


def test_stream_arrives_line_by_line_and_uncompressed() -> None:
    site = RestContext()

    async def scenario(connect: Open, server: RestServer) -> None:
        one = await connect()
        assert "transfer-encoding: chunked" in one.header
        assert "content-encoding" not in one.header
        assert await one.lines(1) == [FIRST]
        await asyncio.to_thread(site.add, 0, 1)
        assert await one.lines(2) == [record(0), record(1)]
        await one.close()
        while site.hub.streams:
            await asyncio.sleep(0)

    run(site, scenario)


def test_client_that_reads_nothing_delays_no_other_and_misses_a_counted_number() -> None:
    site = RestContext(capacity=5_000)

    async def scenario(connect: Open, server: RestServer) -> None:
        slow, quick = await connect(), await connect()
        assert await quick.lines(1) == [FIRST]
        number = 0
        # Until the buffers of both ends of the slow connection are full, and 10,000 further events on.
        while number < 200_000:
            await asyncio.to_thread(site.add, *range(number, number + 1_000))
            assert await quick.lines(1_000) == [record(each) for each in range(number, number + 1_000)]
            number += 1_000
            stuck = site.hub.streams[0].position
            if number - stuck > 10_000:
                break
        received = await slow.lines(number)
        assert received[0] == FIRST
        *records, last = received[1:]
        assert records == [record(each) for each in range(len(records))]
        missed = number - 5_000 - len(records)
        assert last == {
            "status_code": 200,
            "message": CLOSED,
            "description": f"{CLOSED}: {missed} events were missed, because they were read too slowly",
        }

    run(site, scenario)


def test_service_stops_with_open_streams() -> None:
    site = RestContext()

    async def scenario(connect: Open, server: RestServer) -> None:
        connections = [await connect() for _ in range(5)]
        for one in connections:
            assert await one.lines(1) == [FIRST]
        site.hub.end_all()
        await asyncio.wait_for(server.stop(), PATIENCE)
        for one in connections:
            (last,) = await one.lines(2)
            assert last == {"status_code": 200, "message": CLOSED, "description": CLOSED}

    run(site, scenario)
