"""Adjustments of recorded workloads: minimum run times, compressed arrivals, fewer nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.resources import Resource
from yunikorn_commands.config_source import LocatedText
from yunikorn_lab.simulation.adjustments import Adjustments, thin_out, with_copies
from yunikorn_lab.simulation.arrivals import Changed
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.workload import FOREVER, ConfigEvent, NodeEvent, NodeEventKind, WorkloadNode

Play = Callable[..., Report]


def test_held_tasks_occupy_resources_until_the_end(make: Any, core: Any, play: Play) -> None:
    workload = make.workload([make.node("n", 4)], [make.app("a", 0, 3), make.app("b", 100, 3)])
    assert play(workload, core).tasks.ended == 6
    held = Adjustments(hold=True).apply(workload)
    assert {app.tasks[0].runtime for app in held.applications} == {FOREVER}
    report = play(held, type(core)())
    assert (report.tasks.running, report.tasks.waiting, report.tasks.ended) == (4, 2, 0)
    assert workload.applications[0].tasks[0].runtime == 10 * SECOND


def test_compression_advances_all_external_events(make: Any) -> None:
    workload = make.workload(
        [make.node("n")],
        [make.app("a", 10), make.app("b", 25)],
        [NodeEvent(10, NodeEventKind.DRAIN, make.node("n"))],
    )
    workload.reloads.append(ConfigEvent(30, "more.yaml", LocatedText("")))
    quick = Adjustments(speed_up=Fraction("2.5")).apply(workload)
    assert [app.submit for app in quick.applications] == [4 * SECOND, 10 * SECOND]
    assert [app.tasks[0].runtime for app in quick.applications] == [10 * SECOND] * 2
    assert (quick.events[0].at, quick.reloads[0].at) == (4, 12)
    slow = Adjustments(speed_up=Fraction(1, 2)).apply(workload)
    assert [app.submit for app in slow.applications] == [20 * SECOND, 50 * SECOND]


def test_workload_without_adjustments_is_unchanged(make: Any) -> None:
    workload = make.workload([make.node("n")], [make.app("a")])
    assert Adjustments().apply(workload) is workload


def test_fewer_nodes_of_every_kind_and_no_events_of_removed_ones(make: Any) -> None:
    nodes = [make.node(f"small-{index}", 2) for index in range(6)] + [make.node("large", 8)]
    events = [
        NodeEvent(1, NodeEventKind.DRAIN, nodes[0]),
        NodeEvent(2, NodeEventKind.REMOVE, nodes[5]),
        NodeEvent(3, NodeEventKind.ADD, nodes[5]),
        NodeEvent(4, NodeEventKind.DRAIN, nodes[5]),
        NodeEvent(5, NodeEventKind.DRAIN, nodes[4]),
    ]
    workload = make.workload(nodes, [make.app("a")], events)
    half = Adjustments(nodes_fraction=Fraction("0.5")).apply(workload)
    assert [node.name for node in half.nodes] == ["small-0", "small-1", "small-2", "large"]
    assert [event.at for event in half.events] == [1, 3, 4]
    assert half.remarks == ["4 of 7 nodes are used; 2 events of the other nodes are ignored"]
    assert (len(workload.nodes), len(workload.events), workload.remarks) == (7, 5, [])


kinds = st.lists(st.integers(1, 5), min_size=1, max_size=40)


@given(kinds, st.fractions(min_value=Fraction(1, 100), max_value=1))
def test_same_share_of_every_kind_of_nodes_is_kept(cores: list[int], fraction: Fraction) -> None:
    nodes = [WorkloadNode(f"n{index}", Resource(vcore=1000 * size)) for index, size in enumerate(cores)]
    kept = thin_out(nodes, fraction)
    assert len(kept) == max(1, round(len(nodes) * fraction))
    assert kept == [node for node in nodes if node in kept]
    before, after = (Counter(node.resources for node in some) for some in (nodes, kept))
    for kind in before:
        assert abs(after[kind] - before[kind] * fraction) <= 1


@given(kinds, st.fractions(min_value=1, max_value=5))
def test_same_share_of_every_kind_of_nodes_is_copied(cores: list[int], fraction: Fraction) -> None:
    nodes = [WorkloadNode(f"n{index}", Resource(vcore=1000 * size)) for index, size in enumerate(cores)]
    found = with_copies(nodes, fraction)
    assert found[: len(nodes)] == nodes
    assert len(found) == round(len(nodes) * fraction)
    assert len({node.name for node in found}) == len(found)
    before, after = (Counter(node.resources for node in some) for some in (nodes, found))
    for kind in before:
        assert abs(after[kind] - before[kind] * fraction) <= 1


def test_copies_have_names_of_their_own_and_no_events(make: Any) -> None:
    nodes = [
        WorkloadNode("a", Resource(vcore=1000), {"host": "a", "zone": "x"}),
        WorkloadNode("b", Resource(vcore=1000), {"host": "b", "zone": "x"}),
        WorkloadNode("a-copy-2", Resource(vcore=2000)),
    ]
    events = [NodeEvent(1, NodeEventKind.ADD, WorkloadNode("b-copy-2", Resource(vcore=1000)))]
    workload = make.workload(nodes, [make.app("a")], events)
    double = Adjustments(nodes_fraction=Fraction(2)).apply(workload)
    copies = double.nodes[3:]
    assert [node.name for node in copies] == ["a-copy-3", "b-copy-3", "a-copy-2-copy-2"]
    assert [dict(node.attributes) for node in copies[:2]] == [
        {"host": "a-copy-3", "zone": "x"},
        {"host": "b-copy-3", "zone": "x"},
    ]
    assert double.events == events
    assert double.remarks == [
        "6 nodes are used, 3 of them copies; events are those of the original nodes only"
    ]
    assert len(workload.nodes) == 3


def test_too_many_copies_are_refused(make: Any) -> None:
    workload = make.workload([make.node("n")], [make.app("a")])
    with pytest.raises(UsageError, match="1000001 nodes are too many; the maximum is 1000000"):
        Adjustments(nodes_fraction=Fraction(1_000_001)).apply(workload)


@pytest.mark.parametrize(
    ("adjustments", "reported"),
    [
        (Adjustments(speed_up=Fraction(0)), "--speed-up 0: expected a number above 0"),
        (Adjustments(speed_up=Fraction(-1)), "--speed-up -1: expected a number above 0"),
        (
            Adjustments(nodes_fraction=Fraction(0)),
            "--nodes-fraction 0: expected a number above 0, as 0.25 or 2",
        ),
        (Adjustments(nodes_fraction=Fraction(-2)), "--nodes-fraction -2: expected a number above 0"),
    ],
)
def test_invalid_numbers_are_rejected(adjustments: Adjustments, reported: str) -> None:
    with pytest.raises(UsageError, match=reported):
        adjustments.check()


def test_generated_applications_behave_like_a_sequence(make: Any) -> None:
    plain = [make.app("a"), make.app("b", 1), make.app("c", 2)]
    made = Changed(plain, lambda application: application)
    assert list(made) == plain == list(made)
    assert (made[0], made[-1], made[1:]) == (plain[0], plain[2], plain[1:])
    assert (len(made), plain[1] in made) == (3, True)
    for index in (3, -4):
        with pytest.raises(IndexError):
            made[index]
