"""Remaining guarantees and eligible victims in small trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.core.kit import RM, configuration, queue
from yunikorn.model.queue import Queue
from yunikorn.scheduling.preemption.snapshot import PreemptionSnapshot, fence_root, guarantees, reaches


def tree(name: str, *children: Any, guaranteed: Mapping[str, int] | None = None, **keys: Any) -> Any:
    """Return a queue; `guaranteed` is of memory."""
    if guaranteed:
        keys["resources"] = {"guaranteed": {kind: str(amount) for kind, amount in guaranteed.items()}}
    return queue(name, *children, **keys)


def running(rm: RM, **memory: int) -> None:
    """Fill queues: `p_a=3` places 3 in `root.p.a`."""
    rm.node("n1", memory=100, disk=100)
    for name, amount in memory.items():
        path = f"root.{name.replace('_', '.')}"
        rm.app(name, path)
        rm.ask(name, name, amount, memory=1)
    rm.schedule()


def remaining(
    rm: RM, path: str, asking: str, snapshot: PreemptionSnapshot | None = None
) -> dict[str, int] | None:
    found = (snapshot or PreemptionSnapshot()).remaining(rm.find_queue(path), rm.find_queue(asking))
    return None if found is None else dict(found)


def test_queue_without_guarantees_has_none() -> None:
    rm = RM(configuration(queue("a"), queue("b")))
    running(rm, a=1)
    assert remaining(rm, "root.a", "root.b") is None


def test_smallest_guarantee_of_queue_and_ancestors_is_used() -> None:
    inner = tree("p", tree("a", guaranteed={"memory": 3}), queue("b"), guaranteed={"memory": 5, "disk": 7})
    rm = RM(configuration(inner, queue("c")))
    running(rm, p_a=1, p_b=5)
    assert remaining(rm, "root.p.a", "root.c") == {"memory": -1, "disk": 7}
    assert remaining(rm, "root.p.b", "root.c") == {"memory": -1, "disk": 7}


def test_guarantees_shared_with_the_asking_queue_are_ignored() -> None:
    inner = tree("p", tree("a", guaranteed={"memory": 3}), queue("b"), guaranteed={"memory": 5, "disk": 7})
    rm = RM(configuration(inner, queue("c")))
    running(rm, p_a=1, p_b=5)
    assert remaining(rm, "root.p.a", "root.p.b") == {"memory": 2}
    assert remaining(rm, "root.p.b", "root.p.a") is None
    assert remaining(rm, "root.p.b", "root.c") == {"memory": -1, "disk": 7}


def test_all_guarantees_not_shared_with_the_asking_queue_are_kept() -> None:
    inner = tree("p", tree("a", queue("x"), guaranteed={"memory": 3}), queue("b"), guaranteed={"memory": 5})
    rm = RM(configuration(inner, queue("c")))
    running(rm, p_a_x=4, p_b=1)
    snapshot = PreemptionSnapshot()
    first, second, *_ = rm.at_work().partition.accounting.allocations.values()
    asking = rm.find_queue("root.p.b")
    assert not snapshot.keeps_guarantees(first)
    assert not snapshot.keeps_guarantees(first, rm.find_queue("root.c"))
    assert snapshot.keeps_guarantees(first, asking)
    snapshot.go(first)
    assert not snapshot.keeps_guarantees(second, asking)


def test_queue_names_with_a_common_prefix_are_distinct() -> None:
    rm = RM(
        configuration(tree("a", queue("x"), guaranteed={"memory": 1}), tree("ab", guaranteed={"memory": 1}))
    )
    running(rm, a_x=3)
    assert remaining(rm, "root.a.x", "root.ab") == {"memory": -2}


def test_victims_count_as_released_and_promised_asks_as_placed() -> None:
    rm = RM(configuration(tree("a", guaranteed={"memory": 4}), queue("b")))
    running(rm, a=3)
    rm.find_queue("root.a").preempting["memory"] = 1
    rm.app("later", "root.a")
    rm.ask("later", "promised", memory=200)
    promised = rm.find_app("later").asks["promised"]
    assert remaining(rm, "root.a", "root.b") == {"memory": 2}
    assert remaining(rm, "root.a", "root.b", PreemptionSnapshot([promised])) == {"memory": -198}


def test_a_guarantee_may_be_met_exactly() -> None:
    rm = RM(configuration(tree("a", guaranteed={"memory": 2}), queue("b")))
    running(rm, a=3)
    snapshot = PreemptionSnapshot()
    first, second, _ = rm.at_work().partition.accounting.allocations.values()
    assert snapshot.keeps_guarantees(first)
    snapshot.go(first)
    assert not snapshot.keeps_guarantees(second)
    snapshot.stay(first)
    assert snapshot.keeps_guarantees(second)


def test_own_guarantee_is_used_before_those_of_ancestors() -> None:
    rm = RM(
        configuration(tree("p", tree("a", guaranteed={"memory": 1}), queue("b"), guaranteed={"memory": 2}))
    )
    assert [bound.queue.path for bound in guarantees(rm.find_queue("root.p.a"))] == ["root.p.a"]
    assert [bound.queue.path for bound in guarantees(rm.find_queue("root.p.b"))] == ["root.p"]


def fence(rm: RM, path: str, amount: int = 1) -> str:
    return fence_root(rm.find_queue(path), (("memory", amount),), PreemptionSnapshot()).path


def test_search_ends_at_a_fence_or_a_too_small_queue() -> None:
    fenced = queue("f", queue("a"), properties={"preemption.policy": "fence"})
    small = queue("s", queue("b"), queue("c"), resources={"max": {"memory": "4"}})
    rm = RM(configuration(fenced, small))
    running(rm, s_b=3)
    assert fence(rm, "root.f.a") == "root.f"
    assert fence(rm, "root.s.c", 1) == "root"
    assert fence(rm, "root.s.c", 2) == "root.s"


def within_reach(leaf: Queue, root: Queue, priority: int) -> dict[str, tuple[int, bool]]:
    return {
        victim_leaf.queue.path: (victim_leaf.priority, victim_leaf.fenced)
        for victim_leaf in reaches(leaf, root, priority)
    }


def test_priorities_are_adjusted_along_the_hierarchy() -> None:
    rm = RM(
        configuration(
            queue("a", properties={"priority.offset": "5"}),
            queue("b", properties={"priority.offset": "2"}),
            queue("high", queue("x"), properties={"priority.policy": "fence", "priority.offset": "20"}),
            queue("low", queue("y"), properties={"priority.policy": "fence", "priority.offset": "10"}),
            queue("off", properties={"preemption.policy": "disabled"}),
        )
    )
    found = within_reach(rm.find_queue("root.a"), rm.find_queue("root"), 10)
    # 10 counts for 15 at the root: for 13 in b, not enough for `high`, and for anything in `low`.
    assert found == {"root.b": (13, False), "root.low.y": (15, True)}
    assert within_reach(rm.find_queue("root.b"), rm.find_queue("root.b"), 10) == {}
