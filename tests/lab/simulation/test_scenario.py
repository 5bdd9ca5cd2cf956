"""Scenarios: YAML with nodes, applications and node events."""

from __future__ import annotations

import pytest

from yunikorn.clock import SECOND
from yunikorn.resources import Resource
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.scenario_reader import read_cluster, read_scenario
from yunikorn_lab.simulation.workload import NodeEventKind, Workload, WorkloadNode, WorkloadTaskGroup

WHOLE = """
name: everything
nodes:
  - name: small
    count: 2
    resources: {vcore: 2, memory: 4Gi, gpu: 1}
    attributes: {zone: a}
    partition: default
  - {name: big, resources: {vcore: 500m}}
applications:
  - id: late
    submit: 90
    tasks: [{resources: {vcore: 1}, runtime: 0}]
  - id: etl
    count: 2
    every: 1m30s
    submit: 0.5
    user: ann
    groups: [science, all]
    queue: root.science
    tags: {namespace: dev}
    partition: default
    tasks:
      - {name: driver, resources: {vcore: 1, memory: 1Gi}, runtime: 1h, priority: -5, tags: {role: driver}}
      - {count: 10, resources: {vcore: 100m}, runtime: 2.5}
events:
  - {at: 2m, node: small-1, action: resume}
  - {at: 30s, node: small-1, action: drain}
  - {at: 3m, node: new, action: add, resources: {vcore: 9}, attributes: {zone: b}}
  - {at: 4m, node: new, action: capacity, resources: {vcore: 10}}
  - {at: 5m, node: new, action: remove}
"""

NODES = "nodes: [{name: n, resources: {vcore: 1}}]\n"
APPS = "applications: [{id: a, tasks: [{resources: {vcore: 1}, runtime: 1}]}]\n"
KEYS_EXPECTED = (
    ": expected a mapping with the keys name, seed, startup, nodes, events, failures, applications, generate"
)


def read(text: str) -> Workload:
    """Return the workload of a scenario."""
    return read_scenario(text, "file.yaml", "file.yaml")


def problems(text: str) -> list[str]:
    """Return all problems of a scenario."""
    with pytest.raises(InputError) as caught:
        read(text)
    assert str(caught.value).startswith("file.yaml: ")
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def test_scenario_with_all_keys() -> None:
    workload = read(WHOLE)
    assert (workload.name, workload.format) == ("everything", "scenario")
    assert [node.name for node in workload.nodes] == ["small-1", "small-2", "big"]
    assert workload.nodes[0] == WorkloadNode(
        "small-1", Resource(vcore=2000, memory=4 * 2**30, gpu=1), {"zone": "a"}, "default"
    )
    assert workload.nodes[2].resources == {"vcore": 500}
    assert [(app.id, app.submit / SECOND) for app in workload.applications] == [
        ("etl-1", 0.5),
        ("late", 90),
        ("etl-2", 90.5),
    ]
    first = workload.applications[0]
    assert (first.user, first.groups, first.queue) == ("ann", ("science", "all"), "root.science")
    assert (first.tags, first.partition) == ({"namespace": "dev"}, "default")
    assert workload.applications[1].user == "nobody"
    assert first.tasks == (
        WorkloadTaskGroup(
            "driver", 1, Resource(vcore=1000, memory=2**30), 3600 * SECOND, -5, {"role": "driver"}
        ),
        WorkloadTaskGroup("task-2", 10, Resource(vcore=100), 2_500_000_000),
    )


