"""Preemption in random clusters: it takes enough, not more than that, and no protected allocation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.core.kit import RM, configuration, queue
from tests.example_counts import examples
from yunikorn.interface.messages import PreemptionPolicy
from yunikorn.model.allocation import Allocation
from yunikorn.model.ask import Ask
from yunikorn.model.queue import Queue

UNITS = {"memory": "", "vcore": "m"}
LEAVES = ["root.a", "root.b", "root.p.c", "root.p.d"]
AMOUNTS = st.fixed_dictionaries(
    {"memory": st.integers(1, 3)}, optional={"vcore": st.integers(1, 3), "gpu": st.integers(1, 1)}
)
ASKS = st.tuples(
    st.sampled_from(LEAVES),
    AMOUNTS,
    st.integers(0, 2),
    st.sampled_from(["plain", "plain", "plain", "originator", "opted out"]),
)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "preemption.by.priority": st.just("enabled"),
        "preemption.within.queue": st.just("enabled"),
        "preemption.policy": st.sampled_from(["fence", "disabled"]),
        "priority.offset": st.sampled_from(["1", "-1"]),
        "priority.policy": st.just("fence"),
    },
)


@st.composite
def configurations(draw: Any) -> str:
    def leaf(name: str, most: int) -> dict[str, Any]:
        resources: dict[str, Any] = {}
        guaranteed = draw(
            st.dictionaries(st.sampled_from(["memory", "memory", "vcore"]), st.integers(most // 2, most))
        )
        if guaranteed:
            resources["guaranteed"] = {kind: f"{amount}{UNITS[kind]}" for kind, amount in guaranteed.items()}
        if draw(st.booleans()):
            resources["max"] = {"memory": str(draw(st.integers(4, 8)))}
        return queue(name, resources=resources, properties=draw(PROPERTIES))

    parent = queue("p", leaf("c", 2), leaf("d", 2), resources={"max": {"memory": "8", "vcore": "9m"}})
    return configuration(leaf("a", 4), leaf("b", 4), parent)


def submit(rm: RM, key: str, path: str, amount: dict[str, Any], priority: int, kind: str) -> None:
    policy = PreemptionPolicy(allow_preempt_self=kind != "opted out")
    rm.ask(path, key, priority=priority, originator=kind == "originator", policy=policy, **amount)


@settings(max_examples=examples(40), deadline=None)
@given(
    config=configurations(),
    nodes=st.lists(
        st.fixed_dictionaries(
            {"memory": st.integers(3, 6), "vcore": st.integers(2, 6)}, optional={"gpu": st.just(2)}
        ),
        min_size=1,
        max_size=3,
    ),
    running=st.lists(ASKS, min_size=8, max_size=20),
    late=st.lists(ASKS, min_size=1, max_size=6),
)
def test_victims_are_sufficient_and_minimal(
    config: str, nodes: list[Any], running: list[Any], late: list[Any]
) -> None:
    rm = RM(config)
    for number, capacity in enumerate(nodes):
        rm.node(f"n{number}", **capacity)
    for path in LEAVES:
        rm.app(path, path)
    for number, one in enumerate(running):
        submit(rm, f"r{number}", *one)
    rm.schedule()
    for path in LEAVES:
        rm.release_ask(path)
    for number, one in enumerate(late):
        submit(rm, f"late{number}", *one)
        placed = bool(rm.schedule())
        rm.pass_time(31)
        rm.schedule()
        if rm.evicted:
            assert not placed
            event("preempted")
            check(rm, one[0], f"late{number}")
            rm.confirm()
            assert [key for _, key, _ in rm.schedule()] == [f"late{number}"]
        rm.release_ask(one[0])
        rm.schedule()
    assert all(not any(each.preempting.values()) for each in rm.at_work().partition.queues)


def check(rm: RM, app_id: str, key: str) -> None:
    ask = rm.find_app(app_id).asks[key]
    victims = [rm.at_work().partition.accounting.allocations[uuid] for uuid in rm.evicted]
    for victim in victims:
        assert victim.may_be_preempted
        assert victim.eviction is ask.eviction is not None
        own = victim.app.chain[0]
        inside = own is ask.app.chain[0]
        assert inside or own.settings.preemption_policy != "disabled"
    assert keeps_guarantees(ask, victims), "a queue is below its guarantee"
    assert suffices(ask, victims), "too little is freed"
    for victim in victims:
        rest = [one for one in victims if one is not victim]
        assert not suffices(ask, rest), f"{victim.uuid} goes for nothing"
        for other in others_beside(victim, victims) if victim.originator else ():
            instead = [*rest, other]
            does = suffices(ask, instead) and keeps_guarantees(ask, instead)
            assert not does, f"originator {victim.uuid} goes instead of {other.uuid}"


def others_beside(originator: Allocation, victims: list[Allocation]) -> list[Allocation]:
    """Return allocations that the search for the originator could choose as well, and did not."""
    return [
        one
        for one in originator.node.allocations.values()
        if one not in victims
        and not one.originator
        and one.may_be_preempted
        and one.app is originator.app
        and one.priority <= originator.priority
    ]


def usage_without(queue: Queue, victims: Iterable[Allocation]) -> dict[str, int]:
    used = dict(queue.allocated)
    for victim in victims:
        if queue in victim.app.chain:
            for name, amount in victim.resource.items():
                used[name] -= amount
    return used


def keeps_guarantees(ask: Ask, victims: list[Allocation]) -> bool:
    """Return True if no queue of the victims, apart from those of the ask, is below its guarantee."""
    for victim in victims:
        for each in victim.app.chain:
            if each not in ask.app.chain:
                used = usage_without(each, victims)
                for name in victim.resource:
                    if name in each.guaranteed and used[name] < each.guaranteed[name]:
                        return False
    return True


def suffices(ask: Ask, victims: list[Allocation]) -> bool:
    """Return True if the ask fits after these victims end, within its guarantee if it relied on one."""
    assert ask.eviction is not None
    node = ask.eviction.node
    if node is not None:
        for name, amount in ask.resource.items():
            freed = sum(one.resource.get(name, 0) for one in victims if one.node is node)
            if node.available.get(name, 0) + freed < amount:
                return False
    for each in ask.app.chain:
        used = usage_without(each, victims)
        limits: list[Mapping[str, int]] = [each.max or {}]
        if entitled(ask) and (each is ask.app.chain[0] or not ask.app.chain[0].guaranteed):
            limits.append(each.guaranteed)
        for limit in limits:
            if any(
                used.get(name, 0) + amount > limit.get(name, 2**62) for name, amount in ask.resource.items()
            ):
                return False
    return True


def entitled(ask: Ask) -> bool:
    """Return True if the ask relied on a guarantee, not on preemption by priority."""
    leaf = ask.app.chain[0]
    return not (leaf.settings.preempts_by_priority or leaf.settings.preempts_within)
