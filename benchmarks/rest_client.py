"""Client that sends REST requests at a constant rate: `python rest_client.py PORT RATE`.

Reads `go` and `pause` from standard input, and prints the latencies in seconds as a line of JSON at `pause`.
A request is due at its time, whether or not earlier ones have been answered; its latency counts from then.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

CONNECTIONS = 20
PATHS = (
    "/ws/v1/partitions",
    "/ws/v1/partition/default/queues",
    "/ws/v1/partition/default/queue/root",
    "/ws/v1/partition/default/application/watched",
    "/ws/v1/clusters",
    "/livez",
)
"""Requests of monitors and dashboards, in turn."""


class Client:
    """Connections that share a rate."""

    def __init__(self, port: int, rate: float) -> None:
        self._port, self._rate = port, rate
        self._going = asyncio.Event()
        self._start = 0.0
        self._latencies: list[float] = []

    async def run(self) -> None:
        """Send requests between the lines `go` and `pause` of standard input, until it ends."""
        tasks = [asyncio.create_task(self._connection(number)) for number in range(CONNECTIONS)]
        while line := await asyncio.to_thread(sys.stdin.readline):
            if line.strip() == "go":
                self._start, self._latencies = time.perf_counter(), []
                self._going.set()
            else:
                while not self._latencies:  # a short phase has at least one request
                    await asyncio.sleep(0.001)
                self._going.clear()
                print(json.dumps(self._latencies), flush=True)
        for task in tasks:
            task.cancel()
        for found in await asyncio.gather(*tasks, return_exceptions=True):
            if not isinstance(found, asyncio.CancelledError):
                raise SystemExit(f"a connection has failed: {found!r}")

    async def _connection(self, number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while True:
            await self._going.wait()
            start, turn = self._start, 0
            while self._going.is_set() and start == self._start:
                due = start + (turn * CONNECTIONS + number) / self._rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                await self._request(reader, writer, PATHS[(turn + number) % len(PATHS)])
                self._latencies.append(time.perf_counter() - due)
                turn += 1

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise ValueError(f"{path}: {head.decode()}")
        length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))


if __name__ == "__main__":
    asyncio.run(Client(int(sys.argv[1]), float(sys.argv[2])).run())
