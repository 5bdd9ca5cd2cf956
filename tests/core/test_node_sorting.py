"""The order of nodes: fair and binpacking with weights, named orders, and orders that depend on the ask."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import pytest

from tests.core.event_collector import EventCollector
from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from yunikorn import api
from yunikorn.errors import ConfigError
from yunikorn.scheduling import node_orders


def placed_on(rm: RM) -> list[str]:
    return [node_id for _, _, node_id in rm.schedule()]


def two_nodes(policy: dict[str, Any], registry: Any = None) -> RM:
    """Return an RM with nodes `full` (90 % of vcores, 50 % of memory in use) and `other` (empty)."""
    rm = RM(configuration(nodesortpolicy=policy), registry)
    rm.node("full", vcore=100, memory=100, occupied={"vcore": 90, "memory": 50})
    rm.node("other", vcore=100, memory=100)
    return rm


def score(policy: dict[str, Any]) -> float:
    """Return the policy's score of node `full`."""
    rm = two_nodes(policy)
    named = rm.at_work().orders.policies[""]
    return float(named.policy.score(rm.find_node("full")))


def test_vcore_and_memory_have_equal_default_weights() -> None:
    assert score({"type": "fair"}) == pytest.approx(0.70)


def test_weights_change_the_score() -> None:
    assert score({"type": "fair", "resourceweights": {"vcore": 4.0, "memory": 1.0}}) == pytest.approx(0.82)


def test_binpacking_reverses_the_order() -> None:
    assert score({"type": "binpacking"}) == pytest.approx(0.30)


def test_weights_are_relative_to_each_other() -> None:
    four_to_one = score({"type": "fair", "resourceweights": {"vcore": 4.0, "memory": 1.0}})
    assert score({"type": "fair", "resourceweights": {"vcore": 1.0, "memory": 0.25}}) == four_to_one


def test_type_without_a_weight_is_ignored() -> None:
    assert score({"type": "fair", "resourceweights": {"memory": 1.0}}) == pytest.approx(0.5)
    assert score({"type": "fair", "resourceweights": {"memory": 1.0, "vcore": 0.0}}) == pytest.approx(0.5)
    assert score({"type": "fair", "resourceweights": {"gpu": 1.0}}) == 0.0


def test_negative_weights_are_refused() -> None:
    with pytest.raises(ConfigError, match="weight"):
        two_nodes({"type": "fair", "resourceweights": {"vcore": -1.0}})


def test_fair_spreads_allocations_over_nodes() -> None:
    rm = RM(configuration(nodesortpolicy={"type": "fair"}))
    for node_id in ("n1", "n2"):
        rm.node(node_id, vcore=4)
    rm.app()
    rm.ask(count=4, vcore=1)
    assert placed_on(rm) == ["n1", "n2", "n1", "n2"]


def test_fair_is_the_default() -> None:
    rm = RM()
    for node_id in ("n1", "n2"):
        rm.node(node_id, vcore=4)
    rm.app()
    rm.ask(count=2, vcore=1)
    assert placed_on(rm) == ["n1", "n2"]


def test_binpacking_fills_node_after_node() -> None:
    rm = RM(configuration(nodesortpolicy={"type": "binpacking"}))
    for node_id in ("n1", "n2"):
        rm.node(node_id, vcore=2)
    rm.app()
    rm.ask(count=4, vcore=1)
    assert placed_on(rm) == ["n1", "n1", "n2", "n2"]


def test_binpacking_uses_the_fullest_node_that_fits() -> None:
    rm = RM(configuration(nodesortpolicy={"type": "binpacking"}))
    rm.node("a", vcore=4, occupied={"vcore": 3})
    rm.node("b", vcore=4, occupied={"vcore": 2})
    rm.node("c", vcore=4)
    rm.app()
    rm.ask(vcore=2)
    assert placed_on(rm) == ["b"]


def test_ties_are_broken_by_node_id() -> None:
    rm = RM()
    for node_id in ("z", "b", "a"):
        rm.node(node_id, vcore=4)
    rm.app()
    rm.ask(count=3, vcore=1)
    assert placed_on(rm) == ["a", "b", "z"]


def test_reload_changes_the_order_immediately() -> None:
    rm = RM(configuration(nodesortpolicy={"type": "fair"}))
    for node_id in ("n1", "n2"):
        rm.node(node_id, vcore=4)
    rm.app()
    rm.ask(count=4, vcore=1)
    assert [node for _, _, node in rm.schedule(1)] == ["n1"]
    rm.reload(configuration(nodesortpolicy={"type": "binpacking"}))
    assert placed_on(rm) == ["n1", "n1", "n1"]


# -- named orders -----------------------------------------------------------------------------------------

TAG = "yunikorn.apache.org/node-sort-policy"
NAMED: dict[str, Any] = {
    "nodesortpolicy": {"type": "fair"},
    "nodesortpolicies": [
        {"name": "packed", "type": "binpacking"},
        {"name": "by-memory", "type": "fair", "resourceweights": {"memory": 1.0}},
    ],
}


