"""Candidates are kept for a cause once its searches have collected about as many as there are nodes."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest import mock

from tests.core.kit import RM, configuration, document, partition, queue
from tests.preemption.test_across_queues import guaranteed
from tests.preemption.test_kept_candidates import decisions
from yunikorn.scheduling.preemption.candidate_store import CandidateStore, KeptPool

FIND = CandidateStore.find


def full_cluster(nodes: int, tasks: int) -> RM:
    """Return a cluster with this many tasks of another queue, none of them large enough for `root.a`."""
    rm = RM(configuration(guaranteed("a", memory=10 * nodes), queue("b")))
    for number in range(nodes):
        rm.node(f"n{number:03}", memory=3, vcore=1)
    rm.app("others", "root.b")
    rm.ask("others", "running", tasks, memory=1, vcore=1)
    rm.schedule()
    rm.app("late", "root.a")
    return rm


def searches(rm: RM, requests: int) -> Counter[bool]:
    """Send requests that may preempt one by one; count the searches with and without kept candidates."""
    found = Counter[bool]()

    def find(store: CandidateStore, *arguments: Any) -> KeptPool | None:
        pool = FIND(store, *arguments)
        found[pool is not None] += 1
        return pool

    with mock.patch.object(CandidateStore, "find", find):
        for number in range(requests):
            rm.ask("late", f"claim{number}", memory=3, vcore=2)
            rm.schedule()
            rm.pass_time(31)
            rm.schedule()
    return found


def test_few_candidates_are_collected_by_each_search() -> None:
    assert set(searches(full_cluster(nodes=200, tasks=1), 12)) == {False}


def test_many_candidates_are_kept() -> None:
    assert set(searches(full_cluster(nodes=20, tasks=20), 12)) == {True}


def test_candidates_are_kept_after_several_searches() -> None:
    found = searches(full_cluster(nodes=20, tasks=8), 12)
    # The first two searches collect sixteen allocations, the third is the one with the twentieth.
    assert found[False] == 2
    assert found[True] > 2


def test_searches_of_removed_queues_are_forgotten() -> None:
    stores = set[CandidateStore]()

    def find(store: CandidateStore, *arguments: Any) -> KeptPool | None:
        stores.add(store)
        return FIND(store, *arguments)

    template = {"resources": {"guaranteed": {"memory": "5"}}, "properties": {"preemption.delay": "1s"}}
    tree = partition(queue("b"), {"name": "users", "parent": True, "childtemplate": template})
    rm = RM(document({**tree, "placementrules": [{"name": "provided", "create": True}]}))
    for number in range(10):
        rm.node(f"n{number}", memory=2)
    rm.app("others", "root.b")
    rm.ask("others", "running", memory=1)
    rm.schedule()
    with mock.patch.object(CandidateStore, "find", find):
        for number in range(100):
            rm.app(f"app-{number}", f"root.users.q{number}")
            rm.ask(f"app-{number}", "claim", memory=3)
            rm.schedule()
            rm.pass_time(2)
            rm.schedule()
            rm.remove_app(f"app-{number}")
            rm.pass_time(40)
            rm.schedule()
    assert [len(store._seen) < 40 for store in stores] == [True]


def test_decisions_are_those_without_kept_candidates() -> None:
    for seed in range(4):
        kept = decisions(seed)
        with mock.patch.object(CandidateStore, "find", return_value=None):
            assert decisions(seed) == kept
