"""Task groups with levels of their own: they are placed wherever brute force finds a place for them."""

from __future__ import annotations

import json
from itertools import product
from random import Random

import pytest

from tests.topology.racks import GPUS, TAG, fill, placed, racks


def fits(sizes: list[int], free: list[int]) -> bool:
    """Return True if each task group can have a rack, by trying all ways."""
    for choice in product(range(len(free)), repeat=len(sizes)):
        used = [
            sum(size for size, rack in zip(sizes, choice, strict=True) if rack == at)
            for at in range(len(free))
        ]
        if all(amount <= room for amount, room in zip(used, free, strict=True)):
            return True
    return False


@pytest.mark.parametrize("seed", [*range(11), 187])
def test_task_groups_have_racks_of_their_own_wherever_that_is_possible(seed: int) -> None:
    random = Random(seed)
    for _ in range(5):
        free = [random.randint(2, GPUS) for _ in range(3)]
        sizes = [random.randint(1, 6) for _ in range(random.randint(3, 4))]
        rm = racks(blocks=1, per_block=3, nodes=1)
        for number, room in enumerate(free, 1):
            if room < GPUS:
                fill(rm, f"b1-r{number}-n1", GPUS - room)
        names = [f"group{number}" for number in range(len(sizes))]
        wanted = {"required": "block", "groups": {name: {"required": "rack"} for name in names}}
        rm.gang("app", "Atomic", tags={TAG: json.dumps(wanted)}, gpu=sum(sizes))
        for name, size in zip(names, sizes, strict=True):
            rm.task("app", name, name, size, gpu=1)
        assert len(placed(rm, "app")) == (sum(sizes) if fits(sizes, free) else 0)
        for name in names:
            members = [one.node_id for one in rm.running.values() if one.allocation_key == name]
            assert len(set(members)) <= 1
