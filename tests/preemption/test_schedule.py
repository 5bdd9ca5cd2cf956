"""The schedule of preemption attempts: timers are never due again without time passing.

A driver that waits for `next_timer` (the simulator, the service) would loop at one instant otherwise.
"""

from __future__ import annotations

import pytest

from tests.core.event_collector import EventCollector
from tests.core.kit import RM, configuration, partition, queue
from tests.preemption.test_across_queues import OPTED_OUT, guaranteed
from yunikorn.interface.constants import REQUIRED_NODE_TAG
from yunikorn.interface.messages import Allocation, NodeAction
from yunikorn.resources import Resource


def settle(rm: RM) -> None:
    """Fire the timers that are due now, as a driver does; fail if timers are due again at once."""
    for _ in range(5):
        rm.scheduler.fire_timers()
        rm.schedule()
        due = rm.scheduler.next_timer()
        if due is None or due > rm.clock.now():
            return
    raise AssertionError("timers are due again and again at one instant")


def test_ask_awaiting_its_victims_beside_a_failed_one() -> None:
    rm = RM(configuration(guaranteed("a", memory=6, disk=1), queue("b")))
    rm.node("n1", memory=8, disk=1)
    rm.app("big", "root.b")
    rm.ask("big", "x", 8, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "fits", memory=2)
    rm.ask("late", "never", memory=1, disk=2)
    rm.pass_time(31)
    settle(rm)
    assert len(rm.evicted) == 2, "`fits` has victims, `never` has none"
    # A change comes while the RM has not confirmed the victims and `never` may not be tried again yet.
    rm.node("n2", memory=1)
    settle(rm)
    rm.pass_time(1)
    settle(rm)
    rm.confirm()
    settle(rm)
    assert ("late", "fits") in {(one.application_id, one.allocation_key) for one in rm.running.values()}


def test_failed_ask_is_retried_for_a_change_during_its_delay() -> None:
    rm = RM(configuration(guaranteed("a", memory=6), queue("b")))
    rm.node("n1", memory=2)
    rm.app("big", "root.b")
    rm.ask("big", "x", 2, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "small", memory=1)
    rm.ask("late", "large", memory=3)
    rm.pass_time(31)
    settle(rm)
    assert len(rm.evicted) == 1, "no node could host `large`"
    # A node large enough joins before `large` may be tried again, full of recovered allocations.
    running = [Allocation("z", "big", f"z#{i}", "n2", Resource(memory=1)) for i in range(4)]
    rm.node("n2", memory=4, existing=running)
    settle(rm)
    assert len(rm.evicted) == 1
    rm.pass_time(2)
    settle(rm)
    assert len(rm.evicted) == 4, "tried again when its time had come, although nothing changed since"


def test_asks_for_a_removed_required_node_leave_the_schedule() -> None:
    rm = RM()
    rm.node("n1", memory=4)
    rm.app("daemon", "root.a")
    rm.ask("daemon", "large", memory=9, tags={REQUIRED_NODE_TAG: "n1"})
    settle(rm)
    rm.change_node("n1", NodeAction.DECOMMISSION)
    rm.ask("daemon", "small", memory=1, tags={REQUIRED_NODE_TAG: "n1"})
    settle(rm)
    rm.node("n1", memory=4)
    settle(rm)
    assert [one.allocation_key for one in rm.running.values()] == ["small"]


def test_requests_that_fail_at_different_times_leave_the_schedule_idle() -> None:
    rm = RM(configuration(queue("a", properties={"preemption.by.priority": "enabled"}), queue("b")))
    rm.node("n1", memory=8)
    rm.app("big", "root.b")
    rm.ask("big", "x", 8, priority=5, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "first", memory=1)
    rm.pass_time(4)
    rm.ask("late", "second", memory=2)
    for seconds in (26, 4):
        # Each becomes eligible, and fails, at a time of its own.
        rm.pass_time(seconds)
        settle(rm)
    rm.release("big", "x#1")
    rm.ask("big", "y", priority=5, memory=1)
    settle(rm)
    times = 0
    while (due := rm.scheduler.next_timer()) is not None:
        rm.clock.set(max(due, rm.clock.now()))
        settle(rm)
        times += 1
        assert times < 10, "each request has one more attempt after the change, and then nothing is due"


