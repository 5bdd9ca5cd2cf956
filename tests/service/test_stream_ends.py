"""Streams that end while their first response is being sent, and calls that gRPC cannot end."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import grpc.aio
import pytest

from tests.service.harness import HERE, Ended, ServiceHarness, Stream, serve
from tests.service.kit import PATIENCE, work
from tests.service.test_callbacks import Callbacks
from yunikorn.framework.registry import Registry
from yunikorn.interface.callback import Callback
from yunikorn.interface.messages import UpdateRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.call_endings import OPEN_FILES, CallRefusal
from yunikorn_service.service_settings import Patience, ServerSettings
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.generated import callbacks_pb2 as wire
from yunikorn_service.wire.protocol import CALLBACKS, CONNECT, SCHEDULER, UPDATE, path

Code = grpc.StatusCode
MALFORMED = b"\xff\xff\xff"
OPEN = wire.FromResourceManager(open=wire.Open(rm_id="rm")).SerializeToString()
TIMES = 200


class Unsendable(str):
    """A text that cannot be encoded: gRPC considers the status sent before the encoding fails.

    A lone surrogate would not do, because pytest-xdist cannot send logs with one to its controller.
    """

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """Raise an error."""
        raise ValueError(f"{self!r} cannot be encoded")


def call(harness: ServiceHarness, method: str, *messages: bytes) -> Any:
    """Call a method with messages sent back to back."""

    async def send() -> AsyncIterator[bytes]:
        for message in messages:
            yield message

    return harness.channel.stream_stream(method)(send())


def test_a_stream_ends_while_its_first_response_is_sent(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        for number in range(TIMES):
            rm_id = f"rm-{number}"
            await harness.register(rm_id)
            good = v0_11.UPDATE_REQUEST.encode(work(1, rm_id=rm_id))
            stream = Stream(call(harness, path(SCHEDULER, UPDATE), good, MALFORMED))
            assert (await stream.end()).code is Code.INVALID_ARGUMENT

    serve(registry, scenario)


def test_a_stream_of_callbacks_ends_while_its_first_message_is_sent(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        for _ in range(TIMES):
            callbacks = Callbacks(call(harness, path(CALLBACKS, CONNECT), OPEN, MALFORMED))
            assert (await callbacks.end()).code is Code.INVALID_ARGUMENT

    serve(registry, scenario)


def test_client_that_cancels_a_stream_keeps_its_connection(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register("other")
        other = harness.stream()
        await other.send(work(1, rm_id="other"))
        await other.allocations(1)
        rng = random.Random(0)
        for _ in range(TIMES):
            stream = Stream(call(harness, path(SCHEDULER, UPDATE), b"", MALFORMED))
            for _ in range(rng.randrange(30)):
                await asyncio.sleep(0)
            stream.cut()
        await other.send(work(1, rm_id="other", app="more"))
        assert await other.allocations(1) == {"more-0": "node-more"}

    serve(registry, scenario)
    assert "cannot be ended" not in caplog.text


def test_cancelled_callback_stream_is_not_used(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, given_up = threading.Event(), threading.Event()
    use_callback = Scheduler.use_callback

    def slow(core: Scheduler, rm_id: str, callback: Callback) -> None:
        begun.set()
        assert given_up.wait(PATIENCE)
        use_callback(core, rm_id, callback)

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        carry_out = harness.core.carry_out

        async def watched(operation: Callable[[Scheduler], None]) -> None:
            try:
                await carry_out(operation)
            finally:
                given_up.set()

        monkeypatch.setattr(Scheduler, "use_callback", slow)
        monkeypatch.setattr(harness.core, "carry_out", watched)
        opening = wire.Open(rm_id="rm", capabilities=[wire.PREDICATES])
        opened = wire.FromResourceManager(open=opening).SerializeToString()
        callbacks = call(harness, path(CALLBACKS, CONNECT), opened)
        await asyncio.to_thread(begun.wait)
        callbacks.cancel()
        stream = harness.stream()
        await stream.send(work(1))
        assert await stream.allocations(1) == {"app-0": "node-app"}

    patience = Patience(callback=2.0 * PATIENCE)
    serve(registry, scenario, ServerSettings(HERE, accept_unanswered=True, patience=patience))


@pytest.mark.skipif(not os.path.isdir(OPEN_FILES), reason=f"needs {OPEN_FILES}")
def test_a_call_that_grpc_cannot_end_loses_its_connection(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(CallRefusal, "details", property(lambda _: Unsendable("no")))

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        separate: Any = grpc.aio.insecure_channel(harness.address, [("grpc.use_local_subchannel_pool", 1)])
        async with separate:
            stream = Stream(separate.stream_stream(path(SCHEDULER, UPDATE))())
            await stream.send(work(1))
            await stream.allocations(1)
            other = harness.stream()
            await other.send(UpdateRequest("nothing-of-this-name"))
            ended = await other.end()
            assert ended.code is Code.UNAVAILABLE
            await stream.send(work(1, app="more"))
            assert await stream.allocations(1) == {"more-0": "node-more"}
        with pytest.raises(Ended, match="UNAVAILABLE"):
            await harness.register("")

    serve(registry, scenario)
    assert "a new Update stream cannot be ended" in caplog.text
