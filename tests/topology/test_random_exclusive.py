"""Exclusive gangs on random racks: no rack with a member has work of others, and accounts are exact."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.topology.racks import GPUS, TAG
from yunikorn.model.node import Node

REQUIRED_NODE = "yunikorn.apache.org/requiredNode"
WANTED: dict[str, Any] = {
    "rack": {"required": "rack", "exclusive": True},
    "block": {"required": "block", "exclusive": True},
    "wider": {"required": "rack", "exclusive": "block"},
    "near": {"required": "block", "exclusive": True, "preferred": ["rack"]},
    "shared": {"required": "rack"},
}
KINDS = ["gang", "gang", "gang", "single", "single", "daemon", "end", "lose", "more", "node", "time"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["gang", "gang", "gang", "single", "single", "daemon", "end", "lose", "more", "node", "time"]
        ),
        st.sampled_from(sorted(WANTED)),
        st.sampled_from(["Atomic", "Atomic", "Soft"]),
        st.integers(1, 8),
        st.integers(1, 4),
        st.integers(0, 2),
        st.integers(0, 99),
    ),
    min_size=3,
    max_size=14,
)
"""Steps: kind, requirements, style, number of tasks, gpu of each, priority, and a choice."""


class Racks:
    """A cluster, and what happens to it."""

    def __init__(self, racks: int, nodes: int) -> None:
        guaranteed = queue("a", resources={"guaranteed": {"gpu": 1000}})
        self.rm = GangRM(configuration(guaranteed, queue("b"), topology=["block", "rack"]))
        self.racks, self.made = racks, 0
        for rack in range(racks):
            for _ in range(nodes):
                self.node(rack)

    def node(self, rack: int) -> None:
        """Add a node to a rack."""
        self.made += 1
        self.rm.node(f"r{rack}-n{self.made}", {"block": f"b{rack % 2}", "rack": f"r{rack}"}, gpu=GPUS)

    def step(self, step: tuple[Any, ...]) -> None:
        """Carry one step out."""
        kind, wanted, style, count, gpu, priority, choice = step
        rm, name, where = self.rm, f"{kind}{self.made}", ("root.a", "root.b")[choice % 2]
        running = list(rm.running.values())
        gangs = [app for app in rm.at_work().partition.applications.values() if app.id.startswith("gang")]
        self.made += 1
        match kind:
            case "gang":
                rm.gang(name, style, where, tags={TAG: json.dumps(WANTED[wanted])}, gpu=count * gpu)
                soft = style == "Soft"
                rm.task(name, f"{name}-m", "w", count, gpu=gpu, priority=priority, placeholder=soft)
            case "single":
                rm.app(name, where)
                rm.ask(name, f"{name}-t", count, gpu=gpu, priority=priority)
            case "daemon":
                nodes = sorted(rm.at_work().partition.nodes)
                rm.app(name, where)
                rm.ask(name, f"{name}-t", 1, gpu=1, tags={REQUIRED_NODE: nodes[choice % len(nodes)]})
            case "end" if running:
                rm.remove_app(running[choice % len(running)].application_id)
            case "lose" if running:
                one = running[choice % len(running)]
                rm.release(one.application_id, one.uuid)
            case "more" if gangs:
                app = gangs[choice % len(gangs)]
                rm.task(app.id, name, "w", count, gpu=gpu, priority=priority)
            case "node":
                self.node(choice % self.racks)
            case "time":
                rm.pass_time((31, 700)[choice % 2])

    def check(self) -> None:
        """Check owners, rooms and reservations."""
        at = self.rm.at_work()
        owners, partition = at.cycle.atomic.domains.owners, at.partition
        for node in partition.nodes.values():
            used = sum(one.resource["gpu"] for one in node.allocations.values())
            assert node.available["gpu"] == GPUS - used
            if node.reservations:
                assert node in partition.accounting.node_reservations.nodes
            for owner in node.owners:
                self.is_alone(node, owner.app)
                assert node in owner.nodes
                assert owners[owner.app.id] is owner
        for app in partition.applications.values():
            for one in app.allocations.values():
                domain = at.planner.topology.above(one.node, app.alone(one.task_group))
                for node in domain.nodes if domain is not None else ():
                    assert app in [owner.app for owner in node.owners]
        for owner in owners.values():
            assert owner.nodes
            assert all(owner in node.reservations for node in owner.nodes)

    def is_alone(self, node: Node, app: Any) -> None:
        """Check that what runs on a node of one application is its own, unless the domain still drains."""
        kept = self.rm.at_work().cycle.atomic.domains.by_gang
        if all(gang.app is not app for gang in kept):
            for one in node.allocations.values():
                assert one.app is app or REQUIRED_NODE in one.tags


@pytest.mark.slow
@given(STEPS, st.integers(1, 4), st.integers(1, 3))
def test_no_domain_of_a_member_has_work_of_others(steps: Any, racks: int, nodes: int) -> None:
    cluster = Racks(racks, nodes)
    rm = cluster.rm
    for step in steps:
        cluster.step(step)
        rm.schedule()
        cluster.check()
        if rm.evicted:
            event("ended by the scheduler")
            rm.confirm()
            rm.schedule()
            cluster.check()
    if rm.at_work().cycle.atomic.domains.owners:
        event("owned")
    for app_id in list(rm.at_work().partition.applications):
        rm.remove_app(app_id)
    rm.schedule()
    rm.confirm()
    assert rm.at_work().partition.accounting.node_reservations.nodes == {}
    assert rm.at_work().cycle.atomic.domains.owners == {}
