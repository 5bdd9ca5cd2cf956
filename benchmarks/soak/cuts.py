"""Proxy between clients and the service that breaks connections on demand."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

CHUNK = 1 << 16


class Cable:
    """Proxy that forwards connections to the current address of the service."""

    def __init__(self, target: Callable[[], str]) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.address = ""

    async def lay(self) -> None:
        """Start to listen on a free port, and set `address`."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"

    def cut(self) -> None:
        """Break all connections; data in transit is lost."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        """Break all connections and stop listening."""
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self._target().rpartition(":")
        try:
            onward, there = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there}
        try:
            # asyncio cancels this task at exit, and reports an error if the cancellation propagates.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(_copy(reader, there), _copy(onward, writer))
        finally:
            for end in (writer, there):
                self._writers.discard(end)
                end.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()
