"""The order in which a queue's allocations are preempted for its quota."""

from __future__ import annotations

from typing import Any

from tests.core.kit import RM, configuration, queue
from yunikorn.api import PreemptionCause
from yunikorn.scheduling.preemption.quota_preemption import select_for_quota


def ordered(rm: RM, *types: str) -> list[str]:
    found = rm.at_work().partition.accounting.allocations.values()
    cause = PreemptionCause("quota", rm.find_queue(), amount=dict.fromkeys(types, 1))
    return [one.key for one in rm.at_work().policies.preemption.in_order(found, cause)]


def started() -> RM:
    rm = RM(configuration(queue("a", resources={"max": {"first": "100"}})))
    rm.node("n1", memory=100, vcore=100, first=100, second=100, third=100)
    rm.app("app")
    return rm


def place(rm: RM, key: str, priority: int = 0, *, originator: bool = False, **amounts: Any) -> None:
    rm.ask("app", key, priority=priority, originator=originator, **amounts)
    assert len(rm.schedule()) == 1


def test_victims_of_only_the_needed_types_come_first() -> None:
    rm = started()
    place(rm, "third", first=10, second=10, third=10)
    place(rm, "whole", first=10)
    place(rm, "half", first=10, second=10)
    assert ordered(rm, "first", "extra_a", "extra_b") == ["whole", "half", "third"]


def test_smaller_victim_comes_first_on_equal_match() -> None:
    rm = started()
    for key, amount in (("ten", 10), ("five", 5), ("seven", 7)):
        place(rm, key, first=amount)
    assert ordered(rm, "first", "extra_a", "extra_b") == ["five", "seven", "ten"]


def test_equal_victims_are_ordered_by_priority_then_time() -> None:
    rm = started()
    place(rm, "old", first=1)
    place(rm, "low", -1, first=9)
    place(rm, "driver", -5, first=1, originator=True)
    rm.pass_time(3600)
    place(rm, "young", first=5)
    assert ordered(rm, "first") == ["low", "young", "old", "driver"]


def test_too_large_victims_are_skipped() -> None:
    rm = started()
    for key, amount in (("large", 6), ("small", 2), ("middle", 3)):
        place(rm, key, memory=amount)
    found = select_for_quota(rm.find_queue(), {"memory": 4}, rm.at_work().policies.preemption)
    assert [one.key for one in found] == ["small"]
