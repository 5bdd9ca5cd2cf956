"""A queue whose asks cannot have victims is not tried again until its usage falls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kit import RM, configuration
from tests.preemption.test_across_queues import guaranteed
from yunikorn.clock import SECOND

WAITING = 20


def crowd(**guarantee: Any) -> RM:
    """Return an RM with two full nodes: `a` has 4 vcores and many asks, `b` the rest and a guarantee of 1."""
    rm = RM(configuration(guaranteed("a", **guarantee), guaranteed("b", vcore=1)))
    rm.node("n1", vcore=4000, memory=100)
    rm.node("n2", vcore=4000, memory=100)
    rm.app("own", "root.a")
    rm.ask("own", "x", 4, vcore=1000, memory=1)
    rm.app("others", "root.b")
    rm.ask("others", "y", 4, vcore=1000, memory=1)
    rm.schedule()
    for number in range(WAITING):
        rm.app(f"late{number}", "root.a")
        rm.ask(f"late{number}", "z", vcore=1001 + number, memory=1)
        rm.pass_time(1.3)
    rm.pass_time(60)
    return rm


def count_timers(rm: RM, minutes: int) -> int:
    """Return how often timers fire in this many minutes with one release and one ask elsewhere in each."""
    found = 0
    for minute in range(minutes):
        rm.release("others", next(iter(rm.find_app("others").allocations)))
        rm.ask("others", f"again{minute}", vcore=1000, memory=1)
        end = rm.clock.now() + 60 * SECOND
        rm.schedule()
        while (due := rm.scheduler.next_timer()) is not None and due <= end:
            rm.clock.set(max(due, rm.clock.now()))
            rm.scheduler.fire_timers()
            rm.schedule()
            found += 1
        rm.clock.set(end)
    return found


@pytest.mark.parametrize("guarantee", [{"vcore": 4}, {"vcore": "4900m"}, {"vcore": 4, "memory": 50}])
def test_queue_at_its_guarantee_is_skipped_for_all_its_asks(guarantee: dict[str, Any]) -> None:
    rm = crowd(**guarantee)
    assert count_timers(rm, 5) <= 10
    assert rm.evicted == {}


def test_queue_below_its_guarantee_preempts_within_a_second() -> None:
    # 100m are left of the guarantee, which is too little for any pending ask.
    rm = crowd(vcore="4100m")
    assert count_timers(rm, 1) <= 3
    assert rm.evicted == {}
    # Now the guarantee has room for one ask. The released vcore is too small for it, so a second victim is
    # needed.
    rm.release("own", next(iter(rm.find_app("own").allocations)))
    rm.schedule()
    rm.pass_time(1)
    rm.schedule()
    assert len(rm.evicted) == 1
