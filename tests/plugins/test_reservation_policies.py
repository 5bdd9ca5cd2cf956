"""Reservation policies of plugins: who reserves a node, how many do, for how long, and which node."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue
from tests.core.reserving import big, cluster, free, reservations, reserved, why
from yunikorn import api
from yunikorn.errors import ConfigError


@attrs.define(eq=False)
class Tagged(api.ReservationPolicy):
    """Answers with the tags of requests, and with properties of queues."""

    name = "tagged"
    pause = 30.0
    fails: bool = False

    def reserves_after(self, ask: api.Ask, delay: float | None) -> float | None:
        if self.fails or ask.tags.get("fails"):
            raise RuntimeError("no luck")
        text = ask.tags.get("after", "0")
        return None if text == "never" else float(text)

    def most_in(self, queue: api.Queue) -> int | None:
        text = queue.properties.get("most", "")
        return int(text) if text else None

    def lasts(self, ask: api.Ask) -> float | None:
        text = ask.tags.get("lasts", "")
        return float(text) if text else None


class Last(api.ReservationPolicy):
    """Reserves the last node by id, and fails for the very last one."""

    name = "last"

    def reserves_after(self, ask: api.Ask, delay: float | None) -> float | None:
        return 0

    def rank_node(self, ask: api.Ask, node: api.Node) -> float:
        if node.id == "n9":
            raise RuntimeError("no luck")
        return -int(node.id[1:])


def tagged(*queues: dict[str, Any], policy: str = "tagged", nodes: int = 4, **options: Any) -> GangRM:
    return cluster(*queues, policy=policy, policies=[Tagged, Last], nodes=nodes, **options)


def test_policy_says_who_reserves() -> None:
    rm = tagged()
    big(rm, "never", vcore=10, tags={"after": "never"})
    big(rm, "soon", vcore=9, tags={"after": "3"})
    big(rm, "at-once", vcore=8, tags={"after": "-5"})
    assert list(reserved(rm).values()) == ["at-once"]
    rm.pass_time(3)
    assert sorted(reserved(rm).values()) == ["at-once", "soon"]
    rm.pass_time(1_000)
    assert sorted(reserved(rm).values()) == ["at-once", "soon"]
    assert why(rm, "never") == ["reservation policy tagged reserves no node for it"]


def test_request_behind_one_of_its_class_that_never_reserves() -> None:
    rm = tagged()
    big(rm, "never", tags={"after": "never"})
    big(rm, "later", tags={"after": "5"})
    assert reserved(rm) == {}
    rm.pass_time(5)
    assert list(reserved(rm).values()) == ["later"]


def test_new_request_of_a_class_that_waits_is_asked_about() -> None:
    rm = tagged()
    big(rm, "never", tags={"after": "never"})
    assert reserved(rm) == {}
    rm.pass_time(1)
    big(rm, "new")
    assert list(reserved(rm).values()) == ["new"]


def test_request_behind_a_released_one_is_asked_about() -> None:
    rm = tagged()
    big(rm, "x", tags={"after": "never"})
    rm.ask("x", "next", vcore=10)
    assert reserved(rm) == {}
    rm.pass_time(1)
    rm.release_ask("x", "x")
    assert list(reserved(rm).values()) == ["next"]


def test_new_request_under_another_limit_is_asked_about() -> None:
    """Requests of one class under different limits of users have bits of their own."""
    limits = [{"limit": "each", "users": ["*"], "maxresources": {"vcore": "50m"}}]
    rm = tagged(queue("a", limits=limits))
    for name in list(rm.at_work().partition.nodes):
        free(rm, name, 3)
    rm.app("x", "root.a", user="ann")
    rm.ask("x", "x", vcore=10, tags={"after": "never"})
    assert reserved(rm) == {}
    rm.pass_time(1)
    rm.app("y", "root.a", user="bob")
    rm.ask("y", "y", vcore=10)
    assert list(reserved(rm).values()) == ["y"]


def test_bits_of_dropped_classes_are_forgotten() -> None:
    rm = tagged()
    big(rm, "x", tags={"after": "never"})
    assert reserved(rm) == {}
    rm.release_ask("x", "x")
    found = reservations(rm)
    assert found._bits
    for number in range(600):
        rm.ask("x", f"{number}", memory=number + 1, vcore=1)
        rm.release_ask("x", f"{number}")
    assert not found._bits
    assert not found._waiting


def test_bounds_of_parents_count_all_queues_below() -> None:
    rm = tagged(queue("p", queue("a"), queue("b"), properties={"most": "2"}), queue("c"))
    for number, app in enumerate(("a1", "b1", "a2", "c1")):
        big(rm, app, f"root.{'' if app[0] == 'c' else 'p.'}{app[0]}", vcore=10 - number)
    values = sorted(reserved(rm).values())
    assert "c1" in values
    assert len(values) == 3
    assert len(reservations(rm).counts) == 7


def test_policy_ranks_all_nodes_and_one_for_which_it_fails_is_left_out() -> None:
    rm = tagged(policy="last", nodes=9)
    big(rm, "x")
    assert reserved(rm) == {"n8": "x"}
    (failure,) = rm.scheduler.failures
    assert "ranking nodes to reserve for ask x of application x: node n9" in failure.message


def test_policy_ranks_more_nodes_than_a_sample() -> None:
    rm = tagged(policy="last", nodes=50)
    big(rm, "x", vcore=10)
    big(rm, "y", vcore=9)
    assert reserved(rm) == {"n50": "x"}
    rm.pass_time(0.01)
    assert reserved(rm) == {"n50": "x", "n49": "y"}


def test_failing_policy_refuses_and_is_asked_again_after_a_minute() -> None:
    rm = tagged(fails=True)
    big(rm, "x")
    assert reserved(rm) == {}
    assert why(rm, "x") == ["reservation policy tagged failed"]
    (policy,) = [one.plugin for one in rm.at_work().instances if isinstance(one.plugin, Tagged)]
    policy.fails = False
    rm.pass_time(59.9)
    assert reserved(rm) == {}
    rm.pass_time(0.1)
    assert list(reserved(rm).values()) == ["x"]
    (failure,) = rm.scheduler.failures
    assert "deciding whether to reserve for ask x of application x: RuntimeError: no luck" in failure.message
    assert failure.plugin.startswith("tagged of ")


def test_failure_for_one_request_does_not_concern_others() -> None:
    rm = tagged()
    big(rm, "bad", tags={"fails": "yes"})
    big(rm, "good")
    assert list(reserved(rm).values()) == ["good"]


def test_explanations_report_no_failures() -> None:
    rm = tagged()
    big(rm, "bad", tags={"fails": "yes"})
    rm.schedule()
    before = [failure.count for failure in rm.scheduler.failures]
    why(rm, "bad")
    assert [failure.count for failure in rm.scheduler.failures] == before


def test_unknown_policies_and_options_are_errors_at_load() -> None:
    for keys, text in (
        ({"policy": "nothing"}, "nothing"),
        ({"policy": "standard", "least": "1"}, "unknown key"),
        ({"totl": "1"}, "did you mean 'total'"),
        ({"total": "-1"}, "total"),
        ({"duration": "0"}, "duration"),
        ({"delay": "soon"}, "expected a number"),
    ):
        with pytest.raises(ConfigError, match=text):
            RM(configuration(queue("a"), reservations=keys))


def test_policy_that_is_not_required_is_replaced_by_the_default() -> None:
    rm = cluster(policy="nothing", required=False)
    big(rm, "x")
    rm.pass_time(2)
    assert list(reserved(rm).values()) == ["x"]


@pytest.mark.parametrize("number", [3, 1_000])
def test_many_waiting_classes_are_not_visited_while_the_partition_is_full(number: int) -> None:
    asked: list[str] = []

    class Counting(api.ReservationPolicy):
        name = "counting"

        def reserves_after(self, ask: api.Ask, delay: float | None) -> float | None:
            asked.append(ask.key)
            return 0

        def most_in(self, queue: api.Queue) -> int | None:
            return 2 if queue.parent is None else None

    rm = cluster(policy="counting", policies=[Counting])
    rm.app("x", "root.a")
    for each in range(number):
        rm.ask("x", f"x{each:04}", vcore=10, memory=each + 1)
    for name in rm.at_work().partition.nodes:
        rm.change_node(name, vcore=10, memory=2_000)
    rm.pass_time(3)
    assert sorted(reserved(rm).values()) == ["x0000", "x0001"]
    asked.clear()
    rm.release_ask("x", "x0000")
    assert sorted(reserved(rm).values()) == ["x0001", "x0002"]
    assert len(asked) <= 3
