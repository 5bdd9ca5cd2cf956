"""Originators are victims after all others, in every form of preemption, or never if the policy says so."""

from __future__ import annotations

from itertools import combinations
from typing import Any
from unittest import mock

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Allocation, PreemptionCause, PreemptionPolicy
from yunikorn.errors import ConfigError
from yunikorn.explain.explanations import why
from yunikorn.interface.messages import NodeAction
from yunikorn.model import allocation as model
from yunikorn.model.ask import REQUIRED_NODE_TAG
from yunikorn.scheduling.preemption import candidate_store

PROTECT = {"name": "standard", "originators": "protect"}
DAEMON = {REQUIRED_NODE_TAG: "n0"}
TASKS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(0, 2), st.booleans()), min_size=2, max_size=10
)
"""Node, amounts of memory and vcore, and True for originators."""


def keys(rm: RM) -> list[str]:
    rm.schedule()
    return sorted(uuid.partition("#")[0] for uuid in rm.evicted)


def cluster(policy: Any = "standard", **resources: Any) -> RM:
    """Return an RM with a full node of 3; the driver is the youngest, and has the lowest priority."""
    preemption = {"policy": policy, "quotapreemptionenabled": True, "shrunknodes": True}
    of_b = queue("b", resources=resources, properties={"quota.preemption.delay": "1s"})
    of_a = queue("a", resources={"guaranteed": {"memory": 3}})
    rm = RM(configuration(of_a, of_b, preemption=preemption))
    rm.node("n0", memory=3)
    rm.node("other", vcore=3)
    rm.app("work", "root.b")
    for key in ("x", "y", "driver"):
        rm.ask("work", key, priority=0 if key == "driver" else 1, originator=key == "driver", memory=1)
        rm.schedule()
        rm.pass_time(1)
    rm.app("late", "root.a")
    return rm


def for_a_guarantee(rm: RM, memory: int) -> None:
    rm.ask("late", "z", priority=9, memory=memory)
    rm.pass_time(31)


def for_a_daemon(rm: RM, memory: int) -> None:
    rm.ask("late", "z", priority=9, tags=DAEMON, memory=memory)


def for_a_lowered_max(rm: RM, memory: int) -> None:
    preemption = rm.at_work().config.preemption.policy.options
    policy = {"name": "standard", **preemption}
    # A max of 0 would be none.
    resources = {"max": {"memory": 3 - memory, "vcore": 9}}
    of_b = queue("b", resources=resources, properties={"quota.preemption.delay": "1s"})
    rm.reload(configuration(queue("a"), of_b, preemption={"policy": policy, "quotapreemptionenabled": True}))
    rm.pass_time(1)


def for_a_shrunk_node(rm: RM, memory: int) -> None:
    rm.change_node("n0", NodeAction.UPDATE, capacity={"memory": 3 - memory})


FORMS = [for_a_guarantee, for_a_daemon, for_a_lowered_max, for_a_shrunk_node]


@pytest.mark.parametrize("form", FORMS)
def test_originators_are_victims_after_all_others(form: Any) -> None:
    for memory, victims in ((1, ["y"]), (2, ["x", "y"]), (3, ["driver", "x", "y"])):
        rm = cluster()
        form(rm, memory)
        assert keys(rm) == victims


@pytest.mark.parametrize("form", FORMS)
def test_originators_are_no_victims_of_a_policy_that_protects_them(form: Any) -> None:
    for memory, whole in ((2, True), (3, False)):
        rm = cluster(PROTECT)
        form(rm, memory)
        is_partial = form in (for_a_lowered_max, for_a_shrunk_node)
        assert keys(rm) == (["x", "y"] if whole or is_partial else [])


def test_protected_originators_are_named_in_the_answer_to_why_a_request_waits() -> None:
    rm = cluster(PROTECT)
    for_a_guarantee(rm, 3)
    rm.schedule()
    details = [reason.detail for reason in why(rm.at_work(), rm.find_app("late").asks["z"])]
    assert details[-1].endswith("policy standard protects 1 allocation: originators are protected (1)")


def test_pod_that_is_an_application_by_itself_makes_room_for_a_guarantee() -> None:
    rm = RM(configuration(queue("a", resources={"guaranteed": {"memory": 2}}), queue("b")))
    rm.node("n0", memory=2)
    for number in range(2):
        rm.app(f"pod-{number}", "root.b")
        rm.ask(f"pod-{number}", f"pod-{number}", originator=True, memory=1)
    rm.app("late", "root.a")
    rm.schedule()
    rm.ask("late", "z", memory=2)
    rm.pass_time(31)
    assert keys(rm) == ["pod-0", "pod-1"]


