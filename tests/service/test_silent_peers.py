"""Peers that vanish without closing their connection, as in a network that drops all packets."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio

from tests.service.harness import HERE, ServiceHarness, serve
from tests.service.kit import work
from yunikorn.framework.registry import Registry
from yunikorn_service.service_settings import Patience, ServerSettings

PROBE = b"\0\0\x08\x06" + bytes(5)
"""Header of a PING frame of HTTP/2 that is no answer."""


class Tunnel:
    """A TCP proxy that can stop forwarding without closing any connection."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.partition(":")
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._probes = asyncio.Semaphore(0)

    async def probes(self, number: int) -> None:
        """Wait until so many more probes (PING frames without ACK) have passed."""
        for _ in range(number):
            await self._probes.acquire()

    async def __aenter__(self) -> Tunnel:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def swallow(self) -> None:
        """Stop forwarding."""
        self._open.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._host, int(self._port))
        for source, target in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._pass_on(source, target))
            self._tasks.add(task)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self._open.wait()
                target.write(data)
                await target.drain()
                for _ in range(data.count(PROBE)):
                    self._probes.release()
        except ConnectionError:
            pass
        finally:
            target.close()


def test_a_peer_that_is_silent_is_paused(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        async with Tunnel(harness.address) as tunnel:
            near: Any = harness.channel
            harness.channel = grpc.aio.insecure_channel(tunnel.address)
            await harness.register()
            stream = harness.stream()
            await stream.send(work(1))
            await stream.allocations(1)
            tunnel.swallow()
            await harness.becomes("Paused")
            await harness.channel.close()
            harness.channel = near

    serve(registry, scenario, ServerSettings(HERE, patience=Patience(keepalive=0.1)))


def test_a_peer_that_is_idle_and_probes_stays_connected(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        async with Tunnel(harness.address) as tunnel:
            near: Any = harness.channel
            harness.channel = grpc.aio.insecure_channel(
                tunnel.address,
                [("grpc.keepalive_time_ms", 20), ("grpc.http2.max_pings_without_data", 0)],
            )
            await harness.register()
            stream = harness.stream()
            await stream.send(work(1))
            await stream.allocations(1)
            # Three probes that are too early end a connection.
            await tunnel.probes(12)
            await stream.send(work(1, app="b"))
            await stream.allocations(1)
            await harness.channel.close()
            harness.channel = near

    serve(registry, scenario, ServerSettings(HERE, patience=Patience(pings=0.001)))
