"""The watchdog detects a hanging core, and names the plugin that makes it hang."""

from __future__ import annotations

import threading

import attrs
import pytest

from tests.core.kit import configuration, with_plugins
from tests.service.kit import PATIENCE, CollectingCallback, work
from yunikorn.api import Ask, Node, Predicate
from yunikorn.clock import SystemClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.runtime.threaded import ThreadedScheduler
from yunikorn_service.watchdog import Watchdog

HANGING, RELEASE = threading.Event(), threading.Event()


@attrs.frozen
class Tarpit(Predicate):
    """Blocks until the test permits it to return."""

    name = "tarpit"

    def check(self, ask: Ask, node: Node) -> str | None:
        HANGING.set()
        RELEASE.wait(PATIENCE)
        return None


def test_a_plugin_that_hangs_is_named(caplog: pytest.LogCaptureFixture) -> None:
    registry = with_plugins(predicates=[Tarpit])
    core = ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock())
    dog = Watchdog(core, 10.0)
    HANGING.clear()
    RELEASE.clear()
    with core:
        callback = CollectingCallback()
        config = configuration({"name": "a"}, predicates=["tarpit"])
        core.register_resource_manager(RegisterResourceManagerRequest("rm", config=config), callback)
        assert not dog.poll(0.0)
        core.post(work(1))
        assert HANGING.wait(PATIENCE)
        assert not dog.poll(1.0)
        assert not dog.poll(9.9)
        assert dog.poll(10.0)
        assert dog.hangs
        assert "the core has made no progress for 10 s" in caplog.text
        assert "tarpit" in caplog.text
        assert not dog.poll(30.0)
        RELEASE.set()
        callback.allocations(1)
        core.call(lambda _: None)
        assert dog.poll(31.0)
        assert not dog.hangs
        assert "the core makes progress again" in caplog.text


def test_idle_core_is_not_reported(registry: Registry) -> None:
    core = ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock())
    dog = Watchdog(core, 10.0)
    with core:
        core.call(lambda _: None)
        for moment in (0.0, 100.0, 1000.0):
            assert not dog.poll(moment)
