"""Naming the plugin in which the core hangs, from another thread (docs/decisions/archive/0045)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from tests.shim_plugins.shim import Asked, AskedAtOnce
from yunikorn import api
from yunikorn.interface.messages import PredicatesArgs
from yunikorn_service.core_activity import CoreActivity, core_activity

LONG = 30.0


class Trap:
    """Blocks its caller until opened."""

    def __init__(self) -> None:
        self.caught, self.open = threading.Event(), threading.Event()

    def __call__(self, *_: object) -> None:
        self.caught.set()
        assert self.open.wait(LONG)


@pytest.fixture
def trap() -> Iterator[Trap]:
    trap = Trap()
    yield trap
    trap.open.set()


def look(rm: RM, trap: Trap, operation: Callable[[], object]) -> CoreActivity | None:
    """Return the scheduler's answer about a thread that is blocked in this operation."""
    thread = threading.Thread(target=operation)
    thread.start()
    try:
        assert trap.caught.wait(LONG)
        assert thread.ident is not None
        return core_activity(thread.ident, rm.scheduler.origin_of)
    finally:
        trap.open.set()
        thread.join(LONG)


def ready(rm: RM) -> None:
    rm.node(vcore=1)
    rm.app()
    rm.ask(vcore=1)


def test_hanging_predicate_is_reported_with_distribution_and_location(trap: Trap) -> None:
    class Thinks(api.Predicate):
        """Thinks for long."""

        name = "thinks"

        def check(self, ask: api.Ask, node: api.Node) -> str | None:
            trap(ask)
            return None

    rm = RM(configuration(predicates=["thinks"]), with_plugins(predicates=[Thinks]))
    ready(rm)
    found = look(rm, trap, rm.scheduler.schedule)
    assert found is not None
    assert found.actor == "plugin thinks of test-plugin (yunikorn-test 1.0)"
    assert found.operation == "check"
    assert "threading.py" in found.place
    assert str(found).startswith("plugin thinks of test-plugin (yunikorn-test 1.0): check (")


@pytest.mark.parametrize("kind", [Asked, AskedAtOnce])
def test_hanging_callback_is_reported_with_its_rm(kind: type[Asked] | type[AskedAtOnce], trap: Trap) -> None:
    def rule(args: PredicatesArgs) -> None:
        trap(args)

    rm = kind(configuration())
    rm.rule = rule
    ready(rm)
    found = look(rm, trap, rm.scheduler.schedule)
    assert found is not None
    assert found.actor == "callback of resource manager rm"
    assert found.operation.startswith("answering predicates")


def test_hanging_plugin_of_an_rm_is_reported(trap: Trap) -> None:
    class Own:
        @api.hookimpl
        def yunikorn_app_sort_policies(self) -> list[type[api.AppSortPolicy]]:
            class Ponders(api.AppSortPolicy):
                """Ponders."""

                name = "ponders"

                def key(self, app: api.Application) -> int:
                    trap(app)
                    return 0

            return [Ponders]

    class Owner(RM):
        plugins = (Own(),)

    policy = {"application.sort.policy": "ponders"}
    rm = Owner(configuration(queue("a", properties=policy)))
    ready(rm)
    rm.app("other")
    rm.ask("other", vcore=1)
    found = look(rm, trap, rm.scheduler.schedule)
    assert found is not None
    assert (found.actor, found.operation) == ("plugin ponders of Own (resource manager rm)", "key")


def test_hanging_scheduler_is_reported(trap: Trap) -> None:
    rm = RM(configuration())
    found = look(rm, trap, lambda: trap(None))
    assert found is not None
    assert (found.actor, found.operation) == ("the scheduler itself", "")


def test_missing_thread_is_reported() -> None:
    assert core_activity(-1, RM(configuration()).scheduler.origin_of) is None
