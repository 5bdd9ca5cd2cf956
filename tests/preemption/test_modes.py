"""Modes of preemption: how a victim makes room, as the policy says and the RM can.

See docs/decisions/archive/0204.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Allocation, PreemptionCause, PreemptionPolicy
from yunikorn.errors import ConfigError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import AllocationRelease, PreemptionMode
from yunikorn_testing import Cluster, application, ask, node

END, REQUEUE, SUSPEND = PreemptionMode
ALL = tuple(PreemptionMode)
DAEMON = {"yunikorn.apache.org/requiredNode": "n1"}
CAUSES: list[str] = []


class ByTag(PreemptionPolicy):
    """Preempts the oldest first, in the mode that its tag names."""

    name = "by-tag"

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        return victim.placed

    def mode_of(self, victim: Allocation, cause: PreemptionCause) -> Any:
        CAUSES.append(cause.kind)
        return victim.tags.get("mode", "suspend")


def queues(policy: Any, most: int = 8, **preemption: Any) -> str:
    a = queue("a", resources={"guaranteed": {"memory": "2"}})
    capped = {"quota.preemption.delay": "10s"}
    b = queue("b", resources={"max": {"memory": str(most)}}, properties=capped)
    keys = {"policy": policy, "shrunknodes": True, "quotapreemptionenabled": True, **preemption}
    return configuration(a, b, preemption=keys)


def filled(
    policy: Any, *plugins: type[Any], modes: Sequence[PreemptionMode] = ALL, tags: Sequence[str] = ("",) * 4
) -> RM:
    """Return an RM with a node of 4 that tasks of `b` fill, one after the other; tags name their modes."""
    rm = RM(queues(policy), with_plugins(preemption_policies=[ByTag, *plugins]), modes=modes)
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    for number, tag in enumerate(tags):
        rm.ask("big", f"x{number}", memory=1, tags={"mode": tag} if tag else {})
        rm.schedule()
        rm.pass_time(10)
    rm.app("late", "root.a")
    return rm


def guarantee(rm: RM) -> None:
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)


def required_node(rm: RM) -> None:
    rm.ask("late", "y", memory=2, tags=DAEMON)


def shrunk_node(rm: RM) -> None:
    rm.change_node("n1", memory=2)


CHANGES = {"guarantee": guarantee, "required-node": required_node, "shrunk-node": shrunk_node}


def released(rm: RM) -> list[AllocationRelease]:
    rm.schedule()
    return list(rm.evicted.values())


def modes(rm: RM) -> dict[str, PreemptionMode]:
    return {one.allocation_key: one.preemption_mode for one in released(rm)}


@pytest.mark.parametrize("cause", CHANGES)
@pytest.mark.parametrize("mode", ALL)
def test_victims_have_the_mode_of_the_policy_whatever_the_cause(mode: PreemptionMode, cause: str) -> None:
    rm = filled({"name": "standard", "mode": mode.name.lower()})
    CHANGES[cause](rm)
    assert [one.preemption_mode for one in released(rm)] == [mode] * 2
    # The accounting is that of a task that ends, whatever follows.
    rm.confirm()
    assert rm.find_queue("root.b").preempting == {}
    assert rm.find_queue("root.b").allocated == {"memory": 2}


@pytest.mark.parametrize("policy", [{"name": "standard", "mode": "suspend"}, "by-tag"])
def test_victims_of_a_lowered_quota_have_the_mode_of_the_policy(policy: Any) -> None:
    rm = filled(policy)
    rm.reload(queues(policy, most=2))
    rm.pass_time(10)
    assert [one.preemption_mode for one in released(rm)] == [SUSPEND] * 2


def test_victims_end_by_default() -> None:
    rm = filled("standard", modes=())
    guarantee(rm)
    assert {one.preemption_mode for one in released(rm)} == {END}


def test_policy_may_choose_the_mode_of_each_victim() -> None:
    rm = filled("by-tag", tags=["requeue", "suspend", "end", "end"])
    CAUSES.clear()
    guarantee(rm)
    assert modes(rm) == {"x0": REQUEUE, "x1": SUSPEND}
    assert CAUSES == ["guarantee"] * 2, "only chosen victims have a mode"


def test_placeholder_ends_and_its_mode_is_not_asked_for() -> None:
    rm = GangRM(queues("by-tag"), with_plugins(preemption_policies=[ByTag]), modes=[SUSPEND])
    rm.node("n1", memory=4)
    rm.gang("gang", "Soft", "root.b", seconds=600, memory=4)
    rm.task("gang", "p", "workers", 4, placeholder=True, memory=1)
    rm.schedule()
    CAUSES.clear()
    rm.change_node("n1", memory=3)
    assert [one.preemption_mode for one in released(rm)] == [END]
    assert CAUSES == []


def test_event_says_what_becomes_of_a_victim(registry: Registry) -> None:
    cluster = Cluster(queues({"name": "standard", "mode": "suspend"}), registry, [node("n1", memory=4)])
    cluster.submit(application("big", "root.b"), ask("x", memory=4))
    cluster.run()
    cluster.change(node("n1", memory=3))
    cluster.run()
    assert [one.mode for one in cluster.preempted] == ["suspend"]
    (message,) = (one.message for one in cluster.events if "reempted because" in one.message)
    assert message == "Preempted because node n1 became smaller, to continue later"


# -- what the resource manager can do ------------------------------------------------------------------


@pytest.mark.parametrize("declared", [[], [REQUEUE]])
def test_mode_that_the_rm_has_not_declared_refuses_the_configuration(declared: list[PreemptionMode]) -> None:
    rm = filled("standard", modes=declared)
    with pytest.raises(ConfigError) as error:
        rm.reload(queues({"name": "standard", "mode": "suspend"}))
    possible = "'end' or 'requeue'" if declared else "'end'"
    assert str(error.value).endswith(
        "mode of preemption: the resource manager has not declared that it can 'suspend': "
        f"use {possible}, or let it declare preemption_modes when it registers"
    )
    guarantee(rm)
    assert {one.preemption_mode for one in released(rm)} == {END}


def test_mode_that_the_rm_has_not_declared_refuses_the_registration() -> None:
    with pytest.raises(ConfigError):
        filled({"name": "standard", "mode": "requeue"}, modes=[SUSPEND])


def test_undeclared_mode_of_one_victim_preempts_nothing() -> None:
    rm = filled("by-tag", modes=[REQUEUE], tags=["requeue", "suspend", "end", "end"])
    guarantee(rm)
    assert released(rm) == []
    (failure,) = rm.failures()
    assert failure.startswith("plugin by-tag of test-plugin (yunikorn-test 1.0): choosing the mode of ")


# -- failures ------------------------------------------------------------------------------------------


def raising(*_: object) -> Any:
    raise RuntimeError("broken")


@pytest.mark.parametrize("cause", CHANGES)
@pytest.mark.parametrize("answer", [raising, lambda *_: "pause", lambda *_: None, lambda *_: SUSPEND])
@pytest.mark.parametrize("member", ["mode", "mode_of"])
def test_policy_without_a_valid_mode_preempts_nothing_and_is_named(
    member: str, answer: Any, cause: str
) -> None:
    value = property(answer) if member == "mode" else answer
    bad = type("Bad", (PreemptionPolicy,), {"name": "bad", "rank": lambda *_: 0, member: value})
    rm = filled("bad", bad)
    CHANGES[cause](rm)
    assert released(rm) == []
    (failure,) = rm.failures()
    assert failure.startswith("plugin bad of test-plugin (yunikorn-test 1.0): ")
    # Nothing of the attempt is left: a policy that works finds the same victims.
    rm.reload(queues({"name": "standard", "mode": "requeue"}))
    rm.change_node("n1", memory=2)
    assert len(released(rm)) >= 2