def two_failures() -> RM:
    """No allocation may be preempted: `first` failed at 30 s; `second`, of another class, at 34 s."""
    rm = RM(configuration(guaranteed("a", memory=8), queue("b")))
    rm.node("n1", memory=8)
    rm.app("big", "root.b")
    rm.ask("big", "x", 8, policy=OPTED_OUT, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "first", memory=1)
    rm.pass_time(4)
    rm.ask("late", "second", memory=2)
    for seconds in (26, 4):
        rm.pass_time(seconds)
        settle(rm)
    assert not rm.evicted
    return rm


def test_a_failed_request_keeps_the_time_of_its_next_attempt_when_another_fails() -> None:
    rm = two_failures()
    # A full node with preemptable allocations joins: `first` is tried 15 seconds after its own attempt.
    rm.node("n2", memory=1, existing=[Allocation("z", "big", "z1", "n2", Resource(memory=1))])
    rm.running["z1"] = Allocation("z", "big", "z1", "n2", Resource(memory=1))
    settle(rm)
    rm.pass_time(10)
    settle(rm)
    assert not rm.evicted
    rm.pass_time(1)
    settle(rm)
    assert list(rm.evicted) == ["z1"]


def test_ask_for_a_required_node_is_not_retried_early_for_another() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a"), queue("b")))
    rm.node("n1", memory=2)
    rm.app("work", "root.b")
    rm.ask("work", "x", memory=2, policy=OPTED_OUT)
    rm.schedule()
    rm.app("daemons", "root.a")
    rm.ask("daemons", "first", memory=1, tags={REQUIRED_NODE_TAG: "n1"})
    settle(rm)
    rm.pass_time(5)
    rm.ask("daemons", "second", memory=1, tags={REQUIRED_NODE_TAG: "n1"})
    settle(rm)

    def failed() -> list[str]:
        return [one.object_id for one in collector.events if one.reason == "PreemptionFailed"]

    assert failed() == ["first", "second"]
    # After a change each is tried again 15 seconds after its own attempt.
    rm.node("n2", memory=1)
    settle(rm)
    rm.pass_time(10)
    settle(rm)
    assert failed() == ["first", "second", "first"]
    rm.pass_time(5)
    settle(rm)
    assert failed() == ["first", "second", "first", "second"]


@pytest.mark.parametrize("path", ["root.p.a", "root.p"])
def test_ask_in_a_stopped_queue_preempts_nothing(path: str) -> None:
    rm = RM(configuration(queue("p", guaranteed("a", memory=4)), queue("b")))
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    rm.app("late", "root.p.a")
    rm.ask("late", "y", memory=2)
    rm.scheduler.stop_queue("rm", "default", path)
    rm.pass_time(31)
    settle(rm)
    assert not rm.evicted
    rm.scheduler.start_queue("rm", "default", path)
    rm.pass_time(16)
    settle(rm)
    assert len(rm.evicted) == 2


def test_a_request_preempts_once_its_application_may_start() -> None:
    limited = queue("a", maxapplications=1, resources={"guaranteed": {"memory": "4"}})
    rm = RM(configuration(limited, queue("b")))
    rm.node("n1", memory=4)
    rm.app("first", "root.a")
    rm.ask("first", "w", memory=1)
    rm.app("big", "root.b")
    rm.ask("big", "x", 3, memory=1)
    assert len(rm.schedule()) == 4
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    settle(rm)
    assert not rm.evicted
    rm.remove_app("first")
    settle(rm)
    rm.pass_time(1)
    settle(rm)
    assert len(rm.evicted) == 1
    rm.confirm()
    assert rm.schedule() == [("late", "y", "n1")]
