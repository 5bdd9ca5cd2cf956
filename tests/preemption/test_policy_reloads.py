"""A preemption policy that is replaced, or gets other options, while its victims have not ended yet."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Allocation, PreemptionCause, PreemptionPolicy
from yunikorn.model.ask import REQUIRED_NODE_TAG as REQUIRED


class Refreshing(PreemptionPolicy):
    """A policy whose answers depend on the time."""

    name = "refreshing"
    refresh_every = 5.0

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        return 0


@attrs.frozen(eq=False)
class Named(PreemptionPolicy):
    """Protects the tasks of some names, and preempts the others in the order of their names."""

    name = "named"
    protected: tuple[str, ...] = ()
    reverse: bool = False

    def protects(self, victim: Allocation, cause: PreemptionCause) -> str | None:
        return "is protected" if victim.key in self.protected else super().protects(victim, cause)

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        number = int(victim.key[1:])
        return -number if self.reverse else number


QUOTA = {"quota.preemption.delay": "1s"}


def config(policy: Any, most: int = 6, owed: int = 0) -> str:
    """Return a configuration with a quota of queue `b`, and a guarantee of queue `a`."""
    guaranteed = {"guaranteed": {"memory": str(owed)}} if owed else {}
    owner = queue("a", resources=guaranteed, properties={"preemption.delay": "1s"})
    lender = queue("b", resources={"max": {"memory": str(most)}}, properties=QUOTA)
    return configuration(owner, lender, preemption={"policy": policy, "quotapreemptionenabled": True})


def policy(*protected: str, reverse: bool = False) -> dict[str, Any]:
    """Return the YAML of the policy."""
    return {"name": "named", "protected": list(protected), "reverse": reverse}


def cluster(first: Any, *, owed: int = 0, nodes: int = 1) -> RM:
    """Return an RM with six tasks of `b`, x0 to x5, which fill the nodes."""
    rm = RM(config(first, owed=owed), with_plugins(preemption_policies=[Named]))
    for number in range(nodes):
        rm.node(f"n{number + 1}", memory=6 // nodes)
    rm.app("big", "root.b")
    rm.app("late", "root.a")
    for number in range(6):
        rm.ask("big", f"x{number}", memory=1)
        rm.schedule()
    return rm


def evicted(rm: RM) -> list[str]:
    """Return the keys of the victims that have not ended, in order of their names."""
    rm.schedule()
    return sorted(uuid.partition("#")[0] for uuid in rm.evicted)


OTHERS: list[Any] = [policy("x0", "x1"), policy(reverse=True), "standard"]


@pytest.mark.parametrize("other", OTHERS, ids=["other protection", "other order", "other policy"])
def test_quota_counts_outstanding_victims_of_the_policy_before(other: Any) -> None:
    rm = cluster(policy())
    rm.reload(config(policy(), most=4))
    rm.pass_time(2)
    assert evicted(rm) == ["x0", "x1"]
    rm.reload(config(other, most=4))
    rm.pass_time(5)
    assert evicted(rm) == ["x0", "x1"], "two are on their way, and the quota needs no more"
    rm.reload(config(other, most=3))
    rm.pass_time(5)
    third = "x2" if other == OTHERS[0] else "x5"
    assert evicted(rm) == sorted(["x0", "x1", third])
    rm.confirm()
    assert evicted(rm) == []
    assert not rm.failures()


@pytest.mark.parametrize("other", OTHERS, ids=["other protection", "other order", "other policy"])
def test_guarantee_counts_outstanding_victims_of_the_policy_before(other: Any) -> None:
    rm = cluster(policy(), owed=3)
    rm.ask("late", "y0", memory=2)
    rm.pass_time(3)
    assert evicted(rm) == ["x0", "x1"]
    rm.reload(config(other, owed=3))
    rm.pass_time(5)
    assert evicted(rm) == ["x0", "x1"]
    rm.confirm()
    rm.schedule()
    assert [one.allocation_key for one in rm.running.values() if one.application_id == "late"] == ["y0"]
    rm.ask("late", "y1", memory=1)
    rm.pass_time(5)
    assert evicted(rm) == ["x2" if other == OTHERS[0] else "x5"]
    assert not rm.failures()


def test_new_protection_ends_further_preemption_for_a_quota() -> None:
    rm = cluster(policy("x0", "x1", "x2", "x3"))
    rm.reload(config(policy("x0", "x1", "x2", "x3"), most=2))
    rm.pass_time(2)
    assert evicted(rm) == ["x4", "x5"], "as far as the protection permits"
    every = [f"x{number}" for number in range(6)]
    rm.reload(config(policy(*every), most=2))
    rm.confirm()
    rm.pass_time(60)
    assert evicted(rm) == []
    rm.reload(config(policy(*every[1:]), most=1))
    rm.pass_time(60)
    assert evicted(rm) == ["x0"], "the next change of the quota asks the policy again"


def test_quota_is_enforced_after_a_reload_that_lifts_the_protection() -> None:
    every = [f"x{number}" for number in range(6)]
    rm = cluster(policy(*every))
    rm.reload(config(policy(*every), most=4))
    rm.pass_time(60)
    assert evicted(rm) == []
    rm.reload(config(policy(*every[2:]), most=4))
    assert evicted(rm) == [], "the delay of the queue begins again"
    rm.pass_time(1)
    assert evicted(rm) == ["x0", "x1"]
    rm.confirm()
    rm.reload(config(policy(), most=4))
    rm.pass_time(60)
    assert evicted(rm) == [], "the quota is kept"
    assert not rm.failures()


def test_lifted_protection_brings_down_only_queues_that_stayed_above_their_quota() -> None:
    rm = cluster(policy("x0"))
    rm.reload(config(policy("x0"), most=8))
    rm.pass_time(60)
    rm.reload(config(policy("x0", "x1", "x2", "x3", "x4", "x5"), most=5))
    rm.pass_time(60)
    assert evicted(rm) == []
    rm.reload(config("standard", most=7))
    rm.pass_time(60)
    assert evicted(rm) == [], "the quota was raised at the same time"
    rm.reload(config(policy("x1"), most=7))
    rm.pass_time(60)
    assert evicted(rm) == []


def test_shrunk_node_is_freed_after_a_reload_that_lifts_the_protection() -> None:
    def text(*protected: str) -> str:
        return configuration(queue("a"), preemption={"policy": policy(*protected), "shrunknodes": True})

    every = [f"x{number}" for number in range(6)]
    rm = RM(text(*every), with_plugins(preemption_policies=[Named]))
    rm.node("n1", memory=6)
    rm.app("big")
    for key in every:
        rm.ask("big", key, memory=1)
    rm.schedule()
    rm.change_node("n1", memory=4)
    assert evicted(rm) == []
    rm.reload(text(*every[2:]))
    assert evicted(rm) == ["x0", "x1"]
    rm.reload(text())
    assert evicted(rm) == ["x0", "x1"], "two are on their way, and the node needs no more"


def test_required_node_and_reservation_keep_their_victims_after_a_reload() -> None:
    rm = cluster(policy(reverse=True), owed=3, nodes=2)
    by_node = {key: node for key, node in ((one.allocation_key, one.node_id) for one in rm.running.values())}
    on_first = sorted(key for key, node in by_node.items() if node == "n1")
    rm.ask("late", "daemon", priority=1, tags={REQUIRED: "n1"}, memory=1)
    assert evicted(rm) == [on_first[-1]]
    rm.ask("late", "y0", memory=2)
    rm.pass_time(3)
    before = evicted(rm)
    assert len(before) == 3
    rm.reload(config(policy(*by_node), owed=3))
    rm.pass_time(60)
    assert evicted(rm) == before, "all others are protected now, and the victims stay victims"
    reserved = {ask.key for node in rm.at_work().partition.nodes.values() for ask in node.reservations}
    assert "y0" in reserved
    rm.confirm()
    rm.schedule()
    mine = {one.allocation_key: one.node_id for one in rm.running.values() if one.application_id == "late"}
    assert set(mine) == {"daemon", "y0"}
    assert mine["daemon"] == "n1"
    assert evicted(rm) == []
    assert not rm.failures()


def test_shrunk_node_without_tasks_is_not_looked_at_again() -> None:
    text = configuration(queue("a"), preemption={"policy": "refreshing", "shrunknodes": True})
    rm = RM(text, with_plugins(preemption_policies=[Refreshing]))
    rm.node("n1", memory=6, occupied={"memory": 4})
    rm.change_node("n1", memory=2)
    assert rm.scheduler.next_timer() is None
