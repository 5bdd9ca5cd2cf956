"""Calls to a remote resource manager reach the same callback methods as in process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.core.kit import configuration
from tests.service.client.shim import Shim, ask, holds
from tests.service.harness import ServiceHarness, serve
from tests.service.kit import CONFIG
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    ContainerSchedulingState,
    EventRecord,
    NodePredicatesArgs,
    PredicatesArgs,
    RegisterResourceManagerRequest,
    ReSyncSchedulerCacheArgs,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateContainerSchedulingStateRequest,
    UpdateRequest,
)
from yunikorn_service.client import AsyncClient, CallFailed
from yunikorn_service.policy_groups import Configurations

RM = RegisterResourceManagerRequest("rm")
CONFIGURABLE = Configurations({"": CONFIG}, allow_rm_config=True)


def test_predicates_are_called_before_placement(registry: Registry) -> None:
    class Choosy(Shim):
        def predicates(self, args: PredicatesArgs) -> str | None:
            assert args.application_id == "app"
            return "it is too warm" if args.node_id == "n1" else None

    async def scenario(harness: ServiceHarness) -> None:
        shim = Choosy()
        async with AsyncClient(harness.address, RM, shim):
            await shim.until(lambda: len(shim.running) == 2)
            assert {one.node_id for one in shim.running.values()} == {"n2"}
            (why,) = (await harness.core.call(lambda core: core.explain("rm", "default", "app"))).values()
            assert "it is too warm" in str(why)

    serve(registry, scenario)


def test_nodes_are_batched_in_one_call_and_methods_may_be_coroutines(registry: Registry) -> None:
    class Choosy(Shim):
        questions: tuple[NodePredicatesArgs, ...] = ()

        async def node_predicates(self, args: NodePredicatesArgs) -> dict[str, str]:
            self.questions += (args,)
            await asyncio.sleep(0)
            return {"n2": "not this one"} if "n2" in args.node_ids else {}

    async def scenario(harness: ServiceHarness) -> None:
        shim = Choosy()
        async with AsyncClient(harness.address, RM, shim):
            await shim.until(lambda: len(shim.running) == 2)
            assert {one.node_id for one in shim.running.values()} == {"n1"}
            assert sorted(shim.questions[0].node_ids) == ["n1", "n2"]

    serve(registry, scenario)


def test_predicate_that_raises_refuses_with_the_exception_as_reason(registry: Registry) -> None:
    class Broken(Shim):
        def predicates(self, args: PredicatesArgs) -> str | None:
            if args.node_id == "n1":
                raise RuntimeError("no thermometer")
            return None

    async def scenario(harness: ServiceHarness) -> None:
        shim = Broken()
        async with AsyncClient(harness.address, RM, shim):
            await shim.until(lambda: len(shim.running) == 2)
            (why,) = (await harness.core.call(lambda core: core.explain("rm", "default", "app"))).values()
            assert "RuntimeError: no thermometer" in str(why)

    serve(registry, scenario)


def test_scheduling_states_events_and_cache_updates_are_delivered(registry: Registry) -> None:
    class Curious(Shim):
        def __init__(self) -> None:
            super().__init__(tasks=5)
            self.states: list[UpdateContainerSchedulingStateRequest] = []
            self.events: list[EventRecord] = []
            self.assumed: dict[str, str] = {}

        def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
            self.states.append(request)

        async def send_events(self, events: Sequence[EventRecord]) -> None:
            self.events += events

        def resync_scheduler_cache(self, args: ReSyncSchedulerCacheArgs) -> None:
            self.assumed.update({one.allocation_key: one.node_id for one in args.assumed_allocations})

    async def scenario(harness: ServiceHarness) -> None:
        shim = Curious()
        async with AsyncClient(harness.address, RM, shim):
            await shim.until(lambda: len(shim.running) == 4)
            (waits,) = set(shim.wanted) - set(shim.running)
            await holds(lambda: any(one.allocation_key == waits for one in shim.states))
            await holds(lambda: len(shim.assumed) == 4)
            assert shim.assumed == {key: one.node_id for key, one in shim.running.items()}
            (last,) = [one for one in shim.states if one.allocation_key == waits][-1:]
            assert last.state in (ContainerSchedulingState.FAILED, ContainerSchedulingState.SKIPPED)
            assert last.reason
            await holds(lambda: {"n1", "n2"} <= {event.object_id for event in shim.events})

    serve(registry, scenario)


def test_a_method_that_raises_is_reported_and_contained(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Shim):
        def send_events(self, events: Sequence[EventRecord]) -> None:
            raise RuntimeError("the disk is full")

    async def scenario(harness: ServiceHarness) -> None:
        shim = Broken()
        async with AsyncClient(harness.address, RM, shim):
            await shim.until(lambda: len(shim.running) == 3)
            await holds(lambda: "send_events failed: RuntimeError: the disk is full" in caplog.text)
            assert shim.reports == 1

    serve(registry, scenario)


def test_configurations_are_exchanged_in_both_directions(registry: Registry) -> None:
    class Keeper(Shim):
        saved: tuple[str, ...] = ()

        def update_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
            self.saved += (request.configs,)
            return UpdateConfigurationResponse(success=True)

    async def scenario(harness: ServiceHarness) -> None:
        shim = Keeper()
        wanted = configuration({"name": "a"}, {"name": "b"})
        async with AsyncClient(harness.address, RM, shim) as client:
            answer = await client.update_configuration(wanted)
            assert (answer.success, answer.old_config) == (True, CONFIG)
            assert shim.saved == (wanted,)
            refused = await client.update_configuration("partitions: 7")
            assert not refused.success
            assert "partitions" in refused.reason
            assert shim.saved == (wanted,)

    serve(registry, scenario, configurations=CONFIGURABLE)


def test_applications_can_be_failed(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        shim = Shim()
        async with AsyncClient(harness.address, RM, shim) as client:
            await shim.until(lambda: len(shim.running) == 3)
            with pytest.raises(CallFailed, match="nobody"):
                await client.fail_application("nobody", "for a try")
            await client.fail_application("app", "its driver died")
            await shim.until(
                lambda: any(
                    updated.state.startswith("Fail")
                    for response in shim.responses
                    for updated in response.updated_applications
                )
            )
            assert await client.update(UpdateRequest("", asks=[ask("late")]))

    serve(registry, scenario)


def test_call_fails_on_connection_loss(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        client = AsyncClient(harness.address, RM, Shim())
        await client.start()
        # The core is busy, so that the call waits for its answer.
        busy, asked = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        import threading

        free = threading.Event()

        def hang(_: object) -> None:
            loop.call_soon_threadsafe(busy.set)
            assert free.wait(30)

        hanging = asyncio.create_task(harness.core.call(hang))
        await busy.wait()

        async def fail() -> None:
            asked.set()
            await client.fail_application("app", "no reason")

        failing = asyncio.create_task(fail())
        await asked.wait()
        await client.disconnect()
        with pytest.raises(CallFailed, match="the connection was lost before the scheduler answered"):
            await failing
        free.set()
        await hanging

    serve(registry, scenario)
