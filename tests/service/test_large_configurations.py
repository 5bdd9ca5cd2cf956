"""Large configurations of RMs are loaded outside the core: decisions and health of other RMs do not wait."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import grpc
import pytest

from tests.core.kit import configuration
from tests.service.harness import Ended, ServiceHarness, serve
from tests.service.kit import CONFIG, PATIENCE, work
from tests.service.test_callbacks import connect
from tests.service.test_server import health_of
from yunikorn.config.load import load_config
from yunikorn.config.queues_yaml import SchedulerConfig
from yunikorn.framework.registry import Registry
from yunikorn.interface import configurations, scheduler
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.server_layouts import LARGE
from yunikorn_service.wire.generated import si_v0_11_pb2 as si

OPEN = Configurations({"": CONFIG}, allow_rm_config=True)
PADDING = f"# {'x' * LARGE}\n"
BIG = PADDING + configuration({"name": "a"}, {"name": "big"})
BROKEN = f"{PADDING}partitions: 7"


class SlowLoading:
    """Blocks the loading of large configurations until the test permits, and records the threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.threads: list[str] = []
        for module in (configurations, scheduler):
            monkeypatch.setattr(module, "load_config", self._load)

    def _load(self, text: Any, registry: Registry) -> SchedulerConfig:
        if len(text) >= LARGE:
            self.threads.append(threading.current_thread().name)
            self.begun.set()
            assert self.go.wait(PATIENCE)
        return load_config(text, registry)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowLoading:
    """Replace the loading of configurations by a blocking one."""
    return SlowLoading(monkeypatch)


async def while_it_loads(harness: ServiceHarness, slow: SlowLoading, waiting: asyncio.Future[Any]) -> Any:
    """Check that another RM is served while a configuration loads; return the result of `waiting`."""
    assert await asyncio.to_thread(slow.begun.wait, PATIENCE)
    assert await health_of(harness) == 1
    await harness.register("other")
    stream = harness.stream()
    await stream.send(work(2, rm_id="other"))
    assert len(await stream.allocations(2)) == 2
    slow.go.set()
    return await waiting


def test_decisions_continue_during_registration_with_a_large_configuration(
    registry: Registry, slow: SlowLoading
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await while_it_loads(harness, slow, asyncio.ensure_future(harness.register(config=BIG)))
        assert len(slow.threads) == 1, "the core uses what was loaded"
        assert slow.threads != ["yunikorn-core"]
        running = await harness.core.call(lambda core: core.configuration("rm"))
        assert running.text == BIG

    serve(registry, scenario, configurations=OPEN)


def test_a_large_configuration_that_is_refused_does_not_hold_up_the_core(
    registry: Registry, slow: SlowLoading
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        with pytest.raises(Ended) as refused:
            await while_it_loads(harness, slow, asyncio.ensure_future(harness.register(config=BROKEN)))
        assert refused.value.code is grpc.StatusCode.INVALID_ARGUMENT
        assert "partitions" in refused.value.text
        assert await harness.state() == "Stopped"
        assert len(slow.threads) == 1

    serve(registry, scenario, configurations=OPEN)


def test_ignored_configuration_is_not_loaded(registry: Registry, slow: SlowLoading) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register(config=BROKEN)
        assert slow.threads == []

    serve(registry, scenario)


@pytest.mark.parametrize("config", [BIG, BROKEN])
def test_configuration_update_is_loaded_outside_the_core_thread(
    registry: Registry, slow: SlowLoading, config: str
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        callbacks = await connect(harness)
        request = si.UpdateConfigurationRequest(configs=config)
        await callbacks.send(call=7, update_configuration=request)
        answer = await while_it_loads(harness, slow, asyncio.ensure_future(callbacks.read()))
        assert answer.call == 7
        assert answer.configuration_updated.success == (config is BIG)
        assert ("partitions" in answer.configuration_updated.reason) == (config is BROKEN)
        assert answer.configuration_updated.oldConfig == CONFIG
        assert len(slow.threads) == 1

    serve(registry, scenario, configurations=OPEN)


def test_oldest_of_many_loaded_configurations_are_dropped(registry: Registry) -> None:
    ahead = configurations.LoadedAhead(registry)
    texts = [f"# {number}\n{CONFIG}" for number in range(10)]
    for text in texts:
        ahead.prepare(text)
    assert len(ahead._kept) == configurations.KEPT
    assert [ahead.load(text, registry).text for text in texts] == texts
    assert ahead._kept == {}
