"""Callbacks of remote RMs: predicates with a time limit, scheduling states, events, configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import grpc
import grpc.aio
import pytest

from tests.core.kit import configuration
from tests.service.harness import HERE, Ended, ServiceHarness, serve
from tests.service.kit import CONFIG, work
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import UpdateRequest
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.service_settings import Patience, ServerSettings, ServiceLimits
from yunikorn_service.wire.generated import callbacks_pb2 as wire
from yunikorn_service.wire.generated import si_v0_11_pb2 as si
from yunikorn_service.wire.protocol import CALLBACKS, CONNECT, path

Code = grpc.StatusCode
IMPATIENT = ServerSettings(HERE, patience=Patience(callback=0.02, silence=3600.0))
CONFIGURABLE = Configurations({"": CONFIG}, allow_rm_config=True)


class Callbacks:
    """The RM's end of a callback stream."""

    def __init__(self, call: Any) -> None:
        self.call = call

    async def send(self, **fields: Any) -> None:
        """Send a message."""
        await self.call.write(wire.FromResourceManager(**fields).SerializeToString())

    async def read(self) -> wire.FromScheduler:
        """Return the next message; raises `Ended`."""
        try:
            data = await self.call.read()
        except grpc.aio.AioRpcError as error:
            raise Ended(error.code(), error.details() or "") from error
        if not isinstance(data, bytes):
            raise Ended(await self.call.code(), await self.call.details())
        return wire.FromScheduler.FromString(data)

    async def next(self, content: str) -> wire.FromScheduler:
        """Return the next message with this content; others are skipped."""
        while not (message := await self.read()).HasField(content):
            pass
        return message

    async def end(self) -> Ended:
        """Return how the stream ends."""
        while True:
            try:
                await self.read()
            except Ended as ended:
                return ended

    async def refuse(self, refuse: Callable[[wire.PredicatesRequest], dict[str, str]]) -> None:
        """Answer all predicate questions until cancelled."""
        while True:
            question = await self.next("predicates")
            refused = refuse(question.predicates)
            await self.send(call=question.call, predicates=wire.PredicatesResponse(refused=refused))


async def connect(harness: ServiceHarness, *capabilities: int, rm_id: str = "rm") -> Callbacks:
    """Open a callback stream, and wait until the scheduler confirms it."""
    callbacks = Callbacks(harness.channel.stream_stream(path(CALLBACKS, CONNECT))())
    await callbacks.send(open=wire.Open(rm_id=rm_id, capabilities=capabilities))
    opened = (await callbacks.read()).opened
    assert set(opened.capabilities) == set(capabilities)
    return callbacks


def test_a_remote_predicate_decides_where_requests_go(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness, wire.PREDICATES)
        asked: list[wire.PredicatesRequest] = []

        def refuse(question: wire.PredicatesRequest) -> dict[str, str]:
            asked.append(question)
            return {"node-one": "it is too warm"} if "node-one" in question.node_ids else {}

        answering = asyncio.create_task(callbacks.refuse(refuse))
        stream = harness.stream()
        await stream.send(work(1, app="one"))
        await stream.send(work(1, app="two"))
        assert await stream.allocations(1) in ({"one-0": "node-two"}, {"two-0": "node-two"})
        assert {question.application_id for question in asked} <= {"one", "two"}
        answering.cancel()

    serve(registry, scenario)


@pytest.mark.parametrize("accept", [True, False])
def test_default_applies_without_a_timely_answer(registry: Registry, accept: bool) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness, wire.PREDICATES)
        stream = harness.stream()
        await stream.send(work(3))
        await callbacks.next("predicates")
        if accept:
            assert len(await stream.allocations(3)) == 3
        else:
            await harness.register("other")
            other = harness.stream()
            await other.send(work(2, rm_id="other"))
            assert len(await other.allocations(2)) == 2
            waits = await harness.core.call(lambda core: core.explain("rm", "default", "app"))
            assert set(waits) == {"app-0", "app-1", "app-2"}

    serve(registry, scenario, attrs.evolve(IMPATIENT, accept_unanswered=accept))


