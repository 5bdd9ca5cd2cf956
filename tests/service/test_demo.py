"""The demo: jobs that arrive, run and end, equally in every run."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.kit import PATIENCE
from tests.service.process import Start
from yunikorn.clock import ManualClock, SystemClock, stopwatch
from yunikorn.config.load import check_config
from yunikorn.framework.registry import Registry
from yunikorn.interface.commands import Answer, Command, Update
from yunikorn.interface.messages import AllocationRelease, TerminationType, UpdateRequest, UpdateResponse
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service import demo, service
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.config_files import ConfigFiles
from yunikorn_service.measurements import Measurements
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.runtime.threaded import ThreadedScheduler
from yunikorn_service.service_settings import ServerSettings


def test_demo_configuration_has_no_problems(registry: Registry) -> None:
    outcome = check_config(demo.CONFIG, registry)
    assert outcome.valid
    assert not outcome.warnings


def test_demo_jobs_are_deterministic() -> None:
    first, second = (list(itertools.islice(demo.jobs(), 20)) for _ in range(2))
    assert first == second
    assert len({job.name for job in first}) == 20


def test_demo_jobs_are_submitted_run_and_end(registry: Registry) -> None:
    measurements = Measurements(stopwatch)

    async def watch() -> tuple[int, int, list[str]]:
        configurations = Configurations({demo.GROUP: demo.CONFIG})
        threaded = ThreadedScheduler(
            lambda clock: Scheduler(
                registry, clock, configurations=configurations, measurements=measurements
            ),
            SystemClock(),
        )
        async with asyncio.timeout(PATIENCE), AsyncScheduler(threaded) as core:
            shown = demo.Demo(core)
            await shown.begin()
            most = 0
            for _ in range(60):
                await shown.step()
                # Wait until the core has decided and its decisions have arrived.
                while await core.call(lambda scheduler: scheduler.schedule()):
                    pass
                await asyncio.sleep(0)
                most = max(most, shown.running)
            partition = await core.call(lambda scheduler: scheduler.partition(demo.RM_ID))
            assert partition is not None
            states = [app.state for app in partition.partition.applications.values()]
            return most, shown.done, states

    most, done, states = asyncio.run(watch())
    assert most >= 10
    assert done >= 15
    assert states.count("Completing") in (done, done + 1)
    assert len(states) - done <= 20
    assert not +measurements.refused


class _Direct:
    """A core in the same thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    async def register_resource_manager(self, request: Any, callback: Any) -> None:
        self._scheduler.register_resource_manager(request, callback)

    async def update(self, request: UpdateRequest) -> None:
        self._scheduler.update(request)


def test_the_demo_keeps_its_gangs_in_racks_and_its_backlog_short(registry: Registry) -> None:
    clock = ManualClock(0)
    configurations = Configurations({demo.GROUP: demo.CONFIG})
    scheduler = Scheduler(registry, clock, configurations=configurations)
    shown = demo.Demo(_Direct(scheduler))  # type: ignore[arg-type]
    racks: dict[str, set[str]] = {}

    async def play() -> None:
        await shown.begin()
        for _ in range(900):
            clock.advance(1)
            await shown.step()
            while scheduler.schedule():
                pass
            partition = scheduler.partition(demo.RM_ID)
            assert partition is not None
            for app_id, app in partition.partition.applications.items():
                if app_id.startswith("training") and app.allocations:
                    nodes = [one.node for one in app.allocations.values()]
                    assert len(nodes) == 4
                    racks.setdefault(app_id, set()).update(node.attributes["rack"] for node in nodes)
            states = [app.state for app in partition.partition.applications.values()]
            assert len(states) - states.count("Completing") <= demo.MOST_UNFINISHED

    asyncio.run(play())
    assert shown.done > 250
    assert len(racks) > 20
    assert {len(found) for found in racks.values()} == {1}


def test_the_demo_confirms_what_is_preempted_and_submits_it_again(registry: Registry) -> None:
    configurations = Configurations({demo.GROUP: demo.CONFIG})
    scheduler = Scheduler(registry, ManualClock(0), configurations=configurations)
    shown = demo.Demo(_Direct(scheduler))  # type: ignore[arg-type]

    async def play() -> None:
        await shown.begin()
        await shown.step()
        while scheduler.schedule():
            pass
        view = scheduler.partition(demo.RM_ID)
        assert view is not None
        (app,) = view.partition.applications.values()
        first = next(iter(app.allocations))
        gone = AllocationRelease(app.id, first, termination_type=TerminationType.PREEMPTED_BY_SCHEDULER)
        shown.recv_update_response(UpdateResponse(released_allocations=[gone]))
        assert shown.running == 5
        await shown.step()
        while scheduler.schedule():
            pass
        assert first not in app.allocations
        assert shown.running == len(app.allocations) == 6

    asyncio.run(play())


def test_failed_core_ends_the_service_with_its_own_status(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Buggy(Scheduler):
        def apply(self, command: Command[Answer]) -> Answer:
            if isinstance(command, Update):
                raise ArithmeticError("the accounting is wrong")
            return super().apply(command)

    monkeypatch.setattr(service, "Scheduler", Buggy)
    options = service.ServiceOptions(ConfigFiles([]), ServerSettings(), demo=True)
    assert service.serve(options, registry, lambda _: None) == 70
    assert "the core has failed: ArithmeticError: the accounting is wrong" in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize(
    ("group", "noted"),
    [
        ("", ["the demo has queues of its own: it would use those of --config demo=FILE"]),
        ("demo=", []),
    ],
)
def test_a_configuration_that_the_demo_does_not_use_is_noted(
    start: Start, config: Path, group: str, noted: list[str]
) -> None:
    service = start("--demo", "--config", f"{group}{config}", "--grpc", "off", "--rest", "off")
    found = []
    assert service.process.stdout is not None
    for line in service.process.stdout:
        if line.startswith("the log shows"):
            break
        found.append(line.rstrip("\n"))
    assert found[1:] == noted
    service.signal(signal.SIGTERM)
    assert service.end() == 0
