"""A written scenario equals the workload it was written from."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.simulation.test_everything import workloads
from tests.lab.simulation.test_generate import CONFIG, FAILURES, WEEK
from tests.lab.simulation.test_replay import play
from yunikorn.framework.registry import Registry
from yunikorn.resources import Resource
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.scenario_reader import FileApplications, open_scenario_file, read_scenario
from yunikorn_lab.simulation.scenario_writer import scenario_lines
from yunikorn_lab.simulation.workload import (
    FOREVER,
    Workload,
    WorkloadApplication,
    WorkloadNode,
    WorkloadTaskGroup,
)


def again(workload: Workload) -> Workload:
    """Write the workload, and read it back."""
    text = "".join(f"{line}\n" for line in scenario_lines(workload))
    return read_scenario(text, "written", "written")


def same(one: Workload, other: Workload) -> None:
    """Assert that both have equal nodes, events and applications."""
    assert (one.name, one.nodes, one.events) == (other.name, other.nodes, other.events)
    assert list(one.applications) == list(other.applications)


def test_written_scenario_simulates_like_the_generated_one(tmp_path: Path, registry: Registry) -> None:
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
def test_every_scenario_can_be_written(workload: Workload) -> None:
    same(workload, again(workload))


names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=9)


@given(st.lists(names, min_size=4, max_size=4, unique=True))
def test_any_names_are_preserved(texts: list[str]) -> None:
    first, second, third, fourth = texts
    group = WorkloadTaskGroup(
        first, 2, Resource({"vcore": 1, "x/y": 3}), FOREVER, tags={second: third, "no": "~"}
    )
    application = WorkloadApplication(
        fourth, 1, (group,), queue=first, user=second, groups=(third,), tags={fourth: first, "n": ""}
    )
    node = WorkloadNode(third, Resource({"vcore": 1}), {first: second, "on": "yes"}, partition=fourth)
    workload = Workload(first, "scenario", [node], [application])
    same(workload, again(workload))


def test_example_of_a_written_scenario() -> None:
    group = WorkloadTaskGroup("t", 1, Resource(vcore=500, memory=2**30), 90_500_000_000, priority=0)
    application = WorkloadApplication("a", 0, (group,), queue="root.a", user="ann")
    node = WorkloadNode("n", Resource(vcore=4000), {"zone": "a"})
    lines = list(
        scenario_lines(Workload("w", "scenario", [node], [application, attrs.evolve(application, id="b")]))
    )
    assert lines == [
        'name: "w"',
        "nodes:",
        '- {"name": "n", "resources": {"vcore": "4"}, "attributes": {"zone": "a"}}',
        "applications:",
        '- {"id": "a", "user": "ann", "queue": "root.a", "tasks": [{"name": "t", "resources": '
        '{"vcore": "500m", "memory": "1Gi"}, "runtime": 90.5, "priority": 0}]}',
        '- {"id": "b", "user": "ann", "queue": "root.a", "tasks": [{"name": "t", "resources": '
        '{"vcore": "500m", "memory": "1Gi"}, "runtime": 90.5, "priority": 0}]}',
    ]


# -- long files, line by line -------------------------------------------------------------------------

LINE = (
    '- {"id": "ID", "submit": AT, "user": "ann", "queue": "root.a", '
    '"tasks": [{"name": "t", "resources": {"vcore": "1"}, "runtime": 5}]}'
)


def long_file(folder: Path, *lines: str, head: str = "") -> Path:
    """Return a scenario with these lines for applications."""
    path = folder / "long.yaml"
    text = "nodes:\n- {name: n, resources: {vcore: 4}}\n" + head + "applications:\n" + "\n".join(lines) + "\n"
    path.write_text(text, "utf-8")
    return path


def line(name: str, at: object = 0, more: str = "") -> str:
    """Return a line for an application."""
    return LINE.replace("ID", name).replace("AT", str(at)).replace('"user"', f'{more}"user"')


@given(workload=workloads())
def test_streamed_scenario_equals_the_parsed_one(
    workload: Workload, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("long") / "long.yaml"
    path.write_text("".join(f"{each}\n" for each in scenario_lines(workload)), "utf-8")
    written = open_scenario_file(path)
    assert written is not None
    assert list(written.applications) == list(workload.applications) == list(written.applications)
    same(read_workload(path), workload)


def test_long_file_is_read_lazily(tmp_path: Path, registry: Registry) -> None:
    drain = "events: [{at: 9, node: n, action: drain}]\n"
    path = long_file(tmp_path, line("a"), "", line("b", 1), head=drain)
    workload = read_workload(path)
    assert isinstance(workload.applications, FileApplications)
    assert [app.id for app in workload.applications] == ["a", "b"]
    assert len(workload.events) == 1
    assert simulate(CONFIG, workload, registry).tasks.ended == 2
    packed = tmp_path / "long.yaml.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_workload(packed).applications) == list(workload.applications)
    path.write_text("nodes: []\n", "utf-8")
    with pytest.raises(InputError, match="has changed since the simulation started"):
        list(workload.applications)


@pytest.mark.parametrize(
    "lines",
    [
        [line("a", 5), line("b", 1)],  # not in order of time
        [line("a"), line("b", more='"count": 2, ')],
        [line("a"), "- id: b", "  tasks: [{resources: {vcore: 1}, runtime: 1}]"],
        [line("a"), "# a remark"],
        [line("a").replace('"1"', "1"), line("b").replace('"name": "t", ', "")],
        [line("a"), "name: afterwards"],
    ],
)
def test_unusual_file_is_read_as_a_whole(lines: list[str], tmp_path: Path) -> None:
    path = long_file(tmp_path, *lines)
    assert open_scenario_file(path) is None
    workload = read_workload(path)
    assert isinstance(workload.applications, list)
    assert workload.applications


def test_generated_applications_may_accompany_many_listed_ones(tmp_path: Path) -> None:
    head = (
        "generate: [{id: g, count: 2, arrivals: {process: regular, every: 1}, queue: root.a, "
        "tasks: [{resources: {vcore: 1}, runtime: 1}]}]\n"
    )
    assert len(read_workload(long_file(tmp_path, line("a"), head=head)).applications) == 3
    with pytest.raises(InputError, match="the generated ids clash with the id 'g-1'"):
        read_workload(long_file(tmp_path, line("g-1"), head=head))


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        (line("a"), "duplicate application id 'a'"),
        (line("b", -1), "applications[1].submit: expected seconds or a duration"),
        (line("b", more='"colour": "red", '), "applications[1].colour: unknown key"),
        (line("b", more='"user": "bob", '), "user"),
        (line("b").replace('"1"', '"lots"'), "applications[1].tasks[0].resources.vcore: expected a whole"),
        (line("b").replace('"1"', '"0"'), "at least one resource above 0"),
        (line("b").replace('"vcore"', '"vcore": "1", "vcore"'), "vcore"),
        (line("b", more='"gang": "Loose", '), "applications[1].gang: expected"),
        (line("b", more='"gangtimeout": 5, '), "applies only to a gang with placeholders"),
        (line("b", more='"gang": "Soft", "timeout": 5, '), "set gangtimeout"),
        (line("b", more='"preempted": "never", '), "applications[1].preempted: expected"),
        (line("b").replace('"runtime": 5', '"runtime": [5]'), "applications[1].tasks[0].runtime: expected"),
        (
            line("b").replace('"runtime": 5', '"runtime": 5, "count": 0'),
            "count: expected a whole number",
        ),
        (
            line("b").replace('"runtime": 5', '"runtime": 5, "priority": 99999999999'),
            "priority: expected a whole",
        ),
        (line("b").replace(', "runtime": 5', ""), "applications[1].tasks[0].runtime: required"),
        (line("b")[:-9], "YAML"),
    ],
)
def test_errors_of_a_long_file_are_reported_as_usual(wrong: str, reported: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_workload(long_file(tmp_path, line("a"), wrong))
    assert reported in re.sub(r" \(line \d+, column \d+\)", "", str(caught.value))
    assert "line 5" in str(caught.value) or "line 6" in str(caught.value)
