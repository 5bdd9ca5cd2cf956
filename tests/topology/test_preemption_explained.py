"""Explanations say when a gang that waits may preempt, and why it may not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.topology.racks import GPUS, TAG, gang, reason
from tests.topology.test_domain_preemption import ended, running
from yunikorn.interface.messages import AllocationAsk, PreemptionPolicy
from yunikorn.resources import Resource


def full(guaranteed: int = 100, *, fenced: bool = False, **preemption: Any) -> GangRM:
    """Return two racks full of work; queue `a` has this guarantee."""
    of_b = queue("b", properties={"preemption.policy": "disabled"} if fenced else {})
    of_a = queue("a", resources={"guaranteed": {"gpu": guaranteed}} if guaranteed else {})
    rm = GangRM(configuration(of_a, of_b, topology=["rack"], preemption=preemption))
    for rack in (1, 2):
        rm.node(f"r{rack}-n1", {"rack": f"r{rack}"}, gpu=GPUS)
        running(rm, f"r{rack}-n1", 4, 4)
    return rm


def test_gang_preempts_after_the_delay_and_waits_for_its_victims() -> None:
    rm = full()
    gang(rm, "g", 8, "rack")
    rm.schedule()
    rm.pass_time(12)
    assert "may preempt only after the preemption delay: in 18s" in reason(rm, "g")
    assert len(ended(rm)) == 2
    assert "waits for the release of its preemption victims: 2 allocations, gpu 8" in reason(rm, "g")


def test_gang_without_victims_is_told_so() -> None:
    rm = full(fenced=True)
    gang(rm, "g", 8, "rack")
    assert ended(rm) == []
    assert "preemption found no suitable victims" in reason(rm, "g")


@pytest.mark.parametrize(
    ("guaranteed", "enabled", "size", "why"),
    [
        (100, False, 8, "preemption is disabled in the partition"),
        (7, True, 8, "no guarantee covers all its members"),
        (100, True, 9, "no domain has room for it, even without other work"),
    ],
)
def test_gang_that_may_not_preempt_is_told_why(guaranteed: int, enabled: bool, size: int, why: str) -> None:
    rm = full(guaranteed, enabled=enabled)
    gang(rm, "g", size, "rack")
    assert ended(rm) == []
    assert f"its gang may not preempt: {why}" in reason(rm, "g")


def test_members_that_request_not_to_preempt_are_named() -> None:
    rm = full()
    rm.gang("g", "Atomic", "root.a", tags={TAG: "rack"}, gpu=8)
    ask = AllocationAsk(
        "m", "g", "", Resource({"gpu": 1}), 8, preemption_policy=PreemptionPolicy(True, False)
    )
    ask.task_group_name = "workers"
    rm.update(asks=[ask])
    assert "its gang may not preempt: its members request not to preempt" in reason(rm, "g")


def test_nothing_is_said_where_no_request_may_preempt() -> None:
    rm = full(0)
    gang(rm, "g", 8, "rack")
    assert ended(rm) == []
    assert "preempt" not in reason(rm, "g")
