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
from tests.service.kit import PATIENCE, Ears, work
from yunikorn.api import Ask, Event, EventSink, Node, Predicate
from yunikorn.clock import SystemClock
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn.runtime.threaded import ThreadedScheduler
from yunikorn.scheduling.plugin_failures import PluginFailure
from yunikorn.service import demo, service
from yunikorn.service.config_files import ConfigFiles
from yunikorn.service.settings import Budget, Settings
from yunikorn.service.watchdog import Budgets

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

    def let_go(self) -> None:
        """Permit one call to return."""
        self._go.release()


class Stand:
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

        class Heard(EventSink):
            """Records events of plugins."""

            name = "heard"

            def send(self, batch: Sequence[Event]) -> None:
                events.extend(event for event in batch if event.type == "PLUGIN")

        registry = with_plugins(predicates=[Tarpit], event_sinks=[Heard])
        text = json.loads(configuration({"name": "a"}, predicates=["tarpit"]))
        text["events"] = {"sinks": ["heard"]}
        self.core = ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock())
        self.core.start()
        self.ears = Ears()
        request = RegisterResourceManagerRequest("rm", config=json.dumps(text))
        self.core.register_resource_manager(request, self.ears)

    def failures(self) -> list[PluginFailure]:
        """Return the recorded plugin failures."""
        return self.core.call(lambda scheduler: list(scheduler.failures))

    def settle(self) -> None:
        """Wait until the core is idle."""
        self.core.call(lambda _: None)


@pytest.fixture
def stand() -> Iterator[Stand]:
    stand = Stand()
    yield stand
    for _ in range(100):
        stand.gate.let_go()
    assert stand.core.close(PATIENCE)


def run_calls(stand: Stand, number: int, look: Callable[[int], None]) -> None:
    """Let the core call the predicate `number` times, and call `look` during each call."""
    stand.core.post(work(number))
    for call in range(number):
        stand.gate.entered()
        look(call)
        stand.gate.let_go()
    stand.ears.allocations(number)
    stand.settle()


def test_a_long_call_is_reported_by_name(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    budgets = Budgets(stand.core, Budget(call=1.0))

    def look(call: int) -> None:
        for moment in (0.0, 0.9, 1.5, 2.0, 9.0):
            budgets.look(10.0 * call + moment)

    run_calls(stand, 2, look)
    (failure,) = stand.failures()
    assert failure.plugin == ORIGIN
    assert failure.operation == "taking long in check"
    assert failure.message == (
        f"plugin {ORIGIN}: taking long in check: one call blocked the core for more than 1.5 s;"
        " the limit is 1 s"
    )
    assert failure.count == 2, "once for each call"
    assert caplog.text.count("taking long") == 1
    stand.core.update(work(0, app="later"))
    assert [event.object_id for event in stand.events] == [ORIGIN]


def test_many_short_calls_are_not_one_long_call(stand: Stand) -> None:
    budgets = Budgets(stand.core, Budget(call=1.0))

    def look(call: int) -> None:
        budgets.look(call * 0.8)
        budgets.look(call * 0.8 + 0.7)

    run_calls(stand, 5, look)
    assert stand.failures() == []


def test_call_budget_can_be_unlimited(stand: Stand) -> None:
    budgets = Budgets(stand.core, Budget(call=None))

    def look(_: int) -> None:
        budgets.look(0.0)
        budgets.look(1e6)

    run_calls(stand, 1, look)
    assert stand.failures() == []


@pytest.mark.parametrize(("busy", "is_reported"), [(6, True), (5, False)])
def test_rm_over_its_share_of_the_core_is_reported(
    stand: Stand, busy: int, is_reported: bool, caplog: pytest.LogCaptureFixture
) -> None:
    budgets = Budgets(stand.core, Budget(share=0.5, looks=10))
    run_calls(stand, busy, lambda call: budgets.look(call * 0.1))
    for rest in range(busy, 10):
        budgets.look(rest * 0.1)
    stand.settle()
    if not is_reported:
        assert stand.failures() == []
        return
    (failure,) = stand.failures()
    assert failure.plugin == ORIGIN
    assert failure.message == (
        f"plugin {ORIGIN}: blocking the core: it was running in 6 of 10 samples, more than the limit of 50%;"
        " mostly in check"
    )
    assert failure.message in caplog.text


def test_shares_are_reset_after_each_window(stand: Stand) -> None:
    budgets = Budgets(stand.core, Budget(share=0.5, looks=4))
    for moment in range(3):
        budgets.look(moment)
    run_calls(stand, 2, lambda call: budgets.look(3.0 + call))
    for moment in range(5, 8):
        budgets.look(moment)
    assert stand.failures() == []


def test_ended_core_causes_no_failure(stand: Stand) -> None:
    budgets = Budgets(stand.core, Budget(call=1.0, looks=1, share=0.0))
    stand.core.post(work(1))
    stand.gate.entered()
    budgets.look(0.0)
    closing = threading.Thread(target=stand.core.close)
    closing.start()
    stand.gate.let_go()
    closing.join(PATIENCE)
    budgets.look(5.0)
    assert not stand.core.alive


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_service_checks_budgets_and_reports_them_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looked = threading.Event()
    calls: list[str] = []

    class Watched(Budgets):
        def look(self, now: float) -> None:
            super().look(now)
            looked.set()

    class Tarpit(Predicate):
        """Waits in its first three calls until the service has looked, then ends the service."""

        name = "tarpit"

        def check(self, ask: Ask, node: Node) -> str | None:
            calls.append(node.id)
            # The first look may have begun before this call.
            for _ in range(2 if len(calls) <= 3 else 0):
                looked.clear()
                assert looked.wait(PATIENCE)
            if len(calls) == 3:
                os.kill(os.getpid(), signal.SIGTERM)
            return None

    monkeypatch.setattr(service, "Budgets", Watched)
    config = tmp_path / "demo.yaml"
    config.write_text(f"{demo.CONFIG}    predicates: [tarpit]\n", "utf-8")
    settings = Settings(budget=Budget(call=0.0, interval=0.001, looks=10**9))
    options = service.ServiceOptions(ConfigFiles([f"demo={config}"]), settings, None, demo=True)
    assert service.serve(options, with_plugins(predicates=[Tarpit]), lambda _: None) == 0
    told = [one for one in caplog.records if one.name == "yunikorn.plugins"]
    assert [one.levelname for one in told] == ["ERROR", "WARNING"]
    assert (
        told[0].getMessage().startswith(f"plugin {ORIGIN}: taking long in check: one call blocked the core")
    )
    assert re.match(r"\d+ times: plugin tarpit ", told[1].getMessage())
