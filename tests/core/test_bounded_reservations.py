"""The options of the reservation policy `standard`, together with other mechanisms."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.core.reserving import big, cluster, free, reservations, reserved, why
from yunikorn.clock import SECOND
from yunikorn.interface.messages import NodeAction
from yunikorn.model.context import Timeouts

REQUIRED = "yunikorn.apache.org/requiredNode"


# -- options of the default ---------------------------------------------------------------------------


def test_default_without_options_asks_nothing_and_counts_nothing() -> None:
    rm = cluster(policy="standard")
    assert not rm.at_work().cycle.reservations.restricted
    rm = cluster(pause=5)
    big(rm, "x")
    rm.pass_time(3)
    assert list(reserved(rm).values()) == ["x"]
    found = rm.at_work().cycle.reservations
    assert (found.restricted, found.counts) == (False, {})


def test_delay_overrides_that_of_the_partition() -> None:
    rm = cluster(delay=5)
    big(rm, "x")
    rm.pass_time(4.9)
    assert reserved(rm) == {}
    assert why(rm, "x") == ["reservation policy standard reserves a node for it later: in 0.1s"]
    rm.pass_time(0.1)
    assert list(reserved(rm).values()) == ["x"]
    assert [text.partition(":")[0] for text in why(rm, "x")] == ["waits for room on its reserved node"]


def test_delay_applies_even_if_the_partition_never_reserves() -> None:
    rm = cluster(delay=1, timeouts=Timeouts(reservation=None))
    big(rm, "x")
    rm.pass_time(1)
    assert list(reserved(rm).values()) == ["x"]


def test_delay_of_the_partition_applies_under_other_options() -> None:
    rm = cluster(total=5, timeouts=Timeouts(reservation=7 * SECOND))
    big(rm, "x")
    rm.pass_time(6.9)
    assert reserved(rm) == {}
    rm.pass_time(0.1)
    assert list(reserved(rm).values()) == ["x"]
    never = cluster(total=5, timeouts=Timeouts(reservation=None))
    big(never, "x")
    never.pass_time(100)
    assert reserved(never) == {}
    assert why(never, "x") == ["reservation policy standard reserves no node for it"]


def test_total_bounds_the_partition_and_the_first_in_order_reserve() -> None:
    rm = cluster(total=2)
    for number, app in enumerate("wxyz"):
        big(rm, app, vcore=10 - number)
    rm.pass_time(3)
    assert sorted(reserved(rm).values()) == ["w", "x"]
    assert why(rm, "y") == ["2 of 2 reservations of queue root in use"]
    rm.release_ask("w", "w")
    assert sorted(reserved(rm).values()) == ["x", "y"]
    rm.remove_app("x")
    assert sorted(reserved(rm).values()) == ["y", "z"]


def test_total_of_zero_reserves_nothing() -> None:
    rm = cluster(total=0)
    big(rm, "x")
    rm.pass_time(100)
    assert reserved(rm) == {}
    assert why(rm, "x") == ["0 of 0 reservations of queue root in use"]


def test_perqueue_bounds_each_leaf_and_not_its_parents() -> None:
    rm = cluster({"name": "p", "queues": [queue("a"), queue("b")]}, perqueue=1)
    for number, app in enumerate(("a1", "a2", "b1", "b2")):
        big(rm, app, f"root.p.{app[0]}", vcore=10 - number)
    rm.pass_time(3)
    assert sorted(reserved(rm).values()) == ["a1", "b1"]
    assert why(rm, "a2") == ["1 of 1 reservations of queue root.p.a in use"]
    rm.remove_app("a1")
    assert sorted(reserved(rm).values()) == ["a2", "b1"]


def test_perapplication_bounds_each_application() -> None:
    rm = cluster(perapplication=1)
    for app in ("x", "y"):
        rm.app(app, "root.a")
    for number, (app, key) in enumerate((("x", "x1"), ("x", "x2"), ("y", "y1"), ("y", "y2"))):
        rm.ask(app, key, vcore=10 - number)
    rm.pass_time(3)
    assert sorted(reserved(rm).values()) == ["x1", "y1"]
    rm.release_ask("x", "x1")
    assert sorted(reserved(rm).values()) == ["x2", "y1"]


def test_request_behind_a_bounded_queue_reserves_although_both_are_of_one_class() -> None:
    """The first request of the class is refused, so the next one of the class is asked about."""
    rm = cluster(perqueue=1)
    big(rm, "first", "root.a", vcore=9)
    rm.pass_time(3)
    assert list(reserved(rm).values()) == ["first"]
    big(rm, "same", "root.a")
    big(rm, "other", "root.b")
    rm.pass_time(3)
    assert sorted(reserved(rm).values()) == ["first", "other"]


def test_freed_bound_goes_to_the_first_request_in_order() -> None:
    rm = cluster(total=1)
    big(rm, "x", vcore=10)
    rm.pass_time(3)
    assert list(reserved(rm).values()) == ["x"]
    big(rm, "low", vcore=9, priority=0)
    big(rm, "high", vcore=8, priority=5)
    rm.pass_time(3)
    assert list(reserved(rm).values()) == ["x"]
    rm.release_ask("x", "x")
    assert list(reserved(rm).values()) == ["high"]


def test_served_reservation_makes_room_for_the_next() -> None:
    rm = cluster(total=1)
    big(rm, "x", vcore=10)
    big(rm, "y", vcore=9)
    rm.pass_time(3)
    ((node, _),) = reserved(rm).items()
    free(rm, node)
    assert rm.schedule() == [("x", "x", node)]
    assert list(reserved(rm).values()) == ["y"]


def test_next_request_of_the_class_inherits_within_the_bound() -> None:
    rm = cluster(total=1)
    big(rm, "x")
    big(rm, "y")
    rm.pass_time(3)
    ((node, _),) = reserved(rm).items()
    rm.node("new", vcore=10)
    assert rm.schedule() == [("x", "x", "new")]
    assert reserved(rm) == {node: "y"}


def test_reservation_is_not_inherited_against_a_bound() -> None:
    rm = cluster(perapplication=1)
    big(rm, "x", vcore=9)
    rm.app("y", "root.a")
    rm.ask("y", "y9", vcore=9)
    rm.ask("y", "y8", vcore=8)
    rm.pass_time(3)
    assert sorted(reserved(rm).values()) == ["x", "y8"]
    held = next(node for node, key in reserved(rm).items() if key == "x")
    rm.node("new", vcore=9)
    assert rm.schedule() == [("x", "x", "new")]
    assert sorted(reserved(rm).values()) == ["y8"]
    assert held not in reserved(rm)


def test_duration_ends_a_reservation_and_its_class_pauses() -> None:
    rm = cluster(duration=10, pause=20)
    big(rm, "x")
    big(rm, "same")
    rm.pass_time(2)
    ((node, _),) = reserved(rm).items()
    rm.pass_time(9.9)
    assert reserved(rm) == {node: "x"}
    rm.pass_time(0.1)
    assert reserved(rm) == {}
    assert why(rm, "x") == [
        "the reservation of requests like it was given up, and they pause: the next one is possible in 20s"
    ]
    rm.ask("small", "more", vcore=1)
    free(rm, node, 1)
    assert rm.schedule() == [("small", "more", node)]
    rm.pass_time(19.9)
    assert reserved(rm) == {}
    rm.pass_time(0.1)
    assert list(reserved(rm).values()) == ["x"]


def test_duration_continues_when_a_reservation_is_inherited() -> None:
    rm = cluster(duration=10)
    big(rm, "x")
    big(rm, "y")
    rm.pass_time(2)
    assert list(reserved(rm).values()) == ["x"]
    rm.pass_time(6)
    rm.node("new", vcore=10)
    assert rm.schedule() == [("x", "x", "new")]
    assert list(reserved(rm).values()) == ["y"]
    rm.pass_time(4)
    assert reserved(rm) == {}


def test_pause_of_a_given_up_reservation_lets_others_reserve() -> None:
    rm = cluster(total=1, duration=10)
    big(rm, "x", vcore=10)
    big(rm, "y", vcore=9)
    rm.pass_time(2)
    assert list(reserved(rm).values()) == ["x"]
    rm.pass_time(10)
    assert list(reserved(rm).values()) == ["y"]
    rm.pass_time(10)
    assert list(reserved(rm).values()) == []


# -- together with other mechanisms -------------------------------------------------------------------


def test_required_nodes_are_not_subject_to_the_policy() -> None:
    rm = cluster(total=1)
    big(rm, "x", vcore=10)
    rm.pass_time(3)
    ((node, _),) = reserved(rm).items()
    big(rm, "daemon", "root.b", vcore=2, tags={REQUIRED: node})
    assert set(reserved(rm).values()) == {"daemon", "x"}
    assert reservations(rm).counts[rm.at_work().partition.queues.root] == 1
    none = cluster(total=0)
    big(none, "daemon", vcore=2, tags={REQUIRED: "n1"})
    assert reserved(none) == {"n1": "daemon"}


def preempting(**reservations: Any) -> GangRM:
    """Return an RM with a request whose victims have not ended yet."""
    delay = {"preemption.delay": "5s"}
    rm = cluster(
        queue("a", resources={"guaranteed": {"vcore": "10m"}}, properties=delay), queue("b"), **reservations
    )
    big(rm, "x", vcore=4)
    rm.schedule()
    rm.pass_time(6)
    rm.schedule()
    assert len(rm.evicted) == 4
    return rm


@pytest.mark.parametrize("keys", [{"total": 0}, {"total": 1, "duration": 2}, {"delay": 100}])
def test_room_of_victims_is_kept_whatever_the_policy_says(keys: dict[str, Any]) -> None:
    rm = preempting(**keys)
    ((node, _),) = reserved(rm).items()
    assert reservations(rm).counts == {}
    rm.pass_time(50)
    assert reserved(rm) == {node: "x"}
    rm.ask("small", "more", 9, vcore=1)
    rm.confirm(*rm.evicted)
    assert ("x", "x", node) in rm.schedule()


def test_room_of_victims_is_kept_over_a_reload() -> None:
    rm = preempting(total=0)
    assert list(reserved(rm).values()) == ["x"]
    rm.reload(rm_text(rm, total=0, perqueue=0))
    assert list(reserved(rm).values()) == ["x"]
    rm.confirm(*rm.evicted)
    assert [key for _, key, _ in rm.schedule()] == ["x"]


def rm_text(rm: GangRM, **reservations: Any) -> str:
    """Return the configuration of `cluster` with other keys of `reservations`."""
    names = [queue.name for queue in rm.at_work().partition.queues.root.children.values()]
    keys = {"reservations": reservations} if reservations else {}
    return configuration(*map(queue, names), **keys)


@pytest.mark.parametrize(
    ("keys", "after"),
    [
        ({"total": 1}, ["x"]),
        ({"total": 0}, []),
        ({}, ["x", "y", "z"]),
        ({"delay": 100}, []),
        ({"duration": 5}, ["x", "y", "z"]),
    ],
)
def test_reload_applies_the_new_policy_at_once(keys: dict[str, Any], after: list[str]) -> None:
    rm = cluster(total=3)
    for number, app in enumerate("xyz"):
        big(rm, app, vcore=10 - number)
    rm.pass_time(2)
    assert sorted(reserved(rm).values()) == ["x", "y", "z"]
    rm.reload(rm_text(rm, **keys))
    assert sorted(reserved(rm).values()) == after
    rm.pass_time(4.9)
    assert sorted(reserved(rm).values()) == after
    rm.pass_time(0.1)
    assert sorted(reserved(rm).values()) == ([] if "duration" in keys else after)
    rm.reload(rm_text(rm, total=3))
    assert sorted(reserved(rm).values()) == ["x", "y", "z"]


def test_drained_and_removed_nodes_free_the_bound() -> None:
    rm = cluster(total=1)
    big(rm, "x")
    rm.pass_time(2)
    ((first, _),) = reserved(rm).items()
    rm.change_node(first, NodeAction.DRAIN_NODE)
    ((second, _),) = reserved(rm).items()
    assert second != first
    rm.change_node(second, NodeAction.DECOMMISSION)
    assert list(reserved(rm).values()) == ["x"]
    rm.change_node(next(iter(reserved(rm))), vcore=3)
    assert list(reserved(rm).values()) == ["x"]


def test_stopped_queue_frees_the_bound_for_others() -> None:
    rm = cluster(total=1)
    big(rm, "x", "root.a")
    rm.pass_time(2)
    assert list(reserved(rm).values()) == ["x"]
    big(rm, "y", "root.b", vcore=9)
    rm.pass_time(2)
    rm.scheduler.stop_queue("rm", "default", "root.a")
    assert list(reserved(rm).values()) == ["y"]
    rm.scheduler.start_queue("rm", "default", "root.a")
    rm.remove_app("y")
    assert list(reserved(rm).values()) == ["x"]


def test_request_over_its_quota_frees_the_bound() -> None:
    rm = cluster(queue("a", resources={"max": {"vcore": "12m"}}), queue("b"), total=1)
    big(rm, "x", "root.a")
    rm.pass_time(2)
    ((node, _),) = reserved(rm).items()
    big(rm, "filler", "root.a", vcore=3)
    big(rm, "y", "root.b", vcore=9)
    rm.pass_time(2)
    other = next(one for one in rm.at_work().partition.nodes if one != node)
    free(rm, other, 3)
    assert rm.schedule() == [("filler", "filler", other)]
    free(rm, node)
    assert ("y", "y", node) in rm.schedule()


def test_application_in_back_off_reserves() -> None:
    properties = {
        "application.unschedasks.backoff": "1",
        "application.unschedasks.backoff.delay": "10s",
    }
    rm = cluster(queue("a", properties=properties), queue("b"), total=1)
    for name in list(rm.at_work().partition.nodes):
        free(rm, name, 3)
    big(rm, "x")
    rm.schedule()
    rm.pass_time(3)
    assert reserved(rm) == {}
    rm.pass_time(8)
    assert list(reserved(rm).values()) == ["x"]


def test_changed_request_frees_the_bound() -> None:
    rm = cluster(perapplication=1)
    big(rm, "x", vcore=10)
    rm.ask("x", "x2", vcore=9)
    rm.pass_time(2)
    assert list(reserved(rm).values()) == ["x"]
    rm.ask("x", "x", vcore=8)
    assert len(reserved(rm)) == 1


def test_placeholders_reserve_within_the_bounds() -> None:
    rm = cluster(perapplication=1)
    rm.gang("gang", queue_name="root.a", vcore=17)
    rm.task("gang", "p9", "one", 1, placeholder=True, vcore=9)
    rm.task("gang", "p8", "two", 1, placeholder=True, vcore=8)
    rm.pass_time(3)
    ((node, _),) = reserved(rm).items()
    assert reserved(rm) == {node: "p9"}
    free(rm, node)
    assert rm.schedule() == [("gang", "p9", node)]
    ((node, key),) = reserved(rm).items()
    assert key == "p8"


def test_reservations_of_a_queue_that_ends_are_forgotten() -> None:
    rm = cluster(total=2)
    for app in ("x", "y"):
        big(rm, app, vcore=10 if app == "x" else 9)
    rm.pass_time(3)
    assert len(reserved(rm)) == 2
    for app in ("x", "y", "small"):
        rm.remove_app(app)
    rm.schedule()
    found = reservations(rm)
    assert found.counts == {}
    assert found._counted == {}
    assert found._bits == 0 or found._waiting


def test_long_visits_are_followed_by_a_pause() -> None:
    rm = cluster(perapplication=0)
    for number in range(150):
        big(rm, f"x{number}", vcore=10)
    rm.pass_time(3)
    assert reserved(rm) == {}
    found = reservations(rm)
    assert found._pause_until > rm.clock.now()
    rm.reload(rm_text(rm, perapplication=1))
    assert len(reserved(rm)) == 1
