"""Asks that require a node preempt what they need on that node."""

from __future__ import annotations

from typing import Any

from tests.core.event_collector import EventCollector
from tests.core.kit import RM, configuration, partition, queue
from yunikorn.interface.messages import PreemptionPolicy

DAEMON = {"yunikorn.apache.org/requiredNode": "n1"}


def full_node(rm: RM, **amounts: int) -> RM:
    rm.node("n1", memory=4)
    rm.app("work", "root.b")
    for number, priority in enumerate([3, 1, 2, 1]):
        rm.ask("work", f"x{number}", memory=1, priority=priority)
    rm.schedule()
    rm.app("daemons", "root.a")
    return rm


def keys(rm: RM) -> list[str]:
    return sorted(uuid.partition("#")[0] for uuid in rm.evicted)


def test_lowest_priority_is_preempted_immediately_without_guarantee_or_delay() -> None:
    rm = full_node(RM(configuration(queue("a"), queue("b"), preemption={"enabled": False})))
    rm.ask("daemons", "agent", memory=2, priority=2, tags=DAEMON)
    rm.schedule()
    assert keys(rm) == ["x1", "x3"]
    assert {one.message for one in rm.evicted.values()} == {
        "preempting allocations to free up resources to run daemon set ask: agent"
    }
    rm.confirm()
    assert rm.schedule() == [("daemons", "agent", "n1")]
    assert rm.find_queue("root").preempting == {}


def test_free_resources_are_used_before_victims() -> None:
    rm = RM(configuration(queue("a"), queue("b")))
    rm.node("n1", memory=4)
    rm.app("work", "root.b")
    rm.ask("work", "x", 3, memory=1)
    rm.schedule()
    rm.app("daemons", "root.a")
    rm.ask("daemons", "agent", memory=2, tags=DAEMON)
    rm.schedule()
    assert len(rm.evicted) == 1


def test_guarantee_does_not_protect_victims() -> None:
    rm = full_node(RM(configuration(queue("a"), queue("b", resources={"guaranteed": {"memory": "4"}}))))
    rm.ask("daemons", "agent", memory=1, priority=1, tags=DAEMON)
    rm.schedule()
    assert keys(rm) == ["x3"]


def test_higher_priority_and_opted_out_allocations_stay_and_are_reported() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a"), queue("b")))
    rm.node("n1", memory=2)
    rm.app("work", "root.b")
    rm.ask("work", "high", memory=1, priority=9)
    rm.ask("work", "safe", memory=1, policy=PreemptionPolicy(allow_preempt_self=False))
    rm.schedule()
    rm.app("daemons", "root.a")
    rm.ask("daemons", "agent", memory=1, priority=5, tags=DAEMON)
    rm.schedule()
    assert keys(rm) == []
    message = "Unschedulable request 'agent' with required node 'n1', no preemption victim found"
    reported = [(one.object_id, one.reason) for one in collector.events if one.message == message]
    assert reported == [("agent", "PreemptionFailed")]
    rm.pass_time(3)
    rm.schedule()
    assert len([one for one in collector.events if one.message == message]) == 1
    # After a change the next attempt follows 15 seconds after the last.
    rm.release("work", next(uuid for uuid in rm.running if uuid.startswith("high")))
    assert rm.schedule() == [("daemons", "agent", "n1")]


def test_two_asks_that_require_one_node_both_preempt() -> None:
    rm = full_node(RM(configuration(queue("a"), queue("b"))))
    rm.ask("daemons", "one", memory=1, priority=5, tags=DAEMON)
    rm.ask("daemons", "two", memory=2, priority=5, tags=DAEMON)
    rm.schedule()
    assert keys(rm) == ["x1", "x2", "x3"]
    rm.confirm()
    assert sorted(rm.schedule()) == [("daemons", "one", "n1"), ("daemons", "two", "n1")]


def test_allocations_that_require_the_node_are_no_victims() -> None:
    rm = RM(configuration(queue("a"), queue("b")))
    rm.node("n1", memory=1)
    rm.app("daemons", "root.a")
    rm.ask("daemons", "one", memory=1, tags=DAEMON)
    rm.schedule()
    rm.ask("daemons", "two", memory=1, priority=5, tags=DAEMON)
    rm.schedule()
    assert keys(rm) == []


def test_events_name_victim_and_preempting_ask() -> None:
    collector = EventCollector()
    rm = full_node(collector.rm(partition(queue("a"), queue("b"))))
    rm.ask("daemons", "agent", memory=1, priority=1, tags=DAEMON)
    rm.schedule()
    rm.confirm()
    rm.schedule()
    reported: list[Any] = [
        (one.type, one.object_id, one.reason, one.message)
        for one in collector.events
        if "Preempted" in one.message
    ]
    assert reported == [
        ("REQUEST", "x3", "Preempted", "Preempted by agent from application daemons in root.a")
    ]
    assert ("work", "x3#4", "REMOVE", "ALLOC_PREEMPT") in collector.of("ALLOC_PREEMPT")


def test_guarantee_preempts_on_no_other_node() -> None:
    rm = RM(configuration(queue("a", resources={"guaranteed": {"memory": "4"}}), queue("b")))
    rm.node("n1", memory=2)
    rm.node("n2", memory=2)
    rm.app("work", "root.b")
    rm.ask("work", "x", 2, memory=2, priority=1)
    rm.schedule()
    rm.app("daemons", "root.a")
    rm.ask("daemons", "agent", memory=1, priority=0, tags=DAEMON)
    rm.pass_time(60)
    rm.schedule()
    assert keys(rm) == []


def test_request_preempts_at_once_when_its_queue_gets_room() -> None:
    of_a = queue("a", resources={"max": {"memory": 1}})
    rm = full_node(RM(configuration(of_a, queue("b"))))
    rm.node("n2", memory=1)
    rm.app("first", "root.a")
    rm.ask("first", "first", memory=1)
    rm.schedule()
    rm.ask("daemons", "agent", memory=1, priority=5, tags=DAEMON)
    for _ in range(2):
        rm.schedule()
        assert keys(rm) == []
        rm.pass_time(0.2)
    rm.release("first", next(uuid for uuid in rm.running if uuid.startswith("first")))
    rm.schedule()
    assert len(keys(rm)) == 1
