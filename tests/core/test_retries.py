"""Retries of asks that predicates refused, and the cached refusals (docs/decisions/0040)."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.interface.messages import NodeAction


def counting(*, by_ask: bool = False, by_node: bool = False) -> tuple[RM, list[tuple[str, str]]]:
    """Return an RM with a predicate that wants the ask's disk on the node, and the list of its calls."""
    asked: list[tuple[str, str]] = []

    class Disk(api.Predicate):
        name = "disk"

        def check(self, ask: api.Ask, node: api.Node) -> str | None:
            asked.append((ask.key, node.id))
            return None if node.attributes.get("disk") == ask.tags["disk"] else "another disk"

    members: dict[str, Any] = {"name": "disk"}
    if by_ask:
        members["ask_class"] = lambda self, ask: ask.tags["disk"]
    if by_node:
        members["node_class"] = lambda self, node: node.attributes.get("disk")
    declared = type("Declared", (Disk,), members)
    rm = RM(configuration(queue("a"), predicates=["disk"]), with_plugins(predicates=[declared]))
    return rm, asked


KINDS = [{}, {"by_ask": True}, {"by_ask": True, "by_node": True}]


def ids(kind: dict[str, bool]) -> str:
    return "-".join(kind) or "undeclared"


@pytest.mark.parametrize("kind", KINDS, ids=ids)
def test_predicates_are_not_called_again_without_a_change(kind: dict[str, bool]) -> None:
    rm, asked = counting(**kind)
    rm.node(disk_node := "n1", {"disk": "hdd"}, vcore=9)
    rm.app()
    rm.ask(count=3, vcore=1, tags={"disk": "ssd"})
    assert rm.schedule() == []
    assert asked == [("ask", disk_node)]
    for _ in range(5):
        rm.schedule()
        rm.pass_time(100)
    assert len(asked) == 1


@pytest.mark.parametrize("kind", KINDS, ids=ids)
def test_changed_and_new_nodes_are_tried(kind: dict[str, bool]) -> None:
    rm, _ = counting(**kind)
    rm.node("n1", {"disk": "hdd"}, vcore=9)
    rm.app()
    rm.ask(vcore=1, tags={"disk": "ssd"})
    assert rm.schedule() == []
    rm.change_node("n1", attributes={"disk": "ssd"})
    assert rm.schedule() == [("app", "ask", "n1")]
    rm.ask(key="more", vcore=1, tags={"disk": "tape"})
    assert rm.schedule() == []
    rm.node("n2", {"disk": "tape"}, vcore=9)
    assert rm.schedule() == [("app", "more", "n2")]


@pytest.mark.parametrize("kind", KINDS, ids=ids)
def test_node_registered_again_under_its_id_is_a_new_node(kind: dict[str, bool]) -> None:
    rm, _ = counting(**kind)
    rm.node("n1", {"disk": "hdd"}, vcore=9)
    rm.app()
    rm.ask(vcore=1, tags={"disk": "ssd"})
    assert rm.schedule() == []
    rm.change_node("n1", NodeAction.DECOMMISSION)
    rm.node("n1", {"disk": "ssd"}, vcore=9)
    assert rm.schedule() == [("app", "ask", "n1")]


def test_predicate_with_declared_classes_is_called_once_per_class() -> None:
    rm, asked = counting(by_ask=True, by_node=True)
    for number in range(20):
        rm.node(f"n{number}", {"disk": "hdd"}, vcore=1)
    rm.app()
    for number in range(20):
        rm.ask(key=f"k{number}", vcore=1, tags={"disk": "ssd" if number % 2 else "hdd"})
    assert len(rm.schedule()) == 10
    assert len(asked) == 2


@attrs.frozen
class Level(api.Predicate):
    """Requires nodes of at least a level, which is an option."""

    name = "level"
    least: int

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return None if int(node.attributes["level"]) >= self.least else "too low"

    def ask_class(self, ask: api.Ask) -> None:
        return None

    def node_class(self, node: api.Node) -> str:
        return node.attributes["level"]


