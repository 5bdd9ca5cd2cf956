"""Verdicts of predicates with classes are shared by ask classes that differ in other respects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, ClassVar

import attrs
import pytest

from tests.core.kit import RM, configuration, with_plugins
from yunikorn import api
from yunikorn.interface.messages import AllocationAsk
from yunikorn.resources import Resource
from yunikorn.scheduling import shared_verdicts


class OfTag(api.Predicate):
    """Only nodes whose attribute has the value of a tag."""

    name = "of-tag"
    key = "one"
    checks: ClassVar[Counter[str]] = Counter()

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        OfTag.checks[self.key] += 1
        wanted = ask.tags.get(self.key, "")
        return None if wanted in ("", node.attributes.get(self.key)) else f"not {self.key}={wanted}"

    def ask_class(self, ask: api.Ask) -> Hashable:
        return ask.tags.get(self.key)

    def node_class(self, node: api.Node) -> Hashable:
        return node.attributes.get(self.key), node.id


class OfOther(OfTag):
    """The same for another tag."""

    name = "of-other"
    key = "two"


def ready(*names: str, **keys: Any) -> Any:
    rm = RM(configuration(predicates=list(names), **keys), with_plugins(predicates=[OfTag, OfOther]))
    for number in range(6):
        rm.node(f"n{number}", {"one": str(number % 2), "two": str(number % 3)}, vcore=100)
    rm.app()
    OfTag.checks.clear()
    return rm


def test_requests_of_other_sizes_are_not_checked_again() -> None:
    rm = ready("of-tag")
    rm.ask(key="first", tags={"one": "7"}, vcore=1)
    assert rm.schedule() == []
    assert OfTag.checks == {"one": 6}
    for size in range(2, 9):
        rm.ask(key=f"size-{size}", tags={"one": "7"}, vcore=size)
    assert rm.schedule() == []
    assert OfTag.checks == {"one": 6}
    reasons = [dict(ask.ask_class.refusals) for ask in rm.find_app().asks.values()]
    assert reasons == [{"not one=7": 6}] * 8


def test_requests_with_other_time_limits_are_not_checked_again() -> None:
    rm = ready("of-tag", topology=["rack"])
    for minutes in range(1, 9):
        ask = AllocationAsk(f"limit-{minutes}", "app", "", Resource(vcore=1), tags={"one": "7"})
        rm.update(asks=[attrs.evolve(ask, execution_timeout_ms=60_000 * minutes)])
    assert rm.schedule() == []
    assert OfTag.checks == {"one": 6}


def test_requests_that_differ_for_a_predicate_are_checked() -> None:
    rm = ready("of-tag", "of-other")
    for one in "01":
        for two in "012":
            rm.ask(key=one + two, tags={"one": one, "two": two}, vcore=1)
    made = {key: node for _, key, node in rm.schedule()}
    assert made == {f"{number % 2}{number % 3}": f"n{number}" for number in range(6)}


def test_a_reload_with_other_predicates_shares_nothing_old() -> None:
    """Requests that were equal for the first predicate differ for the second."""
    rm = ready("of-tag")
    for two in "012":
        rm.ask(key=two, tags={"one": "7", "two": two}, vcore=1)
    assert rm.schedule() == []
    assert rm.reload(configuration(predicates=["of-other"]))
    made = {key: int(node[1:]) % 3 for _, key, node in rm.schedule()}
    assert made == {"0": 0, "1": 1, "2": 2}


def test_a_changed_node_is_checked_again() -> None:
    rm = ready("of-tag")
    rm.ask(key="waits", tags={"one": "7"}, vcore=1)
    rm.ask(key="larger", tags={"one": "7"}, vcore=2)
    assert rm.schedule() == []
    rm.change_node("n3", attributes={"one": "7", "two": "0"})
    assert [node for _, _, node in rm.schedule()] == ["n3", "n3"]


@pytest.mark.parametrize("name", ["MOST_MAPPINGS", "MOST_VERDICTS"])
def test_verdicts_are_bounded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_verdicts, name, 2)
    rm = ready("of-tag", "of-other")
    for size in range(1, 4):
        for one in "017":
            rm.ask(key=f"{one}-{size}", tags={"one": one}, vcore=size)
    assert Counter(key[0] for _, key, _ in rm.schedule()) == {"0": 3, "1": 3}
