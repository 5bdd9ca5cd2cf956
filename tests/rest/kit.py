"""Test kit of the REST interface: requests to the application in process, on a synchronous scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import httpx

from tests.core.kit import RM
from yunikorn.clock import stopwatch
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.app import rest_app
from yunikorn_rest.decision_store import DecisionStore
from yunikorn_rest.endpoints import RestContext
from yunikorn_rest.event_store import EventStore
from yunikorn_rest.event_streams import EventHub
from yunikorn_rest.kept_history import KeptHistory
from yunikorn_rest.profiler import Profiler
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_service.runtime.sliced_reads import STALLED, Reading

T = TypeVar("T")


class DirectCore:
    """Core that carries out every reading at once, in the calling thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    async def read(self, reading: Reading[T]) -> T:
        """Carry out a reading; other tasks run while it is stalled."""
        slices = reading(self.scheduler)
        while True:
            try:
                if next(slices) is STALLED:
                    await asyncio.sleep(0)
            except StopIteration as end:
                result: T = end.value
                return result

    async def carry_out(self, operation: Callable[[Scheduler], T]) -> T:
        """Carry out a change at once."""
        return operation(self.scheduler)


class Rest:
    """The REST interface of the scheduler of a test's resource manager."""

    def __init__(
        self,
        rm: RM,
        store: EventStore | None = None,
        *,
        unready: Callable[[], str] = lambda: "",
        past: KeptHistory | None = None,
    ) -> None:
        self.store = store or EventStore("instance", decisions=DecisionStore())
        events = EventHub(self.store, lambda: 0)
        self.context = RestContext(
            DirectCore(rm.scheduler),
            rm.scheduler.registry,
            lambda: 0,
            events=events,
            profiler=Profiler(stopwatch, second=0),
            unready=unready,
            past=past,
        )
        self.app = rest_app(self.context, ENDPOINTS)

    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, content: bytes = b""
    ) -> httpx.Response:
        """Return the answer to a request; `path` is below `/ws/v1/` unless it begins with a slash."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost:9080") as client:
                whole = path if path.startswith("/") else f"/ws/v1/{path}"
                return await client.request(method, whole, headers=headers, content=content)

        return asyncio.run(send())

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Return the answer to a GET request; underscores in names of headers are hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("GET", path, {"accept-encoding": "identity", **named})

    def json(self, path: str) -> Any:
        """Return the JSON body of a GET request that succeeds."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def error(self, path: str) -> tuple[int, str]:
        """Return the status and the message of a GET request that fails."""
        answer = self.get(path)
        body = answer.json()
        assert body["description"] == body["message"]
        assert body["status_code"] == answer.status_code
        return answer.status_code, body["message"]