def test_predicate_with_other_options_is_called_again() -> None:
    def config(least: int) -> str:
        return configuration(queue("a"), predicates=[{"name": "level", "least": least}])

    rm = RM(config(5), with_plugins(predicates=[Level]))
    rm.node("n1", {"level": "3"}, vcore=9)
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == []
    rm.reload(config(2))
    assert rm.schedule() == [("app", "ask", "n1")]
    rm.reload(config(4))
    rm.ask(key="more", vcore=1)
    assert rm.schedule() == []


class Lonely(api.Predicate):
    """Refuses nodes while the application has other allocations; depends on changes on other nodes."""

    name = "lonely"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "others run" if any(ask.app.allocated.values()) else None


def test_undeclared_refusal_is_retried_after_a_release_elsewhere() -> None:
    rm = RM(configuration(queue("a"), predicates=["lonely"]), with_plugins(predicates=[Lonely]))
    for node_id in ("n1", "n2"):
        rm.node(node_id, vcore=1)
    rm.app()
    rm.ask(count=3, vcore=1)
    for _ in range(3):
        assert len(rm.schedule()) == 1
        rm.release(uuid=next(iter(rm.running)))
    assert rm.schedule() == []
    assert rm.find_app().asks == {}


class Late(api.Predicate):
    """Refuses until a test changes its answer; declares no inputs."""

    name = "late"
    ready = ""

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return None if ask.key == Late.ready else "not yet"


def test_no_pending_ask_is_forgotten_among_many() -> None:
    """Each change costs a bounded number of predicate calls at once, however many asks are pending."""
    rm = RM(configuration(queue("a"), predicates=["late"]), with_plugins(predicates=[Late]))
    Late.ready = ""
    rm.node("n1", vcore=1000)
    rm.app()
    for number in range(400):
        rm.ask(key=f"k{number}", vcore=1)
    rm.schedule()
    for number in range(40):
        rm.node(f"x{number}", vcore=1)
        assert rm.schedule() == []
    Late.ready = "k399"
    rm.node("last", vcore=1)
    placed = rm.schedule()
    pauses = 0
    while not placed:
        assert rm.scheduler.next_timer() is not None, "a timer must retry it"
        pauses += 1
        rm.pass_time(1)
        placed = rm.schedule()
    assert [key for _, key, _ in placed] == ["k399"]
    assert pauses <= 400 / 64


def test_idle_backlog_is_not_retried() -> None:
    rm = RM(configuration(queue("a"), predicates=["late"]), with_plugins(predicates=[Late]))
    Late.ready = ""
    rm.node("n1", vcore=1000)
    rm.app()
    for number in range(200):
        rm.ask(key=f"k{number}", vcore=1)
    rm.schedule()
    rm.pass_time(1000)
    rm.node("n2", vcore=1)
    for _ in range(10):
        rm.schedule()
        rm.pass_time(1)
    rm.schedule()
    assert rm.scheduler.next_timer() is None


def test_retry_interval_of_a_refused_ask_doubles() -> None:
    asked_at: list[int] = []

    class Never(api.Predicate):
        """Refuses one ask; declares no inputs."""

        name = "never"

        def check(self, ask: api.Ask, node: api.Node) -> str | None:
            if ask.key != "refused":
                return None
            asked_at.append(len(rm.running))
            return "not here"

    rm = RM(configuration(queue("a"), predicates=["never"]), with_plugins(predicates=[Never]))
    rm.node("n1", vcore=1000)
    rm.app("first")
    rm.ask("first", "refused", vcore=1)
    rm.app("second")
    rm.ask("second", "task", count=100, vcore=1)
    for _ in range(80):
        # One decision at a time: an idle core would retry unschedulable asks at once.
        assert len(rm.schedule(1)) == 1
    distances = [later - earlier for earlier, later in itertools.pairwise(asked_at)]
    assert distances == [1, 2, 4, 8, 16, 16, 16, 16]
