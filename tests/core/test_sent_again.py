"""Asks and allocations that the RM sends again with other tags or another size.

See docs/decisions/archive/0121.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from tests.core.book_keepers import Witness, check_books
from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from tests.plugins.permit_kit import Gate
from tests.plugins.permit_kit import clear as clear_gates
from yunikorn import api
from yunikorn.api import Wait
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource


class Tagged(api.Predicate):
    """Accepts the node that the tag names; answers by classes."""

    name = "tagged"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return None if ask.tags.get("node", node.id) == node.id else "another node"

    def ask_class(self, ask: api.Ask) -> Hashable:
        return ask.tags.get("node")

    def node_class(self, node: api.Node) -> Hashable:
        return node.attributes.get("name")


class TaggedOne(Tagged):
    """Declares nothing."""

    name = "tagged-one"
    ask_class = api.Predicate.ask_class
    node_class = api.Predicate.node_class


class Ports(api.Predicate):
    """Accepts one task per port and node; keeps books of tags."""

    name = "ports"

    def __init__(self) -> None:
        self.taken: list[tuple[str, str]] = []

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "the port is taken" if (ask.tags.get("port", ""), node.id) in self.taken else None

    def placed(self, task: api.Task, node: api.Node) -> None:
        self.taken.append((task.tags.get("port", "-"), node.id))

    def released(self, task: api.Task, node: api.Node) -> None:
        self.taken.remove((task.tags.get("port", "-"), node.id))


class PortsByDomain(Ports):
    """Declares classes and domains."""

    name = "ports-by-domain"

    def ask_class(self, ask: api.Ask) -> Hashable:
        return ask.tags.get("port", "")

    def domain(self, node: api.Node) -> Hashable:
        return node.id

    def subjects(self, task: api.Task) -> tuple[Hashable]:
        return (task.tags.get("port", "-"),)


class Neighbours(api.Predicate):
    """Refuses a node where a task has the tag; reads the node, and declares the class of requests."""

    name = "neighbours"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "loud" if any(one.tags.get("loud") for one in node.allocations.values()) else None

    def ask_class(self, ask: api.Ask) -> Hashable:
        return None


def cluster(*predicates: str, kind: type[RM] = RM, config: str = "", nodes: int = 2) -> Any:
    kinds = [Tagged, TaggedOne, Ports, PortsByDomain, Neighbours, Witness]
    registry = with_plugins(predicates=kinds, permit_policies=[Gate])
    rm = kind(config or configuration(predicates=list(predicates)), registry)
    for number in range(1, nodes + 1):
        rm.node(f"n{number}", {"name": f"n{number}"}, vcore=8)
    rm.app()
    return rm


def send(rm: RM, key: str, node_id: str = "", *, vcore: int = 1, uuid: str = "", **tags: str) -> None:
    """Send an allocation as the newer layout does; one without a node is an ask, or a new size."""
    one = Allocation(key, "app", uuid, node_id, Resource(vcore=vcore), allocation_tags=tags)
    rm.update(allocations=[one])


def allocation(rm: RM, key: str) -> Any:
    [found] = rm.find_app().of_key(key)
    return found


# -- pending asks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("predicate", ["tagged", "tagged-one"])
def test_a_pending_ask_with_other_tags_is_asked_about_again(predicate: str) -> None:
    rm = cluster(predicate)
    rm.ask(key="k", vcore=1, tags={"node": "n9"})
    assert rm.schedule() == []
    rm.ask(key="k", vcore=1, tags={"node": "n2"})
    assert rm.schedule() == [("app", "k", "n2")]
    assert not any(rm.find_queue().pending.values())


def test_a_pending_ask_keeps_its_place_with_other_tags() -> None:
    rm = cluster("tagged", nodes=1)
    rm.ask(key="first", vcore=8, tags={"node": "n9"})
    rm.clock.set(5)
    rm.ask(key="second", vcore=8)
    rm.clock.set(9)
    for node in ("n7", "n8", "n1"):
        send(rm, "first", vcore=8, node=node)
    assert rm.schedule() == [("app", "first", "n1")]


def test_an_ask_that_was_sent_many_times_is_one_request() -> None:
    rm = cluster("tagged", nodes=1)
    for number in range(200):
        send(rm, "k", vcore=1 + number % 3, node=f"x{number}")
        rm.schedule()
    assert rm.find_queue().pending == {"vcore": 1 + 199 % 3}
    send(rm, "k", vcore=2, node="n1")
    assert rm.schedule() == [("app", "k", "n1")]


def test_a_held_ask_that_is_sent_again_is_taken_back() -> None:
    clear_gates()
    rm = cluster(config=configuration(permits=["gate"], predicates=["tagged"]))
    Gate.answers["k"] = Wait(5.0, "a while")
    send(rm, "k", node="n1")
    rm.schedule()
    assert rm.running == {}
    Gate.answers["k"] = None
    send(rm, "k", node="n2")
    assert rm.running == {}
    rm.schedule()
    assert [one.node_id for one in rm.running.values()] == ["n2"]


# -- running allocations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["key", "uuid", "ask"])
@pytest.mark.parametrize("predicate", ["ports", "ports-by-domain"])
def test_a_running_allocation_with_other_tags_is_in_the_books_with_them(predicate: str, by: str) -> None:
    rm = cluster(predicate, "witness", nodes=1)
    rm.ask(key="one", vcore=1, tags={"port": "80"})
    rm.schedule()
    rm.ask(key="two", vcore=1, tags={"port": "80"})
    assert rm.schedule() == []
    [uuid] = rm.running
    send(rm, "one", "" if by == "ask" else "n1", uuid=uuid if by == "uuid" else "", port="81", more="x")
    check_books(rm.at_work())
    assert dict(allocation(rm, "one").tags) == {"port": "81", "more": "x"}
    assert rm.schedule() == [("app", "two", "n1")]
    assert not rm.entries("rejected_allocations")
    rm.release(key="one")
    rm.release(key="two")
    check_books(rm.at_work())


def test_a_predicate_that_reads_the_node_is_asked_again() -> None:
    rm = cluster("neighbours", nodes=1)
    rm.ask(key="one", vcore=1, tags={"loud": "yes"})
    rm.schedule()
    rm.ask(key="two", vcore=1)
    assert rm.schedule() == []
    send(rm, "one", "n1", loud="")
    assert rm.schedule() == [("app", "two", "n1")]


def test_an_allocation_without_tags_keeps_those_it_has() -> None:
    rm = cluster("witness", nodes=1)
    rm.ask(key="one", vcore=1, tags={"port": "80"})
    rm.schedule()
    send(rm, "one", "n1", vcore=3)
    assert dict(allocation(rm, "one").tags) == {"port": "80"}
    assert rm.find_queue().allocated == {"vcore": 3}
    check_books(rm.at_work())


def test_size_and_tags_change_at_once() -> None:
    limits = [{"limit": "one", "users": ["user"], "maxresources": {"vcore": "4m"}}]
    rm = cluster(config=configuration(queue("a", limits=limits), predicates=["witness", "ports"]), nodes=1)
    rm.ask(key="one", vcore=4, tags={"port": "80"})
    rm.schedule()
    rm.ask(key="two", vcore=2, tags={"port": "80"})
    assert rm.schedule() == []
    send(rm, "one", "n1", vcore=2, port="81")
    assert rm.schedule() == [("app", "two", "n1")]
    send(rm, "one", "n1", vcore=5, port="82")
    assert rm.find_queue().allocated == {"vcore": 7}
    assert rm.find_node().available == {"vcore": 1}
    check_books(rm.at_work())


def test_a_placeholder_that_is_being_replaced_is_in_no_books() -> None:
    rm = cluster("witness", kind=GangRM, config="", nodes=1)
    rm.gang("gang", vcore=1)
    rm.task("gang", "holder", "g", placeholder=True, vcore=1)
    rm.schedule()
    rm.task("gang", "real", "g", vcore=1)
    rm.schedule()
    one = Allocation("holder", "gang", "", "n1", Resource(vcore=1), allocation_tags={"new": "x"})
    rm.update(allocations=[one])
    check_books(rm.at_work())
    rm.confirmed()
    check_books(rm.at_work())


def test_one_of_several_allocations_of_an_ask_changes_alone() -> None:
    rm = cluster("witness", nodes=1)
    rm.ask(key="k", count=3, vcore=1, tags={"port": "80"})
    rm.schedule(2)
    first, second = rm.running
    send(rm, "k", "n1", uuid=first, port="81")
    app = rm.find_app()
    assert [app.allocations[uuid].tags["port"] for uuid in (first, second)] == ["81", "80"]
    assert app.asks["k"].tags["port"] == "80"
    check_books(rm.at_work())


def test_new_tags_of_the_only_allocation_apply_to_its_request() -> None:
    rm = cluster("tagged", nodes=2)
    rm.ask(key="k", vcore=1, tags={"node": "n1"})
    rm.schedule()
    send(rm, "k", "n1", node="n2")
    rm.ask(key="k", vcore=1, tags={"node": "n2"})
    assert rm.schedule() == [("app", "k", "n2")]
