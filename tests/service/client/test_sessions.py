"""A client keeps its session: it reports, reconnects, leaves in order, and raises clear errors."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.service.client.shim import Shim, ask, holds
from tests.service.harness import ServiceHarness, serve
from tests.service.kit import CONFIG
from yunikorn.clock import Clock, SystemClock
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    Allocation,
    AllocationAsk,
    AllocationRelease,
    AllocationReleasesRequest,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.states import PAUSED, RUNNING, STOPPED
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.call_endings import CallRefusal
from yunikorn_service.client import (
    BY_SUBJECT,
    ONE_STREAM,
    AsyncClient,
    ClientOptions,
    ConnectionLost,
    Refused,
    TakenOver,
)
from yunikorn_service.client.client_options import Layout
from yunikorn_service.grpc_server import Server
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.runtime.threaded import ThreadedScheduler
from yunikorn_service.service_settings import ServerSettings
from yunikorn_service.wire.codec import MalformedMessage

RM = RegisterResourceManagerRequest("rm", version="test")
LAYOUTS = [pytest.param(ONE_STREAM, id="one-stream"), pytest.param(BY_SUBJECT, id="by-subject")]


def at_once() -> Iterator[float]:
    """Return no delay between attempts."""
    return itertools.repeat(0.0)


def options(layout: Layout = ONE_STREAM) -> ClientOptions:
    """Return options of a client that retries without limit."""
    return ClientOptions(layout=layout, delays=at_once)


def used(core: Scheduler) -> dict[str, int]:
    """Return the usage of the application's queue."""
    scheduler = core.partition("rm")
    queue = None if scheduler is None else scheduler.partition.queue("root.a")
    return {} if queue is None else dict(queue.allocated)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_client_reports_receives_responses_and_shuts_down(registry: Registry, layout: Layout) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        shim = Shim()
        async with AsyncClient(harness.address, RM, shim, options=options(layout)) as client:
            await shim.until(lambda: len(shim.running) == 3)
            assert await harness.state() == RUNNING
            shim.wanted.append("task-3")
            assert await client.update(UpdateRequest("rm", asks=[ask("task-3")]))
            await shim.until(lambda: len(shim.running) == 4)
            freed = AllocationRelease("app", shim.running["task-0"].uuid, allocation_key="task-0")
            await client.update(UpdateRequest("", releases=AllocationReleasesRequest([freed])))
            await client.update(UpdateRequest("", asks=[ask("task-4")]))
            await shim.until(lambda: "task-4" in shim.running)
        assert await harness.state() == STOPPED
        assert not client.connected
        assert await client.update(UpdateRequest("rm")) is False
        assert shim.reports == 1

    serve(registry, scenario)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("trouble", ["broken", "resync", "not reading"])
