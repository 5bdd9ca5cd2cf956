"""The order of applications in a queue, and of asks in an application (docs/decisions/0016 and 0017)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.errors import ConfigError


def leaf(policy: str, **keys: Any) -> str:
    properties = {"application.sort.policy": policy, **keys.pop("properties", {})}
    return configuration(queue("a", properties=properties, **keys))


def order(rm: RM) -> list[str]:
    """Return the applications in the order in which they are served."""
    return [app_id for app_id, _, _ in rm.schedule()]


# -- fifo -------------------------------------------------------------------------------------------------


def test_fifo_serves_all_asks_of_the_oldest_application_first() -> None:
    rm = RM(leaf("fifo"))
    for app_id in ("b", "a"):
        rm.app(app_id)
        rm.ask(app_id, count=2, vcore=1)
        rm.pass_time(1)
    rm.node(vcore=9)
    assert order(rm) == ["b", "b", "a", "a"]


def test_fifo_is_the_default() -> None:
    rm = RM()
    assert rm.find_queue().settings.app_sort == "fifo"


def test_ties_of_fifo_are_broken_by_order_of_submission() -> None:
    rm = RM(leaf("fifo"))
    for app_id in ("z", "y", "x"):
        rm.app(app_id)
    for app_id in ("x", "z", "y"):
        rm.ask(app_id, vcore=1)
    rm.node(vcore=9)
    assert order(rm) == ["z", "y", "x"]


def test_earlier_creation_time_of_an_ask_makes_its_application_older() -> None:
    rm = RM(leaf("fifo"))
    rm.pass_time(100)
    rm.app("late")
    rm.ask("late", vcore=1)
    rm.app("recovered")
    rm.ask("recovered", vcore=1, tags={"creationTime": "50"})
    rm.node(vcore=9)
    assert order(rm) == ["recovered", "late"]


@pytest.mark.parametrize("time", ["soon", "-1", "1.5", "", "1e3"])
def test_invalid_creation_time_is_replaced_by_now(time: str) -> None:
    rm = RM(leaf("fifo"))
    rm.pass_time(100)
    rm.app("first")
    rm.ask("first", vcore=1)
    rm.app("second")
    rm.ask("second", vcore=1, tags={"creationTime": time})
    rm.node(vcore=9)
    assert order(rm) == ["first", "second"]


def test_asks_that_cannot_be_placed_are_skipped() -> None:
    rm = RM(leaf("fifo"))
    rm.app("huge")
    rm.ask("huge", vcore=100)
    rm.app("small")
    rm.ask("small", vcore=1)
    rm.node(vcore=9)
    assert order(rm) == ["small"]


# -- fair -------------------------------------------------------------------------------------------------


def test_fair_alternates_between_applications() -> None:
    rm = RM(leaf("fair"))
    for app_id in ("a", "b"):
        rm.app(app_id)
        rm.ask(app_id, count=3, vcore=1)
    rm.node(vcore=9)
    assert order(rm) == ["a", "b", "a", "b", "a", "b"]


def test_fair_compares_the_dominant_share_of_the_cluster() -> None:
    rm = RM(leaf("fair"))
    rm.node(vcore=10, memory=1000)
    rm.app("memory")
    rm.app("vcore")
    rm.ask("memory", "first", vcore=1, memory=500)
    rm.ask("vcore", "first", vcore=4, memory=1)
    rm.schedule()
    rm.ask("memory", "next", vcore=1)
    rm.ask("vcore", "next", vcore=1)
    # 50 % of the memory compared with 40 % of the vcores.
    assert order(rm) == ["vcore", "memory"]


def holding(rm: RM, **amounts: dict[str, int]) -> None:
    """Submit applications in this order, each with one allocation of these amounts and one pending ask."""
    for app_id, amount in amounts.items():
        rm.app(app_id)
        rm.ask(app_id, "first", resource=amount)
    rm.schedule()
    for app_id in amounts:
        rm.ask(app_id, "next", vcore=1)


@pytest.mark.parametrize(
    ("one", "two", "first"),
    [
        # A quarter of one type each: the second largest share decides, of any type.
        ({"vcore": 5, "memory": 200}, {"vcore": 1, "memory": 500}, "two"),
        ({"vcore": 5, "memory": 100}, {"vcore": 1, "memory": 500}, "one"),
        # A type that only one application uses counts as zero for the other.
        ({"vcore": 5, "gpu": 1}, {"vcore": 5}, "two"),
        # Three types: the smallest of the three shares decides last.
        ({"vcore": 4, "memory": 300, "gpu": 2}, {"vcore": 3, "memory": 400, "gpu": 1}, "two"),
        ({"vcore": 4, "memory": 300, "gpu": 1}, {"vcore": 3, "memory": 400}, "two"),
        # Zeros count like missing types: all shares are equal, and the first to arrive is served first.
        ({"vcore": 5, "gpu": 0, "memory": 0}, {"vcore": 5}, "one"),
    ],
)
def test_equal_dominant_shares_are_compared_by_the_next_largest(
    one: dict[str, int], two: dict[str, int], first: str
) -> None:
    rm = RM(leaf("fair"))
    rm.node(vcore=20, memory=2000, gpu=20)
    holding(rm, one=one, two=two)
    assert order(rm)[0] == first


def test_fair_share_is_relative_to_the_guarantee_if_there_is_one() -> None:
    rm = RM(leaf("fair", resources={"guaranteed": {"vcore": "2m"}}))
    rm.node(vcore=10, memory=1000)
    rm.app("memory")
    rm.app("vcore")
    rm.ask("memory", "first", memory=500)
    rm.ask("vcore", "first", vcore=4)
    rm.schedule()
    rm.ask("memory", "next", memory=1)
    rm.ask("vcore", "next", memory=1)
    # 50 % of the cluster's memory compared with twice the guaranteed vcores.
    assert order(rm) == ["memory", "vcore"]


def test_fair_shares_follow_the_size_of_the_cluster() -> None:
    rm = RM(leaf("fair"))
    rm.node(vcore=10, memory=10)
    rm.app("memory")
    rm.app("vcore")
    rm.ask("memory", "first", memory=4)
    rm.ask("vcore", "first", vcore=5)
    rm.schedule()
    rm.node("n2", vcore=10, memory=0)
    rm.ask("memory", "next", vcore=1)
    rm.ask("vcore", "next", vcore=1)
    # Now 40 % of the memory compared with 25 % of the vcores.
    assert order(rm) == ["vcore", "memory"]


def test_released_allocations_do_not_count() -> None:
    rm = RM(leaf("fair"))
    rm.node(vcore=10)
    for app_id in ("a", "b"):
        rm.app(app_id)
    rm.ask("a", "big", vcore=4)
    rm.ask("b", "small", vcore=1)
    rm.schedule()
    rm.ask("a", "next", vcore=1)
    rm.ask("b", "next", vcore=1)
    rm.release("a", key="big")
    assert order(rm) == ["a", "b"]


# -- third-party policies ----------------------------------------------------------------------------------


@attrs.frozen
class ByTag(api.AppSortPolicy):
    """Orders applications by a number in a tag."""

    name = "by-tag"
    tag: str
    reverse: bool = False

    def key(self, app: api.Application) -> int:
        return (-1 if self.reverse else 1) * int(app.tags.get(self.tag, "0"))


def tagged(rm: RM) -> None:
    for app_id, rank in (("a", "3"), ("b", "1"), ("c", "2")):
        rm.app(app_id, rank=rank)
        rm.ask(app_id, vcore=1)
    rm.node(vcore=9)


def test_a_policy_of_a_third_party_with_options() -> None:
    registry = with_plugins(app_sort_policies=[ByTag])
    options = {"application.sort.policy.tag": "rank"}
    rm = RM(leaf("by-tag", properties=options), registry)
    tagged(rm)
    assert order(rm) == ["b", "c", "a"]


def test_reload_may_change_only_the_options() -> None:
    registry = with_plugins(app_sort_policies=[ByTag])
    options = {"application.sort.policy.tag": "rank"}
    rm = RM(leaf("by-tag", properties=options), registry)
    tagged(rm)
    rm.reload(leaf("by-tag", properties={**options, "application.sort.policy.reverse": "true"}))
    assert order(rm) == ["a", "c", "b"]


def test_options_are_inherited_together_with_the_name() -> None:
    registry = with_plugins(app_sort_policies=[ByTag])
    options = {"application.sort.policy": "by-tag", "application.sort.policy.tag": "rank"}
    rm = RM(configuration(queue("p", queue("a"), properties=options)), registry)
    for app_id, rank in (("a", "3"), ("b", "1")):
        rm.app(app_id, "root.p.a", rank=rank)
        rm.ask(app_id, vcore=1)
    rm.node(vcore=9)
    assert order(rm) == ["b", "a"]


class LongestWait(api.AppSortPolicy):
    """Longest wait first, weighted by the length of the id; keys are refreshed every ten seconds."""

    name = "longest-wait"
    refresh_every = 10.0
    clock: Any = None

    def key(self, app: api.Application) -> int:
        minutes: int = (LongestWait.clock.now() - app.waiting_since) // (60 * 10**9)
        return -minutes * len(app.id)


def test_time_dependent_keys_are_refreshed_periodically() -> None:
    rm = RM(leaf("longest-wait"), with_plugins(app_sort_policies=[LongestWait]))
    LongestWait.clock = rm.clock
    rm.node(vcore=1)
    rm.app("blocker")
    rm.ask("blocker", vcore=1)
    rm.schedule()
    for app_id in ("a", "long"):
        rm.app(app_id)
        rm.ask(app_id, count=3, vcore=1)
    rm.release("blocker", key="ask")
    assert order(rm) == ["a"], "no application has waited for a minute: submission order"
    rm.pass_time(65)
    rm.release("a", key="nothing")
    rm.node("n2", vcore=1)
    assert order(rm) == ["long"], "both have waited for a minute, and it weighs more for this one"


class ByHolding(api.AppSortPolicy):
    """Orders applications by usage, read from every attribute that a policy can see."""

    name = "by-holding"

    def key(self, app: api.Application) -> tuple[int, str]:
        assert app.queue is not None
        assert app.queue.path == "root.a"
        assert app.queue.parent is not None
        assert app.user == "user"
        assert list(app.groups) == ["group"]
        assert app.submitted == 0
        assert app.pending["vcore"] >= 0
        return (-app.allocated.get("vcore", 0), app.state)


def test_a_key_may_use_what_the_application_exposes() -> None:
    rm = RM(leaf("by-holding"), with_plugins(app_sort_policies=[ByHolding]))
    for app_id in ("a", "b"):
        rm.app(app_id)
        rm.ask(app_id, count=3, vcore=1)
    rm.node(vcore=4)
    assert order(rm) == ["a", "a", "a", "b"]
    assert rm.failures() == []


# -- options that are mappings -----------------------------------------------------------------------------


@attrs.frozen
class ByWeight(api.AppSortPolicy):
    """Sorts applications by their weighted demand, smallest first."""

    name = "by-weight"
    weights: dict[str, float] = attrs.field(factory=dict)

    def key(self, app: api.Application) -> float:
        return sum(self.weights.get(name, 0.0) * amount for name, amount in app.demand.items())


def weighing(*children: dict[str, Any], weights: str) -> RM:
    properties = {"application.sort.policy": "by-weight", "application.sort.policy.weights": weights}
    config = configuration(queue("a", *children, properties=properties))
    return RM(config, with_plugins(app_sort_policies=[ByWeight]))


@pytest.mark.parametrize(
    ("weights", "first"), [("vcore=1", "memory"), ("memory=1, vcore=0.01", "cores"), ("", "memory")]
)
def test_options_in_properties_may_be_mappings(weights: str, first: str) -> None:
    rm = weighing(weights=weights)
    rm.app("memory")
    rm.ask("memory", vcore=1, memory=5)
    rm.app("cores")
    rm.ask("cores", vcore=5, memory=1)
    rm.node(vcore=9, memory=9)
    assert order(rm)[0] == first


def test_mappings_are_inherited_and_replaced_as_a_whole() -> None:
    rm = weighing(
        queue("same"),
        queue("other", properties={"application.sort.policy.weights": "memory=1"}),
        weights="vcore=1",
    )
    weights = {name: rm.find_queue(f"root.a.{name}").order.policy.weights for name in ("same", "other")}
    assert weights == {"same": {"vcore": 1.0}, "other": {"memory": 1.0}}


def test_wrong_entry_of_a_mapping_is_reported_with_its_place() -> None:
    with pytest.raises(ConfigError) as caught:
        weighing(weights="vcore=many")
    (problem,) = caught.value.problems
    assert problem.path.endswith("queues[0].properties.application.sort.policy.weights.vcore")
    assert "expected a number, got 'many'" in problem.message
