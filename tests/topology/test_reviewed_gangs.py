"""Gangs on a topology: cases that a review found."""

from __future__ import annotations

import json

from tests.topology.racks import TAG, placed, racks


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


def test_gangs_with_other_task_groups_are_judged_apart() -> None:
    rm = racks(blocks=1, per_block=2, nodes=1)
    wanted = json.dumps({"required": "block", "groups": {"workers": {"required": "rack"}}})
    for app_id, workers, queue_name in (("one", 12, "root.a"), ("two", 8, "root.b")):
        rm.gang(app_id, "Atomic", queue_name, tags={TAG: wanted}, gpu=16)
        rm.task(app_id, f"{app_id}-w", "workers", workers, gpu=1)
        rm.task(app_id, f"{app_id}-s", "servers", 16 - workers, gpu=1)
    assert placed(rm, "one") == []
    assert len(placed(rm, "two")) == 16
