"""Atomic gangs of asks with huge counts: members are computed, and a plan is no longer than necessary."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.core.event_collector import EventCollector
from tests.core.gangs import GangRM
from tests.core.kit import partition, queue
from tests.core.test_atomic_gangs import cluster
from yunikorn.explain.explanations import why
from yunikorn.explain.suggested_fixes import suggested_fixes
from yunikorn.interface.messages import NodeAction
from yunikorn.model import gang as atomic_gang
from yunikorn.model.node import Node
from yunikorn.resources import Resource
from yunikorn_commands.build import PURE, kind_of_build

MOST = 2**31 - 1
"""Largest count of an ask."""


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return by node how often a place was tried out for a member of a gang."""
    counts: Counter[str] = Counter()
    lend = Node.lend

    def count(node: Node, *amount: object) -> None:
        counts[node.id] += 1
        lend(node, *amount)  # type: ignore[arg-type]

    monkeypatch.setattr(Node, "lend", count)
    return counts


def test_asks_are_members_only_while_their_type_is_missing() -> None:
    rm = cluster(nodes=1)
    rm.node("n2", memory=9)
    rm.gang("app", "Atomic", vcore=3, memory=4)
    rm.task("app", "cores", "members", MOST, vcore=1)
    assert rm.schedule() == []
    rm.task("app", "bytes", "members", MOST, memory=2)
    placed = rm.schedule(1)
    assert Counter(placed) == {("app", "cores", "n1"): 3, ("app", "bytes", "n2"): 2}
    # Replicas beyond the size of the gang are ordinary asks.
    assert Counter(rm.schedule()) == {("app", "cores", "n1"): 1, ("app", "bytes", "n2"): 2}


def test_ask_of_multiple_types_has_replicas_until_no_type_is_missing() -> None:
    rm = cluster(nodes=0)
    rm.node("n1", vcore=8, memory=8)
    rm.gang("app", "Atomic", vcore=3, memory=7)
    rm.task("app", "both", "members", MOST, vcore=1, memory=2)
    assert rm.schedule(1) == [("app", "both", "n1")] * 4


def test_later_ask_supplies_the_types_that_are_still_missing() -> None:
    rm = cluster(nodes=2)
    rm.gang("app", "Atomic", vcore=7)
    rm.task("app", "few", "members", 2, vcore=2)
    rm.task("app", "many", "members", MOST, vcore=1)
    assert Counter(key for _, key, _ in rm.schedule(1)) == {"few": 2, "many": 3}


def test_an_ask_that_supplies_nothing_missing_is_no_member() -> None:
    rm = cluster(nodes=1)
    rm.gang("app", "Atomic", vcore=2)
    rm.task("app", "disk", "members", disk=1)
    rm.task("app", "cores", "members", 2, vcore=1)
    assert rm.schedule() == [("app", "cores", "n1")] * 2
    rm.node("n2", disk=1)
    assert rm.schedule() == [("app", "disk", "n2")]


def test_insufficient_capacity_for_a_large_gang_is_found_without_trying_nodes(lent: Counter[str]) -> None:
    rm = cluster(nodes=0)
    for number in range(3):
        rm.node(f"n{number}", memory=20_001)
    # The total free room is enough, but one byte on each node is unusable.
    rm.gang("app", "Atomic", memory=60_002)
    rm.task("app", "m", "members", MOST, memory=2)
    assert rm.schedule() == []
    assert not lent
    rm.node("n3", memory=2)
    assert len(rm.schedule(1)) == 30_001
    assert lent == {"n0": 10_000, "n1": 10_000, "n2": 10_000, "n3": 1}


def test_unschedulable_nodes_do_not_count_for_a_large_gang(lent: Counter[str]) -> None:
    rm = cluster(nodes=0)
    rm.node("n1", memory=500)
    rm.node("n2", schedulable=False, memory=500)
    rm.gang("app", "Atomic", memory=600)
    rm.task("app", "m", "members", MOST, memory=1)
    assert rm.schedule() == []
    assert not lent


def test_only_the_required_node_counts_for_members_that_require_it(lent: Counter[str]) -> None:
    rm = cluster(nodes=0)
    rm.node("n1", schedulable=False, memory=500)
    rm.node("n2", memory=500)
    rm.gang("app", "Atomic", memory=501)
    tags = {"yunikorn.apache.org/requiredNode": "n1"}
    rm.task("app", "m", "members", MOST, memory=1, tags=tags)
    assert rm.schedule() == []
    assert not lent
    rm.change_node("n1", memory=501)
    assert len(rm.schedule(1)) == 501


