"""Allocations that the RM is ending by itself: no victims, and their room is waited for."""

from __future__ import annotations

from tests.core.kit import RM, configuration, queue
from tests.preemption.test_across_queues import guaranteed
from yunikorn.interface.constants import TERMINATING_TAG
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource

ENDING = {TERMINATING_TAG: "true"}


def report(rm: RM, key: str, node_id: str, tags: dict[str, str]) -> None:
    """Report a running task, or change its tags."""
    size = Resource({"memory": 1})
    rm.update(
        allocations=[Allocation(key, "big", node_id=node_id, resource_per_alloc=size, allocation_tags=tags)]
    )


def restarted(*ending: str, memory: int = 1) -> RM:
    """Return an RM that has reported four tasks on two nodes, some of them ending, and a waiting request.

    The request has a guarantee, and has waited long enough to preempt.
    """
    rm = RM(configuration(guaranteed("a", memory=4), queue("b")))
    for node_id in ("n1", "n2"):
        rm.node(node_id, memory=2)
    rm.app("big", "root.b")
    for number in range(4):
        key = f"x{number}"
        report(rm, key, f"n{number // 2 + 1}", ENDING if key in ending else {"name": key})
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=memory)
    rm.pass_time(31)
    rm.schedule()
    return rm


def end(rm: RM, key: str) -> None:
    """End a task."""
    rm.release("big", key=key)


def preempted(rm: RM) -> list[str]:
    """Return the keys of the victims."""
    return sorted(one.allocation_key for one in rm.evicted.values())


def test_nothing_is_preempted_while_room_is_coming() -> None:
    rm = restarted("x3")
    rm.pass_time(60)
    assert rm.schedule() == []
    assert preempted(rm) == []
    end(rm, "x3")
    assert rm.schedule() == [("late", "y", "n2")]


def test_without_ends_a_victim_is_chosen() -> None:
    assert len(preempted(restarted())) == 1


def test_coming_room_that_does_not_suffice_is_completed() -> None:
    rm = restarted("x3", memory=2)
    assert preempted(rm) == ["x2"]
    end(rm, "x3")
    assert rm.schedule() == []
    rm.confirm()
    assert rm.schedule() == [("late", "y", "n2")]


def test_an_end_that_is_reported_later_counts_too() -> None:
    rm = RM(configuration(guaranteed("a", memory=4), queue("b")))
    rm.node("n1", memory=2)
    rm.app("big", "root.b")
    for key in ("x0", "x1"):
        report(rm, key, "n1", {"name": key})
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=1)
    report(rm, "x1", "n1", ENDING)
    rm.pass_time(31)
    assert rm.schedule() == []
    assert preempted(rm) == []
    # A second request needs another victim.
    rm.ask("late", "z", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert preempted(rm) == ["x0"]