def with_named_orders(*queues: dict[str, Any], collector: EventCollector | None = None) -> RM:
    config = partition(*(queues or (queue("a"),)), **NAMED)
    rm = RM(document(config)) if collector is None else collector.rm(config)
    rm.node("n1", vcore=8, memory=8, occupied={"vcore": 4, "memory": 1})
    rm.node("n2", vcore=8, memory=8, occupied={"vcore": 0, "memory": 2})
    return rm


def test_a_queue_may_choose_a_named_order() -> None:
    rm = with_named_orders(queue("a", properties={"node.sort.policy": "packed"}), queue("b"))
    for name in ("a", "b"):
        rm.app(name, f"root.{name}")
        rm.ask(name, vcore=1)
    assert set(rm.schedule()) == {("a", "ask", "n1"), ("b", "ask", "n2")}


def test_an_application_may_choose_a_named_order() -> None:
    rm = with_named_orders()
    rm.app_tagged("app", "root.a", {TAG: "by-memory"})
    rm.ask(vcore=1)
    assert placed_on(rm) == ["n1"]


def test_node_order_of_the_application_overrides_that_of_the_queue() -> None:
    rm = with_named_orders(queue("a", properties={"node.sort.policy": "packed"}))
    rm.node("n3", vcore=8, memory=8)
    rm.app_tagged("app", "root.a", {TAG: "by-memory"})
    rm.ask(vcore=1)
    assert placed_on(rm) == ["n3"]


def test_all_node_orders_see_all_allocations() -> None:
    rm = with_named_orders()
    rm.app("plain")
    rm.app_tagged("packed", "root.a", {TAG: "packed"})
    rm.ask("plain", count=20, vcore=1)
    rm.ask("packed", count=20, vcore=1)
    assert len(rm.schedule()) == 12
    assert rm.find_node("n1").available["vcore"] == 0
    assert rm.find_node("n2").available["vcore"] == 0


def test_unknown_name_in_the_tag_is_an_event_and_falls_back_to_the_default() -> None:
    collector = EventCollector()
    rm = with_named_orders(collector=collector)
    rm.app_tagged("app", "root.a", {TAG: "nonsense"})
    rm.ask(vcore=1)
    assert placed_on(rm) == ["n2"]
    messages = [event.message for event in collector.events if event.object_id == "app"]
    assert f"unknown node sort policy 'nonsense' in tag {TAG}; known: packed, by-memory" in messages


def test_queue_with_an_unknown_node_order_is_rejected() -> None:
    with pytest.raises(ConfigError, match="nonsense"):
        with_named_orders(queue("a", properties={"node.sort.policy": "nonsense"}))


def test_named_order_removed_by_a_reload_falls_back_to_the_default() -> None:
    rm = with_named_orders()
    rm.app_tagged("app", "root.a", {TAG: "packed"})
    rm.ask(count=2, vcore=1)
    assert [node for _, _, node in rm.schedule(1)] == ["n1"]
    rm.reload(configuration())
    assert placed_on(rm) == ["n2"]


# -- policies that depend on the ask -----------------------------------------------------------------------


class BestFit(api.NodeSortPolicy):
    """Prefers the node with the least room left over."""

    name = "best-fit"

    def score(self, node: api.Node, ask_class: api.AskClass) -> float:
        return sum(node.available.get(name, 0) - amount for name, amount in ask_class.resource.items())


def test_policy_may_depend_on_the_ask() -> None:
    registry = with_plugins(node_sort_policies=[BestFit])
    rm = RM(configuration(nodesortpolicy={"type": "best-fit"}), registry)
    rm.node("cores", vcore=4, memory=20)
    rm.node("memory", vcore=20, memory=4)
    rm.app()
    for number in range(3):
        rm.ask(key=f"cores{number}", vcore=1)
        rm.ask(key=f"memory{number}", memory=1)
    assert dict((key, node) for _, key, node in rm.schedule()) == {
        **{f"cores{number}": "cores" for number in range(3)},
        **{f"memory{number}": "memory" for number in range(3)},
    }
    assert rm.failures() == []


def test_the_order_of_an_ask_class_contains_all_nodes() -> None:
    """Nodes without room are included: reservations need them, although the search for a node does not."""
    rm = RM(configuration(nodesortpolicy={"type": "best-fit"}), with_plugins(node_sort_policies=[BestFit]))
    sizes = {"n1": 8, "n2": 6, "n3": 4, "n4": 5}
    for node_id, size in sizes.items():
        rm.node(node_id, vcore=size)
    rm.app()
    rm.ask(key="big", count=9, vcore=4)
    rm.schedule()
    rm.ask(key="small", count=5, vcore=1)
    rm.schedule()
    at = rm.at_work()
    (ask_class,) = [ask_class for ask_class in at.partition.ask_classes if ask_class.resource == {"vcore": 4}]
    order = at.orders.of(ask_class)
    policy = at.orders.policies[""].policy
    nodes = sorted(at.partition.nodes.values(), key=lambda node: (policy.score(node, ask_class), node.id))
    assert [node.id for node in order] == [node.id for node in nodes]
    assert [node.id for node in reversed(order)] == [node.id for node in reversed(nodes)]
    assert len(order) == len(nodes)


