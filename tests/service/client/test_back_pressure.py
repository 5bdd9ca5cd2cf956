"""A client that sends more than the scheduler accepts waits, and errors are not lost."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.service.client.shim import Shim, holds
from tests.service.harness import ServiceHarness, serve
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import AllocationAsk, RegisterResourceManagerRequest, UpdateRequest
from yunikorn_service.client import AsyncClient, ClientOptions

RM = RegisterResourceManagerRequest("rm")
LARGE = UpdateRequest("", asks=[AllocationAsk("x", "app", tags={"padding": "x" * (1 << 20)})])


def test_updates_block_while_the_scheduler_is_busy_and_fail_at_session_end(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        client = AsyncClient(harness.address, RM, Shim(), options=ClientOptions(waiting=2))
        await client.start()
        free, busy = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def hang(_: object) -> None:
            loop.call_soon_threadsafe(busy.set)
            assert free.wait(30)

        hanging = asyncio.create_task(harness.core.call(hang))
        await busy.wait()

        async def send() -> bool:
            while await client.update(LARGE):
                pass
            return False

        sending = asyncio.create_task(send())
        session = client._session
        assert session is not None
        await holds(lambda: session.is_full)
        assert not sending.done()
        await client.disconnect()
        assert await sending is False
        free.set()
        await hanging

    serve(registry, scenario)


def test_exception_in_the_recovery_report_ends_the_client(registry: Registry) -> None:
    class Broken(Shim):
        def report(self) -> list[UpdateRequest]:
            raise RuntimeError("no idea what I have")

    async def scenario(harness: ServiceHarness) -> None:
        client = AsyncClient(harness.address, RM, Broken())
        with pytest.raises(RuntimeError, match="no idea what I have"):
            await client.start()
        with pytest.raises(RuntimeError):
            await client.wait()

    serve(registry, scenario)
