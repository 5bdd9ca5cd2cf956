"""Predicates that are not asked about reservations (docs/decisions/archive/0118)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

import pytest

from tests.core.book_keepers import Keeping
from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, plugin_with, queue, with_plugins
from yunikorn import api
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation, PreemptionPolicy
from yunikorn.resources import Resource


class Refusing(api.Predicate):
    """Refuses every request with a tag; declares nothing."""

    name = "refusing"
    on_reservation = False
    asked: ClassVar[list[str]] = []

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        Refusing.asked.append(node.id)
        return "not here" if ask.tags.get("shy") else None


class ByClasses(Refusing):
    """Declares both classes."""

    name = "by-classes"

    def ask_class(self, ask: api.Ask) -> Hashable:
        return ask.tags.get("shy")

    def node_class(self, node: api.Node) -> Hashable:
        return None


class ByAsk(Refusing):
    """Declares the class of requests."""

    name = "by-ask"

    def ask_class(self, ask: api.Ask) -> Hashable:
        return ask.tags.get("shy")


class ByDomain(Keeping, Refusing):
    """Keeps books, and declares domains."""

    name = "by-domain"

    def ask_class(self, ask: api.Ask) -> Hashable:
        return ask.tags.get("shy")

    def domain(self, node: api.Node) -> Hashable:
        return None


class Preparing(Refusing):
    """Prepares each search."""

    name = "preparing"

    def prepare(self, ask: api.Ask) -> str:
        return ask.tags.get("shy", "")

    def check(self, ask: api.Ask, node: api.Node, state: str) -> str | None:  # type: ignore[override]
        return super().check(ask, node)


class Always(ByClasses):
    """The same, asked about reservations as well."""

    name = "always"
    on_reservation = True


class NotFirst(api.Predicate):
    """Refuses one node, by classes; asked about reservations."""

    name = "not-first"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "not the first" if node.id == "n1" else None

    def ask_class(self, ask: api.Ask) -> Hashable:
        return None

    def node_class(self, node: api.Node) -> Hashable:
        return node.id == "n1"


KINDS = [Refusing, ByClasses, ByAsk, ByDomain, Preparing, Always, NotFirst]


def ready(*predicates: str, kind: type[RM] = RM) -> Any:
    config = configuration(predicates=list(predicates))
    return kind(config, with_plugins(predicates=KINDS))


def reserving(*predicates: str) -> RM:
    """Return a full cluster with a request for a larger node than there is room."""
    rm: RM = ready(*predicates)
    for name in ("n1", "n2"):
        rm.node(name, vcore=4)
    rm.app()
    for name in ("n1", "n2"):
        own = Allocation("first", "app", f"u-{name}", name, Resource(vcore=3))
        rm.update(allocations=[own])
    Refusing.asked.clear()
    rm.ask(key="big", vcore=4, tags={"shy": "yes"})
    rm.schedule()
    rm.pass_time(2)
    rm.schedule()
    return rm


@pytest.mark.parametrize("name", ["refusing", "by-classes", "by-ask", "by-domain", "preparing"])
def test_a_node_is_reserved_without_asking(name: str) -> None:
    rm = reserving(name)
    big = rm.find_app().asks["big"]
    assert big.reserved is not None
    assert not Refusing.asked
    rm.release(key="first")
    assert rm.schedule() == []
    assert Refusing.asked


def test_other_predicates_are_still_asked() -> None:
    rm = reserving("by-classes", "not-first", "by-ask", "by-domain")
    assert rm.find_app().asks["big"].reserved is rm.find_node("n2")
    rm.release(key="first")
    assert rm.schedule() == []


def test_a_predicate_with_the_default_is_asked() -> None:
    rm = reserving("always", "by-ask")
    assert rm.find_app().asks["big"].reserved is None
    assert Refusing.asked


def test_a_placement_asks_again_after_the_reservation() -> None:
    rm = reserving("by-classes", "not-first")
    rm.ask(key="big", vcore=4)
    rm.release(key="first")
    assert rm.schedule() == [("app", "big", "n2")]


@pytest.mark.parametrize("name", ["refusing", "by-classes", "by-ask", "by-domain", "preparing"])
def test_replacement_of_a_placeholder_asks(name: str) -> None:
    rm = ready(name, kind=GangRM)
    rm.node(vcore=4)
    rm.gang("app", vcore=1)
    rm.task("app", "holder", "g", placeholder=True, vcore=1)
    assert len(rm.schedule()) == 1
    rm.task("app", "real", "g", tags={"shy": "yes"}, vcore=1)
    assert rm.schedule() == []
    assert not rm.evicted
    rm.task("app", "real", "g", vcore=1)
    rm.schedule()
    assert rm.evicted


def test_a_flag_that_contradicts_the_class_is_refused() -> None:
    class Both(Refusing):
        name = "both"

        def check_reservation(self, ask: api.Ask, node: api.Node) -> str | None:
            return None

    class Number(Refusing):
        name = "number"
        on_reservation = 0  # type: ignore[assignment]

    for kind, reason in ((Both, "has check_reservation, which is never called"), (Number, "is 0: write")):
        found = Registry.load(third_party=False)
        assert not found.register(plugin_with(predicates=[kind]), "odd", "odd", "1")
        assert reason in found.broken[-1].reason


@pytest.mark.parametrize("name", ["refusing", "by-classes", "by-ask", "by-domain", "preparing"])
def test_preemption_asks_because_it_ends_work(name: str) -> None:
    guaranteed = {"guaranteed": {"vcore": "4m"}}
    first = queue("a", resources=guaranteed, properties={"preemption.delay": "1s"})
    config = configuration(first, queue("b"), predicates=[name])
    rm = RM(config, with_plugins(predicates=KINDS))
    rm.node(vcore=4)
    rm.app("low", "root.b")
    rm.ask("low", "victim", vcore=4)
    rm.schedule()
    rm.app()
    rm.ask(key="k", vcore=4, tags={"shy": "yes"}, policy=PreemptionPolicy())
    rm.pass_time(20)
    rm.schedule()
    assert not rm.evicted
    rm.ask(key="k", vcore=4, policy=PreemptionPolicy())
    rm.schedule()
    rm.pass_time(20)
    rm.schedule()
    assert len(rm.evicted) == 1
