"""The schedule of preemption attempts: whoever owns the clock is never called back without time passing.

A driver that waits for `next_timer` (the simulator, the service) would loop at one instant otherwise.
"""

from __future__ import annotations

from tests.core.kit import RM, configuration, queue
from tests.preemption.test_across_queues import guaranteed
from yunikorn.interface.constants import REQUIRED_NODE_TAG
from yunikorn.interface.messages import Allocation, NodeAction
from yunikorn.resources import Resource


def settle(rm: RM) -> None:
    """Fire the timers that are due now, as a driver does; fails if they are due again at once."""
    for _ in range(5):
        rm.scheduler.fire_timers()
        rm.schedule()
        due = rm.scheduler.next_timer()
        if due is None or due > rm.clock.now():
            return
    raise AssertionError("timers are due again and again at one instant")


def test_a_request_awaiting_its_victims_beside_one_that_failed() -> None:
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
    # Something changes while the RM has not confirmed the victims and `never` may not be tried again yet.
    rm.node("n2", memory=1)
    settle(rm)
    rm.pass_time(1)
    settle(rm)
    rm.confirm()
    settle(rm)
    assert ("late", "fits") in {(one.application_id, one.allocation_key) for one in rm.running.values()}


def test_a_failed_request_is_tried_again_for_a_change_made_while_it_was_barred() -> None:
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
    # A node that could joins before `large` may be tried again, full of recovered work.
    running = [Allocation("z", "big", f"z#{i}", "n2", Resource(memory=1)) for i in range(4)]
    rm.node("n2", memory=4, existing=running)
    settle(rm)
    assert len(rm.evicted) == 1
    rm.pass_time(2)
    settle(rm)
    assert len(rm.evicted) == 4, "tried again when its time had come, although nothing changed since"


def test_requests_for_a_required_node_that_left() -> None:
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
        # Each comes of age, and fails, at a time of its own.
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