def test_gang_over_the_maximum_size_is_not_placed_and_reported() -> None:
    collector = EventCollector()
    text = collector.text(partition(queue("a"), queue("b")))
    rm = GangRM(scheduler=collector.rm(partition(queue("a"))).scheduler, config=text, rm_id="gangs")
    rm.node("n1", memory=1_000_000)
    rm.gang("app", "Atomic", memory=200_001)
    rm.task("app", "one", "members", 100_000, memory=1)
    rm.task("app", "two", "members", MOST, memory=1)
    message = "its gang has 200001 members, and at most 200000 can be placed at once"
    assert rm.schedule() == []
    updated = rm.take_response().updated_applications
    assert [(one.application_id, one.state, one.message) for one in updated][-1] == (
        "app", "Accepted", message,
    )  # fmt: skip
    assert collector.messages("app")[-1] == message
    ask = rm.find_app("app").asks["one"]
    assert [reason.detail for reason in why(rm.at_work(), ask)] == [message]
    assert list(suggested_fixes(rm.at_work(), ask)) == [
        "reduce the number of gang members (now 200001): request fewer, larger members"
    ]
    # Further asks change nothing and produce no new answer, and a gang that cannot run delays no other ask.
    rm.task("app", "more", "members", memory=1)
    assert rm.take_response().updated_applications == []
    rm.pass_time(700)
    rm.app("small")
    rm.ask("small", "s", memory=1)
    assert rm.schedule() == [("small", "s", "n1")]
    # With fewer and larger members the gang is placed.
    rm.release_ask("app", "one")
    rm.release_ask("app", "two")
    rm.task("app", "large", "members", 2, memory=100_000)
    assert Counter(key for _, key, _ in rm.schedule(1)) == {"large": 2, "more": 1}


@pytest.mark.parametrize("most", [3, 4])
def test_a_gang_of_the_largest_size_is_placed(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_gang, "MOST_MEMBERS", most)
    rm = cluster()
    rm.gang("app", "Atomic", vcore=4)
    rm.task("app", "m", "members", MOST, vcore=1)
    assert len(rm.schedule(1)) == (4 if most == 4 else 0)


def test_gang_with_empty_minimum_needs_no_member() -> None:
    rm = cluster(nodes=1)
    rm.gang("app", "Atomic", vcore=-1, tags={"application.create.force": "true"})
    rm.task("app", "m", "members", 2, vcore=1)
    assert rm.schedule() == [("app", "m", "n1")] * 2


def test_a_gang_whose_member_requires_a_drained_node_is_tried_again_when_that_node_has_room() -> None:
    rm = cluster()
    rm.app("filler")
    tags = {"yunikorn.apache.org/requiredNode": "n1"}
    rm.ask("filler", "f", 2, vcore=2, tags=tags)
    assert len(rm.schedule()) == 2
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.gang("app", "Atomic", vcore=2)
    rm.task("app", "pinned", "members", vcore=1, tags=tags)
    rm.task("app", "free", "members", vcore=1)
    assert rm.schedule() == []
    rm.release("filler", next(iter(rm.running)))
    assert sorted(rm.schedule()) == [("app", "free", "n2"), ("app", "pinned", "n1")]


def test_members_released_one_by_one_are_replaced_by_the_remaining_ones() -> None:
    rm = cluster(nodes=1)
    rm.gang("app", "Atomic", vcore=3)
    for number in range(9):
        rm.task("app", f"t{number}", "members", vcore=1)
    for number in (1, 8, 0, 2, 5):
        rm.release_ask("app", f"t{number}")
    assert [key for _, key, _ in rm.schedule(1)] == ["t3", "t4", "t6"]
    assert rm.schedule() == [("app", "t7", "n1")]


@pytest.mark.skipif(kind_of_build() != PURE, reason="compiled code calls the counted method directly")
def test_members_released_together_are_replaced_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    rm = cluster(nodes=1)
    rm.gang("app", "Atomic", vcore=3)
    for number in range(40):
        rm.task("app", f"t{number}", "members", vcore=1)
    choices: list[int] = []
    choose = atomic_gang.AtomicGang.choose

    def count(gang: atomic_gang.AtomicGang) -> tuple[atomic_gang.Members, Resource]:
        choices.append(len(gang.members))
        return choose(gang)

    monkeypatch.setattr(atomic_gang.AtomicGang, "choose", count)
    for number in range(30):
        rm.release_ask("app", f"t{number}")
    assert choices == []
    waiting = rm.find_app("app").asks["t30"]
    assert [reason.detail for reason in why(rm.at_work(), waiting)] == []
    assert choices == [3]
    assert [key for _, key, _ in rm.schedule(1)] == ["t30", "t31", "t32"]
    assert choices == [3]


def test_gang_that_just_lost_a_member_still_becomes_overdue() -> None:
    rm = cluster(nodes=1)
    rm.app("filler")
    rm.ask("filler", "f", 4, vcore=1)
    rm.schedule()
    rm.gang("app", "Atomic", vcore=3)
    rm.task("app", "one", "members", vcore=1)
    rm.task("app", "two", "members", 3, vcore=1)
    assert rm.schedule() == []
    rm.release_ask("app", "one")
    rm.pass_time(600)
    rm.app("crowd")
    rm.ask("crowd", "c", 9, vcore=1)
    rm.release("filler", next(iter(rm.running)))
    assert rm.schedule() == []
    rm.remove_app("filler")
    assert [app for app, _, _ in rm.schedule(1)] == ["app"] * 3
