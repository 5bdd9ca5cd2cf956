"""Large messages are decoded outside the event loop: health and other streams are served meanwhile."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import attrs
import grpc
import pytest

from tests.service.harness import Ended, ServiceHarness, serve
from tests.service.kit import PATIENCE, work
from tests.service.test_server import health_of
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import AllocationAsk, UpdateRequest
from yunikorn_service import grpc_server, server_layouts
from yunikorn_service.server_layouts import ONE_STREAM
from yunikorn_service.wire import callbacks, v0_11
from yunikorn_service.wire.codec import Decoder
from yunikorn_service.wire.generated import callbacks_pb2 as wire
from yunikorn_service.wire.protocol import CALLBACKS, CONNECT, REGISTER, SCHEDULER, UPDATE, path


class SlowDecoding:
    """A layout whose decoding of large messages blocks until the test permits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        slow = attrs.evolve(ONE_STREAM, decode={UPDATE: self._decode})
        monkeypatch.setattr(grpc_server, "SERVER_LAYOUTS", (slow, server_layouts.BY_SUBJECT))

    def _decode(self, data: bytes) -> list[UpdateRequest]:
        if len(data) >= server_layouts.LARGE:
            self.begun.set()
            assert self.go.wait(PATIENCE)
        return ONE_STREAM.decode[UPDATE](data)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowDecoding:
    return SlowDecoding(monkeypatch)


def large(app: str = "app", text: str = "x") -> UpdateRequest:
    """Return a large update for one RM."""
    request = work(1, app=app)
    request.new_applications[0].tags["comment"] = text * server_layouts.LARGE
    return request


async def begun(slow: SlowDecoding) -> None:
    """Wait until a message is being decoded."""
    assert await asyncio.to_thread(slow.begun.wait, PATIENCE)


@pytest.mark.parametrize("is_first", [True, False])
def test_health_and_other_streams_are_served_while_a_message_is_decoded(
    registry: Registry, slow: SlowDecoding, is_first: bool
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        await harness.register("other")
        stream = harness.stream()
        if not is_first:
            await stream.send(work(1, app="before"))
            await stream.allocations(1)
        await stream.send(large())
        await begun(slow)
        assert await health_of(harness) == 1
        other = harness.stream()
        await other.send(work(1, rm_id="other"))
        await other.allocations(1)
        slow.go.set()
        await stream.allocations(1)

    serve(registry, scenario)


def test_messages_are_processed_in_order_of_arrival(registry: Registry, slow: SlowDecoding) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(large())
        await stream.send(UpdateRequest("rm", asks=[AllocationAsk("late", "app", max_allocations=0)]))
        await begun(slow)
        slow.go.set()
        rejected: list[Any] = []
        while not rejected:
            rejected = (await stream.read()).rejected_allocations
        # The application was known when the ask came: only its count is wrong.
        assert "failed to find application" not in rejected[0].reason

    serve(registry, scenario)


def test_a_large_message_that_is_malformed_ends_the_stream(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.call.write(b"\xff" * (2 * server_layouts.LARGE))
        ended = await stream.end()
        assert ended.code is grpc.StatusCode.INVALID_ARGUMENT

    serve(registry, scenario)


def test_the_service_ends_while_a_message_is_decoded(registry: Registry, slow: SlowDecoding) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(1, app="before"))
        await stream.allocations(1)
        await stream.send(large())
        await begun(slow)
        await harness.server.stop()
        with pytest.raises(Ended, match="UNAVAILABLE"):
            await stream.collect([])
        slow.go.set()

    serve(registry, scenario)


class Threads:
    """Records the threads in which messages of a codec are decoded."""

    def __init__(self, codec: Decoder[Any, Any]) -> None:
        self.names: list[str] = []
        self.codec = attrs.evolve(codec, from_wire=self._decode)
        self._from_wire = codec.from_wire

    def _decode(self, message: Any) -> Any:
        self.names.append(threading.current_thread().name)
        return self._from_wire(message)

    @property
    def beside_the_loop(self) -> list[bool]:
        """Return True for each message that was decoded in a decoding thread."""
        return [name.startswith("yunikorn-decoding") for name in self.names]


def test_large_registration_is_decoded_outside_the_event_loop(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Threads(v0_11.REGISTER_REQUEST)
    monkeypatch.setattr(v0_11, "REGISTER_REQUEST", threads.codec)

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        await harness.register("large", build_info={"text": "x" * server_layouts.LARGE})

    serve(registry, scenario)
    assert threads.beside_the_loop == [False, True]


def test_a_large_registration_that_is_malformed_is_refused(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        call = harness.channel.unary_unary(path(SCHEDULER, REGISTER))
        with pytest.raises(
            grpc.aio.AioRpcError, match="are not a valid RegisterResourceManagerRequest"
        ) as error:
            await call(b"\xff" * (2 * server_layouts.LARGE))
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    serve(registry, scenario)


@pytest.mark.parametrize(("field", "name"), [("build_info", "buildInfo"), ("extra_config", "extraConfig")])
def test_a_registration_with_too_many_entries_is_refused(registry: Registry, field: str, name: str) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        entries: Any = {f"key-{number}": "value" for number in range(1001)}
        with pytest.raises(Ended, match=f"INVALID_ARGUMENT: {name}: has 1001 entries, the limit is 1000"):
            await harness.register(**{field: entries})
        entries.popitem()
        await harness.register(**{field: entries})

    serve(registry, scenario)


def test_large_callback_messages_are_decoded_outside_the_event_loop(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Threads(callbacks.FROM_RESOURCE_MANAGER)
    monkeypatch.setattr(callbacks, "FROM_RESOURCE_MANAGER", threads.codec)

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        call = harness.channel.stream_stream(path(CALLBACKS, CONNECT))()
        opening = wire.FromResourceManager(open=wire.Open(rm_id="rm"))
        await call.write(opening.SerializeToString())
        await call.read()
        request = wire.FromResourceManager(call=1)
        request.fail_application.reason = "x" * server_layouts.LARGE
        await call.write(request.SerializeToString())
        await call.read()

    serve(registry, scenario)
    assert threads.beside_the_loop == [False, True]