def test_class_orders_follow_node_changes() -> None:
    registry = with_plugins(node_sort_policies=[BestFit])
    rm = RM(configuration(nodesortpolicy={"type": "best-fit"}), registry)
    rm.node("a", vcore=10)
    rm.node("b", vcore=5)
    rm.app()
    rm.ask(key="one", count=2, vcore=2)
    assert placed_on(rm) == ["b", "b"]
    rm.node("c", vcore=3)
    rm.ask(key="one", count=2, vcore=2)
    assert placed_on(rm) == ["c", "a"]


class Counted(BestFit):
    """Best fit that records the nodes it scores."""

    name = "counted"
    asked: ClassVar[list[str]] = []

    def score(self, node: api.Node, ask_class: api.AskClass) -> float:
        Counted.asked.append(node.id)
        return super().score(node, ask_class)


def place_one_after_the_other(rm: RM, *cores: int) -> list[list[str]]:
    """Place applications of one ask each; return the nodes that the policy scored for each."""
    asked = []
    for number, size in enumerate(cores):
        Counted.asked.clear()
        rm.app(f"app-{number}")
        rm.ask(f"app-{number}", "one", vcore=size)
        assert len(rm.schedule()) == 1
        asked.append(sorted(Counted.asked))
    return asked


def with_counted_nodes() -> RM:
    registry = with_plugins(node_sort_policies=[Counted])
    rm = RM(configuration(nodesortpolicy={"type": "counted"}), registry)
    for number in range(4):
        rm.node(f"n{number}", vcore=10 + number)
    return rm


def test_order_of_an_ask_class_is_updated_at_its_next_ask() -> None:
    """Only nodes that changed since are scored again."""
    everything = ["n0", "n1", "n2", "n3"]
    asked = place_one_after_the_other(with_counted_nodes(), 2, 1, 2, 2, 1)
    assert asked == [everything, everything, ["n0"], ["n0"], ["n0"]]


def test_unused_class_orders_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least recently used order is dropped, and computed again when needed."""
    monkeypatch.setattr(node_orders, "KEPT", 8)
    rm = with_counted_nodes()
    asked = place_one_after_the_other(rm, 1, 2, 3, 1, 4, 3, 2)
    assert [len(nodes) for nodes in asked] == [4, 4, 4, 1, 4, 2, 4]
    assert len(rm.at_work().orders._orders) <= 3


def test_unused_class_orders_need_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_orders, "LOG", 3)
    rm = with_counted_nodes()
    place_one_after_the_other(rm, 5, 1, 1, 1, 1)
    assert place_one_after_the_other(rm, 5) == [["n0", "n1", "n2", "n3"]]


class ByRack(api.NodeSortPolicy):
    """Orders nodes by a number in their attributes."""

    name = "by-rack"

    def score(self, node: api.Node) -> int:
        return int(node.attributes.get("rack", "9"))


def test_a_policy_of_a_third_party_follows_the_attributes() -> None:
    rm = RM(configuration(nodesortpolicy={"type": "by-rack"}), with_plugins(node_sort_policies=[ByRack]))
    rm.node("n1", {"rack": "2"}, vcore=4)
    rm.node("n2", {"rack": "1"}, vcore=4)
    rm.app()
    rm.ask(count=4, vcore=1)
    assert [node for _, _, node in rm.schedule(1)] == ["n2"]
    rm.change_node("n2", attributes={"rack": "3"})
    assert placed_on(rm) == ["n1", "n1", "n1"]


@attrs.frozen
class ByMinute(api.NodeSortPolicy):
    """Prefers another node every minute."""

    name = "by-minute"
    refresh_every = 60.0
    clocks: list[Any] = attrs.Factory(list)

    def opened(self, context: api.Context) -> None:
        self.clocks.append(context.now)

    def score(self, node: api.Node) -> int:
        minute = self.clocks[0]() // (60 * 10**9)
        return int((int(node.id[1:]) - minute) % 3)


def test_scores_may_be_time_dependent() -> None:
    rm = RM(configuration(nodesortpolicy={"type": "by-minute"}), with_plugins(node_sort_policies=[ByMinute]))
    for number in range(3):
        rm.node(f"n{number}", vcore=9)
    rm.app()
    rm.ask(count=9, vcore=1)
    nodes = []
    for _ in range(4):
        nodes += [node for _, _, node in rm.schedule(1)]
        rm.pass_time(60)
    assert nodes == ["n0", "n1", "n2", "n0"]