def test_unresponsive_rm_is_not_called_until_it_sends_a_message(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness, wire.PREDICATES)
        stream = harness.stream()
        await stream.send(work(20))
        late = await callbacks.next("predicates")
        await harness.core.call(lambda core: core.schedule())
        await callbacks.send(call=late.call, predicates=wire.PredicatesResponse())
        answering = asyncio.create_task(callbacks.refuse(lambda question: {}))
        while True:
            # A change retries all pending asks.
            await stream.send(work(1, app=f"more-{asyncio.get_running_loop().time()}"))
            if any(key.startswith("app-") for key in await stream.allocations(1)):
                break
        answering.cancel()

    serve(registry, scenario, attrs.evolve(IMPATIENT, patience=Patience(callback=0.2, silence=3600.0)))


def test_a_failure_refuses_with_its_reason(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness, wire.PREDICATES)

        async def fail() -> None:
            while True:
                question = await callbacks.next("predicates")
                await callbacks.send(call=question.call, failure=wire.Failure(reason="the cache is cold"))

        failing = asyncio.create_task(fail())
        assert "the cache is cold" in await why_it_waits(harness)
        failing.cancel()

    serve(registry, scenario)


async def why_it_waits(harness: ServiceHarness) -> str:
    """Send an ask that predicates refuse, and return the reason."""
    stream = harness.stream()
    await stream.send(work(1))
    while not (await stream.read()).accepted_applications:
        pass
    while not (waits := await harness.core.call(lambda core: core.explain("rm", "default", "app"))):
        pass
    return str(waits["app-0"])


def test_states_events_and_cache_updates_are_sent(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness, wire.SCHEDULING_STATES, wire.EVENTS, wire.CACHE)
        stream = harness.stream()
        await stream.send(work(2))
        assumed: dict[str, str] = {}
        states: dict[str, int] = {}
        events: list[str] = []
        while len(assumed) < 2 or len(states) < 2 or not events:
            message = await callbacks.read()
            assumed |= {one.allocationKey: one.nodeID for one in message.cache.assumedAllocations}
            states |= {one.allocationKey: one.state for one in message.states.states}
            events += [event.objectID for event in message.events.events]
        assert assumed == {"app-0": "node-app", "app-1": "node-app"}
        scheduled = si.UpdateContainerSchedulingStateRequest.SCHEDULED
        assert states == {"app-0": scheduled, "app-1": scheduled}

    serve(registry, scenario)


def test_nothing_is_sent_without_capabilities(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness)
        stream = harness.stream()
        await stream.send(work(2))
        await stream.allocations(2)
        await callbacks.call.done_writing()
        message = await callbacks.read()
        assert (message.call, message.WhichOneof("content")) == (0, "done")
        assert (await callbacks.end()).code is Code.OK

    serve(registry, scenario)


def test_half_close_removes_the_callbacks(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness, wire.PREDICATES)
        await callbacks.call.done_writing()
        assert (await callbacks.end()).code is Code.OK
        stream = harness.stream()
        await stream.send(work(2))
        assert len(await stream.allocations(2)) == 2

    serve(registry, scenario, IMPATIENT)


def test_broken_callback_stream_falls_back_to_defaults_until_it_returns(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness, wire.PREDICATES)
        callbacks.call.cancel()
        while not _closed(harness):
            await asyncio.sleep(0)
        assert "resource manager rm does not answer" in await why_it_waits(harness)
        again = await connect(harness, wire.PREDICATES)
        answering = asyncio.create_task(again.refuse(lambda question: {}))
        # Any change retries the pending asks.
        more = UpdateRequest("rm", new_schedulable_nodes=work(1, app="more").new_schedulable_nodes)
        await harness.core.update(more)
        while await harness.core.call(lambda core: core.explain("rm", "default", "app")):
            pass
        answering.cancel()

    serve(registry, scenario)


def _closed(harness: ServiceHarness) -> bool:
    callbacks = harness.server.registrations.current["rm"].callbacks
    return callbacks is not None and not callbacks.is_open