def test_reconnect_loses_and_duplicates_no_allocations(
    registry: Registry, layout: Layout, trouble: str
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        shim = Shim()
        async with AsyncClient(harness.address, RM, shim, options=options(layout)) as client:
            await shim.until(lambda: len(shim.running) == 3)
            if trouble == "resync":
                await harness.core.call(lambda core: core.resync("rm", "we want to know"))
            else:
                code = {"broken": "UNAVAILABLE", "not reading": "RESOURCE_EXHAUSTED"}[trouble]
                remote = harness.server.registrations.current["rm"]
                for line in list(remote.lines.values()):
                    line.end(CallRefusal(grpc.StatusCode[code], "just so"))
            await holds(lambda: shim.reports == 2)
            shim.wanted.append("task-3")
            await client.update(UpdateRequest("rm", asks=[ask("task-3")]))
            await shim.until(lambda: len(shim.running) == 4)
            assert client.sessions == 2
            assert shim.resyncs == (trouble == "resync" and layout is ONE_STREAM)
            assert await harness.state() == RUNNING
            assert await harness.core.call(used) == {"vcore": 4}

    serve(registry, scenario)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_client_reconnects_after_a_scheduler_restart(
    registry: Registry, layout: Layout, tmp_path: Path
) -> None:
    address = f"unix:{tmp_path}/socket"
    waited: list[float] = []

    async def sleep(delay: float) -> None:
        waited.append(delay)
        await asyncio.sleep(0)

    def make(clock: Clock) -> Scheduler:
        return Scheduler(registry, clock, configurations=Configurations({"": CONFIG}))

    async def one_session(scene: asyncio.Event, ready: asyncio.Event) -> dict[str, int]:

        async with AsyncScheduler(ThreadedScheduler(make, SystemClock())) as core:
            server = Server(core, ServerSettings(address))
            await server.start()
            ready.set()
            await scene.wait()
            found = await core.call(used)
            await server.stop()
            return found

    async def run() -> None:
        shim = Shim()
        client = AsyncClient(address, RM, shim, options=ClientOptions(layout=layout), sleep=sleep)
        starting = asyncio.create_task(client.start())
        await holds(lambda: len(waited) >= 3)
        assert waited[:3] == [0.1, 0.2, 0.4]
        for tasks in (3, 4):
            shim.wanted = [f"task-{number}" for number in range(tasks)]
            scene, ready = asyncio.Event(), asyncio.Event()
            server = asyncio.create_task(one_session(scene, ready))
            await ready.wait()
            await starting
            await shim.until(lambda: len(shim.running) == len(shim.wanted))
            scene.set()
            assert await server == {"vcore": tasks}
            await holds(lambda: not client.connected)
        await client.close()

    async def in_time() -> None:
        async with asyncio.timeout(30):
            await run()

    asyncio.run(in_time())


def test_disconnect_without_shutdown_keeps_allocations(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        shim = Shim()
        first = AsyncClient(harness.address, RM, shim, options=options())
        await first.start()
        await shim.until(lambda: len(shim.running) == 3)
        await first.disconnect()
        await first.wait()
        await harness.becomes(PAUSED)
        async with AsyncClient(harness.address, RM, shim, options=options()):
            await harness.becomes(RUNNING)
            assert len(shim.running) == 3

    serve(registry, scenario)


def test_callback_that_raises_causes_a_new_recovery_report(registry: Registry) -> None:
    class Clumsy(Shim):
        def recv_update_response(self, response: UpdateResponse) -> None:
            if response.new_allocations and self.reports == 1:
                raise RuntimeError("dropped it")
            super().recv_update_response(response)

    async def scenario(harness: ServiceHarness) -> None:
        shim = Clumsy()
        async with AsyncClient(harness.address, RM, shim, options=options()) as client:
            await shim.until(lambda: len(shim.running) == 3)
            assert shim.reports == 2
            assert client.last_trouble == "a response was lost: RuntimeError: dropped it"

    serve(registry, scenario)


# -- responses one by one -----------------------------------------------------------------------------


def test_responses_can_be_iterated_and_a_loss_without_a_report_ends_them(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        async with AsyncClient(harness.address, RM, options=options()) as client:
            await client.update(Shim().report()[0])
            placed: list[Allocation] = []
            responses = client.responses()
            while len(placed) < 3:
                placed += (await anext(responses)).new_allocations
            assert sorted(one.node_id for one in placed) == ["n1", "n1", "n2"]
            harness.server.registrations.current["rm"].end(CallRefusal(grpc.StatusCode.UNAVAILABLE, "gone"))
            with pytest.raises(ConnectionLost, match=r"there is no report function for a new one: .*gone"):
                async for _ in responses:
                    pass
            with pytest.raises(ConnectionLost):
                await client.update(UpdateRequest("rm"))

    serve(registry, scenario)


# -- errors ----------------------------------------------------------------------------------------------


def test_refused_registration_has_a_reason(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        client = AsyncClient(harness.address, RegisterResourceManagerRequest("rm", policy_group="gpus"))
        with pytest.raises(Refused, match=r"registering: .*'gpus'"):
            await client.start()

    serve(registry, scenario)


def test_second_client_replaces_the_first_with_the_same_id(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        first = AsyncClient(harness.address, RM, Shim(), options=options())
        await first.start()
        async with AsyncClient(harness.address, RM, Shim(), options=options()) as second:
            with pytest.raises(TakenOver, match="resource manager rm registered again"):
                await first.wait()
            with pytest.raises(TakenOver):
                await first.update(UpdateRequest("rm"))
            assert second.connected
        await first.close()

    serve(registry, scenario)


def test_updates_that_cannot_be_sent_are_refused_at_once(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        small = ClientOptions(delays=at_once, message_bytes=100)
        async with AsyncClient(harness.address, RM, options=small) as client:
            with pytest.raises(UsageError, match="'other' in an update of the client of 'rm'"):
                await client.update(UpdateRequest("other"))
            many = AllocationAsk("k", "app", max_allocations=2**40)
            with pytest.raises(MalformedMessage, match=r"asks\[0\].max_allocations"):
                await client.update(UpdateRequest("", asks=[many]))
            with pytest.raises(UsageError, match="too large for the scheduler, which accepts 100"):
                await client.update(UpdateRequest("", asks=[ask("x" * 200)]))
            assert client.connected

    serve(registry, scenario)


def test_calls_in_invalid_order_raise_usage_errors() -> None:
    async def scenario() -> None:
        client = AsyncClient("127.0.0.1:1", RM)
        with pytest.raises(UsageError, match="was not started"):
            await client.update(UpdateRequest("rm"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.start()
        with pytest.raises(UsageError, match="started already"):
            await client.start()
        await client.wait()

    asyncio.run(scenario())