def test_node_without_an_originator_is_chosen_even_if_more_victims_end_there() -> None:
    rm = RM(configuration(queue("a", resources={"guaranteed": {"memory": 4}}), queue("b")))
    rm.app("work", "root.b")
    rm.node("n0", memory=2)
    rm.ask("work", "driver", originator=True, memory=2)
    rm.schedule()
    rm.node("n1", memory=2)
    rm.ask("work", "x", 2, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    for victims in (["x", "x"], ["driver", "x", "x"]):
        rm.ask("late", f"z{len(victims)}", memory=2)
        rm.pass_time(31)
        assert keys(rm) == victims


def test_originators_are_last_whatever_a_policy_ranks() -> None:
    class DriversFirst(PreemptionPolicy):
        name = "drivers-first"

        def rank(self, victim: Allocation, cause: PreemptionCause) -> bool:
            return not victim.originator

    registry = with_plugins(preemption_policies=[DriversFirst])
    of_a = queue("a", resources={"guaranteed": {"memory": 1}})
    rm = RM(configuration(of_a, queue("b"), preemption={"policy": "drivers-first"}), registry)
    rm.node("n0", memory=2)
    rm.app("work", "root.b")
    rm.ask("work", "driver", originator=True, memory=1)
    rm.ask("work", "x", memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "z", memory=1)
    rm.pass_time(31)
    assert keys(rm) == ["x"]


def test_policy_with_an_invalid_treatment_protects_originators() -> None:
    class Odd(PreemptionPolicy):
        name = "odd"
        originators = "first"  # type: ignore[assignment]

        def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
            return 0

    registry = with_plugins(preemption_policies=[Odd])
    of_a = queue("a", resources={"guaranteed": {"memory": 1}})
    rm = RM(configuration(of_a, queue("b"), preemption={"policy": "odd"}), registry)
    rm.node("n0", memory=1)
    rm.app("work", "root.b")
    rm.ask("work", "driver", originator=True, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "z", memory=1)
    rm.pass_time(31)
    assert keys(rm) == []


def test_unknown_treatment_in_a_configuration_is_an_error_with_its_place() -> None:
    with pytest.raises(ConfigError) as raised:
        RM(configuration(queue("a"), preemption={"policy": {"name": "standard", "originators": "never"}}))
    assert "preemption.policy.originators" in str(raised.value)
    assert "last" in str(raised.value)
    assert "protect" in str(raised.value)


def does(room: dict[str, int], victims: Any, wanted: dict[str, int]) -> bool:
    """Return True if the room of a node suffices once the victims have ended."""
    return all(
        room.get(name, 0) + sum(one.resource.get(name, 0) for one in victims) >= amount
        for name, amount in wanted.items()
    )


def is_covered(rm: RM, wanted: dict[str, int], *, originators: bool) -> bool:
    """Return True if the allocations of any node can make room there, tried one choice after the other."""
    for node in rm.at_work().partition.nodes.values():
        there = [one for one in node.allocations.values() if originators or not one.originator]
        if any(
            does(dict(node.available), some, wanted)
            for n in range(len(there) + 1)
            for some in combinations(there, n)
        ):
            return True
    return False


@pytest.mark.parametrize("kept", [0, 10**9], ids=["kept", "collected"])
@given(tasks=TASKS, protect=st.booleans(), daemon=st.booleans(), wanted=st.tuples(*[st.integers(1, 5)] * 2))
def test_no_originator_ends_where_other_victims_suffice(
    kept: int, tasks: list[Any], protect: bool, daemon: bool, wanted: tuple[int, int]
) -> None:
    of_a = queue("a", resources={"guaranteed": {"memory": 9, "vcore": "9m"}})
    preemption = {"policy": PROTECT if protect else "standard"}
    rm = RM(configuration(of_a, queue("b"), preemption=preemption))
    rm.app("work", "root.b")
    for number in range(1 if daemon else 3):
        mine = [(memory, vcore, is_it) for at, memory, vcore, is_it in tasks if daemon or at == number]
        rm.node(f"n{number}", memory=sum(one[0] for one in mine) or 1, vcore=sum(one[1] for one in mine) or 1)
        for place, (memory, vcore, is_it) in enumerate(mine):
            amounts = {"memory": memory} | ({"vcore": vcore} if vcore else {})
            rm.ask("work", f"t{number}-{place}", originator=is_it, **amounts)
        rm.schedule()
    amount: dict[str, Any] = dict(zip(("memory", "vcore"), wanted, strict=True))
    rm.app("late", "root.a")
    rm.ask("late", "z", tags=DAEMON if daemon else {}, **amount)
    running: dict[str, model.Allocation] = dict(rm.at_work().partition.accounting.allocations)
    without, at_all = (is_covered(rm, amount, originators=some) for some in (False, True))
    with mock.patch.object(candidate_store, "WORTHWHILE", kept):
        rm.schedule()
        rm.pass_time(31)
        rm.schedule()
    ended = [running[uuid] for uuid in rm.evicted]
    is_placed = any(one.allocation_key == "z" for one in rm.running.values())
    assert bool(ended) == ((without if protect else at_all) and not is_placed)
    taken = any(one.originator for one in ended)
    assert taken == (bool(ended) and not without)
    event(f"an originator ends: {taken}")