def test_events_are_in_order_of_time_and_have_their_node() -> None:
    events = read(WHOLE).events
    assert [(event.at // SECOND, event.change, event.node.name) for event in events] == [
        (30, NodeEventKind.DRAIN, "small-1"),
        (120, NodeEventKind.RESUME, "small-1"),
        (180, NodeEventKind.ADD, "new"),
        (240, NodeEventKind.CAPACITY, "new"),
        (300, NodeEventKind.REMOVE, "new"),
    ]
    assert events[2].node == WorkloadNode("new", Resource(vcore=9000), {"zone": "b"})
    assert events[3].resources == {"vcore": 10_000}


def test_file_name_replaces_a_missing_name() -> None:
    assert read(NODES + APPS).name == "file.yaml"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (
            "- a",
            f"{KEYS_EXPECTED}, got a list",
        ),
        (
            "just text",
            f"{KEYS_EXPECTED}, got 'just text'",
        ),
        ("# nothing", ": contains only comments"),
        (NODES, "applications: contains no applications"),
        (APPS, "nodes: contains no nodes"),
        (NODES + "applications: 5", "applications: expected a list, got '5': write [5]"),
        (NODES + APPS + "aplications: []", "aplications: unknown key, did you mean 'applications'?"),
        (NODES + APPS + "nodes: []", "the key 'nodes' is "),
        ("nodes: [{name: n}]\n" + APPS, "nodes[0].resources: required, but missing: a node needs resources"),
        (
            "nodes: [{name: n, resources: {vcore: 0}}]\n" + APPS,
            "nodes[0].resources: a node needs at least one resource above 0",
        ),
        (
            "nodes: [{name: n, resources: {}}]\n" + APPS,
            "nodes[0].resources: a node needs at least one resource above 0",
        ),
        (
            "nodes: [{name: n, resources: {memory: 5x}}]\n" + APPS,
            "nodes[0].resources.memory: unknown suffix 'x'",
        ),
        ("nodes: [{resources: {vcore: 1}}]\n" + APPS, "nodes[0].name: required, but missing"),
        (
            "nodes: [{name: n, count: 0, resources: {vcore: 1}}]\n" + APPS,
            "nodes[0].count: expected a whole number from 1",
        ),
        (
            "nodes: [{name: n, resources: {vcore: 1}}, {name: n, resources: {vcore: 1}}]\n" + APPS,
            "nodes[1].name: duplicate node name 'n'",
        ),
        (
            NODES + "applications: [{id: a, tasks: []}]",
            "applications[0].tasks: an application needs tasks",
        ),
        (NODES + "applications: [{id: a}]", "applications[0].tasks: an application needs tasks"),
        (
            NODES + "applications: [{id: a, tasks: [{resources: {vcore: 1}}]}]",
            "applications[0].tasks[0].runtime: required, but missing",
        ),
        (
            NODES + "applications: [{id: a, tasks: [{runtime: 1}]}]",
            "applications[0].tasks[0].resources: required, but missing: a task needs resources",
        ),
        (
            NODES + "applications: [{id: a, submit: -5, tasks: [{resources: {vcore: 1}, runtime: 1}]}]",
            "applications[0].submit: expected seconds or a duration such as 90, 30s, 1h30m or 1d, got '-5'",
        ),
        (
            NODES + "applications: [{id: a, submit: -5s, tasks: [{resources: {vcore: 1}, runtime: 1}]}]",
            "applications[0].submit: a time cannot be below 0, got '-5s'",
        ),
        (
            NODES
            + "applications: [{id: a, tasks: [{resources: {vcore: 1}, runtime: 99999999999999999999}]}]",
            "applications[0].tasks[0].runtime: the time 99999999999999999999 is too long",
        ),
        (
            NODES + "applications: [{id: a, tasks: [{resources: {vcore: 1}, runtime: [1]}]}]",
            "applications[0].tasks[0].runtime: expected seconds or a duration, got a list",
        ),
        (
            NODES + APPS[:-2] + ", {id: a, tasks: [{resources: {vcore: 1}, runtime: 1}]}]",
            "applications[1].id: duplicate application id 'a'",
        ),
        (NODES + APPS + "events: [{at: 1, node: m, action: drain}]", "no node 'm' is registered"),
        (NODES + APPS + "events: [{at: 1, node: n, action: stop}]", "unknown action 'stop'"),
        (NODES + APPS + "events: [{node: n, action: drain}]", "events[0].at: required, but missing"),
        (
            NODES + APPS + "events: [{at: 1, node: n, action: add, resources: {vcore: 1}}]",
            "events[0].node: node 'n' is already registered at that time",
        ),
        (
            NODES + APPS + "events: [{at: 1, node: n, action: drain, resources: {vcore: 1}}]",
            "events[0].resources: not allowed with the action 'drain'",
        ),
        (
            NODES + APPS + "events: [{at: 1, node: n, action: capacity}]",
            "a change of capacity needs resources",
        ),
        (
            NODES + APPS + "events: [{at: 2, node: n, action: drain}, {at: 1, node: n, action: remove}]",
            "events[0].node: no node 'n' is registered at that time",
        ),
    ],
)
def test_errors_are_reported_with_their_position(text: str, reported: str) -> None:
    found = problems(text)
    assert len(found) == 1, found
    assert reported in found[0]


def test_all_problems_in_one_pass_with_line_and_column() -> None:
    text = (
        "nodes:\n"
        "  - name: n\n"
        "applications:\n"
        "  - id: a\n"
        "    tasks:\n"
        "      - {resources: {vcore: one}, runtime: soon, priority: high}\n"
        "evnts: []\n"
    )
    with pytest.raises(InputError) as caught:
        read(text)
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [
        (2, "nodes[0].resources"),
        (6, "applications[0].tasks[0].resources.vcore"),
        (6, "applications[0].tasks[0].runtime"),
        (6, "applications[0].tasks[0].priority"),
        (7, "evnts"),
    ]
    assert "file.yaml: applications[0].tasks[0].runtime (line 6, column 44): " in str(caught.value)


def test_invalid_yaml_is_reported_with_its_position() -> None:
    with pytest.raises(InputError, match=r"file.yaml: line 2, column \d+: "):
        read("nodes: [\n}")


def test_separate_cluster_replaces_that_of_the_scenario() -> None:
    cluster = read_cluster("nodes: [{name: x, count: 3, resources: {vcore: 1}}]", "nodes.yaml")
    workload = read_scenario(WHOLE, "file.yaml", "file.yaml", cluster)
    assert [node.name for node in workload.nodes] == ["x-1", "x-2", "x-3"]


def test_a_cluster_has_no_applications() -> None:
    with pytest.raises(InputError, match=r"applications \(line .*\): unknown key"):
        read_cluster(NODES + APPS, "nodes.yaml")
    with pytest.raises(InputError) as refused:
        read_cluster("partitions: [{name: default, queues: []}]", "queues.yaml")
    (found,) = refused.value.problems
    assert found.message == "this is a queues.yaml: expected a file with nodes"


def test_numbered_names_sort_numerically() -> None:
    nodes = read("nodes: [{name: n, count: 100, resources: {vcore: 1}}]\n" + APPS).nodes
    names = [node.name for node in nodes]
    assert names == sorted(names)
    assert (names[0], names[-1]) == ("n-001", "n-100")
