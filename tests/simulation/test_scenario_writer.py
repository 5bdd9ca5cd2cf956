"""A scenario that is written out says the same as what it was written from."""

from __future__ import annotations

from pathlib import Path

import attrs
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.test_everything import workloads
from tests.simulation.test_generate import CONFIG, FAILURES, WEEK
from tests.simulation.test_replay import play
from yunikorn.registry import Registry
from yunikorn.resources import Resource
from yunikorn.simulation.scenario import read_scenario
from yunikorn.simulation.scenario_writer import scenario_lines
from yunikorn.simulation.workload import FOREVER, Application, Node, TaskGroup, Workload


def again(workload: Workload) -> Workload:
    """The workload, written and read."""
    text = "".join(f"{line}\n" for line in scenario_lines(workload))
    return read_scenario(text, "written", "written")


def same(one: Workload, other: Workload) -> None:
    """Both have the same nodes, events and applications."""
    assert (one.name, one.nodes, one.events) == (other.name, other.nodes, other.events)
    assert list(one.applications) == list(other.applications)


def test_what_was_drawn_is_played_the_same_when_it_is_written_out(tmp_path: Path, registry: Registry) -> None:
    drawn = read_scenario(WEEK + "name: week\n", "file", "file")
    written = again(drawn)
    same(drawn, written)
    for name, workload in (("drawn", drawn), ("written", written)):
        play(tmp_path / name, CONFIG, workload, registry)
    for path in (tmp_path / "drawn").iterdir():
        assert path.read_bytes() == (tmp_path / "written" / path.name).read_bytes()


def test_failures_are_written_as_events() -> None:
    same(read_scenario(FAILURES, "f", "f"), again(read_scenario(FAILURES, "f", "f")))


@given(workloads())
def test_whatever_a_scenario_says_can_be_written(workload: Workload) -> None:
    same(workload, again(workload))


names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=9)


@given(st.lists(names, min_size=4, max_size=4, unique=True))
def test_names_of_any_kind_survive(texts: list[str]) -> None:
    first, second, third, fourth = texts
    group = TaskGroup(first, 2, Resource({"vcore": 1, "x/y": 3}), FOREVER, tags={second: third, "no": "~"})
    application = Application(
        fourth, 1, (group,), queue=first, user=second, groups=(third,), tags={fourth: first, "n": ""}
    )
    node = Node(third, Resource({"vcore": 1}), {first: second, "on": "yes"}, partition=fourth)
    workload = Workload(first, "scenario", [node], [application])
    same(workload, again(workload))


def test_an_example_of_what_is_written() -> None:
    group = TaskGroup("t", 1, Resource(vcore=500, memory=2**30), 90_500_000_000, priority=0)
    application = Application("a", 0, (group,), queue="root.a", user="ann")
    node = Node("n", Resource(vcore=4000), {"zone": "a"})
    lines = list(
        scenario_lines(Workload("w", "scenario", [node], [application, attrs.evolve(application, id="b")]))
    )
    assert lines == [
        'name: "w"',
        "nodes:",
        '- {name: "n", resources: {vcore: 4}, attributes: {zone: "a"}}',
        "applications:",
        '- {id: "a", user: "ann", queue: "root.a", tasks: [{name: "t", resources: {vcore: 500m, '
        "memory: 1Gi}, runtime: 90.5, priority: 0}]}",
        '- {id: "b", user: "ann", queue: "root.a", tasks: [{name: "t", resources: {vcore: 500m, '
        "memory: 1Gi}, runtime: 90.5, priority: 0}]}",
    ]
