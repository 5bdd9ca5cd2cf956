"""Atomic gangs with unequal members: the order of the members does not matter."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import document, partition, queue


def placed(nodes: Sequence[int], members: Sequence[int]) -> list[int]:
    """Return the sizes on each node in order, of a gang with these members; empty if the gang waits."""
    rm = GangRM(config=document(partition(queue("a"))), rm_id="gangs")
    for number, size in enumerate(nodes):
        rm.node(f"n{number}", vcore=size)
    rm.gang("mixed", "Atomic", vcore=sum(members))
    for number, size in enumerate(members):
        rm.task("mixed", f"t{number}", "members", vcore=size)
    found = rm.schedule()
    used = dict.fromkeys((f"n{number}" for number in range(len(nodes))), 0)
    for _, key, node in found:
        used[node] += members[int(key.removeprefix("t"))]
    return [*used.values()] if found else []


def fits(nodes: Sequence[int], members: Sequence[int]) -> bool:
    """Return True if the members fit; tries everything."""
    for places in itertools.product(range(len(nodes)), repeat=len(members)):
        left = [*nodes]
        for size, place in zip(members, places, strict=True):
            left[place] -= size
        if min(left) >= 0:
            return True
    return False


@pytest.mark.parametrize("members", [(2, 2, 4), (4, 2, 2), (2, 4, 2)])
def test_members_are_placed_in_an_order_in_which_they_fit(members: tuple[int, ...]) -> None:
    assert placed([4, 4], members) == [4, 4]


def test_a_choice_that_leads_nowhere_is_taken_back() -> None:
    # The largest member on the tightest node would leave no room for the other large ones.
    assert placed([6, 8, 7], (4, 3, 3, 3, 2, 2, 2, 2)) == [6, 8, 7]


def test_a_gang_is_placed_exactly_if_it_fits() -> None:
    rng = random.Random(5)
    outcomes = []
    for _ in range(150):
        nodes = [rng.randint(2, 7) for _ in range(rng.randint(2, 3))]
        members = [rng.randint(1, 4) for _ in range(rng.randint(2, 6))]
        used = placed(nodes, members)
        assert bool(used) == fits(nodes, members), (nodes, members)
        assert all(amount <= size for amount, size in zip(used, nodes, strict=False))
        outcomes.append(bool(used))
    assert 30 < sum(outcomes) < 120
