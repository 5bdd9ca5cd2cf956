"""Writes to a server in memory, for tests of bindings, conditions and the queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from tests.kubernetes.api_server.memory_server import Fault, Json, MemoryServer
from yunikorn.clock import SECOND, ManualClock
from yunikorn_kubernetes.api_server.api_resources import PODS
from yunikorn_kubernetes.api_server.back_off import seeded
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.api_server.pod_binding import PodRef
from yunikorn_kubernetes.api_server.reflector import Reflector
from yunikorn_kubernetes.api_server.transport import ServerAnswer
from yunikorn_kubernetes.api_server.writes import QueuedWrites

WEB = PodRef("default", "web", "u1")


class Written:
    """Server in memory, a reflector of its pods, and writes."""

    def __init__(self, memory: MemoryServer, workers: int, permitted: Callable[[], bool]) -> None:
        self.memory = memory
        server = ApiServer(memory)
        self.reflector = Reflector(server, PODS, lambda change: None, random=seeded(1))
        self.clock = ManualClock(1_700_000_000 * SECOND)
        self.writes = QueuedWrites(
            server,
            self.reflector.store,
            clock=self.clock,
            random=seeded(2),
            workers=workers,
            permitted=permitted,
        )

    def calls(self) -> list[tuple[str, str]]:
        """Return the writes and reads since the last call, without the query and the common path."""
        found = [
            (method, path.removeprefix("/api/v1/namespaces/default/"))
            for method, path in self.memory.calls
            if "/api/v1/pods" not in path
        ]
        self.memory.calls.clear()
        return found

    def stored(self, name: str = "web") -> Json:
        """Return a pod as the server has it."""
        return self.memory.objects["/api/v1", "pods"][f"default/{name}"]


@asynccontextmanager
async def writing(
    *, pods: Iterable[str] = ("web",), workers: int = 6, permitted: Callable[[], bool] = lambda: True
) -> AsyncIterator[Written]:
    """Run writes beside a reflector; the pods have the UIDs u1, u2, and so on."""
    memory = MemoryServer()
    for number, name in enumerate(pods, 1):
        memory.pod(name, uid=f"u{number}")
    made = Written(memory, workers, permitted)
    tasks = [asyncio.create_task(made.reflector.run()), asyncio.create_task(made.writes.run())]
    await made.reflector.synced.wait()
    await asyncio.sleep(0.1)
    made.calls()
    try:
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def once(*faults: ServerAnswer | Exception | None, method: str = "POST") -> Fault:
    """Return faults for the first calls of a method."""
    left = list(faults)
    return lambda used, path: left.pop(0) if used == method and left else None


def placeholder() -> dict[str, Any]:
    """Return the body of a pod."""
    return {"metadata": {"name": "tg-1"}, "spec": {}}
