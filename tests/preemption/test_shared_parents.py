"""Queues with a common parent: its guarantee covers both sides and protects neither from the other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.core.kit import RM, configuration, queue
from tests.example_counts import examples

Tree = dict[str, Any]


def tree(name: str, *children: Tree, memory: int = 0, **keys: Any) -> Tree:
    """Return a queue; `memory` is its guarantee."""
    if memory:
        keys["resources"] = {"guaranteed": {"memory": str(memory)}}
    return queue(name, *children, **keys)


def cluster(*queues: Tree, memory: int = 100) -> RM:
    """Return an RM with one node, and an application per queue, named after the queue."""
    rm = RM(configuration(*queues))
    rm.node("n1", memory=memory)
    return rm


def run(rm: RM, path: str, count: int, memory: int, priority: int = 0) -> None:
    """Place `count` allocations of `memory` in a queue, with the name of the queue as their key."""
    rm.app(path, path)
    rm.ask(path, path.rpartition(".")[2], count, memory=memory, priority=priority)
    assert len(rm.schedule()) == count


def victims_of(rm: RM, path: str, memory: int, priority: int = 0) -> list[str]:
    """Return the keys of the allocations that are preempted for an ask in `path`."""
    rm.app("late", path)
    rm.ask("late", "late", memory=memory, priority=priority)
    rm.pass_time(31)
    rm.schedule()
    return sorted(uuid.partition("#")[0] for uuid in rm.evicted)


def test_a_parent_guaranteed_the_sum_of_its_children_does_not_constrain() -> None:
    rm = cluster(tree("p", tree("a", memory=50), tree("b", memory=50), memory=100))
    run(rm, "root.p.a", 10, 10)
    assert victims_of(rm, "root.p.b", 8) == ["a"]
    rm.confirm()
    assert rm.schedule() == [("late", "late", "n1")]


def test_a_parent_below_its_guarantee_does_not_constrain() -> None:
    rm = cluster(tree("p", tree("a", memory=30), tree("b", memory=30), memory=100), queue("q"))
    run(rm, "root.q", 4, 10)
    run(rm, "root.p.a", 6, 10)
    assert victims_of(rm, "root.p.b", 8) == ["a"]


def test_guarantee_between_leaf_and_shared_parent_is_used() -> None:
    inner = tree("m", queue("b"), memory=50)
    rm = cluster(tree("p", inner, tree("a", memory=50), memory=100))
    run(rm, "root.p.a", 10, 10)
    assert victims_of(rm, "root.p.m.b", 8) == ["a"]


def test_a_guarantee_above_the_capacity_does_not_protect_what_is_below_it() -> None:
    inner = tree("m", queue("b"), memory=50)
    rm = cluster(tree("p", inner, queue("a"), memory=120))
    run(rm, "root.p.a", 10, 10)
    assert victims_of(rm, "root.p.m.b", 8) == ["a"]


def test_every_queue_below_the_shared_parent_keeps_its_guarantee() -> None:
    inner = tree("x", queue("a"), tree("c", memory=5), memory=95)
    rm = cluster(tree("p", inner, tree("b", memory=50), memory=145))
    run(rm, "root.p.x.a", 10, 10)
    # Of 100 the inner queue may lose 5, but allocations are of size 10.
    assert victims_of(rm, "root.p.b", 8) == []


@pytest.mark.parametrize("memory", [90, 100])
def test_allocations_under_the_same_guarantee_are_not_preempted(memory: int) -> None:
    """The parent uses its guarantee or more: preempting one child for another changes nothing."""
    rm = cluster(tree("p", queue("a"), queue("b"), memory=memory))
    run(rm, "root.p.a", 10, 10)
    assert victims_of(rm, "root.p.b", 10) == []


def test_guarantee_of_another_type_preempts_no_sibling() -> None:
    inner = queue("m", queue("b"), resources={"guaranteed": {"gpu": "1"}})
    rm = cluster(tree("p", queue("a"), inner, memory=100))
    run(rm, "root.p.a", 10, 10)
    assert victims_of(rm, "root.p.m.b", 10) == []


def test_allocations_under_the_same_guarantee_are_preempted_above_their_own_guarantee() -> None:
    rm = cluster(tree("p", tree("a", memory=50), queue("b"), memory=100))
    run(rm, "root.p.a", 10, 10)
    assert victims_of(rm, "root.p.b", 10) == ["a"]


def test_shared_parent_above_its_guarantee_is_not_reduced() -> None:
    inner = tree("m", queue("b"), memory=10)
    rm = cluster(tree("p", tree("a", memory=10), inner, memory=20))
    run(rm, "root.p.a", 10, 10)
    assert victims_of(rm, "root.p.m.b", 8) == ["a"], "one is enough, the guarantee of m is called on"


def test_parent_above_its_guarantee_preempts_nothing() -> None:
    inner = tree("m", queue("b"), memory=10)
    rm = cluster(tree("p", tree("a", memory=50), inner, memory=60), queue("q"), memory=100)
    run(rm, "root.p.a", 7, 10)
    run(rm, "root.q", 3, 10)
    # The youngest allocation is that of q, but p exceeds its guarantee already.
    assert victims_of(rm, "root.p.m.b", 8) == ["a"]


def test_siblings_are_preempted_if_the_ask_would_exceed_the_parents_guarantee() -> None:
    inner = tree("m", queue("b"), memory=50)
    rm = cluster(tree("p", tree("a", memory=50), inner, memory=100), queue("q"), memory=120)
    run(rm, "root.p.a", 9, 10)
    run(rm, "root.q", 1, 30)
    # The youngest allocation is that of q. One more of a would be needed besides, which is enough alone.
    assert victims_of(rm, "root.p.m.b", 20) == ["a", "a"]


def test_fence_below_the_parent_applies() -> None:
    inner = tree("m", queue("b"), queue("c"), memory=10, properties={"preemption.policy": "fence"})
    rm = cluster(tree("p", tree("a", memory=10), inner, memory=20))
    run(rm, "root.p.a", 10, 10)
    assert victims_of(rm, "root.p.m.b", 8) == []


def test_exhausted_guarantee_preempts_nothing() -> None:
    rm = cluster(tree("p", tree("a", memory=10), queue("b"), memory=20))
    run(rm, "root.p.a", 10, 10)
    assert victims_of(rm, "root.p.b", 8) == []


def test_lower_priorities_are_preempted_below_a_shared_guarantee() -> None:
    important = queue("b", properties={"preemption.by.priority": "enabled"})
    rm = cluster(tree("p", tree("a"), important, memory=120))
    run(rm, "root.p.a", 10, 10)
    assert victims_of(rm, "root.p.b", 8, priority=1) == ["a"]


def test_lower_priorities_are_preempted_in_a_queue_at_its_guarantee() -> None:
    within = tree("a", memory=100, properties={"preemption.within.queue": "enabled"})
    rm = cluster(within)
    run(rm, "root.a", 10, 10)
    assert victims_of(rm, "root.a", 8, priority=1) == ["a"]


GUARANTEES = st.sampled_from([0, 0, 0, 2, 4])
SPARE = st.sampled_from([None, 0, 2, 5])
"""Guarantee of a parent minus those of its children; None for a parent without a guarantee."""
WORK = st.tuples(
    st.sampled_from(["root.p.a", "root.p.m.b", "root.p.m.c", "root.q"]), st.integers(1, 3), st.integers(0, 1)
)


@settings(max_examples=examples(40))
@given(
    guarantees=st.tuples(GUARANTEES, GUARANTEES, GUARANTEES, GUARANTEES),
    spare=st.tuples(SPARE, SPARE),
    work=st.lists(WORK, min_size=6, max_size=10),
    late=st.lists(WORK, min_size=2, max_size=4),
)
def test_resubmitted_victims_do_not_preempt_in_return(
    guarantees: tuple[int, int, int, int],
    spare: tuple[int | None, int | None],
    work: list[tuple[str, int, int]],
    late: list[tuple[str, int, int]],
) -> None:
    """Preemption ends although every victim is submitted again."""
    a, b, c, q = guarantees
    m = 0 if spare[0] is None else b + c + spare[0]
    p = 0 if spare[1] is None else a + max(m, b + c) + spare[1]
    inner = tree("m", tree("b", memory=b), tree("c", memory=c), memory=m)
    rm = cluster(tree("p", tree("a", memory=a), inner, memory=p), tree("q", memory=q), memory=12)
    for path in ("root.p.a", "root.p.m.b", "root.p.m.c", "root.q"):
        rm.app(path, path)
    for number, (path, memory, priority) in enumerate([*work, *late]):
        if number == len(work):
            rm.schedule()
        rm.ask(path, f"k{number}", memory=memory, priority=priority)
    rounds = 0
    while rounds < 40:
        rm.pass_time(31)
        rm.schedule()
        if not rm.evicted:
            break
        victims = [rm.running[uuid] for uuid in rm.evicted]
        rm.confirm()
        rm.schedule()
        for victim in victims:
            ask = f"again-{victim.allocation_key}"
            rm.ask(victim.application_id, ask, resource=victim.resource_per_alloc, priority=victim.priority)
        rounds += 1
    event(f"{min(rounds, 5)} rounds")
    assert rounds < 40
