"""Random racks full of single tasks and gangs: preemption leaves whole gangs, and exact accounts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.topology.racks import GPUS, TAG
from yunikorn.interface.constants import GANG_STEP_TAG
from yunikorn.resources import Resource

LEVELS = ("", "rack", "block")
GUARANTEED = 6
WORK = st.lists(
    st.tuples(
        st.sampled_from(["single", "gang"]),
        st.integers(1, 8),
        st.integers(1, 3),
        st.integers(0, 2),
        st.integers(0, 3),
        st.sampled_from(LEVELS),
    ),
    min_size=2,
    max_size=10,
)
"""Kind, number of tasks, gpu of each, priority, tasks beyond the size of a gang, required level."""


def check(rm: GangRM, sizes: dict[str, tuple[int, int]]) -> None:
    """Check the accounts of nodes, and that each gang runs as a whole, with whole steps, or not at all."""
    partition = rm.at_work().partition
    for node in partition.nodes.values():
        used = sum(one.resource["gpu"] for one in node.allocations.values())
        assert node.available["gpu"] == GPUS - used >= 0
    for app_id, (size, step) in sizes.items():
        app = partition.applications.get(app_id)
        members = 0
        for one in app.allocations.values() if app is not None else ():
            members += one.resource["gpu"] * (one.extras is None or one.extras.releasing is None)
        assert members == 0 or (members >= size and (members - size) % step == 0)
    kept = [node for one in rm.at_work().cycle.atomic.domains.by_gang.values() for node in one.nodes]
    assert len(kept) == len(set(kept))
    assert all(node.reservations for node in kept)


def submit(
    rm: GangRM, name: str, where: str, task: tuple[Any, ...], sizes: dict[str, tuple[int, int]]
) -> None:
    kind, count, gpu, priority, more, level = task
    if kind == "single":
        rm.app(name, where)
        rm.ask(name, f"{name}-t", count, gpu=gpu, priority=priority)
        return
    step = 1 if count % 2 else 2
    sizes[name] = count * gpu, step * gpu
    tags = {TAG: level} if level else {}
    rm.gang(name, "Atomic", where, tags={**tags, GANG_STEP_TAG: str(step)}, gpu=count * gpu)
    rm.task(name, f"{name}-m", "workers", count, gpu=gpu, priority=priority)
    if more:
        rm.task(name, f"{name}-x", "workers", more, gpu=gpu, priority=priority)


@pytest.mark.slow
@given(WORK, WORK, st.integers(1, 3), st.integers(1, 3))
def test_gangs_run_whole_or_not_at_all(low: Any, high: Any, racks: int, nodes: int) -> None:
    of_a = queue("a", resources={"guaranteed": {"gpu": 1000}})
    of_b = queue("b", resources={"guaranteed": {"gpu": GUARANTEED}})
    rm = GangRM(configuration(of_a, of_b, topology=["block", "rack"]))
    for rack in range(racks):
        for node in range(nodes):
            rm.node(f"r{rack}-n{node}", {"block": f"b{rack % 2}", "rack": f"r{rack}"}, gpu=GPUS)
    sizes: dict[str, tuple[int, int]] = {}
    for number, task in enumerate(low):
        submit(rm, f"low{number}", "root.b", task, sizes)
    rm.schedule()
    check(rm, sizes)
    before = rm.find_queue("root.b").allocated.get("gpu", 0)
    for number, task in enumerate(high):
        submit(rm, f"high{number}", "root.a", task, sizes)
    for _ in range(4):
        rm.pass_time(31)
        rm.schedule()
        check(rm, sizes)
        if rm.evicted:
            event("preempted")
        rm.confirm()
        rm.schedule()
        check(rm, sizes)
        assert rm.find_queue("root.b").allocated.get("gpu", 0) >= min(before, GUARANTEED)
    for app_id in list(rm.at_work().partition.applications):
        rm.remove_app(app_id)
    rm.schedule()
    assert rm.at_work().partition.accounting.node_reservations.nodes == {}
    assert all(node.available == Resource(gpu=GPUS) for node in rm.at_work().partition.nodes.values())
