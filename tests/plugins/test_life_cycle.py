"""When plugins are told that they begin, stay and end, and what follows when one of these calls fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import ClassVar

import attrs
import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import (
    Application,
    AppSortPolicy,
    Ask,
    Context,
    Node,
    NodeSortPolicy,
    PlacementRule,
    Plugin,
    Predicate,
    Queue,
    QueueSortPolicy,
    UserGroupResolver,
)
from yunikorn.registry import Registry

HEARD: list[str] = []
"""What the plugins were told, in order."""
PLUGINS = ("app", "queue", "node", "rule", "condition", "groups")


class Told(Plugin):
    """Notes what it is told, and may fail each time."""

    fails: ClassVar[bool] = False

    def opened(self, context: Context) -> None:
        self._note(f"opened in {context.partition}")

    def reloaded(self, context: Context) -> None:
        self._note(f"reloaded in {context.partition}")

    def closed(self) -> None:
        self._note("closed")

    def _note(self, what: str) -> None:
        HEARD.append(f"{self.name} {what}")
        if Told.fails:
            raise RuntimeError("no \x1b[31mluck")


class App(Told, AppSortPolicy):
    """By arrival."""

    name = "app"

    def key(self, app: Application) -> int:
        return 0


@attrs.frozen
class Other(Told, AppSortPolicy):
    """By arrival, too."""

    name = "other"

    def key(self, app: Application) -> int:
        return 0


class QueueOrder(Told, QueueSortPolicy):
    """By name."""

    name = "queue"

    def key(self, queue: Queue) -> int:
        return 0


class NodeOrder(Told, NodeSortPolicy):
    """By id."""

    name = "node"

    def score(self, node: Node) -> float:
        return 0.0


class Rule(Told, PlacementRule):
    """Always the same."""

    name = "rule"

    def place(self, app: Application) -> str:
        return "root.a"


class Condition(Told, Predicate):
    """None."""

    name = "condition"

    def check(self, ask: Ask, node: Node) -> None:
        return None


class Groups(Told, UserGroupResolver):
    """One for all."""

    name = "groups"

    def groups(self, user: str) -> list[str]:
        return ["all"]


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    yield
    HEARD.clear()
    Told.fails = False


@pytest.fixture
def registry() -> Registry:
    return with_plugins(
        app_sort_policies=[App, Other],
        queue_sort_policies=[QueueOrder],
        node_sort_policies=[NodeOrder],
        placement_rules=[Rule],
        predicates=[Condition],
        user_group_resolvers=[Groups],
    )


def text(app_sort: str = "app") -> str:
    return configuration(
        queue(
            "p",
            queue("b", properties={"application.sort.policy": app_sort}),
            properties={"queue.sort.policy": "queue"},
        ),
        queue("a"),
        nodesortpolicy={"type": "node"},
        placementrules=[{"name": "rule"}],
        predicates=["condition"],
        usergroupresolver={"type": "groups"},
    )


def test_every_object_is_opened_once_before_it_is_used(registry: Registry) -> None:
    RM(text(), registry)
    assert sorted(HEARD) == sorted(f"{name} opened in default" for name in PLUGINS)


def test_what_stays_is_told_of_a_reload_and_what_goes_is_closed(registry: Registry) -> None:
    rm = RM(text(), registry)
    HEARD.clear()
    rm.reload(text("other"))
    assert [each for each in HEARD if each.split()[0] in ("app", "other", "queue")] == [
        "other opened in default",
        "queue reloaded in default",
        "app closed",
    ]


def test_every_object_is_closed_at_the_end(registry: Registry) -> None:
    rm = RM(text(), registry)
    HEARD.clear()
    rm.scheduler.close()
    assert sorted(HEARD) == sorted(f"{name} closed" for name in PLUGINS)


def test_a_call_that_fails_is_reported_and_stops_neither_start_nor_reload_nor_end(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "yunikorn.plugins")
    Told.fails = True
    rm = RM(text(), registry)
    rm.node("n1", vcore=1000)
    rm.app("app")
    rm.ask("app", "ask", vcore=1000)
    assert len(rm.schedule()) == 1
    rm.reload(text("other"))
    assert rm.find_queue("root.p.b").settings.app_sort == "other"
    rm.scheduler.close()
    faults = "\n".join(rm.faults())
    for name in PLUGINS:
        assert f"plugin {name} of test-plugin (yunikorn-test 1.0): opening: " in faults
    for deed in ("opening", "reloading", "closing"):
        assert f": {deed}: RuntimeError: no \\x1b[31mluck" in faults
