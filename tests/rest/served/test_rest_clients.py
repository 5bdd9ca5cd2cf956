"""Clients of the REST server that leave early or read slowly, over real connections."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import attrs

from tests.core.kit import RM
from tests.rest.kit import Rest as RestKit
from tests.rest.served.test_rest_server import GET, Client, rest_of, run
from tests.service.kit import PATIENCE
from yunikorn.accounting.event_batch import EventBatch
from yunikorn.api import Event
from yunikorn_rest.app import rest_app
from yunikorn_rest.endpoints import READINGS
from yunikorn_rest.event_store import EventStore
from yunikorn_rest.event_streams import EventHub
from yunikorn_rest.rest_server import ServerLimits
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_service.runtime.sliced_reads import Reading

T = TypeVar("T")
NODES = b"GET /ws/v1/partition/default/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Busy:
    """Core whose readings never end."""

    def __init__(self) -> None:
        self.current = self.begun = 0

    async def read(self, reading: Reading[T]) -> T:
        self.current += 1
        self.begun += 1
        try:
            never: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            return await never
        finally:
            self.current -= 1


def test_readings_of_clients_that_leave_end() -> None:
    core = Busy()
    app = rest_app(attrs.evolve(RestKit(RM()).context, core=core), ENDPOINTS)

    async def scenario(client: Client) -> None:
        for _ in range(5):
            connections = [await client.connect() for _ in range(100)]
            for _, writer in connections:
                writer.write(NODES)
            async with asyncio.timeout(PATIENCE):
                while core.current < READINGS:
                    await asyncio.sleep(0.001)
            for _, writer in connections:
                writer.transport.abort()
            async with asyncio.timeout(PATIENCE):
                while core.current:
                    await asyncio.sleep(0.001)
        assert core.begun >= 5 * READINGS
        answer = await client.send(
            b"GET /ws/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        assert answer.startswith(b"HTTP/1.1 200")

    run(scenario, app=app)


def test_stream_to_a_client_that_reads_nothing_is_closed() -> None:
    kit = RestKit(RM())
    store = EventStore("instance", 5_000)
    hub = EventHub(store, lambda: 0)
    app = rest_app(attrs.evolve(kit.context, events=hub), ENDPOINTS)
    stream = b"GET /ws/v1/events/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    async def scenario(client: Client) -> None:
        slow = await client.connect()
        slow[1].write(stream)
        async with asyncio.timeout(PATIENCE):
            while len(hub.streams) < 1:
                await asyncio.sleep(0.001)
        (first,) = hub.streams
        batch = [Event("APP", "x" * 1000, message="y" * 1000)] * 500
        async with asyncio.timeout(PATIENCE):
            # Buffers of the system take some megabytes, before the client is too slow.
            while first in hub.streams:
                store.append(EventBatch(batch))
                await asyncio.sleep(0.002)
        assert (await client.send(GET + b"Connection: close\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert hub.streams == []
        await rest_of(slow)

    run(scenario, ServerLimits(reading=0.2), app=app)
