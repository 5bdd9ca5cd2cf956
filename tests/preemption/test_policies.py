"""Preemption policies of others: who is protected, in which order and on which node work is preempted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Allocation, Context, PreemptionCause, PreemptionPolicy
from yunikorn.explain.explanations import why
from yunikorn.interface.messages import PreemptionPolicy as AskPolicy
from yunikorn.model.ask import REQUIRED_NODE_TAG as REQUIRED

SECOND = 1_000_000_000


@attrs.define(eq=False)
class Shielding(PreemptionPolicy):
    """Protects work in its first seconds, and preempts what has run for the shortest time."""

    name = "shielding"
    seconds: float = 600.0
    refresh_every = 60.0
    _now: Callable[[], int] = attrs.field(init=False, default=lambda: 0)

    def opened(self, context: Context) -> None:
        self._now = context.now

    def protects(self, victim: Allocation, cause: PreemptionCause) -> str | None:
        if self._now() - victim.placed < self.seconds * SECOND:
            return "runs for less than 10 minutes"
        return super().protects(victim, cause)

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        return -victim.placed


class Oldest(PreemptionPolicy):
    """Preempts the oldest first."""

    name = "oldest"

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        return victim.placed


class Cheapest(PreemptionPolicy):
    """Preempts the cheapest work first, by a tag."""

    name = "cheapest"

    def rank(self, victim: Allocation, cause: PreemptionCause) -> float:
        return self.cost(victim, cause)

    def cost(self, victim: Allocation, cause: PreemptionCause) -> float:
        return float(victim.tags.get("cost", "1"))


CAUSES: list[PreemptionCause] = []


class Noting(Oldest):
    """Notes the causes of preemption."""

    name = "noting"

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        CAUSES.append(cause)
        return super().rank(victim, cause)


def guaranteed(name: str, memory: int, **properties: str) -> dict[str, Any]:
    return queue(name, resources={"guaranteed": {"memory": str(memory)}}, properties=properties)


def cluster(policy: Any, *queues: dict[str, Any], **preemption: Any) -> RM:
    """Return an RM with a node of 4 that tasks of `b` fill, one after the other, and an idle `a`."""
    registry = with_plugins(preemption_policies=[Shielding, Oldest, Cheapest, Noting])
    keys = {"policy": policy, **preemption}
    rm = RM(configuration(*queues or (guaranteed("a", 2), queue("b")), preemption=keys), registry)
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    for number in range(4):
        rm.ask("big", f"x{number}", originator=number == 0, memory=1)
        rm.schedule()
        rm.pass_time(10)
    rm.app("late", "root.a")
    return rm


def evicted(rm: RM) -> list[str]:
    rm.schedule()
    return sorted(uuid.partition("#")[0] for uuid in rm.evicted)


@pytest.mark.parametrize(
    ("policy", "victims"),
    [("standard", ["x2", "x3"]), ("oldest", ["x1", "x2"]), ({"name": "oldest"}, ["x1", "x2"])],
)
def test_policy_orders_the_victims_of_a_guarantee(policy: Any, victims: list[str]) -> None:
    rm = cluster(policy)
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    assert evicted(rm) == victims


def test_allocation_that_opted_out_is_no_victim_of_any_policy() -> None:
    rm = cluster("oldest")
    rm.app("more", "root.b")
    rm.node("n2", memory=2)
    rm.policy = AskPolicy(allow_preempt_self=False)
    rm.ask("more", "no", memory=2)
    rm.schedule()
    rm.policy = None
    rm.ask("late", "y", 2, memory=2)
    rm.pass_time(31)
    assert evicted(rm) == ["x1", "x2"]
    rm.confirm()
    rm.schedule()
    rm.pass_time(31)
    assert evicted(rm) == [], "the guarantee is used up, and nothing else may be preempted"


def test_protection_that_ends_with_time_is_noticed_without_a_change() -> None:
    rm = cluster("shielding")
    rm.ask("late", "y", memory=1)
    rm.pass_time(31)
    assert evicted(rm) == []
    ask = rm.find_app("late").asks["y"]
    details = [reason.detail for reason in why(rm.at_work(), ask)]
    assert details[-1] == (
        "preemption found no suitable victims; policy shielding protects 4 allocations: "
        "runs for less than 10 minutes (4)"
    )
    for _ in range(12):
        rm.pass_time(60)
        if evicted(rm):
            break
    # The originator was placed first, and is no longer protected either.
    assert evicted(rm) == ["x1"]


def test_node_with_the_lowest_cost_is_chosen() -> None:
    registry = with_plugins(preemption_policies=[Cheapest])
    keys = {"policy": "cheapest"}
    rm = RM(configuration(guaranteed("a", 2), queue("b"), preemption=keys), registry)
    rm.app("big", "root.b")
    rm.app("late", "root.a")
    for number, (amount, cost) in enumerate([(2, "9"), (1, "4"), (1, "4"), (1, "1"), (1, "8")]):
        if number in (0, 1, 3):
            rm.node(f"n{number}", memory=2)
        rm.ask("big", f"x{number}", tags={"cost": cost}, memory=amount)
        rm.schedule()
    # One victim of 9, two of 4, or those of 1 and 8: equal costs are decided by the id of the node.
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    assert evicted(rm) == ["x1", "x2"]


def test_policy_decides_about_required_nodes_quotas_and_shrunk_nodes() -> None:
    CAUSES.clear()
    properties = {"quota.preemption.delay": "1s"}
    a, b = queue("a"), queue("b", properties=properties)
    rm = cluster("noting", a, b, shrunknodes=True, quotapreemptionenabled=True)
    rm.ask("late", "daemon", priority=1, tags={REQUIRED: "n1"}, memory=1)
    assert evicted(rm) == ["x1"]
    (cause,) = {(one.kind, one.priority, dict(one.amount)["memory"]) for one in CAUSES}
    assert cause == ("required-node", 1, 1)
    assert CAUSES[0].node is rm.find_node()
    rm.confirm()
    rm.schedule()
    CAUSES.clear()
    rm.change_node("n1", memory=3)
    assert evicted(rm) == ["x2"]
    assert {one.kind for one in CAUSES} == {"shrunk-node"}
    rm.confirm()
    CAUSES.clear()
    smaller = queue("b", properties=properties, resources={"max": {"memory": "1"}})
    keys = {"policy": "noting", "quotapreemptionenabled": True}
    rm.reload(configuration(a, smaller, preemption=keys))
    rm.pass_time(2)
    assert evicted(rm) == ["x3"]
    assert {(one.kind, one.queue.path if one.queue else "") for one in CAUSES} == {("quota", "root.b")}


def test_quota_is_enforced_when_the_protection_ends() -> None:
    properties = {"quota.preemption.delay": "1s"}
    policy = {"name": "shielding", "seconds": 600}
    rm = cluster(policy, queue("a"), queue("b", properties=properties), quotapreemptionenabled=True)
    smaller = queue("b", properties=properties, resources={"max": {"memory": "2"}})
    keys = {"policy": policy, "quotapreemptionenabled": True}
    rm.reload(configuration(queue("a"), smaller, preemption=keys))
    rm.pass_time(60)
    assert evicted(rm) == []
    rm.pass_time(600)
    assert evicted(rm) == ["x2", "x3"]


def test_shrunk_node_is_relieved_when_the_protection_ends() -> None:
    policy = {"name": "shielding", "seconds": 600}
    rm = cluster(policy, queue("a"), queue("b"), shrunknodes=True)
    rm.change_node("n1", memory=3)
    assert evicted(rm) == []
    rm.pass_time(660)
    assert evicted(rm) == ["x3"]


def test_reload_replaces_the_policy() -> None:
    rm = cluster({"name": "shielding", "seconds": 1e6})
    rm.ask("late", "y", memory=1)
    rm.pass_time(31)
    assert evicted(rm) == []
    rm.reload(configuration(guaranteed("a", 2), queue("b"), preemption={"policy": "oldest"}))
    assert evicted(rm) == ["x1"]


# -- failures ------------------------------------------------------------------------------------------


def raising(*_: object) -> Any:
    raise RuntimeError("broken")


FAILURES = {
    "protects": [raising, lambda *_: "", lambda *_: 7, lambda *_: False],
    "rank": [raising, lambda *_: float("nan"), lambda *_: (0, float("nan")), lambda *_: object()],
    "cost": [raising, lambda *_: -1, lambda *_: float("inf"), lambda *_: "1", lambda *_: 10**5000],
}


@pytest.mark.parametrize(
    ("method", "answer"), [(method, answer) for method, answers in FAILURES.items() for answer in answers]
)
def test_failing_policy_protects_and_is_named(method: str, answer: Any) -> None:
    bad = type("Bad", (Cheapest,), {"name": "bad", "rank": lambda *_: 0, method: answer})
    keys = {"policy": "bad"}
    registry = with_plugins(preemption_policies=[bad])
    rm = RM(configuration(guaranteed("a", 2), queue("b"), preemption=keys), registry)
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    assert evicted(rm) == []
    (failure,) = rm.failures()
    assert failure.startswith("plugin bad of test-plugin (yunikorn-test 1.0): ")


def test_failure_for_one_victim_spares_only_that_one() -> None:
    class Picky(Cheapest):
        """Fails for one task."""

        name = "picky"

        def rank(self, victim: Allocation, cause: PreemptionCause) -> float:
            if victim.key == "x1":
                raise RuntimeError("no answer")
            return victim.placed

    keys = {"policy": "picky"}
    rm = RM(
        configuration(guaranteed("a", 2), queue("b"), preemption=keys),
        with_plugins(preemption_policies=[Picky]),
    )
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    for number in range(4):
        rm.ask("big", f"x{number}", memory=1)
        rm.schedule()
        rm.pass_time(10)
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    assert evicted(rm) == ["x0", "x2"]
    (failure,) = rm.failures()
    assert ": ranking allocation " in failure
