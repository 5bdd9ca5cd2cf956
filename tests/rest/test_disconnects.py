"""Clients that disconnect before they have their answer."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Generator
from typing import Any, TypeVar

import attrs
import pytest
from starlette.requests import Request
from starlette.types import Message, Scope

from tests.core.kit import RM
from tests.rest.kit import Rest
from yunikorn.clock import SystemClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.app import rest_app
from yunikorn_rest.encoding import LoopTurns
from yunikorn_rest.endpoints import EXPLANATIONS, READINGS, Call
from yunikorn_rest.guards import SharedPlaces, unless_gone
from yunikorn_rest.paced_work import Pace, PacedWork
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.runtime.sliced_reads import Reading
from yunikorn_service.runtime.threaded import ThreadedScheduler

T = TypeVar("T")
PATIENCE = 30.0
"""Seconds after which a test counts as hanging."""
WHOLE = [
    "/ws/v1/partition/default/nodes",
    "/ws/v1/partition/default/applications/active",
    "/ws/v1/partitions",
    "/debug/fullstatedump",
    "/ws/v1/scheduler/healthcheck",
]


class Client:
    """A client that sends a GET request, and disconnects when `gone` is set."""

    def __init__(self, path: str) -> None:
        self.gone = asyncio.Event()
        self.sent: list[Message] = []
        self._path = path
        self._begun = False

    async def receive(self) -> Message:
        if not self._begun:
            self._begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def scope(self) -> Scope:
        headers = [(b"host", b"localhost")]
        return {
            "type": "http",
            "method": "GET",
            "path": self._path,
            "raw_path": self._path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "scheme": "http",
            "server": ("localhost", 80),
        }


class Busy:
    """Core whose readings never end."""

    def __init__(self) -> None:
        self.current = self.most = 0

    async def read(self, reading: Reading[T]) -> T:
        self.current += 1
        self.most = max(self.most, self.current)
        try:
            never: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            return await never
        finally:
            self.current -= 1


def test_thousand_clients_that_ask_for_everything_and_leave(caplog: pytest.LogCaptureFixture) -> None:
    core, site = Busy(), Rest(RM()).context

    async def scenario() -> None:
        app = rest_app(attrs.evolve(site, core=core, places=SharedPlaces(2000)), ENDPOINTS)
        clients = [Client(WHOLE[number % len(WHOLE)]) for number in range(1000)]
        tasks = [asyncio.ensure_future(app(one.scope, one.receive, one.send)) for one in clients]
        while core.current < READINGS:
            await asyncio.sleep(0)
        for client in clients:
            client.gone.set()
        await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
        assert core.current == 0
        assert core.most <= READINGS
        assert [client for client in clients if client.sent] == []
        # Others are served.
        last = Client("/ws/v1/openapi.json")
        await asyncio.wait_for(app(last.scope, last.receive, last.send), PATIENCE)
        assert last.sent[0]["status"] == 200

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert not caplog.records


def test_few_explanations_leave_room_for_other_readings() -> None:
    core, site = Busy(), Rest(RM()).context

    async def scenario() -> None:
        app = rest_app(attrs.evolve(site, core=core), ENDPOINTS)
        clients = [Client("/ws/v1/partition/default/application/a/explain") for _ in range(100)]
        tasks = [asyncio.ensure_future(app(one.scope, one.receive, one.send)) for one in clients]
        others = [Client("/ws/v1/partitions") for _ in range(10)]
        tasks += [asyncio.ensure_future(app(one.scope, one.receive, one.send)) for one in others]
        while core.current < EXPLANATIONS + len(others):
            await asyncio.sleep(0)
        for client in (*clients, *others):
            client.gone.set()
        await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
        assert core.most == EXPLANATIONS + len(others)

    asyncio.run(scenario())


def test_one_task_computes_in_each_cycle_of_the_event_loop() -> None:
    worked: list[int] = []
    cycle = 0

    async def compute(turns: LoopTurns) -> None:
        for _ in range(10):
            await turns.next()
            worked.append(cycle)

    async def scenario() -> None:
        nonlocal cycle
        turns = LoopTurns(lambda: 0)
        whole = asyncio.gather(*(compute(turns) for _ in range(20)))
        while not whole.done():
            cycle += 1
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert len(worked) == 200
    assert max(Counter(worked).values()) == 1


def test_validation_of_a_client_that_leaves_ends() -> None:
    gone, begun = asyncio.Event(), threading.Event()
    ended = threading.Event()

    def work(pace: Pace) -> int:
        begun.set()
        try:
            while True:
                pace()
        finally:
            ended.set()

    async def scenario() -> None:
        task = asyncio.create_task(PacedWork(most=1e9).run(work))
        await asyncio.to_thread(begun.wait, PATIENCE)
        task.cancel()
        assert await asyncio.to_thread(ended.wait, PATIENCE)
        gone.set()

    asyncio.run(scenario())
    assert gone.is_set()


def test_work_of_a_client_that_leaves_keeps_others_waiting_until_it_ends() -> None:
    begun, end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        end.wait()

    async def leave() -> None:
        call = Call(Rest(RM()).context, Request({"type": "http"}))
        gone = asyncio.create_task(call.apart(work))
        await asyncio.to_thread(begun.wait)
        gone.cancel()
        await asyncio.wait([gone])
        try:
            assert call.context.computing.locked()
        finally:
            end.set()
        async with asyncio.timeout(PATIENCE):
            assert await call.apart(lambda: "next") == "next"

    asyncio.run(leave())


def test_reading_of_a_client_that_leaves_ends_in_the_core(registry: Registry) -> None:
    steps: list[int] = []

    def endless(_: Scheduler) -> Generator[None, None, int]:
        try:
            while True:
                steps.append(1)
                yield
        finally:
            steps.append(-1)

    async def scenario() -> None:
        core = AsyncScheduler(ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock()))
        core.threaded.start()
        client = Client("/")
        work = asyncio.create_task(unless_gone(client.receive, core.read(endless)))
        while not steps:
            await asyncio.sleep(0)
        client.gone.set()
        assert await asyncio.wait_for(work, PATIENCE) is None
        while steps[-1] != -1:
            await asyncio.sleep(0)
        assert await core.call(lambda core: core.started) > 0
        await core.halt()

    asyncio.run(scenario())


def test_result_is_returned_to_a_client_that_stays() -> None:
    async def scenario() -> None:
        async def work() -> int:
            await asyncio.sleep(0)
            return 7

        assert await unless_gone(Client("/").receive, work()) == 7

    asyncio.run(scenario())


def test_work_that_is_cancelled_for_another_reason_stays_cancelled() -> None:
    async def scenario() -> None:
        client = Client("/")
        task: Any = asyncio.create_task(unless_gone(client.receive, asyncio.Event().wait()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


def test_error_of_the_work_is_raised() -> None:
    async def fail() -> None:
        raise ValueError("no")

    async def scenario() -> None:
        with pytest.raises(ValueError, match="no"):
            await unless_gone(Client("/").receive, fail())

    asyncio.run(scenario())
