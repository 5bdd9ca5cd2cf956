"""Preemption by priority alone, inside a queue and across queues; both are off by default."""

from __future__ import annotations

import pytest

from tests.core.kit import RM, configuration, queue


def keys(rm: RM) -> list[str]:
    return sorted(uuid.partition("#")[0] for uuid in rm.evicted)


def test_lowest_priority_of_the_queue_is_preempted() -> None:
    rm = RM(configuration(queue("a", properties={"preemption.within.queue": "enabled"}), queue("b")))
    rm.node("n1", memory=4)
    rm.app("old")
    for number, priority in enumerate([5, 1, 3]):
        rm.ask("old", f"x{number}", memory=1, priority=priority)
    rm.app("other", "root.b")
    rm.ask("other", "z", memory=1)
    rm.schedule()
    rm.app("new")
    rm.ask("new", "y", memory=2, priority=5)
    rm.schedule()
    assert keys(rm) == []
    rm.pass_time(30)
    rm.schedule()
    # The other queue has even less important allocations, but is another queue.
    assert keys(rm) == ["x1", "x2"]
    rm.confirm()
    assert rm.schedule() == [("new", "y", "n1")]


def test_lowest_priority_of_a_queue_at_its_max_is_preempted() -> None:
    rm = RM(
        configuration(
            queue("a", resources={"max": {"memory": "2"}}, properties={"preemption.within.queue": "enabled"})
        )
    )
    rm.node("n1", memory=8)
    rm.app("old")
    rm.ask("old", "x", 2, memory=1)
    rm.schedule()
    rm.app("new")
    rm.ask("new", "y", memory=1, priority=1)
    rm.pass_time(30)
    rm.schedule()
    assert keys(rm) == ["x"]
    rm.confirm()
    assert rm.schedule() == [("new", "y", "n1")]


def test_equal_priorities_do_not_preempt_each_other() -> None:
    rm = RM(configuration(queue("a", properties={"preemption.within.queue": "enabled"})))
    rm.node("n1", memory=1)
    rm.app("old")
    rm.ask("old", "x", memory=1, priority=3)
    rm.schedule()
    rm.app("new")
    rm.ask("new", "y", memory=1, priority=3)
    rm.pass_time(60)
    rm.schedule()
    assert keys(rm) == []


@pytest.mark.parametrize(("setting", "gone"), [("enabled", ["x"]), ("disabled", [])])
def test_allocations_of_other_queues_are_preempted_if_allowed(setting: str, gone: list[str]) -> None:
    rm = RM(configuration(queue("a", properties={"preemption.by.priority": setting}), queue("b")))
    rm.node("n1", memory=1)
    rm.app("old", "root.b")
    rm.ask("old", "x", memory=1)
    rm.schedule()
    rm.app("new")
    rm.ask("new", "y", memory=1, priority=1)
    rm.pass_time(60)
    rm.schedule()
    assert keys(rm) == gone


def test_other_queue_is_not_preempted_below_its_guarantee() -> None:
    rm = RM(
        configuration(
            queue("a", properties={"preemption.by.priority": "enabled"}),
            queue("b", resources={"guaranteed": {"memory": "2"}}),
        )
    )
    rm.node("n1", memory=3)
    rm.app("old", "root.b")
    rm.ask("old", "x", 3, memory=1)
    rm.schedule()
    rm.app("new")
    rm.ask("new", "y", 3, memory=1, priority=9)
    for _ in range(4):
        rm.pass_time(31)
        rm.schedule()
        rm.confirm()
        rm.schedule()
    assert rm.find_queue("root.b").allocated == {"memory": 2}
    assert rm.find_queue("root.a").allocated == {"memory": 1}


def test_offsets_and_fences_apply() -> None:
    """Behind a priority fence a queue counts with its offset, independent of the priorities of its asks."""
    rm = RM(
        configuration(
            queue("a", properties={"preemption.by.priority": "enabled"}),
            queue("b", properties={"priority.policy": "fence", "priority.offset": "5"}),
            queue("c", properties={"priority.offset": "3"}),
        )
    )
    rm.node("n1", memory=1)
    rm.node("n2", memory=1)
    for name in ("b", "c"):
        rm.app(name, f"root.{name}")
        rm.ask(name, f"of-{name}", memory=1, priority=0)
    rm.schedule()
    rm.app("new")
    rm.ask("new", "y3", memory=1, priority=3)
    rm.pass_time(31)
    rm.schedule()
    assert keys(rm) == [], "3 is no more than what c counts for, and less than b"
    rm.ask("new", "y4", memory=1, priority=4)
    rm.pass_time(31)
    rm.schedule()
    assert keys(rm) == ["of-c"]
    rm.ask("new", "y5", memory=1, priority=5)
    rm.pass_time(31)
    rm.schedule()
    assert keys(rm) == ["of-c"], "5 is no more than what b counts for"
    rm.ask("new", "y6", memory=1, priority=6)
    rm.pass_time(31)
    rm.schedule()
    assert keys(rm) == ["of-b", "of-c"]


def test_offset_of_a_shared_parent_does_not_change_relative_priorities() -> None:
    inner = [queue(name, properties={"preemption.by.priority": "enabled"}) for name in ("a", "b")]
    rm = RM(configuration(queue("p", *inner, properties={"priority.offset": "5"})))
    rm.node("n1", memory=4)
    rm.app("running", "root.p.a")
    rm.ask("running", "x", 4, memory=1, priority=3)
    rm.schedule()
    rm.app("late", "root.p.b")
    rm.ask("late", "y", memory=1, priority=3)
    rm.pass_time(31)
    rm.schedule()
    assert rm.evicted == {}
    rm.ask("late", "urgent", memory=1, priority=4)
    rm.pass_time(31)
    rm.schedule()
    assert len(rm.evicted) == 1


@pytest.mark.parametrize("where", ["leaf", "parent"])
def test_disabled_priorities_disable_preemption_by_priority(where: str) -> None:
    """The victims would be placed first again, and take the room back."""
    ignored = {"application.sort.priority": "disabled"}
    own = {"preemption.within.queue": "enabled", "preemption.by.priority": "enabled"}
    if where == "leaf":
        rm = RM(configuration(queue("p", queue("a", properties={**own, **ignored}), queue("b"))))
        old = "root.p.a"
    else:
        rm = RM(configuration(queue("p", queue("a", properties=own), queue("b"), properties=ignored)))
        old = "root.p.b"
    rm.node("n1", memory=4)
    rm.app("old", old)
    rm.ask("old", "x", 4, memory=1)
    rm.schedule()
    rm.app("new", "root.p.a")
    rm.ask("new", "y", memory=1, priority=9)
    rm.pass_time(31)
    rm.schedule()
    assert rm.evicted == {}
