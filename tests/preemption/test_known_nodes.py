"""Nodes on which no single victim suffices are not examined again until they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.kit import RM, configuration, queue
from tests.preemption.test_across_queues import guaranteed
from tests.preemption.test_kept_candidates import LEAVES, Compared, History, compare
from yunikorn.model.allocation import Allocation
from yunikorn.model.node import Node
from yunikorn.scheduling.preemption import candidate_store, kept_candidates
from yunikorn.scheduling.preemption.candidate_store import KnownNodes
from yunikorn.scheduling.preemption.victims import Glance, Search

pytestmark = pytest.mark.usefixtures("kept_at_once")

LARGE = {"memory": 3, "vcore": 3}
GLANCE = Search._glance
FAIL = KnownNodes.fail


class Claims(History):
    """A history in which one queue claims requests of two sizes on nodes full of tasks of other queues."""

    def __init__(self, draw: Random, policy: str) -> None:
        super().__init__(draw, policy)
        self.rm.reload(claimed_tree(draw, policy))
        for number in range(14):
            self.rm.node(f"m{number:02}", memory=8, vcore=8)

    def run(self, steps: int) -> None:
        """Make random steps."""
        rare = [self.end, self.resize, self.report_end]
        kinds = [*[self.claim] * 6, *[self.settle] * 6, *[self.fill] * 2, *rare]
        for _ in range(70):
            self.fill()
        self.rm.schedule()
        for _ in range(steps):
            self.draw.choice(kinds)()

    def claim(self) -> None:
        """Send a request of a size for which a single task seldom makes room."""
        self.number += 1
        size = self.draw.choice([{"memory": 3, "vcore": 2}, {"memory": 2, "vcore": 3}])
        self.rm.ask("root.a-0", f"c{self.number}", resource=size)

    def fill(self) -> None:
        """Send a task of another queue; a few are large."""
        draw = self.draw
        self.number += 1
        size = {"memory": draw.randint(1, 2), "vcore": draw.randint(1, 2)} if draw.random() < 0.8 else LARGE
        self.rm.ask(f"{draw.choice(LEAVES[1:])}-0", f"t{self.number}", resource=size)


def claimed_tree(draw: Random, policy: str) -> str:
    """Return a configuration in which the first queue may claim, and others are near their guarantees."""
    properties = {"preemption.delay": "1s"}
    a = queue("a", resources={"guaranteed": {"memory": "90", "vcore": "90m"}}, properties=properties)
    others = []
    for name in "bcd":
        amount = {"memory": str(draw.randint(10, 40))} if draw.random() < 0.7 else {}
        others.append(queue(name, resources={"guaranteed": amount}))
    return configuration(a, others[0], queue("p", *others[1:]), preemption={"policy": policy})


@given(seed=st.integers(0, 2**32), policy=st.sampled_from(["standard", "coarse"]))
def test_victims_are_those_of_a_search_that_keeps_nothing(seed: int, policy: str) -> None:
    compare(seed, policy, Compared(), 150, Claims)


@example(seed=8, most=2, nodes=500_000)
@given(seed=st.integers(0, 2**32), most=st.integers(0, 3), nodes=st.sampled_from([0, 40, 500_000]))
def test_logs_and_memory_may_end_at_any_time(seed: int, most: int, nodes: int) -> None:
    with (
        mock.patch.object(kept_candidates, "LOG", most),
        mock.patch.object(candidate_store, "KNOWN", nodes),
    ):
        compare(seed, "standard", Compared(), 150, Claims)


def test_histories_contain_nodes_without_a_single_victim() -> None:
    compared, failed = Compared(), Counter[bool]()

    def fail(known: KnownNodes, position: int, least: int, chosen: Sequence[Allocation]) -> None:
        failed[least > 0] += 1
        FAIL(known, position, least, chosen)

    with mock.patch.object(KnownNodes, "fail", fail):
        for seed in range(8):
            compare(seed, "standard", compared, 150, Claims)
    assert compared.counts["found"] > 30
    assert failed[True] > 5


def test_unchanged_nodes_are_examined_once() -> None:
    rm = RM(configuration(guaranteed("a", memory=40), queue("b")))
    rm.app("big", "root.b")
    # The first nodes have a task with much memory and one with many cores, the last three have one with both.
    for number in range(17):
        rm.node(f"n{number:02}", memory=5, vcore=5)
    rm.ask("big", "memory", 17, memory=4, vcore=1)
    rm.schedule()
    rm.ask("big", "cores", 17, memory=1, vcore=4)
    rm.schedule()
    ends = ["n17", "n18", "n19"]
    for node_id in ends:
        rm.node(node_id, memory=5, vcore=5)
    rm.ask("big", "large", 3, memory=5, vcore=5)
    rm.schedule()
    rm.app("late", "root.a")
    examined = Counter[str]()

    def glance(search: Search, node: Node) -> Glance:
        examined[node.id] += 1
        return GLANCE(search, node)

    with mock.patch.object(Search, "_glance", glance):
        for number, node_id in enumerate(ends):
            rm.ask("late", f"claim{number}", memory=4, vcore=4)
            rm.schedule()
            rm.pass_time(31)
            rm.schedule()
            rm.confirm()
            assert rm.schedule() == [("late", f"claim{number}", node_id)]
    assert len(examined) == 20
    assert set(examined.values()) == {1}
