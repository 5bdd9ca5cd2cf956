"""Refusals with scopes: each is remembered for the nodes that share what it depends on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, ClassVar

import pytest

from tests.core.kit import RM, configuration, with_plugins
from yunikorn import api
from yunikorn.scheduling import domain_tables

ZONES = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}


class Apart(api.Predicate):
    """Tasks of one kind run apart: the tag `apart` names the attribute whose value they must not share."""

    name = "apart"
    checks: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        self.running: Counter[tuple[str, str, str | None]] = Counter()
        self.version = 0

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        Apart.checks[node.id] += 1
        key = self.refused_by(ask, node)
        return f"another task of the kind in the same {key}" if key else None

    def refused_by(self, ask: api.Ask, node: api.Node) -> str:
        keys = ask.tags.get("apart", "").split()
        kind = ask.tags.get("kind", "")
        return next((key for key in keys if self.running[kind, key, node.attributes.get(key)]), "")

    def ask_class(self, ask: api.Ask) -> Hashable:
        return ask.tags.get("kind"), ask.tags.get("apart"), ask.tags.get("mark") if self.version else None

    @property
    def classes_version(self) -> int:
        return self.version

    def scope(self, ask: api.Ask, node: api.Node) -> Hashable:
        return self.refused_by(ask, node)

    def domain_in(self, node: api.Node, scope: Hashable) -> Hashable:
        return node.attributes.get(str(scope))

    def subjects(self, task: api.Task) -> tuple[str]:
        return (task.tags.get("kind", ""),)

    def placed(self, task: api.Task, node: api.Node) -> None:
        self.count(task, node, 1)

    def released(self, task: api.Task, node: api.Node) -> None:
        self.count(task, node, -1)

    def count(self, task: api.Task, node: api.Node, by: int) -> None:
        for key, value in node.attributes.items():
            self.running[task.tags.get("kind", ""), key, value] += by


def ready(kind: type[Apart] = Apart) -> Any:
    rm = RM(configuration(predicates=[kind.name]), with_plugins(predicates=[kind]))
    for name, zone in ZONES.items():
        rm.node(name, {"zone": zone, "host": name}, vcore=8)
    rm.app()
    Apart.checks.clear()
    return rm


def ask(rm: Any, key: str, apart: str = "", kind: str = "x", count: int = 1) -> None:
    rm.ask(key=key, count=count, tags={"apart": apart, "kind": kind}, vcore=1)


def test_a_refusal_closes_what_it_depends_on() -> None:
    rm = ready()
    ask(rm, "zones", "zone", count=3)
    ask(rm, "hosts", "host", kind="y", count=5)
    made = rm.schedule()
    assert sorted(ZONES[node] for _, key, node in made if key == "zones") == ["a", "b"]
    assert sorted(node for _, key, node in made if key == "hosts") == sorted(ZONES)
    refusals = {key: dict(one.ask_class.refusals) for key, one in rm.find_app().asks.items()}
    assert refusals == {
        "zones": {"another task of the kind in the same zone": 4},
        "hosts": {"another task of the kind in the same host": 4},
    }


def test_a_closed_zone_is_asked_about_once() -> None:
    rm = ready()
    ask(rm, "zones", "zone", count=3)
    rm.schedule()
    Apart.checks.clear()
    ask(rm, "other", "zone", kind="z")
    rm.schedule()
    assert Apart.checks.total() == 1
    rm.release(key="other")
    assert rm.schedule() == []
    assert Apart.checks.total() == 1, "the release has no subject in common"
    [gone] = [one for one in rm.running.values() if one.node_id.startswith("b")][:1]
    rm.release(uuid=gone.uuid)
    assert [ZONES[node] for _, _, node in rm.schedule()] == ["b"]


def test_a_refusal_of_another_scope_does_not_keep_a_domain_closed() -> None:
    rm = ready()
    ask(rm, "first", kind="x")
    [(_, _, host)] = rm.schedule()
    ask(rm, "both", "zone host", kind="x", count=2)
    [(_, _, other)] = rm.schedule()
    assert ZONES[other] != ZONES[host]
    # Both zones are closed. In each, one host runs a task of the kind.
    rm.release(key="first")
    again = rm.schedule()
    assert [ZONES[node] for _, _, node in again] == [ZONES[host]]


class Named(Apart):
    """Gives each refusal a scope of its own."""

    name = "named"

    def scope(self, ask: api.Ask, node: api.Node) -> Hashable:
        return node.id, ask.tags.get("kind")

    def domain_in(self, node: api.Node, scope: Hashable) -> Hashable:
        return node.id

    def released(self, task: api.Task, node: api.Node) -> Any:
        super().released(task, node)
        return api.Where.EVERYWHERE


def test_scopes_without_number_share_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_tables, "MOST_SCOPES", 3)
    rm = ready(Named)
    for kind in "uvwxyz":
        ask(rm, kind, "zone", kind=kind, count=3)
    made = rm.schedule()
    assert Counter(key for _, key, _ in made) == dict.fromkeys("uvwxyz", 2)
    assert len(rm.find_node("a1").domains) == 4
    for uuid in list(rm.running):
        rm.release(uuid=uuid)
    assert Counter(key for _, key, _ in rm.schedule()) == dict.fromkeys("uvwxyz", 1)


class Faulty(Apart):
    """Fails to name scopes."""

    name = "faulty"

    def scope(self, ask: api.Ask, node: api.Node) -> Hashable:
        raise ValueError("no scope")


def test_a_scope_that_fails_is_reported_and_closes_one_node() -> None:
    rm = ready(Faulty)
    ask(rm, "zones", "zone", count=3)
    assert len(rm.schedule()) == 2
    assert any("computing the scope of" in text and "no scope" in text for text in rm.failures())
    rm.release(uuid=next(iter(rm.running)))
    assert len(rm.schedule()) == 1


class Everywhere(Apart):
    """Waits for the number of tasks of a kind that the tag `after` names."""

    name = "everywhere"

    def refused_by(self, ask: api.Ask, node: api.Node) -> str:
        after = int(ask.tags.get("after", "0"))
        return "zone" if self.running.total() < 2 * after else ""

    def placed(self, task: api.Task, node: api.Node) -> Any:
        super().placed(task, node)
        return api.Where.EVERYWHERE if task.tags.get("kind") == "x" else api.Where.HERE

    def ask_class(self, ask: api.Ask) -> Hashable:
        return ask.tags.get("kind"), ask.tags.get("after")


def test_a_placement_may_end_refusals_everywhere_or_here() -> None:
    rm = ready(Everywhere)
    rm.ask(key="waits", tags={"kind": "x", "after": "2"}, vcore=1)
    rm.ask(key="other", tags={"kind": "y"}, vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["other"]
    rm.ask(key="third", tags={"kind": "x"}, vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["third", "waits"]


def test_requests_get_new_classes_when_a_predicate_says_so() -> None:
    rm = ready()
    for mark in "ab":
        rm.ask(key=mark, count=3, tags={"kind": "x", "apart": "zone", "mark": mark}, vcore=1)
    rm.schedule()
    one, two = rm.find_app().asks.values()
    assert one.ask_class is two.ask_class
    books = rm.at_work().orders.books
    books.keepers[0].plugin.version = 1
    assert rm.schedule() == []
    assert one.ask_class is not two.ask_class
    gone = next(iter(rm.running.values()))
    rm.release(uuid=gone.uuid)
    assert len(rm.schedule()) == 1


def test_a_version_that_is_no_number_is_reported_once() -> None:
    rm = ready()
    rm.at_work().orders.books.keepers[0].plugin.version = "one"
    for _ in range(3):
        rm.schedule()
    assert sum("reading its classes_version" in text for text in rm.failures()) == 1
