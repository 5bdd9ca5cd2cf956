"""Budgets of plugins: a slow plugin is named in the log, among the failures, and in an event."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
import pytest

from tests.core.kit import configuration, with_plugins
from tests.service.kit import PATIENCE, CollectingCallback, work
from yunikorn.api import Ask, Event, EventSink, Node, Predicate
from yunikorn.clock import SystemClock
from yunikorn.framework.plugin_failures import PluginFailure
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service import demo, service
from yunikorn_service.config_files import ConfigFiles
from yunikorn_service.runtime.threaded import ThreadedScheduler
from yunikorn_service.service_settings import Budget, ServerSettings
from yunikorn_service.watchdog import Budgets

ORIGIN = "tarpit of test-plugin (yunikorn-test 1.0)"


class Gate:
    """Blocks plugin calls: each signals that it has begun, and returns when the test permits."""

    def __init__(self) -> None:
        self._here, self._go = threading.Semaphore(0), threading.Semaphore(0)

    def wait(self) -> None:
        """Block the calling plugin."""
        self._here.release()
        assert self._go.acquire(timeout=PATIENCE)

    def entered(self) -> None:
        """Wait until the next call has begun."""
        assert self._here.acquire(timeout=PATIENCE)

    def release_call(self) -> None:
        """Permit one call to return."""
        self._go.release()


class CoreHarness:
    """A core with a predicate whose duration the test controls."""

    def __init__(self) -> None:
        gate = self.gate = Gate()
        self.events: list[Event] = []
        events = self.events

        @attrs.frozen
        class Tarpit(Predicate):
            """Waits at the gate."""

            name = "tarpit"

            def check(self, ask: Ask, node: Node) -> str | None:
                gate.wait()
                return None

        class EventCollector(EventSink):
            """Records events of plugins."""

            name = "collector"

            def send(self, batch: Sequence[Event]) -> None:
                events.extend(event for event in batch if event.type == "PLUGIN")

        registry = with_plugins(predicates=[Tarpit], event_sinks=[EventCollector])
        text = json.loads(configuration({"name": "a"}, predicates=["tarpit"]))
        text["events"] = {"sinks": ["collector"]}
        self.core = ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock())
        self.core.start()
        self.callback = CollectingCallback()
        request = RegisterResourceManagerRequest("rm", config=json.dumps(text))
        self.core.register_resource_manager(request, self.callback)

    def failures(self) -> list[PluginFailure]:
        """Return the recorded plugin failures."""
        return self.core.call(lambda scheduler: list(scheduler.failures))

    def settle(self) -> None:
        """Wait until the core is idle."""
        self.core.call(lambda _: None)


@pytest.fixture
def harness() -> Iterator[CoreHarness]:
    harness = CoreHarness()
    yield harness
    for _ in range(100):
        harness.gate.release_call()
    assert harness.core.close(PATIENCE)


def run_calls(harness: CoreHarness, number: int, poll: Callable[[int], None]) -> None:
    """Let the core call the predicate `number` times, and call `poll` during each call."""
    harness.core.post(work(number))
    for call in range(number):
        harness.gate.entered()
        poll(call)
        harness.gate.release_call()
    harness.callback.allocations(number)
    harness.settle()


def test_a_long_call_is_reported_by_name(harness: CoreHarness, caplog: pytest.LogCaptureFixture) -> None:
    budgets = Budgets(harness.core, Budget(call=1.0))

    def poll(call: int) -> None:
        for moment in (0.0, 0.9, 1.5, 2.0, 9.0):
            budgets.poll(10.0 * call + moment)

    run_calls(harness, 2, poll)
    (failure,) = harness.failures()
    assert failure.plugin == ORIGIN
    assert failure.operation == "taking long in check"
    assert failure.message == (
        f"plugin {ORIGIN}: taking long in check: one call blocked the core for more than 1.5 s;"
        " the limit is 1 s"
    )
    assert failure.count == 2, "once for each call"
    assert caplog.text.count("taking long") == 1
    harness.core.update(work(0, app="later"))
    assert [event.object_id for event in harness.events] == [ORIGIN]


def test_many_short_calls_are_not_one_long_call(harness: CoreHarness) -> None:
    budgets = Budgets(harness.core, Budget(call=1.0))

    def poll(call: int) -> None:
        budgets.poll(call * 0.8)
        budgets.poll(call * 0.8 + 0.7)

    run_calls(harness, 5, poll)
    assert harness.failures() == []


def test_call_budget_can_be_unlimited(harness: CoreHarness) -> None:
    budgets = Budgets(harness.core, Budget(call=None))

    def poll(_: int) -> None:
        budgets.poll(0.0)
        budgets.poll(1e6)

    run_calls(harness, 1, poll)
    assert harness.failures() == []


@pytest.mark.parametrize(("busy", "is_reported"), [(6, True), (5, False)])
def test_rm_over_its_share_of_the_core_is_reported(
    harness: CoreHarness, busy: int, is_reported: bool, caplog: pytest.LogCaptureFixture
) -> None:
    budgets = Budgets(harness.core, Budget(share=0.5, samples=10))
    run_calls(harness, busy, lambda call: budgets.poll(call * 0.1))
    for rest in range(busy, 10):
        budgets.poll(rest * 0.1)
    harness.settle()
    if not is_reported:
        assert harness.failures() == []
        return
    (failure,) = harness.failures()
    assert failure.plugin == ORIGIN
    assert failure.message == (
        f"plugin {ORIGIN}: blocking the core: it was running in 6 of 10 samples, more than the limit of 50%;"
        " mostly in check"
    )
    assert failure.message in caplog.text


def test_shares_are_reset_after_each_window(harness: CoreHarness) -> None:
    budgets = Budgets(harness.core, Budget(share=0.5, samples=4))
    for moment in range(3):
        budgets.poll(moment)
    run_calls(harness, 2, lambda call: budgets.poll(3.0 + call))
    for moment in range(5, 8):
        budgets.poll(moment)
    assert harness.failures() == []


def test_time_per_plugin_is_summed_over_all_windows(harness: CoreHarness) -> None:
    budgets = Budgets(harness.core, Budget(share=0.5, samples=2))
    budgets.poll(1.0)
    run_calls(harness, 3, lambda call: budgets.poll(3.0 + call))
    budgets.poll(50.0)
    assert budgets.seconds == {(ORIGIN, "check"): 4.0}


def test_ended_core_causes_no_failure(harness: CoreHarness) -> None:
    budgets = Budgets(harness.core, Budget(call=1.0, samples=1, share=0.0))
    harness.core.post(work(1))
    harness.gate.entered()
    budgets.poll(0.0)
    closing = threading.Thread(target=harness.core.close)
    closing.start()
    harness.gate.release_call()
    closing.join(PATIENCE)
    budgets.poll(5.0)
    assert not harness.core.alive


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.slow  # waits for a clock
def test_service_checks_budgets_and_reports_them_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looked = threading.Event()
    calls: list[str] = []

    class Watched(Budgets):
        def poll(self, now: float) -> None:
            super().poll(now)
            looked.set()

    class Tarpit(Predicate):
        """Waits in its first three calls until the service has looked, then ends the service."""

        name = "tarpit"

        def check(self, ask: Ask, node: Node) -> str | None:
            calls.append(node.id)
            # The first poll may have begun before this call.
            for _ in range(2 if len(calls) <= 3 else 0):
                looked.clear()
                assert looked.wait(PATIENCE)
            if len(calls) == 3:
                os.kill(os.getpid(), signal.SIGTERM)
            return None

    monkeypatch.setattr(service, "Budgets", Watched)
    config = tmp_path / "demo.yaml"
    config.write_text(f"{demo.CONFIG}    predicates: [tarpit]\n", "utf-8")
    settings = ServerSettings(budget=Budget(call=0.0, interval=0.001, samples=10**9))
    options = service.ServiceOptions(ConfigFiles([f"demo={config}"]), settings, demo=True)
    assert service.serve(options, with_plugins(predicates=[Tarpit]), lambda _: None) == 0
    reported = [one for one in caplog.records if one.name == "yunikorn.plugins"]
    assert [one.levelname for one in reported] == ["ERROR", "WARNING"]
    assert (
        reported[0]
        .getMessage()
        .startswith(f"plugin {ORIGIN}: taking long in check: one call blocked the core")
    )
    assert re.match(r"\d+ times: plugin tarpit ", reported[1].getMessage())
