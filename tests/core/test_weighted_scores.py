"""Several node sort policies together, by weights: normalisation, kept orders, failures and reloads."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from tests.example_counts import examples
from yunikorn import api
from yunikorn.api import NodeSortPolicy
from yunikorn.errors import ConfigError
from yunikorn.interface.messages import NodeAction
from yunikorn.model.node import Node
from yunikorn.scheduling.node_policies import share, squashed

INFINITY = float("inf")


@attrs.frozen
class Cheapest(NodeSortPolicy):
    """Sorts nodes by their price; declares no range."""

    name = "cheapest"
    attribute: str = "price"

    def score(self, node: api.Node) -> float:
        return float(node.attributes.get(self.attribute, "inf"))


@attrs.frozen
class Nearest(NodeSortPolicy):
    """Prefers the zone that a request names, for requests of high priority only."""

    name = "nearest"
    score_range = (0, 1)

    def ask_class(self, ask: api.Ask) -> Hashable:
        return ask.tags.get("zone") if ask.priority > 0 else None

    def score(self, node: api.Node, ask_class: api.AskClass) -> int:
        return int(ask_class.value is not None and node.attributes.get("zone") != ask_class.value)


@attrs.frozen
class Moody(NodeSortPolicy):
    """Raises on some nodes, and returns no number on others; records its life cycle."""

    name = "moody"
    calls: ClassVar[list[str]] = []
    label: str = ""

    def opened(self, context: api.Context) -> None:
        self.calls.append(f"opened {self.label}")

    def reloaded(self, context: api.Context) -> None:
        self.calls.append(f"reloaded {self.label}")

    def closed(self) -> None:
        self.calls.append(f"closed {self.label}")

    def score(self, node: api.Node) -> Any:
        mood = node.attributes.get("mood", "0")
        if mood == "bad":
            raise LookupError("in a bad mood")
        return {"odd": "7", "nan": math.nan}.get(mood, 0.0)


class Hourly(NodeSortPolicy):
    """Prefers the nodes of the hour."""

    name = "hourly"
    refresh_every = 3600.0
    score_range = (0.0, 1.0)
    _now: Any = None

    def opened(self, context: api.Context) -> None:
        self._now = context.now

    def score(self, node: api.Node) -> float:
        hour = self._now() // (3600 * 10**9)
        return 0.0 if node.attributes.get("hour") == str(hour % 2) else 1.0


class Counting(NodeSortPolicy):
    """Sorts nodes by the number of tasks that it was told of."""

    name = "counting"
    score_range = (0, 10)

    def __init__(self) -> None:
        self.tasks: dict[str, int] = {}

    def placed(self, task: api.Task, node: api.Node) -> None:
        self.tasks[node.id] = self.tasks.get(node.id, 0) + 1

    def released(self, task: api.Task, node: api.Node) -> None:
        self.tasks[node.id] -= 1

    def score(self, node: api.Node) -> int:
        return self.tasks.get(node.id, 0)


PLUGINS: Sequence[type[Any]] = (Cheapest, Nearest, Moody, Hourly, Counting)


def weighted(*scores: dict[str, Any]) -> dict[str, Any]:
    return {"type": "weighted", "scores": list(scores)}


def of(name: str, weight: float = 1, **options: Any) -> dict[str, Any]:
    return {"name": name, "weight": weight, **options}


def make(*scores: dict[str, Any], **keys: Any) -> RM:
    config = configuration(nodesortpolicy=weighted(*scores), **keys)
    return RM(config, with_plugins(node_sort_policies=PLUGINS))


def order_of(rm: RM, name: str = "") -> list[str]:
    """Return the nodes in the kept order that the only pending ask class uses."""
    at = rm.at_work()
    at.orders.reorder(at.partition.accounting)
    ask_class = next(one for one in at.partition.ask_classes if one.node_order == name and one.waiting)
    return [node.id for node in at.orders.of(ask_class)]


def score_of(rm: RM, node_id: str) -> float:
    named = rm.at_work().orders.policies[""]
    return float(named.policy.score(rm.find_node(node_id)))


# -- the combined score --------------------------------------------------------------------------------------


def test_weights_are_relative_to_each_other() -> None:
    rm = make(of("binpacking", 3), of("fair", resourceweights={"vcore": 1}))
    rm.node("n", vcore=10, memory=10, occupied={"vcore": 4, "memory": 2})
    assert score_of(rm, "n") == pytest.approx((3 * 0.7 + 0.4) / 4)
    other = make(of("binpacking", 0.3), of("fair", 0.1, resourceweights={"vcore": 1}))
    other.node("n", vcore=10, memory=10, occupied={"vcore": 4, "memory": 2})
    assert score_of(other, "n") == pytest.approx(score_of(rm, "n"))


def test_the_weight_decides_between_policies() -> None:
    def first(packing: float) -> str:
        rm = make(of("binpacking", packing), of("cheapest", range=[0, 10]))
        rm.node("used", {"price": "8"}, vcore=10, memory=10, occupied={"vcore": 5, "memory": 5})
        rm.node("cheap", {"price": "2"}, vcore=10, memory=10)
        rm.app()
        rm.ask(vcore=1)
        return rm.schedule()[0][2]

    assert (first(1), first(3)) == ("cheap", "used")


def test_the_range_in_the_configuration_precedes_that_of_the_policy() -> None:
    rm = make(of("fair", range=[0.25, 0.5]))
    rm.node("half", vcore=10, memory=10, occupied={"vcore": 4, "memory": 4})
    rm.node("idle", vcore=10, memory=10)
    rm.node("full", vcore=10, memory=10, occupied={"vcore": 10, "memory": 10})
    assert [score_of(rm, node) for node in ("idle", "half", "full")] == [0.0, pytest.approx(0.6), 1.0]


def test_scores_without_a_range_are_squashed() -> None:
    rm = make(of("cheapest"))
    for price in ("-1", "0", "1", "inf"):
        rm.node(price, {"price": price}, vcore=1)
    assert [score_of(rm, price) for price in ("-1", "0", "1", "inf")] == [0.25, 0.5, 0.75, 1.0]


numbers = st.one_of(st.floats(allow_nan=False), st.integers(-(10**400), 10**400))


@given(numbers, numbers)
def test_mapping_of_scores_is_monotone_and_within_bounds(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0.0 <= squashed(low) <= squashed(high) <= 1.0
    assert 0.0 <= share(low, -3.0, 7.0) <= share(high, -3.0, 7.0) <= 1.0


def test_policies_may_occur_twice_with_options_of_their_own() -> None:
    rm = make(of("cheapest", 2, range=[0, 4]), of("cheapest", attribute="watts", range=[0, 100]))
    rm.node("n", {"price": "1", "watts": "50"}, vcore=1)
    assert score_of(rm, "n") == pytest.approx((2 * 0.25 + 0.5) / 3)


# -- requests ----------------------------------------------------------------------------------------------


def zoned(*scores: dict[str, Any]) -> RM:
    rm = make(*scores)
    rm.node("a1", {"zone": "a"}, vcore=4)
    rm.node("b1", {"zone": "b"}, vcore=4)
    rm.app()
    return rm


def test_score_depends_on_what_the_policy_declares_of_a_request() -> None:
    rm = zoned(of("nearest", 10), of("fair"))
    for number in range(2):
        rm.ask(key=f"b{number}", priority=1, tags={"zone": "b"}, vcore=1)
        rm.ask(key=f"a{number}", priority=1, tags={"zone": "a"}, vcore=1)
        rm.ask(key=f"low{number}", priority=0, tags={"zone": "b"}, vcore=1)
    placed = {key: node for _, key, node in rm.schedule()}
    assert [placed[key] for key in ("a0", "a1", "b0", "b1")] == ["a1", "a1", "b1", "b1"]
    assert {placed["low0"], placed["low1"]} == {"a1", "b1"}, "low priority has no zone: fair decides"
    assert rm.failures() == []


def test_a_policy_that_declares_classes_may_stand_alone() -> None:
    rm = RM(configuration(nodesortpolicy={"type": "nearest"}), with_plugins(node_sort_policies=PLUGINS))
    rm.node("a1", {"zone": "a"}, vcore=4)
    rm.node("b1", {"zone": "b"}, vcore=4)
    rm.app()
    rm.ask(key="b", count=2, priority=1, tags={"zone": "b"}, vcore=1)
    rm.ask(key="low", priority=0, tags={"zone": "b"}, vcore=1)
    assert [(key, node) for _, key, node in rm.schedule()] == [("b", "b1"), ("b", "b1"), ("low", "a1")]


def test_changed_priority_or_tags_change_the_order() -> None:
    rm = zoned(of("nearest"))
    rm.ask(priority=0, tags={"zone": "b"}, vcore=1)
    rm.ask(priority=1, tags={"zone": "b"}, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["b1"]
    rm.ask(key="other", priority=1, tags={"zone": "a"}, vcore=1)
    rm.ask(key="other", priority=1, tags={"zone": "b"}, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["b1"]


def test_only_the_policy_of_the_chosen_order_classifies_requests() -> None:
    named = [{"name": "near", **weighted(of("nearest"), of("fair"))}]
    rm = RM(
        configuration(
            queue("a"), queue("n", properties={"node.sort.policy": "near"}), nodesortpolicies=named
        ),
        with_plugins(node_sort_policies=PLUGINS),
    )
    rm.node("a1", {"zone": "a"}, vcore=9)
    for app in ("a", "n"):
        rm.app(app, f"root.{app}")
        for zone in ("x", "y", "z"):
            rm.ask(app, zone, priority=1, tags={"zone": zone}, vcore=1)
    classes = [ask_class for ask_class in rm.at_work().partition.ask_classes if ask_class.waiting]
    assert sorted((one.node_order, str(one.value)) for one in classes) == [
        ("", "None"),
        ("near", "('x', None)"),
        ("near", "('y', None)"),
        ("near", "('z', None)"),
    ]


class Failing(Nearest):
    """Cannot classify requests."""

    name = "failing"

    def ask_class(self, ask: api.Ask) -> Hashable:
        if ask.tags.get("zone") == "list":
            return ["not hashable"]  # type: ignore[return-value]
        raise RuntimeError("no class")


@pytest.mark.parametrize("zone", ["a", "list"])
def test_request_that_cannot_be_classified_is_placed_and_reported(zone: str) -> None:
    for policy in ({"type": "failing"}, weighted(of("failing"), of("fair"))):
        rm = RM(configuration(nodesortpolicy=policy), with_plugins(node_sort_policies=[Failing]))
        rm.node(vcore=1)
        rm.app()
        rm.ask(tags={"zone": zone}, vcore=1)
        assert len(rm.schedule()) == 1
        (failure,) = rm.scheduler.failures
        assert failure.plugin == "failing of test-plugin (yunikorn-test 1.0)"
        assert failure.operation == "computing the class of"


# -- failures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mood", ["bad", "odd", "nan"])
def test_node_whose_score_fails_is_behind_all_others_and_the_member_is_named(mood: str) -> None:
    rm = make(of("fair", 5), of("moody", label="x"))
    rm.node("a", {"mood": mood}, vcore=2)
    rm.node("b", vcore=2)
    rm.app()
    rm.ask(count=4, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["b", "b", "a", "a"]
    (failure,) = rm.scheduler.failures
    assert failure.plugin == "moody of test-plugin (yunikorn-test 1.0)"
    assert "computing the score of node a" in failure.message


@pytest.mark.parametrize("said", [(1, 0), (0, INFINITY), "01", 7, (0.0, math.nan), (1, 2, 3), ("a", "b")])
def test_wrong_range_is_reported_and_not_used(said: Any) -> None:
    class Ranged(Cheapest):
        name = "ranged"
        score_range = said

    rm = RM(configuration(nodesortpolicy=weighted(of("ranged"))), with_plugins(node_sort_policies=[Ranged]))
    rm.node("n", {"price": "1"}, vcore=1)
    if said == "01":
        assert (score_of(rm, "n"), list(rm.scheduler.failures)) == (1.0, [])
        return
    assert score_of(rm, "n") == 0.75
    assert {failure.operation for failure in rm.scheduler.failures} == {"reading its score_range"}


# -- configuration -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (weighted(), "scores.*required, but missing"),
        ({"type": "weighted"}, "scores.*required, but missing"),
        (weighted(of("fair", 0)), "weight.*above 0"),
        (weighted(of("fair", -1)), "weight.*above 0"),
        (weighted(of("fair", 1e300)), "weight.*at most 1e9"),
        (weighted(of("fiar")), "did you mean 'fair'"),
        (weighted(of("weighted")), "cannot be 'weighted'"),
        (weighted({"weight": 2}), "name.*required, but missing"),
        (weighted(of("fair", colour="red")), "colour.*unknown key"),
        (weighted(of("fair", resourceweights={"vcore": -1})), "resourceweights.vcore.*below 0"),
        (weighted(of("fair", range=[1, 1])), "range.*lower first"),
        (weighted(of("fair", range=[1])), "range.*two numbers"),
        (weighted(of("fair", range=["a", "b"])), "range.*a number"),
        ({**weighted(of("fair")), "resourceweights": {"vcore": 1}}, "resourceweights.*unknown key"),
        ({"type": "fair", "scores": [of("fair")]}, "scores.*unknown key"),
    ],
)
def test_wrong_configurations_are_refused(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RM(configuration(nodesortpolicy=policy))


def test_no_plugin_may_be_called_weighted() -> None:
    class Weighted(Cheapest):
        name = "weighted"

    with pytest.raises(AssertionError, match="which the core uses itself"):
        with_plugins(node_sort_policies=[Weighted])


# -- reload and life cycle ---------------------------------------------------------------------------------


def test_members_are_opened_kept_and_closed_each_on_its_own() -> None:
    Moody.calls.clear()
    rm = make(of("moody", label="x"), of("moody", label="y"), of("fair"))
    assert Moody.calls == ["opened x", "opened y"]
    rm.reload(configuration(nodesortpolicy=weighted(of("fair"), of("moody", 7, label="y"))))
    assert Moody.calls[2:] == ["reloaded y", "closed x"]
    rm.reload(configuration(nodesortpolicy={"type": "moody", "label": "y"}))
    assert Moody.calls[4:] == ["reloaded y"]
    rm.reload(configuration())
    assert Moody.calls[5:] == ["closed y"]


def test_reload_of_weights_changes_the_order_at_once() -> None:
    rm = make(of("binpacking", 1), of("cheapest", range=[0, 10]))
    rm.node("used", {"price": "8"}, vcore=10, memory=10, occupied={"vcore": 5, "memory": 5})
    rm.node("cheap", {"price": "2"}, vcore=10, memory=10)
    rm.app()
    rm.ask(count=3, vcore=1)
    assert [node for _, _, node in rm.schedule(1)] == ["cheap"]
    rm.reload(configuration(nodesortpolicy=weighted(of("binpacking", 9), of("cheapest", range=[0, 10]))))
    assert [node for _, _, node in rm.schedule()] == ["used", "used"]


def test_reload_may_begin_and_end_to_depend_on_requests() -> None:
    rm = zoned(of("fair"))
    near, plain = weighted(of("nearest", 9), of("fair")), weighted(of("fair"))
    rm.ask(key="b", count=6, priority=1, tags={"zone": "b"}, vcore=1)
    assert [node for _, _, node in rm.schedule(1)] == ["a1"]
    rm.reload(configuration(nodesortpolicy=near))
    assert [node for _, _, node in rm.schedule(2)] == ["b1", "b1"]
    rm.reload(configuration(nodesortpolicy=plain))
    assert [node for _, _, node in rm.schedule(1)] == ["a1"]


def test_the_shortest_refresh_interval_of_the_members_counts() -> None:
    rm = make(of("fair", 0.01), of("hourly"))
    rm.node("even", {"hour": "0"}, vcore=9)
    rm.node("odd", {"hour": "1"}, vcore=9)
    rm.app()
    rm.pass_time(7200 - rm.clock.now() / 10**9 % 7200)
    rm.ask(key="first", vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["even"]
    rm.pass_time(3600)
    rm.ask(key="second", vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["odd"]


def test_members_may_keep_books() -> None:
    rm = make(of("binpacking", 0.01), of("counting"))
    for node_id in ("n1", "n2"):
        rm.node(node_id, vcore=9, memory=9)
    rm.app()
    rm.ask(count=4, vcore=1, memory=1)
    assert [node for _, _, node in rm.schedule()] == ["n1", "n2", "n1", "n2"]
    rm.release("app", next(uuid for uuid, one in rm.running.items() if one.node_id == "n2"))
    rm.ask(key="next", vcore=1, memory=1)
    assert [node for _, _, node in rm.schedule()] == ["n2"]


# -- gangs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["Atomic", "Soft"])
def test_gang_follows_the_combined_order(style: str) -> None:
    config = configuration(nodesortpolicy=weighted(of("binpacking", 2), of("nearest")))
    rm = GangRM(config, with_plugins(node_sort_policies=PLUGINS))
    rm.node("n1", vcore=4, memory=4, occupied={"vcore": 2, "memory": 2})
    rm.node("n2", vcore=4, memory=4)
    rm.gang("gang", style, vcore=3, memory=3)
    for number in range(3):
        rm.task("gang", f"m{number}", "t", placeholder=style == "Soft", vcore=1, memory=1)
    assert sorted(node for _, _, node in rm.schedule()) == ["n1", "n1", "n2"]
    assert rm.failures() == []


# -- the kept order against a plain one ----------------------------------------------------------------------

MEMBERS = (
    of("binpacking", 3),
    of("fair", 1.5, resourceweights={"vcore": 1, "gpu": 2}),
    of("cheapest", 0.7),
    of("cheapest", 2, attribute="watts", range=[10, 90]),
    of("nearest", 1),
)


def plain_score(node: Node, members: Sequence[dict[str, Any]], zone: str | None) -> float:
    """Return the combined score, computed afresh with exact sums."""
    parts = []
    for member in members:
        if member["name"] in ("binpacking", "fair"):
            weights = member.get("resourceweights") or {"vcore": 1, "memory": 1}
            used = whole = 0.0
            for name, weight in weights.items():
                if node.capacity.get(name):
                    used += weight * (1 - node.available.get(name, 0) / node.capacity[name])
                    whole += weight
            usage = used / whole if whole else 0.0
            value = 1 - usage if member["name"] == "binpacking" else usage
        elif member["name"] == "nearest":
            value = float(zone is not None and node.attributes.get("zone") != zone)
        else:
            price = float(node.attributes.get(member.get("attribute", "price"), "inf"))
            if "range" in member:
                low, high = member["range"]
                value = min(1.0, max(0.0, (price - low) / (high - low)))
            else:
                value = 1 - 0.5 / (1 + price) if price >= 0 else 0.5 / (1 - price)
        parts.append(value * member["weight"])
    return math.fsum(parts) / math.fsum(member["weight"] for member in members)


nodes = st.tuples(
    st.integers(0, 5),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["-2", "0", "1", "3", "1e6"]),
    st.sampled_from(["0", "20", "55", "100"]),
)
operations = st.one_of(
    st.tuples(st.just("node"), nodes),
    st.tuples(st.just("attributes"), nodes),
    st.tuples(st.just("remove"), st.integers(0, 5)),
    st.tuples(st.just("drain"), st.integers(0, 5)),
    st.tuples(st.just("ask"), st.tuples(st.integers(1, 3), st.sampled_from(["a", "b"]), st.integers(0, 1))),
    st.tuples(st.just("schedule"), st.integers(1, 4)),
    st.tuples(st.just("release"), st.integers(0, 9)),
    st.tuples(st.just("reload"), st.lists(st.sampled_from(range(5)), min_size=1, unique=True)),
)


class Story:
    """One sequence of operations, after each of which kept orders equal plain ones."""

    def __init__(self) -> None:
        self.members: Sequence[dict[str, Any]] = MEMBERS
        self.rm = make(*MEMBERS)
        self.rm.app()
        self.asks = 0

    def apply(self, operation: str, value: Any) -> None:
        """Apply one operation; one that is not possible now has no effect."""
        rm = self.rm
        match operation:
            case "node" | "attributes":
                number, zone, price, watts = value
                attributes = {"zone": zone, "price": price, "watts": watts}
                if operation == "node":
                    rm.node(f"n{number}", attributes, vcore=8, memory=16, gpu=number)
                else:
                    rm.change_node(f"n{number}", attributes=attributes)
            case "remove":
                rm.change_node(f"n{value}", NodeAction.DECOMMISSION)
            case "drain":
                rm.change_node(f"n{value}", NodeAction.DRAIN_NODE)
            case "ask":
                size, zone, priority = value
                self.asks += 1
                rm.ask(key=f"{self.asks}", count=3, priority=priority, tags={"zone": zone}, vcore=size)
            case "schedule":
                rm.schedule(value)
            case "release":
                for uuid in sorted(rm.running)[value : value + 1]:
                    rm.release("app", uuid)
                    rm.running.pop(uuid, None)
            case "reload":
                self.members = [MEMBERS[number] for number in value]
                rm.reload(configuration(nodesortpolicy=weighted(*self.members)))
        self.check()

    def check(self) -> None:
        """Compare the order of every pending ask class with a plain one."""
        at = self.rm.at_work()
        at.orders.reorder(at.partition.accounting)
        for ask_class in at.partition.ask_classes:
            if not ask_class.waiting:
                continue
            values = ask_class.value if isinstance(ask_class.value, tuple) else ()
            zone = next((value for value in values if value is not None), None)
            kept = list(at.orders.of(ask_class))
            named = at.orders.policies[""]
            views = [named.view(ask_class)] if named.by_ask_class else []
            scores = {node.id: named.policy.score(node, *views) for node in kept}
            free = [node.id for node in at.partition.nodes.values() if node.is_free]
            assert [node.id for node in kept] == sorted(free, key=lambda one: (scores[one], one))
            for node in kept:
                assert scores[node.id] == pytest.approx(plain_score(node, self.members, zone))


@settings(max_examples=examples(20))
@given(st.lists(operations, max_size=40))
def test_kept_orders_equal_plain_ones(story: list[tuple[str, Any]]) -> None:
    at = Story()
    for operation, value in story:
        at.apply(operation, value)
    assert at.rm.failures() == []


class Counted(NodeSortPolicy):
    """Records the nodes that it scores."""

    name = "counted"
    score_range = (0.0, 1.0)
    asked: ClassVar[list[str]] = []

    def score(self, node: api.Node) -> float:
        self.asked.append(node.id)
        return 1 - node.available["vcore"] / node.capacity["vcore"]


def test_a_decision_recomputes_the_scores_of_the_changed_node_only() -> None:
    config = configuration(nodesortpolicy=weighted(of("counted"), of("counted", 2)))
    rm = RM(config, with_plugins(node_sort_policies=[Counted]))
    for number in range(50):
        rm.node(f"n{number:02}", vcore=4)
    rm.app()
    rm.ask(count=20, vcore=1)
    rm.schedule(1)
    Counted.asked.clear()
    assert len(rm.schedule()) == 19
    assert len(Counted.asked) == 2 * 20
