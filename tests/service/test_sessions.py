"""Sessions over streams: registration, updates, lost connections, recovery, shutdown."""

from __future__ import annotations

import grpc
import pytest

from tests.service.harness import HERE, Ended, ServiceHarness, serve
from tests.service.kit import CONFIG, work
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import AllocationAsk, SchedulerAction, UpdateRequest
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource
from yunikorn_service import registrations
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.service_settings import Patience, ServerSettings

Code = grpc.StatusCode


def test_registered_rm_reports_and_receives_allocations(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(5))
        assert await stream.allocations(5) == {f"app-{i}": "node-app" for i in range(5)}

    serve(registry, scenario)


def test_unregistered_client_is_asked_to_register(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        stream = harness.stream()
        await stream.send(work(1))
        ended = await stream.end()
        assert ended.code is Code.FAILED_PRECONDITION
        assert "call RegisterResourceManager, then open the stream" in ended.text

    serve(registry, scenario)


def test_first_message_must_name_the_rm(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        stream = harness.stream()
        await stream.send(UpdateRequest(""))
        ended = await stream.end()
        assert ended.code is Code.INVALID_ARGUMENT
        assert ended.text.startswith("rmID: ")

    serve(registry, scenario)


def test_later_messages_may_omit_but_not_change_the_rm(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        await harness.register("other")
        stream = harness.stream()
        await stream.send(UpdateRequest("rm"))
        await stream.send(work(1, rm_id=""))
        await stream.allocations(1)
        await stream.send(work(1, rm_id="other"))
        ended = await stream.end()
        assert ended.code is Code.INVALID_ARGUMENT
        assert ended.text == "rmID: 'other' on a stream of resource manager 'rm'"
        await harness.becomes("Paused")
        assert await harness.state("other") == "Running"

    serve(registry, scenario)


def test_half_closing_is_the_shutdown(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(3))
        await stream.half_close()
        ended = await stream.end()
        assert ended.code is Code.OK
        assert await harness.state() == "Stopped"
        late = harness.stream()
        await late.send(work(1))
        assert (await late.end()).code is Code.FAILED_PRECONDITION

    serve(registry, scenario)


def test_a_stream_without_a_message_affects_no_session(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.half_close()
        assert (await stream.end()).code is Code.OK
        assert await harness.state() == "Running"

    serve(registry, scenario)


def test_broken_stream_pauses_and_a_returning_one_receives_resync_once(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(2))
        await stream.allocations(2)
        stream.cut()
        await harness.becomes("Paused")

        again = harness.stream()
        for _ in range(3):
            await again.send(UpdateRequest("rm"))
        assert (await again.read()).action is SchedulerAction.RESYNC
        assert await harness.state() == "Paused"

        await harness.register()
        fresh = harness.stream()
        await fresh.send(work(2))
        assert await fresh.allocations(2) == {"app-0": "node-app", "app-1": "node-app"}
        ended = await again.end()
        assert ended.code is Code.ABORTED
        assert "open a new stream and use that" in ended.text

    serve(registry, scenario)


def test_new_stream_after_registration_receives_no_resync(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(UpdateRequest("rm"))
        await harness.core.call(lambda core: core.resync("rm", "to see what happens"))
        assert (await stream.read()).action is SchedulerAction.RESYNC
        await harness.register()
        fresh = harness.stream()
        await fresh.send(work(2))
        assert len(await fresh.allocations(2)) == 2
        assert await harness.state() == "Running"

    serve(registry, scenario)


def test_cancelling_a_stream_after_resync_is_no_shutdown(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(1))
        await stream.allocations(1)
        await harness.core.call(lambda core: core.resync("rm", "to see what happens"))
        while not (await stream.read()).action:
            pass
        await stream.half_close()
        assert (await stream.end()).code is Code.OK
        assert await harness.state() == "Paused"

    serve(registry, scenario)


def test_second_stream_ends_the_first_and_receives_resync(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        first, second = harness.stream(), harness.stream()
        await first.send(work(1))
        await first.allocations(1)
        await second.send(work(1))
        ended = await first.end()
        assert ended.code is Code.ABORTED
        assert "a newer Update stream of resource manager rm replaced this stream" in ended.text
        assert (await second.read()).action is SchedulerAction.RESYNC

    serve(registry, scenario)


def test_registering_again_removes_all_state_and_ends_the_stream(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(3))
        await stream.allocations(3)
        await harness.register()
        ended = await stream.end()
        assert ended.code is Code.ABORTED
        assert "registered again" in ended.text
        again = harness.stream()
        await again.send(work(3))
        assert len(await again.allocations(3)) == 3
        assert await harness.state() == "Running"

    serve(registry, scenario)


def test_an_abandoned_session_ends(registry: Registry) -> None:
    clock = ManualClock()

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(1))
        await stream.allocations(1)
        stream.cut()
        await harness.becomes("Paused")
        clock.advance(301)
        await harness.becomes("Stopped")
        late = harness.stream()
        await late.send(work(1))
        assert (await late.end()).code is Code.FAILED_PRECONDITION
        await harness.register()
        again = harness.stream()
        await again.send(work(1))
        assert len(await again.allocations(1)) == 1

    serve(registry, scenario, clock=clock)


def test_session_without_registration_after_resync_is_ended_and_notified(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registrations, "GRACE", 0.02)

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(1))
        await stream.allocations(1)
        await harness.core.call(lambda core: core.resync("rm", "to see what happens"))
        ended = await stream.end()
        assert ended.code is Code.FAILED_PRECONDITION
        assert "is not registered" in ended.text

    quick = ServerSettings(HERE, patience=Patience(session=0.02))
    serve(registry, scenario, quick, timeouts=Timeouts(session=quick.patience.session_ns))


@pytest.mark.parametrize("session", [300.0, None])
def test_a_registration_without_a_stream_ends_soon(registry: Registry, session: float | None) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        await harness.becomes("Stopped")
        late = harness.stream()
        await late.send(work(1))
        assert (await late.end()).code is Code.FAILED_PRECONDITION
        await harness.register("other")
        assert len(harness.server.registrations.current) == 1

    serve(registry, scenario, ServerSettings(HERE, patience=Patience(session=session, stream=0.02)))


def test_resource_managers_are_isolated(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        streams = {}
        for name in ("a", "b"):
            await harness.register(name)
            streams[name] = harness.stream()
            await streams[name].send(work(2, rm_id=name))
        for stream in streams.values():
            assert await stream.allocations(2) == {"app-0": "node-app", "app-1": "node-app"}
        streams["a"].cut()
        await harness.becomes("Paused", "a")
        await streams["b"].send(
            UpdateRequest("b", asks=[AllocationAsk("more", "app", resource_ask=Resource(vcore=0))])
        )
        await streams["b"].send(work(1, rm_id="b", app="more"))
        assert await streams["b"].allocations(1) == {"more-0": "node-more"}

    serve(registry, scenario)


def test_unknown_policy_group_is_rejected_with_the_known_ones(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        with pytest.raises(Ended) as refused:
            await harness.register(policy_group="gpus")
        assert refused.value.code is Code.INVALID_ARGUMENT
        assert "no policy group is called 'gpus'" in refused.value.text
        assert "'gpu'" in refused.value.text

    serve(registry, scenario, configurations=Configurations({"gpu": CONFIG}))


def test_a_registration_needs_an_id(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        with pytest.raises(Ended, match="INVALID_ARGUMENT: a resource manager needs an id"):
            await harness.register("")

    serve(registry, scenario)


def test_invalid_rm_configuration_is_rejected_with_its_problems(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        with pytest.raises(Ended) as refused:
            await harness.register(config="partitions: [{name: default, queues: 7}]")
        assert refused.value.code is Code.INVALID_ARGUMENT
        assert "partitions[0].queues" in refused.value.text

    serve(registry, scenario, configurations=Configurations({"": "partitions: []"}, allow_rm_config=True))
