"""Memory bounds of the service: slow readers, floods, oversized messages, and undecodable messages."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2

from tests.service.harness import HERE, Ended, ServiceHarness, Stream, serve
from tests.service.kit import work
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AcceptedApplication,
    AcceptedNode,
    AddApplicationRequest,
    AllocationAsk,
    SchedulerAction,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.resources import Resource
from yunikorn_service.server_layouts import entries_of, pieces
from yunikorn_service.service_settings import Patience, ServerSettings, ServiceLimits
from yunikorn_service.wire.protocol import CALLBACKS, CONNECT, REGISTER, SCHEDULER, UPDATE, path

Code = grpc.StatusCode


def test_client_that_never_reads_is_paused_and_disconnected(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(1))
        await stream.allocations(1)
        await harness.register("other")
        other = harness.stream()
        name = "x" * 1000
        for number in range(500):
            # Each is accepted with a response of a kilobyte, which the client does not read.
            apps = [
                AddApplicationRequest(f"{name}{number}-{i}", "root.a", ugi=UserGroupInformation("ann"))
                for i in range(20)
            ]
            await stream.send(UpdateRequest("rm", new_applications=apps))
            if await harness.state() == "Paused":
                break
        assert await harness.state() == "Paused"
        ended = await stream.end()
        assert ended.code is Code.RESOURCE_EXHAUSTED
        assert "it does not read its responses" in ended.text
        await other.send(work(1, rm_id="other"))
        assert len(await other.allocations(1)) == 1

        again = harness.stream()
        await again.send(UpdateRequest("rm"))
        while (await again.read()).action is not SchedulerAction.RESYNC:
            pass
        await harness.register()
        fresh = harness.stream()
        await fresh.send(work(2))
        assert len(await fresh.allocations(2)) == 2

    serve(registry, scenario, ServerSettings(HERE, limits=ServiceLimits(waiting=100)))


def test_all_messages_beyond_the_in_flight_limit_are_accepted(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(100))
        for number in range(100):
            one = AllocationAsk(f"more-{number}", "app", resource_ask=Resource(vcore=200))
            await stream.send(UpdateRequest("rm", asks=[one]))
        assert len(await stream.allocations(100)) == 100

    serve(registry, scenario, ServerSettings(HERE, limits=ServiceLimits(in_flight=2)))


def test_too_large_message_is_rejected(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(1))
        await stream.allocations(1)
        await stream.send(work(1000, app="too-many"))
        assert (await stream.end()).code is Code.RESOURCE_EXHAUSTED
        await harness.becomes("Paused")

    serve(registry, scenario, ServerSettings(HERE, limits=ServiceLimits(message_bytes=10_000)))


def test_undecodable_message_ends_only_its_stream(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        for name in ("rm", "other"):
            await harness.register(name)
        other = harness.stream()
        await other.send(work(1, rm_id="other"))
        first = harness.stream()
        await first.call.write(b"\xff\xff\xff")
        ended = await first.end()
        assert ended.code is Code.INVALID_ARGUMENT
        assert "these 3 bytes are not a valid UpdateRequest" in ended.text
        assert await harness.state() == "Running"
        second = harness.stream()
        await second.send(work(1))
        await second.allocations(1)
        await second.call.write(b"\xff\xff\xff")
        assert (await second.end()).code is Code.INVALID_ARGUMENT
        await harness.becomes("Paused")
        assert len(await other.allocations(1)) == 1

    serve(registry, scenario)


def test_invalid_entry_is_rejected_and_others_are_applied(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        request = work(2)
        request.asks.insert(0, AllocationAsk("bad", "app", resource_ask=Resource(vcore=-1)))
        await stream.send(request)
        response = await stream.read()
        assert [one.allocation_key for one in response.rejected_allocations] == ["bad"]
        assert len(await stream.allocations(2)) == 2

    serve(registry, scenario)


def test_large_responses_are_split(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(1000))
        largest = found = 0
        while found < 1000:
            response = await stream.read()
            found += len(response.new_allocations)
            largest = max(largest, entries_of(response))
        assert largest == 10

    serve(registry, scenario, ServerSettings(HERE, limits=ServiceLimits(entries=10)))


def test_too_many_calls_are_refused(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        # Nothing is sent: a message to a stream that the server has just refused fails in gRPC itself.
        endings = [asyncio.create_task(harness.stream().end()) for _ in range(3)]
        refused = await first_of(endings, 1)
        assert {ended.code for ended in refused} == {Code.RESOURCE_EXHAUSTED}
        # The registration may still count as a call, so a second stream may be refused, but never all.
        assert not all(ending.done() for ending in endings)
        for ending in endings:
            ending.cancel()

    serve(registry, scenario, ServerSettings(HERE, limits=ServiceLimits(streams=1)))


async def first_of(endings: list[asyncio.Task[Ended]], number: int) -> list[Ended]:
    """Return how the first streams to end do so, this many; remove them from the list."""
    found: list[Ended] = []
    while len(found) < number:
        done, _ = await asyncio.wait(endings, return_when=asyncio.FIRST_COMPLETED)
        found += [ending.result() for ending in done]
        endings[:] = [ending for ending in endings if ending not in done]
    return found


@pytest.mark.slow  # waits for a clock
def test_silent_streams_do_not_block_registration_and_health_and_end(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        endings = [asyncio.create_task(harness.stream().end()) for _ in range(20)]
        # Streams beyond the limit are refused, so all others are open.
        refused = await first_of(endings, 15)
        assert {ended.code for ended in refused} == {Code.RESOURCE_EXHAUSTED}
        await harness.register()
        check = harness.channel.unary_unary("/grpc.health.v1.Health/Check")
        answer = await check(health_pb2.HealthCheckRequest().SerializeToString())
        assert health_pb2.HealthCheckResponse.FromString(answer).status == 1
        for ended in await first_of(endings, 5):
            assert ended.code is Code.DEADLINE_EXCEEDED
            assert "no message came within" in ended.text
        stream = harness.stream()
        await stream.send(work(1))
        assert len(await stream.allocations(1)) == 1

    serve(
        registry,
        scenario,
        ServerSettings(HERE, limits=ServiceLimits(streams=5), patience=Patience(message=3.0)),
    )


def test_a_silent_stream_of_callbacks_ends(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        stream = Stream(harness.channel.stream_stream(path(CALLBACKS, CONNECT))())
        assert (await stream.end()).code is Code.DEADLINE_EXCEEDED

    serve(registry, scenario, ServerSettings(HERE, patience=Patience(message=0.02)))


def test_single_connection_cannot_use_all_streams(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        many = [harness.stream() for _ in range(10)]
        endings = [asyncio.create_task(stream.end()) for stream in many]
        for ended in await first_of(endings, 7):
            assert ended.code is Code.RESOURCE_EXHAUSTED
            assert "streams of this connection are open" in ended.text
        await harness.register()
        separate: Any = grpc.aio.insecure_channel(harness.address, [("grpc.use_local_subchannel_pool", 1)])
        async with separate:
            stream = Stream(separate.stream_stream(path(SCHEDULER, UPDATE))())
            await stream.send(work(1))
            assert len(await stream.allocations(1)) == 1
        for stream in many:
            stream.cut()
        await asyncio.wait(endings)
        while True:
            another = harness.stream()
            await another.send(UpdateRequest("unknown"))
            if (await another.end()).code is Code.FAILED_PRECONDITION:
                break

    serve(registry, scenario, ServerSettings(HERE, limits=ServiceLimits(connection=3)))


def test_there_is_room_for_all_streams_of_all_resource_managers() -> None:
    # Three streams of the newer layout, and the callbacks.
    assert ServiceLimits().streams >= 4 * ServiceLimits().rms


def test_excess_resource_managers_are_rejected_until_one_ends(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        for name in ("a", "b", "a"):
            await harness.register(name)
        with pytest.raises(Ended, match="RESOURCE_EXHAUSTED: 2 resource managers are registered"):
            await harness.register("c")
        await harness.core.stop("a")
        await harness.register("c")

    serve(registry, scenario, ServerSettings(HERE, limits=ServiceLimits(rms=2)))


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_parts_of_a_response_are_complete_and_in_order(most: int) -> None:
    whole = UpdateResponse(
        SchedulerAction.RESYNC,
        accepted_nodes=[AcceptedNode(f"n{i}") for i in range(5)],
    )
    whole.accepted_applications = [AcceptedApplication(name) for name in "abc"]
    parts = list(pieces(whole, most))
    assert [part.action for part in parts] == [SchedulerAction.RESYNC] + [SchedulerAction.NOACTION] * (
        len(parts) - 1
    )
    assert all(0 < entries_of(part) <= most for part in parts)
    assert [app for part in parts for app in part.accepted_applications] == whole.accepted_applications
    assert [node for part in parts for node in part.accepted_nodes] == whole.accepted_nodes


def test_response_without_entries_is_one_part() -> None:
    assert list(pieces(UpdateResponse(SchedulerAction.RESYNC), 5)) == [UpdateResponse(SchedulerAction.RESYNC)]


EMPTY_CALLS = {
    "registration": (path(SCHEDULER, REGISTER), False),
    "health": ("/grpc.health.v1.Health/Check", False),
    "watched health": ("/grpc.health.v1.Health/Watch", True),
}
"""Calls with one request message; True if they have many responses."""


@pytest.mark.parametrize("name", EMPTY_CALLS)
def test_call_without_a_message_ends(registry: Registry, name: str) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        method, many = EMPTY_CALLS[name]
        call = (harness.channel.stream_stream if many else harness.channel.stream_unary)(method)()
        await call.wait_for_connection()
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "no message came within" in await call.details()

    serve(registry, scenario, ServerSettings(HERE, patience=Patience(message=0.02)))


@pytest.mark.parametrize("name", EMPTY_CALLS)
def test_half_closed_call_without_a_message_ends(registry: Registry, name: str) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        method, many = EMPTY_CALLS[name]
        call = (harness.channel.stream_stream if many else harness.channel.stream_unary)(method)()
        await call.done_writing()
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert await call.details() == "the call ended without its message"

    serve(registry, scenario)
