"""Nodes that became smaller than their allocations (docs/decisions/archive/0036)."""

from __future__ import annotations

import pytest

from tests.core.kit import RM, configuration, queue


def shrink(*queues: object, **preemption: bool) -> RM:
    rm = RM(configuration(*queues or (queue("a"),), preemption=preemption))  # type: ignore[arg-type]
    rm.node("n1", memory=6)
    rm.app()
    for number, priority in enumerate([2, 0, 1]):
        rm.ask(key=f"x{number}", memory=2, priority=priority)
    rm.schedule()
    rm.change_node("n1", memory=3)
    return rm


@pytest.mark.parametrize(("asked_for", "gone"), [(True, ["x1", "x2"]), (False, [])])
def test_lowest_priority_is_preempted_if_the_partition_enables_it(asked_for: bool, gone: list[str]) -> None:
    rm = shrink(shrunknodes=asked_for)
    assert sorted(uuid.partition("#")[0] for uuid in rm.evicted) == gone
    rm.confirm()
    assert rm.find_node().available["memory"] == (1 if asked_for else -3)


def test_guarantee_is_kept_even_if_the_node_stays_overcommitted() -> None:
    rm = shrink(queue("a", resources={"guaranteed": {"memory": "4"}}), shrunknodes=True)
    assert [uuid.partition("#")[0] for uuid in rm.evicted] == ["x1"]
    # The next change of the node does not preempt for allocations that are being released already.
    rm.change_node("n1", memory=4)
    assert len(rm.evicted) == 1
