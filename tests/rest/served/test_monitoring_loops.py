"""The loops that watch the core from outside survive any exception, and log each once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.service.kit import PATIENCE
from yunikorn.clock import SystemClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.callback import CallbackAdapter
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.buffered_sinks import BufferedSinks
from yunikorn_service.core_activity import core_activity
from yunikorn_service.runtime.threaded import ThreadedScheduler
from yunikorn_service.service_settings import Budget
from yunikorn_service.watchdog import Budgets, Watchdog, keep_budgets, keep_watch, watch_sinks


class Broken(Exception):
    """An exception that no loop expects."""


@pytest.fixture
def core(registry: Registry) -> ThreadedScheduler:
    """Return a core that is not started."""
    return ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock())


def run_until_set(loop: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run a loop until its event is set; a loop that ends by itself fails the test."""

    async def run() -> None:
        enough = asyncio.Event()
        watching = asyncio.ensure_future(loop(enough))
        waiting = asyncio.ensure_future(enough.wait())
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({watching, waiting}, return_when=asyncio.FIRST_COMPLETED)
        assert not watching.done(), watching.exception()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(run())


@pytest.mark.parametrize("error", [Broken("a bug"), SystemExit(3)])
def test_budget_loop_survives_a_check_that_raises(
    core: ThreadedScheduler, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    class Faulty(Budgets):
        samples = 0

        def poll(self, now: float) -> None:
            self.samples += 1
            if self.samples <= 3:
                raise error
            if self.samples == 5:
                enough[0].set()

    enough: list[asyncio.Event] = []

    async def loop(event: asyncio.Event) -> None:
        enough.append(event)
        await keep_budgets(Faulty(core, Budget()), 0.0)

    run_until_set(loop)
    reported = [record.getMessage() for record in caplog.records]
    assert len(reported) == 1, "once, not at every look"
    assert "watching for slow plugins" in reported[0]
    assert f"{type(error).__name__}: {error}" in reported[0]


def test_health_loop_survives_checks_and_reports_that_raise(
    core: ThreadedScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    class Faulty(Watchdog):
        samples = 0

        def poll(self, now: float) -> bool:
            self.samples += 1
            if self.samples <= 2:
                raise Broken("the look")
            changed = not self.hangs
            self.hangs = True
            return changed

    reports: list[bool] = []

    async def loop(event: asyncio.Event) -> None:
        async def report(green: bool) -> None:
            reports.append(green)
            if len(reports) == 1:
                raise OSError("the report")
            event.set()

        await keep_watch(Faulty(core, 1.0), report, 0.0)

    run_until_set(loop)
    assert reports == [False, False], "a report that failed is made again"
    reported = [record.getMessage() for record in caplog.records]
    assert len(reported) == 2
    assert "Broken: the look" in reported[0]
    assert "OSError: the report" in reported[1]


def test_a_hang_is_reported_although_its_cause_cannot_be_named(
    core: ThreadedScheduler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise Broken("no name")

    dog = Watchdog(core, 10.0)
    core.at_work = True
    monkeypatch.setattr("yunikorn_service.watchdog.activity_of", fail)
    assert not dog.poll(0.0)
    assert dog.poll(10.0)
    assert "the core has made no progress for 10 s" in caplog.text
    assert "Broken: no name" in caplog.text


def test_callback_that_is_being_set_up_can_be_checked() -> None:
    begun, go = threading.Event(), threading.Event()

    class Slow(CallbackAdapter):
        def __init__(self, *arguments: Any) -> None:
            begun.set()
            assert go.wait(PATIENCE)
            super().__init__(*arguments)

    class CollectingCallback:
        def recv_update_response(self, response: object) -> None:
            """Ignore the response."""

    thread = threading.Thread(target=Slow, args=("rm", CollectingCallback(), None))
    thread.start()
    try:
        assert begun.wait(PATIENCE)
        assert thread.ident is not None
        found = core_activity(thread.ident, lambda cls: cls.__name__)
        assert found is not None
        assert found.actor == "callback of a resource manager"
        assert not found.plugin
    finally:
        go.set()
        thread.join(PATIENCE)


def test_sink_loop_lets_the_core_record_what_it_found(core: ThreadedScheduler) -> None:
    """The core may be idle when a sink hangs, so that nothing else would look at its failures."""

    class Found(BufferedSinks):
        def poll(self, now: float, limit: float) -> bool:
            assert limit == 60.0
            return True

    async def loop(enough: asyncio.Event) -> None:
        here = asyncio.get_running_loop()

        def notify(operation: Callable[[Scheduler], object]) -> None:
            operation(Scheduler(Registry.load(third_party=False), SystemClock()))
            here.call_soon_threadsafe(enough.set)

        core.notify = notify  # type: ignore[method-assign, assignment]
        await watch_sinks(Found(), core, 60.0, 0.0)

    run_until_set(loop)
