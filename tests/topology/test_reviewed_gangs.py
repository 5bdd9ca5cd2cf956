"""Gangs on a topology: cases that a review found."""

from __future__ import annotations

from tests.topology.racks import TAG, racks


def test_gang_of_more_sizes_than_counts_are_kept_never_overfills_a_node() -> None:
    rm = racks(blocks=0)
    sizes = range(1, 71)
    rm.node("small", {"block": "b", "rack": "r"}, gpu=sum(sizes[6:]) + 2)
    rm.node("elsewhere", {}, gpu=100)
    rm.gang("app", "Atomic", tags={TAG: "rack"}, gpu=sum(sizes))
    for size in sizes:
        rm.task("app", f"t{size}", "workers", 1, gpu=size)
    rm.schedule()
    assert all(node.available["gpu"] >= 0 for node in rm.at_work().partition.nodes.values())
