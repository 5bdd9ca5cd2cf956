"""Scores of several node sort policies that are mapped by those of the present nodes."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.kit import RM, configuration, with_plugins
from tests.core.test_weighted_scores import INFINITY, PLUGINS, Cheapest, of, weighted
from tests.example_counts import examples
from yunikorn import api
from yunikorn.api import NodeSortPolicy
from yunikorn.interface.messages import NodeAction


class Relative(Cheapest):
    """Sorts nodes by their price, whatever the prices are."""

    name = "relative"
    normalised = True


@attrs.frozen
class Crowded(NodeSortPolicy):
    """Sorts nodes by the number of their tasks; the number has no range."""

    name = "crowded"
    normalised = True

    def score(self, node: api.Node) -> int:
        return len(node.allocations)


def relative(*scores: dict[str, Any]) -> RM:
    registry = with_plugins(node_sort_policies=[*PLUGINS, Relative, Crowded])
    return RM(configuration(nodesortpolicy=weighted(*scores)), registry)


def kept(rm: RM) -> dict[str, float]:
    """Return the scores of the nodes in the kept order."""
    at = rm.at_work()
    at.orders.reorder(at.partition.accounting)
    ask_class = next(one for one in at.partition.ask_classes if one.waiting)
    order = at.orders.of(ask_class)
    return {node.id: order._positions[node.id].entry[0] for node in order}


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_weights_of_normalised_scores_do_not_depend_on_their_scale(scale: float) -> None:
    rm = relative(of("relative", 3), of("fair", 1, resourceweights={"vcore": 1}))
    for node_id, price, used in (("a", 7, 0), ("b", 5, 4), ("c", 3, 8)):
        rm.node(node_id, {"price": repr(price * scale)}, vcore=10, occupied={"vcore": used})
    rm.app()
    rm.ask(vcore=1)
    assert kept(rm) == pytest.approx({"c": 0.2, "b": 0.75 * 0.5 + 0.25 * 0.4, "a": 0.75})


def test_ends_of_the_range_follow_the_present_nodes() -> None:
    rm = relative(of("relative"), of("fair"))
    for node_id, price in (("a", "1"), ("b", "2"), ("c", "3")):
        rm.node(node_id, {"price": price}, vcore=1)
    rm.app()
    rm.ask(vcore=99)
    assert kept(rm) == {"a": 0.0, "b": 0.25, "c": 0.5}
    rm.change_node("c", action=NodeAction.DRAIN_NODE)
    assert kept(rm) == {"a": 0.0, "b": 0.5}
    rm.node("d", {"price": "11"}, vcore=1)
    assert kept(rm) == pytest.approx({"a": 0.0, "b": 0.05, "d": 0.5})
    rm.change_node("a", attributes={"price": "inf"})
    assert kept(rm) == {"b": 0.0, "d": 0.5, "a": 0.5}
    rm.change_node("b", attributes={"price": "none"})
    assert kept(rm) == {"d": 0.0, "a": 0.5, "b": INFINITY}


def test_equal_scores_leave_the_order_to_other_policies() -> None:
    rm = relative(of("relative", 100), of("binpacking"))
    rm.node("a", {"price": "4"}, vcore=10)
    rm.node("b", {"price": "4"}, vcore=10, occupied={"vcore": 5})
    rm.app()
    rm.ask(vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["b"]


def test_a_range_in_the_configuration_replaces_normalisation() -> None:
    rm = relative(of("relative", range=[0, 8]))
    rm.node("a", {"price": "2"}, vcore=1)
    rm.node("b", {"price": "4"}, vcore=1)
    rm.app()
    rm.ask(vcore=9)
    assert kept(rm) == {"a": 0.25, "b": 0.5}


class CountedScores(Relative):
    """Counts its calls."""

    name = "counted"
    calls: ClassVar[list[str]] = []

    def score(self, node: api.Node) -> float:
        self.calls.append(node.id)
        return super().score(node)


def test_a_range_that_moves_calls_no_policy_and_waits_on_large_clusters() -> None:
    registry = with_plugins(node_sort_policies=[CountedScores])
    rm = RM(configuration(nodesortpolicy=weighted(of("counted"))), registry)
    for number in range(320):
        rm.node(f"n{number:03}", {"price": str(number + 1)}, vcore=1)
    rm.app()
    rm.ask(vcore=9)
    assert kept(rm)["n319"] == 1.0
    CountedScores.calls.clear()
    for number in range(9):
        rm.change_node("n319", attributes={"price": str(1000 + number)})
        assert kept(rm)["n318"] == pytest.approx(318 / 319)
    rm.change_node("n319", attributes={"price": "640"})
    assert kept(rm)["n318"] == pytest.approx(318 / 639)
    assert CountedScores.calls == ["n319"] * 10


@settings(max_examples=examples(20))
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 9)), max_size=30), st.booleans())
def test_the_kept_order_is_that_of_a_new_one(changes: list[tuple[str, int]], by_class: bool) -> None:
    other = of("nearest") if by_class else of("fair")
    rm = relative(of("relative", 2), of("crowded", 3), other)
    rm.app()
    rm.ask(vcore=1, count=100, tags={"zone": "z"}, priority=1)
    present: set[str] = set()
    for node_id, price in changes:
        if node_id not in present:
            present.add(node_id)
            rm.node(node_id, {"price": str(price), "zone": "z"}, vcore=300)
        elif price == 9:
            present.discard(node_id)
            rm.change_node(node_id, action=NodeAction.DECOMMISSION)
        else:
            rm.change_node(node_id, attributes={"price": str(price)})
        rm.schedule(1)
        before = kept(rm)
        at = rm.at_work()
        at.orders.replace(at.policies.node_sorts, at.policies.predicates)
        assert kept(rm) == pytest.approx(before)
