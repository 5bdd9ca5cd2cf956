"""Reservations: small asks do not starve large ones, and a node is reserved no longer than needed."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.clock import SECOND
from yunikorn.interface.messages import Allocation, NodeAction
from yunikorn.model.ask import Ask
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource


def reserved(rm: RM) -> dict[str, list[str]]:
    """Return the asks for which each node is reserved."""
    rm.schedule()
    nodes = rm.at_work().partition.nodes.values()
    return {node.id: [ask.key for ask in node.reservations] for node in nodes if node.reservations}


def busy(nodes: int = 2, timeouts: Timeouts | None = None) -> RM:
    """Return an RM with nodes of 10 vcore, ten small tasks on each, and a pending ask of 10 vcore."""
    rm = RM(configuration(queue("a"), queue("b")), timeouts=timeouts)
    for number in range(nodes):
        rm.node(f"n{number + 1}", vcore=10)
    rm.app("small", "root.a")
    rm.ask("small", "s", nodes * 10, vcore=1)
    rm.schedule()
    rm.app("big", "root.b")
    rm.ask("big", "B", vcore=10)
    assert rm.schedule() == []
    return rm


def release_one(rm: RM, node_id: str) -> None:
    uuid = next(uuid for uuid, one in rm.running.items() if one.node_id == node_id)
    rm.release("small", uuid)


def test_without_a_reservation_small_requests_starve_a_big_one() -> None:
    rm = busy(timeouts=Timeouts(reservation=None))
    rm.ask("small", "more", 100, vcore=1)
    for number in range(40):
        rm.pass_time(1)
        release_one(rm, f"n{number % 2 + 1}")
        assert [key for _, key, _ in rm.schedule()] == ["more"]


def test_big_ask_reserves_a_node_after_the_delay_and_gets_it() -> None:
    rm = busy()
    rm.ask("small", "more", 100, vcore=1)
    assert reserved(rm) == {}
    rm.pass_time(1.9)
    assert reserved(rm) == {}
    rm.pass_time(0.1)
    # The small asks wait as long, and the first of them reserves the other node.
    assert reserved(rm) == {"n1": ["B"], "n2": ["more"]}
    node, other = "n1", "n2"
    for _ in range(9):
        # Capacity released on the reserved node is kept; elsewhere small asks are placed.
        release_one(rm, node)
        release_one(rm, other)
        assert rm.schedule() == [("small", "more", other)]
    release_one(rm, node)
    assert rm.schedule() == [("big", "B", node)]
    assert reserved(rm) == {other: ["more"]}


def test_delay_counts_from_the_creation_of_the_ask() -> None:
    rm = busy(timeouts=Timeouts(reservation=5 * SECOND))
    rm.pass_time(4.9)
    assert reserved(rm) == {}
    rm.pass_time(0.2)
    assert list(reserved(rm).values()) == [["B"]]


def test_reservation_ends_with_its_ask() -> None:
    rm = busy()
    rm.pass_time(3)
    assert reserved(rm)
    rm.release_ask("big", "B")
    assert reserved(rm) == {}
    rm.ask("small", "more", vcore=1)
    release_one(rm, "n1")
    assert rm.schedule() == [("small", "more", "n1")]


def test_a_reservation_ends_with_the_application() -> None:
    rm = busy()
    rm.pass_time(3)
    assert reserved(rm)
    rm.remove_app("big")
    assert reserved(rm) == {}


def test_ask_reserves_another_node_when_its_node_leaves_or_drains() -> None:
    rm = busy()
    rm.pass_time(3)
    (first,) = reserved(rm)
    rm.change_node(first, NodeAction.DECOMMISSION)
    (second,) = reserved(rm)
    assert second != first
    rm.change_node(second, NodeAction.DRAIN_NODE)
    assert reserved(rm) == {}
    rm.change_node(second, NodeAction.DRAIN_TO_SCHEDULABLE)
    assert reserved(rm) == {second: ["B"]}


def test_reserving_ask_uses_a_new_node_that_fits() -> None:
    rm = busy()
    rm.pass_time(3)
    assert reserved(rm)
    rm.node("n3", vcore=10)
    assert rm.schedule() == [("big", "B", "n3")]
    assert reserved(rm) == {}


def test_next_ask_of_the_class_inherits_the_reservation() -> None:
    rm = busy()
    rm.app("big2", "root.b")
    rm.ask("big2", "C", vcore=10)
    rm.pass_time(3)
    (node,) = reserved(rm)
    assert reserved(rm) == {node: ["B"]}
    rm.node("n3", vcore=10)
    assert rm.schedule() == [("big", "B", "n3")]
    assert reserved(rm) == {node: ["C"]}


def test_ask_that_may_not_run_loses_its_reservation() -> None:
    rm = RM(configuration(queue("a"), queue("b", resources={"max": {"vcore": "10"}})))
    rm.node("n1", vcore=10_000)
    rm.node("n2", vcore=10_000)
    rm.app("small", "root.a")
    rm.ask("small", "s", 20, vcore=1_000)
    rm.schedule()
    rm.app("big", "root.b")
    rm.ask("big", "B", vcore=10_000)
    rm.pass_time(3)
    (node,) = reserved(rm)
    rm.app("filler", "root.b")
    rm.ask("filler", "f", vcore=1_000)
    other = "n2" if node == "n1" else "n1"
    release_one(rm, other)
    assert rm.schedule() == [("filler", "f", other)]
    for _ in range(10):
        release_one(rm, node)
    assert rm.schedule() == []
    # Its queue is full now: the node is free for all others.
    assert reserved(rm) == {}
    rm.ask("small", "more", 10, vcore=1_000)
    assert [where for _, _, where in rm.schedule()] == [node] * 10


LIMIT = {"limit": "one each", "users": ["*"], "maxapplications": 1}


@pytest.mark.parametrize("keys", [{"maxapplications": 1}, {"limits": [LIMIT]}], ids=["queue", "user"])
def test_reserved_node_starts_no_application_above_maxapplications(keys: dict[str, Any]) -> None:
    rm = RM(configuration(queue("a"), queue("b", **keys)))
    rm.node("n1", vcore=10)
    rm.node("n2", vcore=10)
    rm.app("small", "root.a", user="other")
    rm.ask("small", "s", 20, vcore=1)
    rm.schedule()
    rm.app("big", "root.b")
    rm.ask("big", "B", vcore=10)
    rm.pass_time(3)
    (node,) = reserved(rm)
    # Another application of the same queue and user starts on the other node.
    rm.app("quick", "root.b")
    rm.ask("quick", "q", vcore=1)
    release_one(rm, "n2" if node == "n1" else "n1")
    assert [app for app, _, _ in rm.schedule()] == ["quick"]
    for _ in range(10):
        release_one(rm, node)
    assert rm.schedule() == []
    assert reserved(rm) == {}
    # The place is free again when the other application ends.
    rm.remove_app("quick")
    assert rm.schedule() == [("big", "B", node)]


def test_required_node_is_reserved_immediately_and_displaces_others() -> None:
    rm = busy()
    rm.pass_time(3)
    (node,) = reserved(rm)
    rm.app("daemon", "root.b")
    rm.ask("daemon", "D", vcore=2, tags={"yunikorn.apache.org/requiredNode": node})
    other = "n2" if node == "n1" else "n1"
    assert reserved(rm) == {node: ["D"], other: ["B"]}
    release_one(rm, node)
    assert rm.schedule() == []
    release_one(rm, node)
    assert rm.schedule() == [("daemon", "D", node)]
    assert reserved(rm) == {other: ["B"]}


def test_draining_required_node_accepts_its_asks() -> None:
    rm = RM()
    rm.node("n1", vcore=10)
    rm.node("n2", vcore=10)
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.app("daemon")
    rm.ask("daemon", "D", vcore=2, tags={"yunikorn.apache.org/requiredNode": "n1"})
    rm.ask("daemon", "E", vcore=2)
    assert rm.schedule() == [("daemon", "D", "n1"), ("daemon", "E", "n2")]


@pytest.mark.parametrize("why", ["drained", "reserved"])
def test_an_occupied_required_node_activates_its_asks(why: str) -> None:
    """The first ask of a class holds the reservation and is withdrawn; the second one takes the room."""
    rm = RM(configuration(queue("a"), queue("b")))
    rm.node("n1", vcore=10)
    rm.app("small", "root.a")
    rm.ask("small", "s", 10, vcore=1)
    rm.schedule()
    rm.node("n2", vcore=10)
    required = {"yunikorn.apache.org/requiredNode": "n1"}
    rm.app("daemon", "root.b")
    rm.ask("daemon", "D1", vcore=2, tags=required)
    rm.ask("daemon", "D2", vcore=2, tags=required)
    assert reserved(rm) == {"n1": ["D1"]}
    if why == "reserved":
        rm.ask("daemon", "E", vcore=9, tags=required)
        assert reserved(rm) == {"n1": ["D1", "E"]}
    else:
        rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.release_ask("daemon", "D1")
    assert reserved(rm) == ({"n1": ["E"]} if why == "reserved" else {})
    release_one(rm, "n1")
    release_one(rm, "n1")
    assert rm.schedule() == [("daemon", "D2", "n1")]


def test_unknown_required_node_is_awaited() -> None:
    rm = RM()
    rm.node("n1", vcore=10)
    rm.app("daemon")
    rm.ask("daemon", "D", vcore=2, tags={"yunikorn.apache.org/requiredNode": "n9"})
    assert rm.schedule() == []
    rm.node("n9", vcore=10)
    assert rm.schedule() == [("daemon", "D", "n9")]


def test_node_that_can_never_fit_is_not_reserved() -> None:
    rm = RM()
    rm.node("n1", vcore=10)
    rm.app()
    rm.ask(key="huge", vcore=11)
    rm.ask(key="small", vcore=1)
    rm.pass_time(10)
    rm.schedule()
    assert reserved(rm) == {}
    rm.node("n2", vcore=20)
    assert ("app", "huge", "n2") in rm.schedule()


def test_required_node_refused_by_a_predicate_is_not_reserved() -> None:
    rm = RM(configuration(predicates=["taints"]))
    rm.node("n1", {"taints": "only=gpu:NoSchedule"}, vcore=10)
    rm.app("daemon")
    rm.ask("daemon", "D", vcore=2, tags={"yunikorn.apache.org/requiredNode": "n1"})
    assert reserved(rm) == {}


def test_asks_of_a_reserved_node_are_served_in_policy_order() -> None:
    rm = RM(configuration(queue("a")))
    for name in ("n1", "n2", "n3"):
        rm.node(name, vcore=2, memory=100)
    rm.app("running")
    rm.ask("running", "r", 6, vcore=1)
    rm.schedule()
    for age, name in enumerate(("first", "second", "third")):
        rm.pass_time(1)
        rm.app(name)
        rm.ask(name, "t", 2, vcore=1, memory=10 + age)
    rm.pass_time(10)
    # Each has an ask class of its own and reserves a node; released capacity is theirs in order of arrival.
    assert {tuple(keys) for keys in reserved(rm).values()} == {("t",)}
    served = []
    for node_id in ("n3", "n2", "n1", "n3", "n2", "n1"):
        uuid = next(uuid for uuid, one in rm.running.items() if one.node_id == node_id)
        rm.release(rm.running[uuid].application_id, uuid)
        served += [(app, node) for app, _, node in rm.schedule()]
    assert [app for app, _ in served] == ["first", "first", "second", "second", "third", "third"]
    assert [node for _, node in served] == ["n3", "n2", "n1", "n3", "n2", "n1"]


def test_withdrawn_requests_hide_no_request_from_a_reserved_node() -> None:
    rm = RM(configuration(queue("a"), queue("b"), queue("c")))
    rm.node(vcore=10)
    rm.app("small", "root.a")
    rm.ask("small", "s", 10, vcore=1)
    rm.schedule()
    rm.app("big", "root.a")
    rm.ask("big", "B", vcore=10)
    rm.schedule()
    rm.pass_time(2)
    assert reserved(rm) == {"n1": ["B"]}
    # root.c is the first queue: its request is the most urgent, but larger than the node.
    rm.app("huge", "root.c")
    rm.ask("huge", "H", vcore=11, priority=9)
    rm.ask("huge", "withdrawn", vcore=5, priority=9)
    rm.app("urgent", "root.b")
    rm.ask("urgent", "U", vcore=5, priority=5)
    rm.schedule()
    rm.release_ask("huge", "withdrawn")
    rm.release("small")
    assert rm.schedule()[0] == ("urgent", "U", "n1")


def test_reservation_ends_when_the_node_becomes_too_small() -> None:
    rm = busy()
    rm.pass_time(2)
    assert reserved(rm) == {"n1": ["B"]}
    rm.change_node("n1", vcore=9)
    assert reserved(rm) == {"n2": ["B"]}
    # Or the foreign usage there leaves too little.
    rm.node("n3", vcore=12, occupied={"vcore": 6})
    rm.change_node("n2", occupied={"vcore": 1})
    assert reserved(rm) == {}
    rm.change_node("n3", occupied={"vcore": 3})
    assert reserved(rm) == {}
    rm.change_node("n1", vcore=10)
    assert reserved(rm) == {"n1": ["B"]}


def test_reservation_ends_when_the_required_node_becomes_too_small() -> None:
    rm = busy(1)
    rm.ask("big", "daemon", vcore=5, tags={"yunikorn.apache.org/requiredNode": "n1"})
    assert reserved(rm) == {"n1": ["daemon"]}
    rm.change_node("n1", vcore=4)
    assert reserved(rm) == {}
    rm.change_node("n1", vcore=10)
    assert reserved(rm) == {"n1": ["daemon"]}


def test_less_foreign_usage_makes_a_node_reservable() -> None:
    rm = RM(configuration(queue("a")))
    rm.node("n1", vcore=10, occupied={"vcore": 4})
    rm.app("small", "root.a")
    rm.ask("small", "s", 6, vcore=1)
    rm.schedule()
    rm.ask("small", "B", vcore=8)
    rm.pass_time(2)
    assert reserved(rm) == {}
    rm.change_node("n1", occupied={"vcore": 2})
    assert reserved(rm) == {"n1": ["B"]}


def test_changes_of_nodes_that_cannot_fit_do_not_retry_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rm = RM(configuration(queue("a")))
    for number in (1, 2, 3):
        rm.node(f"n{number}", vcore=10)
    rm.app("app")
    rm.ask("app", "small", 3, vcore=7)
    rm.schedule()
    for vcore in (9, 8, 7, 6):
        rm.ask("app", f"of {vcore}", vcore=vcore)
    rm.pass_time(2)
    assert reserved(rm) == {"n1": ["of 9"], "n2": ["of 8"], "n3": ["of 7"]}

    tried: list[Ask] = []
    monkeypatch.setattr(rm.at_work().cycle.reservations, "consider", tried.append)
    rm.node("n4", vcore=5)
    rm.node("n5", vcore=6, occupied={"vcore": 1})
    rm.node("n6", vcore=9, occupied={"vcore": 9}, schedulable=False)
    assert rm.schedule() == []
    assert tried == []
    rm.change_node("n5", occupied={"vcore": 0})
    assert rm.schedule() == [("app", "of 6", "n5")]


@pytest.mark.parametrize("order", ["fair", "binpacking"])
def test_node_with_least_missing_is_reserved_in_any_node_order(order: str) -> None:
    rm = RM(configuration(queue("a"), nodesortpolicy={"type": order}))
    rm.app("app")
    for node_id, used in (("n1", 7), ("n2", 5), ("n3", 6)):
        rm.node(node_id, vcore=8)
        rm.ask("app", node_id, vcore=used)
        rm.schedule()
    rm.ask("app", "big", vcore=6)
    rm.pass_time(2)
    assert reserved(rm) == {"n2": ["big"]}


class Tally(api.Predicate):
    """Counts its calls, and declares all its inputs."""

    name = "tally"
    looks = 0
    named: frozenset[str] | None = None

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return None

    def check_reservation(self, ask: api.Ask, node: api.Node) -> str | None:
        type(self).looks += 1
        return None if self.named is None or node.id in self.named else "not named"


def crowd(nodes: int, kinds: int, named: frozenset[str] | None = None) -> tuple[RM, type[Tally]]:
    """Return an RM with full nodes, a counting predicate, and asks of many classes that wait equally long."""
    counting = type("Counting", (Tally,), {"named": named})
    rm = RM(configuration(queue("a"), predicates=["tally"]), with_plugins(predicates=[counting]))
    for number in range(nodes):
        rm.node(f"n{number:03}", vcore=100)
    rm.app("app")
    rm.ask("app", "small", nodes, vcore=99)
    assert len(rm.schedule()) == nodes
    for kind in range(kinds):
        rm.ask("app", f"B{kind:02}", vcore=kind + 2)
    assert rm.schedule() == []
    return rm, counting


def test_many_classes_due_at_once_scan_a_few_nodes_each() -> None:
    rm, counting = crowd(nodes=300, kinds=40)
    rm.pass_time(2)
    node_reservations = reserved(rm)
    assert sorted(key for keys in node_reservations.values() for key in keys) == [
        f"B{kind:02}" for kind in range(40)
    ]
    assert len(node_reservations) == 40
    assert counting.looks <= 40 * 32


@pytest.mark.parametrize("step", [0.01, 1.0])
def test_each_cycle_runs_one_full_scan_and_every_class_gets_one(step: float) -> None:
    named = frozenset(f"n{number:03}" for number in range(100, 110))
    rm, counting = crowd(nodes=300, kinds=8, named=named)
    rm.pass_time(1.9)
    rm.schedule()
    counts, looked = [], []
    for _ in range(20 if step < 1 else 12):
        before = counting.looks
        # Fire all due timers at once, as a delayed service would.
        rm.clock.advance(step)
        rm.scheduler.fire_timers()
        counts.append(len(reserved(rm)))
        looked.append(counting.looks - before)
    assert counts[-1] == 8
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(counts))
    assert all(looks <= 300 + 8 * 32 for looks in looked)
    assert set(reserved(rm)) <= named


def test_withdrawn_classes_do_not_delay_the_full_scan_of_others() -> None:
    rm, _ = crowd(nodes=300, kinds=4, named=frozenset(f"n{number:03}" for number in range(100, 110)))
    rm.pass_time(2)
    assert list(reserved(rm).values()) == [["B00"]]
    rm.release_ask("app", "B01")
    rm.release_ask("app", "B02")
    assert len(reserved(rm)) == 1
    rm.pass_time(0.1)
    assert list(reserved(rm).values()) == [["B00"], ["B03"]]


def test_ask_larger_than_any_node_uses_no_full_scan() -> None:
    rm, _ = crowd(nodes=300, kinds=0, named=frozenset({"n100"}))
    rm.ask("app", "huge", vcore=101)
    rm.ask("app", "B", vcore=2)
    rm.pass_time(2)
    assert reserved(rm) == {"n100": ["B"]}


def test_new_node_that_is_the_first_to_fit_is_reserved_when_it_joins() -> None:
    """Each of the two types is available on some node, but no node has both."""
    rm, _ = crowd(nodes=300, kinds=0, named=frozenset({"wide"}))
    rm.node("other", memory=100)
    rm.ask("app", "both", vcore=50, memory=50)
    rm.pass_time(2)
    assert reserved(rm) == {}
    running = [Allocation("r", "app", "r1", "wide", Resource(vcore=100, memory=100))]
    rm.node("wide", vcore=100, memory=100, existing=running)
    assert reserved(rm) == {"wide": ["both"]}


def test_a_node_stays_reserved_while_the_whole_cluster_has_too_much_allocated() -> None:
    rm = RM(configuration(queue("a"), queue("b")))
    rm.node("n1", vcore=10)
    rm.app("small", "root.a")
    rm.ask("small", "s", vcore=5)
    rm.ask("small", "t", vcore=5)
    rm.schedule()
    rm.node("n2", vcore=10)
    rm.ask("small", "u", 5, vcore=2)
    assert len(rm.schedule()) == 5
    # More is allocated on n2 than its capacity, so the cluster as a whole has no room on n1.
    rm.change_node("n2", vcore=4)
    rm.release("small", "s#1")
    rm.app("big", "root.b")
    rm.ask("big", "B", vcore=5)
    rm.pass_time(3)
    assert reserved(rm) == {"n1": ["B"]}
    for uuid in ("u#3", "u#4", "u#5"):
        rm.release("small", uuid)
    assert rm.schedule() == [("big", "B", "n1")]
