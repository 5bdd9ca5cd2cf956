"""Racks and gangs that are made up for a workload."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import attrs
import pytest

from tests.core.kit import configuration, queue
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.constants import GANG_TOPOLOGY_TAG
from yunikorn_lab.reporting.full_report import study
from yunikorn_lab.simulation.adjustments import Adjustments, SyntheticRacks
from yunikorn_lab.simulation.workload import NodeEvent, NodeEventKind

HALF = Fraction(1, 2)


def test_nodes_are_put_into_racks_and_blocks_in_their_order(make: Any) -> None:
    nodes = [make.node(f"n{number}") for number in range(7)]
    spare = make.node("spare")
    workload = make.workload(nodes, [], [NodeEvent(1, NodeEventKind.ADD, spare)])
    found = Adjustments(racks=SyntheticRacks(2, 2)).apply(workload)
    racks = [(node.attributes["block"], node.attributes["rack"]) for node in found.nodes]
    assert racks[:5] == [("b1", "r1"), ("b1", "r1"), ("b1", "r2"), ("b1", "r2"), ("b2", "r3")]
    assert found.events[0].node.attributes == {"block": "b2", "rack": "r4"}
    assert found.remarks == ["4 racks of 2 nodes each were made up"]
    alone = SyntheticRacks(2).apply(workload)
    assert alone.nodes[-1].attributes == {"rack": "r4"}
    assert nodes[0].attributes == {}


def test_part_of_the_applications_are_gangs_that_ask_for_the_closest_possible_level(make: Any) -> None:
    nodes = [make.node(f"n{number}", 4) for number in range(8)]
    apps = [make.app(f"app-{number}", number, tasks) for number in range(100) for tasks in (1,)]
    apps += [make.app(f"wide-{size}", 200, size) for size in (8, 9, 16, 17)]
    found = list(SyntheticRacks(2, 2, Fraction(1)).apply(make.workload(nodes, apps)).applications)
    wanted = {app.id: json.loads(app.tags[GANG_TOPOLOGY_TAG]) for app in found}
    assert [wanted[f"wide-{size}"] for size in (8, 9, 16, 17)] == [
        {"required": "rack"},
        {"required": "block"},
        {"required": "block"},
        {"preferred": ["block"]},
    ]
    # Gangs of 64 members and more do not fit the cluster, and remain single tasks.
    assert {app.size for app in found[:100]} == {1, 2, 4, 8, 16, 32}
    assert {app.gang for app in found} == {"Atomic"}


def test_gangs_are_the_same_ones_in_every_iteration_and_variant(make: Any) -> None:
    nodes = [make.node(f"n{number}", 4) for number in range(8)]
    workload = make.workload(nodes, [make.app(f"app-{number}", number, 2) for number in range(200)])
    found = SyntheticRacks(2, 0, HALF).apply(workload).applications
    gangs = [app.id for app in found if GANG_TOPOLOGY_TAG in app.tags]
    assert gangs == [app.id for app in found if GANG_TOPOLOGY_TAG in app.tags]
    assert 70 < len(gangs) < 130
    later = attrs.evolve(workload, applications=[*workload.applications][100:])
    assert [app.id for app in SyntheticRacks(2, 0, HALF).apply(later).applications if app.tags] == [
        name for name in gangs if int(name[4:]) >= 100
    ]


@pytest.mark.parametrize(("text", "share"), [("0", 0), ("4x", 0), ("x4", 0), ("-1", 0), ("4", 2), ("4", -1)])
def test_impossible_racks_are_refused(text: str, share: int) -> None:
    with pytest.raises(UsageError, match=r"^--(racks|gangs) "):
        SyntheticRacks.of(text, Fraction(share))


def test_nodes_with_racks_of_their_own_keep_them(make: Any) -> None:
    node = attrs.evolve(make.node("n"), attributes={"rack": "mine"})
    with pytest.raises(UsageError, match="node n has the attribute rack already"):
        SyntheticRacks(2).apply(make.workload([node], []))


def test_gangs_of_a_plain_workload_run_in_made_up_racks(make: Any, registry: Registry) -> None:
    nodes = [make.node(f"n{number}", 4) for number in range(8)]
    workload = make.workload(nodes, [make.app(f"app-{number}", number, 8) for number in range(9)])
    workload = attrs.evolve(
        workload, applications=[attrs.evolve(app, queue="root.a") for app in workload.applications]
    )
    workload = SyntheticRacks.of("2x2", Fraction(1)).apply(workload)
    result = study(configuration(queue("a"), topology=["block", "rack"]), workload, registry)
    (gangs,) = result.figures.topology["default"].gangs
    assert (gangs.placed, gangs.in_one["rack"]) == (9, 1)
