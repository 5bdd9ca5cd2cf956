"""Nodes whose candidates are kept are evaluated again after changes that leave their free resources alone.

In each scenario a first request of `a` makes the scheduler keep the candidates of all nodes. Then something
happens to a possible victim, and a second request shows what the scheduler knows of it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM, Keep
from tests.core.kit import RM, configuration, queue, with_plugins
from tests.preemption.test_across_queues import guaranteed
from yunikorn.api import Allocation, Context, PermitPolicy, PreemptionCause, PreemptionPolicy, Wait
from yunikorn.clock import SECOND
from yunikorn.interface.constants import TERMINATING_TAG
from yunikorn.interface.messages import Allocation as Reported
from yunikorn.interface.messages import NodeAction
from yunikorn.resources import Resource

DELAY = 31
"""Seconds after which a request may preempt."""


class Patient(PermitPolicy):
    """Holds placements with the tag `hold` for as many seconds."""

    name = "patient"
    timeout = 600.0

    def opened(self, context: Context) -> None:
        """Keep the clock."""
        self.now = context.now

    def permit(self, allocation: Allocation) -> str | Wait | None:
        """Return how long the placement is still held."""
        seconds = float(allocation.tags.get("hold", "0"))
        left = seconds - (self.now() - allocation.placed) / SECOND
        return Wait(left, "not yet") if left > 0 else None


class Youngest(PreemptionPolicy):
    """The youngest allocation is preempted first; candidates are not kept."""

    name = "youngest"

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        """Return the order of ages."""
        return -victim.placed


def report(rm: RM, key: str, node_id: str, memory: int, app_id: str = "big", **tags: str) -> None:
    """Report a running task, or change its tags."""
    size = Resource({"memory": memory})
    one = Reported(key, app_id, node_id=node_id, resource_per_alloc=size, allocation_tags=tags)
    rm.update(allocations=[one])


def preempted(rm: RM) -> list[str]:
    """Return the keys of the victims that have not ended."""
    return sorted(one.allocation_key for one in rm.evicted.values())


def claim(rm: RM, key: str, memory: int) -> None:
    """Send a request of `a`, and let it become old enough to preempt."""
    rm.ask("late", key, memory=memory)
    rm.schedule()
    rm.pass_time(DELAY)
    rm.schedule()


def keep(rm: RM) -> None:
    """Make a first request preempt the only task of the first node, so that all candidates are kept."""
    rm.app("late", "root.a")
    claim(rm, "first", memory=1)
    assert preempted(rm) == ["victim"]
    rm.confirm()
    assert rm.schedule() == [("late", "first", "n0")]


def two_nodes_of_eight(*queues: Any, **keys: Any) -> RM:
    """Return an RM with tasks of 5 and 3 on one node, of 4 and 4 on another, and with candidates kept."""
    rm = RM(configuration(guaranteed("a", memory=10), queue("b"), *queues, **keys))
    rm.node("n0", memory=1)
    for node_id in ("n1", "n2"):
        rm.node(node_id, memory=8)
    rm.app("big", "root.b")
    report(rm, "victim", "n0", 1)
    report(rm, "three", "n1", 3)
    report(rm, "four", "n2", 4)
    report(rm, "another four", "n2", 4)
    return rm


def test_room_of_a_victim_of_a_quota_counts() -> None:
    def limited(most: int) -> dict[str, Any]:
        resources = {"max": {"memory": str(most)}}
        return queue("c", resources=resources, properties={"quota.preemption.delay": "50s"})

    enabled = {"quotapreemptionenabled": True}
    rm = two_nodes_of_eight(limited(20), preemption=enabled)
    rm.node("n9", memory=6)
    rm.app("other", "root.c")
    report(rm, "five", "n1", 5, app_id="other")
    report(rm, "six", "n9", 6, app_id="other")
    rm.reload(
        configuration(guaranteed("a", memory=10), queue("b"), limited(6), preemption=enabled),
    )
    keep(rm)
    claim(rm, "second", memory=8)
    # The quota has ended `five`: with its room, one victim suffices on n1, and n2 would need two.
    assert preempted(rm) == ["five", "three"]


def test_room_of_a_task_that_the_rm_is_ending_counts() -> None:
    rm = two_nodes_of_eight()
    report(rm, "five", "n1", 5, name="five")
    keep(rm)
    report(rm, "five", "n1", 5, name="five", **{TERMINATING_TAG: "true"})
    claim(rm, "second", memory=8)
    assert preempted(rm) == ["three"]


def test_announced_placement_is_as_young_as_its_announcement() -> None:
    rm = RM(
        configuration(guaranteed("a", memory=10), queue("b"), permits=[{"name": "patient"}]),
        with_plugins(permit_policies=[Patient]),
    )
    rm.app("big", "root.b")
    rm.node("n0", memory=1)
    report(rm, "victim", "n0", 1)
    rm.node("n1", memory=2)
    rm.ask("big", "held", memory=1, tags={"hold": "45"})
    rm.schedule()
    rm.pass_time(1)
    rm.ask("big", "between", memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    claim(rm, "first", memory=1)
    assert preempted(rm) == ["victim"]
    rm.confirm()
    rm.schedule()
    # The placement is announced while the next request waits: now `held` is the youngest.
    claim(rm, "second", memory=1)
    assert preempted(rm) == ["held"]


def test_task_is_as_young_as_the_end_of_its_placeholder() -> None:
    rm = GangRM(
        configuration(guaranteed("a", memory=10), queue("b"), predicates=[{"name": "keep"}]),
        with_plugins(predicates=[Keep]),
    )
    rm.app("big", "root.b")
    rm.node("n1", memory=2)
    rm.gang("gang", queue_name="root.b", memory=2)
    rm.task("gang", "ph", "workers", 2, placeholder=True, memory=1)
    assert len(rm.schedule()) == 2
    rm.node("n0", memory=1)
    report(rm, "victim", "n0", 1)
    rm.node("n2", memory=2)
    rm.task("gang", "real", "workers", memory=1, tags={"not": "n1"})
    assert rm.schedule() == []
    rm.pass_time(1)
    rm.ask("big", "between", memory=1)
    assert rm.schedule() == [("big", "between", "n2")]
    rm.app("late", "root.a")
    claim(rm, "first", memory=1)
    assert "victim" in preempted(rm)
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.confirm()
    assert rm.schedule() == [("late", "first", "n0")]
    claim(rm, "second", memory=1)
    assert preempted(rm) == ["real"]


@pytest.mark.parametrize("policy", ["standard", "youngest"])
def test_nodes_of_the_other_members_of_a_preempted_gang_count_in_the_same_round(policy: str) -> None:
    rm = GangRM(
        configuration(
            guaranteed("a", memory=10),
            queue("b"),
            permits=[{"name": "patient"}],
            preemption={"policy": policy},
        ),
        with_plugins(permit_policies=[Patient], preemption_policies=[Youngest]),
    )
    rm.app("big", "root.b")
    for node_id in ("n1", "n2"):
        rm.node(node_id, memory=3)
        report(rm, f"one on {node_id}", node_id, 1)
    rm.gang("gang", "Atomic", "root.b", memory=4)
    rm.task("gang", "member", "members", 2, memory=2, tags={"hold": "500"})
    rm.scheduler.schedule()
    assert rm.find_queue("root.b").allocated == {"memory": 6}
    rm.node("n3", memory=3)
    report(rm, "two on n3", "n3", 2)
    report(rm, "one on n3", "n3", 1)
    rm.app("late", "root.a")
    for key in ("first", "second"):
        rm.ask("late", key, memory=3)
    rm.schedule()
    rm.pass_time(DELAY)
    rm.scheduler.schedule()
    # The first request ends the gang on n1, so that one victim suffices on n2, where n3 would need two.
    assert preempted(rm) == ["one on n1", "one on n2"]