def test_a_newer_stream_takes_over_and_registering_ends_it(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        first = await connect(harness, wire.EVENTS)
        second = await connect(harness, wire.EVENTS)
        ended = await first.end()
        assert ended.code is Code.ABORTED
        assert "a newer callback stream" in ended.text
        await harness.register()
        assert (await second.end()).code is Code.ABORTED

    serve(registry, scenario)


def test_when_the_rm_shuts_down_its_callbacks_end(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness, wire.EVENTS)
        stream = harness.stream()
        await stream.send(work(1))
        await stream.half_close()
        assert (await stream.end()).code is Code.OK
        assert (await callbacks.end()).code is Code.OK

    serve(registry, scenario)


def test_client_that_does_not_read_is_disconnected(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness, wire.EVENTS)
        stream = harness.stream()
        for number in range(300):
            await stream.send(work(20, app=f"app{number}"))
            await stream.allocations(20)
        ended = await callbacks.end()
        assert ended.code is Code.RESOURCE_EXHAUSTED
        assert "it does not read its notices" in ended.text

    serve(registry, scenario, ServerSettings(HERE, limits=ServiceLimits(notices=100)))


# -- configuration, and calls of the RM -------------------------------------------------------------------

BIGGER = configuration({"name": "a"}, {"name": "b"})


def test_a_configuration_comes_from_the_rm_and_is_saved_by_it_first(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness, wire.CONFIGURATION)
        await callbacks.send(call=7, update_configuration=si.UpdateConfigurationRequest(configs=BIGGER))
        question = await callbacks.next("configuration")
        assert question.configuration.configs == BIGGER
        saved = si.UpdateConfigurationResponse(success=True)
        await callbacks.send(call=question.call, configuration=saved)
        answer = await callbacks.next("configuration_updated")
        assert answer.call == 7
        assert answer.configuration_updated.success, answer.configuration_updated.reason
        assert answer.configuration_updated.oldConfig == CONFIG
        assert await harness.core.call(lambda core: core.configuration("rm").text) == BIGGER

    serve(registry, scenario, configurations=CONFIGURABLE)


@pytest.mark.parametrize("silent", [True, False])
def test_configuration_that_is_not_saved_is_not_applied(registry: Registry, silent: bool) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness, wire.CONFIGURATION)
        await callbacks.send(call=7, update_configuration=si.UpdateConfigurationRequest(configs=BIGGER))
        question = await callbacks.next("configuration")
        if not silent:
            await callbacks.send(call=question.call, failure=wire.Failure(reason="the disk is full"))
        answer = (await callbacks.next("configuration_updated")).configuration_updated
        assert not answer.success
        assert ("does not answer" if silent else "the disk is full") in answer.reason
        assert await harness.core.call(lambda core: core.configuration("rm").text) == CONFIG

    serve(registry, scenario, IMPATIENT if silent else None, configurations=CONFIGURABLE)


def test_an_application_is_failed_by_the_rm(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness)
        stream = harness.stream()
        await stream.send(work(1))
        await stream.allocations(1)
        wanted = wire.FailApplication(application_id="app", reason="the driver is gone")
        await callbacks.send(call=1, fail_application=wanted)
        assert (await callbacks.next("done")).call == 1
        updates = []
        while "Failing" not in updates:
            updates += [update.state for update in (await stream.read()).updated_applications]
        await callbacks.send(call=2, fail_application=wire.FailApplication(application_id="ghost"))
        failed = await callbacks.next("failure")
        assert failed.call == 2
        assert "there is no application 'ghost'" in failed.failure.reason

    serve(registry, scenario)


def test_the_stream_begins_with_open_and_only_once(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        early = Callbacks(harness.channel.stream_stream(path(CALLBACKS, CONNECT))())
        await early.send(call=1, failure=wire.Failure())
        ended = await early.end()
        assert (ended.code, ended.text.partition(":")[0]) == (Code.INVALID_ARGUMENT, "open")
        ghost = Callbacks(harness.channel.stream_stream(path(CALLBACKS, CONNECT))())
        await ghost.send(open=wire.Open(rm_id="ghost"))
        assert (await ghost.end()).code is Code.FAILED_PRECONDITION
        await harness.register()
        callbacks = await connect(harness)
        await callbacks.send(open=wire.Open(rm_id="rm"))
        assert (await callbacks.end()).text == "open: the stream is open already"
        broken = Callbacks(harness.channel.stream_stream(path(CALLBACKS, CONNECT))())
        await broken.call.write(b"\xff\xff")
        assert "are not a valid FromResourceManager" in (await broken.end()).text

    serve(registry, scenario)
