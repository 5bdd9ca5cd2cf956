"""Updates of node attributes: the map is replaced, and books, caches and reservations follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, ClassVar

import pytest

from tests.core.book_keepers import Witness, check_books
from tests.core.kit import RM, configuration, with_plugins
from yunikorn import api
from yunikorn.interface.messages import Allocation, NewNodeInfo
from yunikorn.resources import Resource

CALLS: Counter[str] = Counter()


class Open(api.Predicate):
    """Refuses nodes that are closed; answers by classes."""

    name = "open"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        CALLS["check"] += 1
        return "closed" if "closed" in node.attributes else None

    def ask_class(self, ask: api.Ask) -> Hashable:
        return None

    def node_class(self, node: api.Node) -> Hashable:
        CALLS["node_class"] += 1
        return "closed" in node.attributes


class OpenPlain(api.Predicate):
    """Declares nothing, and shows its inputs."""

    name = "open-plain"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "closed" if node.attributes.get("closed") else None


class OpenByAsk(Open):
    """Declares the class of requests."""

    name = "open-by-ask"
    node_class = api.Predicate.node_class


class OpenByDomain(Witness):
    """Keeps books, and declares a domain for the whole cluster or each node."""

    name = "open-by-domain"
    subjects_of: ClassVar[str] = ""

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "closed" if "closed" in node.attributes else None

    def ask_class(self, ask: api.Ask) -> Hashable:
        return None

    def domain(self, node: api.Node) -> Hashable:
        CALLS["domain"] += 1
        return "closed" in node.attributes

    def placed(self, task: api.Task, node: api.Node) -> Any:
        CALLS["placed"] += 1
        return super().placed(task, node)

    def released(self, task: api.Task, node: api.Node) -> Any:
        CALLS["released"] += 1
        return super().released(task, node)


KINDS = [Open, OpenPlain, OpenByAsk, OpenByDomain, Witness]
NAMES = ["open", "open-plain", "open-by-ask", "open-by-domain"]


def cluster(*predicates: str, nodes: int = 1, vcore: int = 4, closed: bool = False) -> RM:
    CALLS.clear()
    rm = RM(configuration(predicates=list(predicates)), with_plugins(predicates=KINDS))
    labels = {"name": "x", "old": "1"} | ({"closed": "yes"} if closed else {})
    rm.update(
        new_schedulable_nodes=[
            NewNodeInfo(f"n{number}", dict(labels), Resource(vcore=vcore)) for number in range(1, nodes + 1)
        ]
    )
    rm.app()
    return rm


def test_the_attributes_are_replaced_as_a_whole() -> None:
    rm = cluster("witness")
    rm.change_node("n1", attributes={"name": "y", "new": "2"})
    assert dict(rm.find_node().attributes) == {"name": "y", "new": "2"}
    rm.change_node("n1", vcore=6)
    assert dict(rm.find_node().attributes) == {"name": "y", "new": "2"}


@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_ends_with_the_attribute_and_begins_again(name: str) -> None:
    rm = cluster(name, closed=True)
    rm.ask(count=2, vcore=1)
    assert rm.schedule() == []
    rm.change_node("n1", attributes={"name": "x"})
    assert len(rm.schedule()) == 2
    rm.change_node("n1", attributes={"closed": "yes"})
    rm.ask(vcore=1)
    assert rm.schedule() == []
    rm.change_node("n1", attributes={"name": "x"})
    assert len(rm.schedule()) == 1


@pytest.mark.parametrize("name", NAMES)
def test_one_of_many_nodes_costs_no_more_than_its_own_tasks(name: str) -> None:
    rm = cluster(name, nodes=2000)
    rm.ask(count=300, vcore=4)
    assert len(rm.schedule()) == 300
    mine = len(rm.find_node("n1").allocations)
    CALLS.clear()
    rm.change_node("n1", attributes={"name": "z"})
    rm.schedule()
    assert CALLS["domain"] <= 1
    assert CALLS["node_class"] <= 1
    assert CALLS["check"] <= 1
    assert CALLS["placed"] == CALLS["released"] == (mine if name == "open-by-domain" else 0)
    check_books(rm.at_work())


def test_equal_attributes_change_no_books() -> None:
    rm = cluster("open-by-domain")
    rm.ask(vcore=1)
    rm.schedule()
    CALLS.clear()
    rm.change_node("n1", attributes={"name": "x", "old": "1"}, vcore=8)
    assert not CALLS["placed"] + CALLS["released"] + CALLS["domain"]
    assert rm.find_node().capacity == {"vcore": 8}


@pytest.mark.parametrize("name", NAMES)
def test_a_node_that_a_predicate_refuses_now_is_not_kept_reserved(name: str) -> None:
    rm = cluster(name, nodes=2)
    for node_id in ("n1", "n2"):
        rm.update(allocations=[Allocation("old", "app", node_id, node_id, Resource(vcore=3))])
    rm.ask(key="big", vcore=4)
    rm.pass_time(3)
    rm.schedule()
    big = rm.find_app().asks["big"]
    assert big.reserved is not None
    kept = big.reserved.id
    rm.change_node(kept, attributes={"closed": "yes"})
    rm.schedule()
    assert not rm.find_node(kept).reservations
    rm.pass_time(3)
    rm.schedule()
    other = "n2" if kept == "n1" else "n1"
    assert big.reserved is rm.find_node(other)
    rm.release(uuid=other)
    assert rm.schedule() == [("app", "big", other)]


def test_a_node_that_is_still_accepted_stays_reserved() -> None:
    rm = cluster("open")
    rm.update(allocations=[Allocation("old", "app", "u", "n1", Resource(vcore=3))])
    rm.ask(key="big", vcore=4)
    rm.pass_time(3)
    rm.schedule()
    rm.change_node("n1", attributes={"name": "y"})
    assert list(rm.find_node().reservations) == [rm.find_app().asks["big"]]
