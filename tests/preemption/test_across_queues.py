"""Preemption across queues restores guarantees, and takes no more than they require."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue
from yunikorn.clock import SECOND
from yunikorn.interface.messages import Allocation, NodeAction, PreemptionPolicy, TerminationType
from yunikorn.resources import Resource

OPTED_OUT = PreemptionPolicy(allow_preempt_self=False)


def guaranteed(name: str, *children: Any, properties: Any = None, **amounts: int) -> dict[str, Any]:
    """Return a queue with a guarantee."""
    keys = {"properties": properties} if properties else {}
    resources = {"guaranteed": {kind: str(amount) for kind, amount in amounts.items()}}
    return queue(name, *children, resources=resources, **keys)


def two_queues(**keys: Any) -> RM:
    """Return an RM where `a` is guaranteed half of two nodes of 4, and allocations of `b` fill both nodes."""
    rm = RM(configuration(guaranteed("a", memory=4), queue("b"), **keys))
    rm.node("n1", memory=4)
    rm.node("n2", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 8, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    return rm


def evicted(rm: RM) -> list[str]:
    return sorted(rm.evicted)


def test_a_guarantee_is_restored_step_by_step() -> None:
    rm = two_queues()
    rm.ask("late", "y", memory=2)
    assert rm.schedule() == []
    # The ask has to be 30 seconds old: preemption.delay.
    rm.pass_time(29)
    rm.schedule()
    assert evicted(rm) == []
    assert rm.scheduler.next_timer() is not None
    rm.pass_time(1)
    assert rm.schedule() == []
    # Two victims on the first node: the youngest there, just enough.
    assert evicted(rm) == ["x#5", "x#7"]
    release = rm.evicted["x#7"]
    assert release.termination_type == TerminationType.PREEMPTED_BY_SCHEDULER
    assert release.message == "preempting allocations to free up resources to run ask: y"
    # Until the RM confirms they count as used, on the node and in the queue.
    assert rm.find_node("n1").available["memory"] == 0
    assert rm.find_queue("root.b").allocated == {"memory": 8}
    assert rm.find_queue("root.b").preempting == {"memory": 2}
    rm.confirm("x#5")
    assert rm.schedule() == []
    rm.take_response()
    rm.confirm("x#7")
    # The confirmation is not echoed.
    assert rm.take_response().released_allocations == []
    assert rm.schedule() == [("late", "y", "n1")]
    assert rm.find_queue("root.b").preempting == {}
    assert rm.find_queue("root").preempting == {}


def test_node_is_reserved_for_the_preempting_ask() -> None:
    rm = two_queues()
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    # An ask of the other queue comes first, but cannot use the room of the victims.
    rm.app("quick", "root.b")
    rm.ask("quick", "z", memory=1)
    rm.confirm()
    assert rm.schedule() == [("late", "y", "n1")]


def test_preemption_stops_at_the_guarantee() -> None:
    rm = two_queues()
    rm.ask("late", "y", 5, memory=1)
    for _ in range(9):
        rm.pass_time(31)
        rm.schedule()
        rm.confirm()
        rm.schedule()
    assert rm.find_queue("root.a").allocated == {"memory": 4}
    assert rm.find_queue("root.b").allocated == {"memory": 4}
    assert evicted(rm) == []


def test_concurrent_preemptions_share_one_guarantee() -> None:
    rm = two_queues()
    for number in range(5):
        rm.ask("late", f"y{number}", memory=1)
    rm.pass_time(31)
    rm.schedule()
    assert len(evicted(rm)) == 2, "one node each, of which there are two"
    rm.confirm()
    assert len(rm.schedule()) == 2
    rm.pass_time(1)
    rm.schedule()
    assert len(evicted(rm)) == 2
    rm.confirm()
    assert len(rm.schedule()) == 2
    rm.pass_time(31)
    rm.schedule()
    assert evicted(rm) == [], "the fifth is beyond the guarantee"


def test_the_victims_queue_keeps_its_guarantee() -> None:
    rm = RM(configuration(guaranteed("a", memory=5), guaranteed("b", memory=3)))
    rm.node("n1", memory=8)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=2)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=5)
    rm.pass_time(31)
    rm.schedule()
    # 8 - 5 would leave 3, but allocations are of size 2: 4 may be preempted, which is not enough for 5.
    assert evicted(rm) == []
    rm.ask("late", "z", memory=4)
    rm.pass_time(31)
    rm.schedule()
    assert evicted(rm) == ["x#3", "x#4"]


def test_victim_may_exceed_the_remaining_guarantee() -> None:
    rm = RM(configuration(guaranteed("a", memory=3), queue("b")))
    rm.node("n1", memory=8)
    rm.app("big", "root.b")
    rm.ask("big", "x", 2, memory=4)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=3)
    rm.pass_time(31)
    rm.schedule()
    assert evicted(rm) == ["x#2"]


def test_preemption_satisfies_all_types_or_none() -> None:
    rm = RM(configuration(guaranteed("a", memory=4, vcore=4), queue("b")))
    rm.node("n1", memory=4, vcore=4000)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.ask("big", "core", 1, vcore=1000)
    rm.app("safe", "root.b")
    rm.ask("safe", "kept", vcore=3000, policy=OPTED_OUT)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=2, vcore=2000)
    rm.pass_time(31)
    rm.schedule()
    assert evicted(rm) == [], "there are cores for one thousand only"
    rm.ask("late", "z", memory=2, vcore=1000)
    rm.pass_time(31)
    rm.schedule()
    assert evicted(rm) == ["core#5", "x#3", "x#4"]


def test_opted_out_allocations_are_never_preempted() -> None:
    rm = RM(configuration(guaranteed("a", memory=4), queue("b")))
    rm.node("n1", memory=2)
    rm.app("big", "root.b")
    rm.ask("big", "safe", memory=1, policy=OPTED_OUT)
    rm.ask("big", "x", memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert evicted(rm) == []
    rm.ask("late", "z", memory=1)
    rm.pass_time(31)
    rm.schedule()
    assert [uuid.partition("#")[0] for uuid in evicted(rm)] == ["x"]


@pytest.mark.parametrize("tags", [{}, {"any": "tag"}], ids=["plain", "tagged"])
def test_recovered_originator_is_preempted_last(tags: dict[str, str]) -> None:
    rm = RM(configuration(guaranteed("a", memory=4), queue("b")))
    rm.app("big", "root.b")
    driver = Allocation(
        "driver", "big", "driver#1", "n1", Resource(memory=1), originator=True, allocation_tags=tags
    )
    rm.node("n1", memory=2, existing=[driver])
    rm.running["driver#1"] = driver
    rm.ask("big", "x", memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    for victim in ("x#1", "driver#1"):
        rm.ask("late", f"before-{victim}", memory=1)
        rm.pass_time(31)
        rm.schedule()
        assert evicted(rm) == [victim]
        rm.confirm()
        rm.schedule()


def test_ask_that_must_not_preempt_does_not() -> None:
    rm = two_queues()
    rm.ask("late", "y", memory=2, policy=PreemptionPolicy(allow_preempt_other=False))
    rm.pass_time(100)
    rm.schedule()
    assert evicted(rm) == []


def test_preemption_can_be_disabled_for_the_partition() -> None:
    rm = two_queues(preemption={"enabled": False})
    rm.ask("late", "y", memory=2)
    rm.pass_time(100)
    rm.schedule()
    assert evicted(rm) == []
    assert rm.scheduler.next_timer() is None


def test_preemption_enabled_by_a_reload_applies_to_pending_asks() -> None:
    rm = two_queues(preemption={"enabled": False})
    rm.ask("late", "y", memory=2)
    rm.pass_time(100)
    rm.reload(configuration(guaranteed("a", memory=4), queue("b")))
    rm.schedule()
    assert len(evicted(rm)) == 2


def test_without_a_guarantee_nothing_is_preempted() -> None:
    rm = RM(configuration(queue("a"), queue("b")))
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=1, priority=100)
    rm.pass_time(100)
    rm.schedule()
    assert evicted(rm) == []


def test_allocations_of_higher_priority_are_not_preempted() -> None:
    rm = RM(configuration(guaranteed("a", memory=4), queue("b"), queue("c")))
    rm.node("n1", memory=4)
    rm.app("urgent", "root.b")
    rm.ask("urgent", "x", 2, memory=1, priority=5)
    rm.app("plain", "root.c")
    rm.ask("plain", "z", 2, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", 4, memory=1)
    for _ in range(5):
        rm.pass_time(31)
        rm.schedule()
        rm.confirm()
        rm.schedule()
    assert rm.find_queue("root.b").allocated == {"memory": 2}
    assert rm.find_queue("root.a").allocated == {"memory": 2}


def test_a_queue_that_disables_preemption_is_no_victim() -> None:
    config = configuration(
        guaranteed("a", memory=4), queue("b", properties={"preemption.policy": "disabled"})
    )
    rm = RM(config)
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=1)
    rm.pass_time(100)
    rm.schedule()
    assert evicted(rm) == []


def test_fence_limits_the_search_for_victims() -> None:
    fenced = queue("f", guaranteed("a", memory=2), queue("c"), properties={"preemption.policy": "fence"})
    rm = RM(configuration(fenced, queue("b")))
    rm.node("n1", memory=4)
    rm.app("out", "root.b")
    rm.ask("out", "x", 3, memory=1)
    rm.app("in", "root.f.c")
    rm.ask("in", "z", 1, memory=1)
    rm.schedule()
    rm.app("late", "root.f.a")
    rm.ask("late", "y", 2, memory=1)
    for _ in range(3):
        rm.pass_time(31)
        rm.schedule()
        rm.confirm()
        rm.schedule()
    assert rm.find_queue("root.b").allocated == {"memory": 3}
    assert rm.find_queue("root.f.a").allocated == {"memory": 1}


def test_preemption_makes_room_in_the_quota_of_an_ancestor() -> None:
    """The parent is full although the nodes are not: only victims below the parent help."""
    parent = queue("p", guaranteed("a", memory=2), queue("c"), resources={"max": {"memory": "4"}})
    rm = RM(configuration(parent, queue("b")))
    rm.node("n1", memory=8)
    rm.app("in", "root.p.c")
    rm.ask("in", "z", 4, memory=1)
    rm.app("out", "root.b")
    rm.ask("out", "x", 1, memory=1)
    rm.schedule()
    rm.app("late", "root.p.a")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert len(evicted(rm)) == 2
    assert all(uuid.startswith("z#") for uuid in rm.evicted)
    rm.confirm(evicted(rm)[0])
    assert rm.schedule() == []
    rm.confirm()
    assert rm.schedule() == [("late", "y", "n1")]


def test_preemption_makes_room_on_a_node_and_in_a_quota() -> None:
    """Victims on the node free too little of the quota, so others below the parent are preempted too."""
    parent = queue("p", guaranteed("a", memory=4), queue("c"), resources={"max": {"memory": "6"}})
    rm = RM(configuration(parent, queue("b")))
    rm.node("n1", memory=4)
    rm.node("n2", memory=4)
    rm.app("out", "root.b")
    rm.ask("out", "x", 2, memory=1)
    rm.schedule()
    rm.app("in", "root.p.c")
    rm.ask("in", "z", 6, memory=1)
    rm.schedule()
    rm.app("late", "root.p.a")
    rm.ask("late", "y", memory=4)
    rm.pass_time(31)
    rm.schedule()
    # Each node has one allocation of x, which lies outside of p, the full queue, and must stay.
    assert evicted(rm) == []
    rm.release(
        "out", next(uuid for uuid, one in rm.running.items() if uuid[0] == "x" and one.node_id == "n1")
    )
    rm.pass_time(16)
    rm.schedule()
    assert len(evicted(rm)) == 4
    for uuid in evicted(rm):
        assert rm.schedule() == []
        rm.confirm(uuid)
    assert rm.schedule() == [("late", "y", "n1")]


def test_end_of_a_victim_elsewhere_activates_the_reserved_node() -> None:
    """The room on the node is free first; that in the quota follows last, from another node."""
    parent = queue("p", guaranteed("a", memory=3), queue("c"), resources={"max": {"memory": "6"}})
    rm = RM(configuration(parent, queue("b")))
    rm.node("n1", memory=4)
    rm.app("in", "root.p.c")
    rm.ask("in", "z", 6, memory=1)
    rm.schedule()
    rm.node("n2", memory=4)
    rm.app("out", "root.b")
    rm.ask("out", "x", 1, memory=1)
    rm.schedule()
    rm.app("late", "root.p.a")
    rm.ask("late", "y", memory=3)
    rm.pass_time(31)
    rm.schedule()
    assert [ask.key for ask in rm.find_node("n2").reservations] == ["y"]
    here = [uuid for uuid in evicted(rm) if rm.running[uuid].node_id == "n2"]
    elsewhere = [uuid for uuid in evicted(rm) if uuid not in here]
    assert (len(here), len(elsewhere)) == (2, 1)
    for uuid in [*here, *elsewhere]:
        assert rm.schedule() == []
        rm.confirm(uuid)
    assert rm.schedule() == [("late", "y", "n2")]


def test_failed_attempt_is_not_retried_without_a_change() -> None:
    rm = two_queues()
    rm.ask("late", "y", memory=5)
    rm.pass_time(31)
    rm.schedule()
    rm.pass_time(400)
    rm.schedule()
    assert rm.scheduler.next_timer() is None
    # A change: the next attempt follows 15 seconds after the last.
    rm.node("n3", memory=5)
    rm.change_node("n3", NodeAction.DRAIN_NODE)
    rm.app("huge", "root.b")
    rm.schedule()
    rm.change_node("n3", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert rm.schedule() == [("late", "y", "n3")]


def test_a_failed_attempt_is_retried_after_a_change_and_15_seconds() -> None:
    rm = RM(configuration(guaranteed("a", memory=5), queue("b")))
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=5)
    rm.pass_time(31)
    rm.schedule()
    assert evicted(rm) == [], "no node is large enough"
    # A larger, full node joins.
    running = Allocation("r", "big", "r1", "n3", Resource(memory=5))
    rm.running["r1"] = running
    rm.node("n3", memory=5, existing=[running])
    rm.pass_time(1)
    rm.schedule()
    assert evicted(rm) == [], "not again so soon"
    rm.pass_time(13)
    rm.schedule()
    assert evicted(rm) == []
    rm.pass_time(1)
    rm.schedule()
    assert evicted(rm) == ["r1"]


def test_ask_whose_node_leaves_may_preempt_again() -> None:
    rm = two_queues()
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert evicted(rm) == ["x#5", "x#7"]
    rm.change_node("n1", NodeAction.DECOMMISSION)
    rm.evicted.clear()
    rm.pass_time(14)
    rm.schedule()
    assert evicted(rm) == [], "not within 15 seconds of the first time"
    rm.pass_time(1)
    rm.schedule()
    assert len(evicted(rm)) == 2
    assert {rm.running[uuid].node_id for uuid in rm.evicted} == {"n2"}


def test_a_reservation_of_equal_priority_is_displaced() -> None:
    """An ask of the queue above its guarantee was first to reserve the only node."""
    rm = RM(configuration(guaranteed("a", memory=4), queue("b")))
    rm.node("n1", memory=8)
    rm.app("big", "root.b")
    rm.ask("big", "x", 8, memory=1)
    rm.schedule()
    rm.ask("big", "wide", memory=3)
    rm.pass_time(3)
    rm.schedule()
    assert [ask.key for ask in rm.find_node().reservations] == ["wide"]
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert [ask.key for ask in rm.find_node().reservations] == ["y"]
    rm.confirm()
    assert rm.schedule() == [("late", "y", "n1")]


def test_the_fewest_victims_decide_the_node() -> None:
    rm = RM(configuration(guaranteed("a", memory=4), queue("b")))
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "small", 4, memory=1)
    rm.schedule()
    rm.node("n2", memory=4)
    rm.ask("big", "large", 1, memory=4)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert evicted(rm) == ["large#5"]


def test_confirmation_by_key_applies_to_the_evicted_allocation() -> None:
    rm = two_queues()
    rm.ask("big", "x", 2, memory=1)
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert len(evicted(rm)) == 2
    rm.release("big", key="x", termination=TerminationType.PREEMPTED_BY_SCHEDULER)
    assert rm.find_queue("root.b").allocated == {"memory": 6}
    assert rm.find_app("big").asks["x"].pending == 2
    assert rm.schedule()[0] == ("late", "y", "n1")


def test_number_of_concurrent_preemptions_is_limited_by_nodes_to_reserve() -> None:
    rm = RM(configuration(guaranteed("a", memory=40), queue("b")))
    for number in range(25):
        rm.node(f"n{number:02}", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 100, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    for number in range(40):
        rm.ask("late", f"y{number:02}", memory=1)
    rm.pass_time(30)
    # A round makes up to ten attempts; after a success the next may follow at once.
    found = []
    for _ in range(4):
        rm.schedule()
        found.append(len(rm.evicted))
    assert found == [10, 20, 25, 25]
    rm.confirm()
    assert len(rm.schedule()) == 25


def test_failed_attempts_are_spaced() -> None:
    rm = RM(configuration(guaranteed("a", memory=40), queue("b")))
    rm.policy = OPTED_OUT
    rm.node("n1", memory=40)
    rm.app("big", "root.b")
    rm.ask("big", "x", 40, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    for number in range(20):
        rm.ask("late", f"y{number:02}", memory=1 + number)
    rm.pass_time(30)
    for _ in range(3):
        rm.schedule()
        due = rm.scheduler.next_timer()
        assert due is not None
        assert due == rm.clock.now() + 15 * SECOND


def test_failed_attempts_per_round_are_bounded() -> None:
    poor = [f"q{number:02}" for number in range(50)]
    rm = RM(
        configuration(*[guaranteed(name, memory=2) for name in poor], guaranteed("z", memory=2), queue("big"))
    )
    rm.policy = OPTED_OUT
    rm.node("n1", memory=100)
    rm.app("big", "root.big")
    rm.ask("big", "x", 98, memory=1)
    rm.policy = None
    rm.ask("big", "y", 1, memory=2)
    rm.schedule()
    for name in poor:
        rm.app(f"late-{name}", f"root.{name}")
        rm.ask(f"late-{name}", "w", memory=2, gpu=1)
    rm.app("last", "root.z")
    rm.ask("last", "w", memory=2)
    rm.pass_time(30)
    found = []
    for _ in range(3):
        rm.scheduler.fire_timers()
        rm.schedule()
        due = rm.scheduler.next_timer()
        found.append((len(rm.evicted), due is not None and due <= rm.clock.now()))
    # The last ask is tried one round after the failed attempts before it, without a wait.
    assert found == [(0, True), (0, True), (1, False)]


def test_low_priority_of_a_parent_does_not_prevent_restoring_guarantees() -> None:
    """Both sides are below the parent, so its offset makes no difference between them."""
    rm = RM(
        configuration(queue("p", guaranteed("a", memory=2), queue("b"), properties={"priority.offset": "-5"}))
    )
    rm.node("n1", memory=4)
    rm.app("big", "root.p.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    rm.app("late", "root.p.a")
    rm.ask("late", "y", memory=1)
    rm.pass_time(31)
    rm.schedule()
    assert len(evicted(rm)) == 1
