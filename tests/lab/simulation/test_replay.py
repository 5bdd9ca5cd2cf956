"""An independent check of the files a simulation wrote: no node or queue exceeds its limit at any time.

The check shares no code with the scheduler: it reads the files of `--out` and the YAML, and adds up.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.example_counts import examples
from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn.resources import Resource
from yunikorn_lab.simulation.out_folder import REPORT, FolderRecorder, OutFolder
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.swf import SwfOptions
from yunikorn_lab.simulation.workload import (
    NodeEvent,
    NodeEventKind,
    Workload,
    WorkloadApplication,
    WorkloadNode,
    WorkloadTaskGroup,
)

CONFIG = """
partitions:
  - name: default
    placementrules:
      - {name: provided, create: true}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: fifo
            resources: {max: {vcore: 5, memory: 9}}
            properties: {application.sort.policy: fifo}
          - name: deep
            parent: true
            resources: {max: {vcore: 6}, guaranteed: {vcore: 2}}
            queues:
              - name: fair
                resources: {max: {vcore: 4}}
                properties: {application.sort.policy: fair}
              - name: free
"""

TRACE_CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: users
            parent: true
            resources: {max: {vcore: 200}}
            queues: [%s]
""" % ", ".join(  # noqa: UP031
    f"{{name: user{number}, resources: {{max: {{vcore: {40 + 3 * number}}}}}}}" for number in range(1, 50)
)


class Replay:
    """Adds up usage of nodes and queues; `failures` lists exceeded limits."""

    def __init__(self, folder: Path, config: str) -> None:
        self.failures: list[str] = []
        self.capacity: dict[str, dict[str, int]] = {}
        self.drained: set[str] = set()
        self.on_node: dict[str, Counter[str]] = defaultdict(Counter)
        self.in_queue: dict[str, Counter[str]] = defaultdict(Counter)
        self.placed: dict[str, dict[str, Any]] = {}
        self.quota = dict(self.quotas(yaml.safe_load(config)["partitions"][0]["queues"], ""))
        self.allocations = 0
        decisions = self.lines(folder / "decisions.jsonl")
        changes = self.lines(folder / "nodes.jsonl")
        time = 0
        for number, decision in enumerate(decisions):
            while changes and changes[0]["after"] <= number:
                self.change(changes.pop(0))
            self.expect(decision["time"] >= time, decision, "is before the line above it")
            time = decision["time"]
            self.allocate(decision) if decision["event"] == "allocation" else self.release(decision)

    @staticmethod
    def lines(path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    def quotas(self, queues: list[dict[str, Any]], above: str) -> Iterator[tuple[str, dict[str, int]]]:
        for queue in queues:
            path = f"{above}.{queue['name']}" if above else queue["name"]
            limits = queue.get("resources", {}).get("max", {})
            yield path, {name: value * (1000 if name == "vcore" else 1) for name, value in limits.items()}
            yield from self.quotas(queue.get("queues", []), path)

    def expect(self, holds: bool, line: dict[str, Any], what: str) -> None:
        if not holds:
            self.failures.append(f"{what}: {line}")

    def change(self, line: dict[str, Any]) -> None:
        node = line["node"]
        if line["event"] == "remove":
            self.expect(not +self.on_node[node], line, "node left with something on it")
            del self.capacity[node]
        else:
            self.capacity[node] = line["resources"]
        if line["event"] == "drain":
            self.drained.add(node)
        elif line["event"] != "capacity":
            self.drained.discard(node)

    def allocate(self, line: dict[str, Any]) -> None:
        node, amount = line["node"], line["resources"]
        self.allocations += 1
        self.expect(line["allocation"] not in self.placed, line, "identifier used twice")
        self.expect(node in self.capacity, line, "node unknown")
        self.expect(node not in self.drained, line, "node drained")
        self.placed[line["allocation"]] = line
        held = self.on_node[node]
        held.update(amount)
        for name in amount:
            self.expect(held[name] <= self.capacity.get(node, {}).get(name, 0), line, f"node over its {name}")
        for path in self.levels(line["queue"]):
            self.in_queue[path].update(amount)
            for name, limit in self.quota.get(path, {}).items():
                self.expect(self.in_queue[path][name] <= limit, line, f"{path} over its {name}")

    def release(self, line: dict[str, Any]) -> None:
        placed = self.placed.pop(line["allocation"], None)
        if placed is None:
            self.expect(False, line, "released but not placed")
            return
        same = all(placed[key] == line[key] for key in ("application", "ask", "queue", "node", "resources"))
        self.expect(same, line, "not as it was placed")
        self.on_node[line["node"]].subtract(line["resources"])
        for path in self.levels(line["queue"]):
            self.in_queue[path].subtract(line["resources"])

    @staticmethod
    def levels(queue: str) -> list[str]:
        parts = queue.split(".")
        return [".".join(parts[: index + 1]) for index in range(len(parts))]


def play(folder: Path, config: str, workload: Workload, registry: Registry) -> Report:
    """Simulate into a folder."""
    with OutFolder(folder) as out:
        report = simulate(config, workload, registry, recorder=FolderRecorder(out))
        out.open(REPORT).write(report.to_json())
    return report


def conserved(report: Report) -> bool:
    """Assert that the numbers of applications and tasks add up."""
    counts, tasks = report.applications, report.tasks
    return (
        counts.submitted
        == counts.finished + counts.failed + counts.rejected + counts.running + counts.waiting
        and tasks.asked
        == tasks.ended + tasks.failed + tasks.dropped + tasks.refused + tasks.running + tasks.waiting
        and report.allocations == report.releases + tasks.running
    )


def check(folder: Path, config: str, report: Report) -> Replay:
    """Check the files of a folder; they must agree with the report."""
    replay = Replay(folder, config)
    assert replay.failures == []
    assert replay.allocations == report.allocations
    assert len(replay.placed) == report.tasks.running
    assert conserved(report)
    return replay


queues = st.sampled_from(["root.fifo", "root.deep.fair", "root.deep.free", "root.new.leaf", "root.deep", ""])
sizes = st.builds(
    lambda vcore, memory: Resource({"vcore": 500 * vcore, "memory": memory} if memory else {"vcore": 500}),
    st.integers(1, 6),
    st.integers(0, 4),
)
groups = st.builds(
    WorkloadTaskGroup,
    name=st.sampled_from(["x", "y"]),
    count=st.integers(1, 5),
    resources=sizes,
    runtime=st.integers(0, 8).map(lambda seconds: seconds * SECOND),
    priority=st.sampled_from([None, 0, 5]),
)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Draw a small overloaded cluster with nodes that join, leave, drain and shrink."""
    nodes = [
        WorkloadNode(
            f"n{number}", Resource(vcore=draw(st.integers(1, 4)) * 1000, memory=draw(st.integers(1, 8)))
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    applications = [
        WorkloadApplication(
            id=f"a{number}",
            submit=draw(st.integers(0, 20)) * SECOND,
            tasks=tuple(draw(st.lists(groups, min_size=1, max_size=2, unique_by=lambda group: group.name))),
            queue=draw(queues),
            user=draw(st.sampled_from(["ann", "bob"])),
        )
        for number in range(draw(st.integers(1, 10)))
    ]
    events = []
    for change in draw(st.lists(st.sampled_from([NodeEventKind.DRAIN, NodeEventKind.RESUME]), max_size=3)):
        events.append(NodeEvent(draw(st.integers(0, 25)) * SECOND, change, draw(st.sampled_from(nodes))))
    if draw(st.booleans()):
        late = WorkloadNode("late", Resource(vcore=2000, memory=4))
        events += [
            NodeEvent(3 * SECOND, NodeEventKind.ADD, late),
            NodeEvent(9 * SECOND, NodeEventKind.CAPACITY, late, Resource(vcore=4000, memory=9)),
            NodeEvent(draw(st.integers(10, 20)) * SECOND, NodeEventKind.REMOVE, late),
        ]
    return Workload(
        "generated",
        "scenario",
        nodes,
        sorted(applications, key=lambda application: application.submit),
        sorted(events, key=lambda event: event.at),
    )


@given(workload=workloads())
def test_no_workload_exceeds_a_limit(
    workload: Workload, registry: Registry, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("out")
    report = play(folder, CONFIG, workload, registry)
    check(folder, CONFIG, report)
    assert report.applications.submitted == len(workload.applications)


def test_equal_input_gives_identical_output(tmp_path: Path, registry: Registry) -> None:
    example = Path(__file__).parents[3] / "examples" / "quickstart"
    config = (example / "queues.yaml").read_text("utf-8")
    for name in ("first", "second"):
        play(tmp_path / name, config, read_workload(example / "workload.yaml"), registry)
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()


def test_real_trace_is_simulated_completely(tmp_path: Path, traces: Path, registry: Registry) -> None:
    # Some jobs are larger than the quota of their user, and would be rejected as a whole.
    options = SwfOptions(queue="root.users.user{user}", jobs="tasks")
    workload = read_workload(traces / "swf" / "hpc2n.swf", swf=options)
    jobs = min(examples(1000), 3170)
    workload = attrs.evolve(workload, applications=workload.applications[:jobs])
    report = play(tmp_path, TRACE_CONFIG, workload, registry)
    check(tmp_path, TRACE_CONFIG, report)
    assert report.applications.submitted == report.applications.finished == jobs


def test_check_detects_wrong_decisions(tmp_path: Path) -> None:
    line = {
        "time": 5,
        "event": "allocation",
        "application": "a",
        "ask": "t",
        "allocation": "1",
        "queue": "root.fifo",
        "node": "n",
        "resources": {"vcore": 6000},
    }
    again = {**line, "event": "release", "time": 4, "allocation": "2"}
    node = {"time": 0, "event": "add", "node": "n", "resources": {"vcore": 4000}, "after": 0}
    (tmp_path / "decisions.jsonl").write_text(f"{json.dumps(line)}\n{json.dumps(again)}\n")
    (tmp_path / "nodes.jsonl").write_text(json.dumps(node))
    found = [failure.partition(":")[0] for failure in Replay(tmp_path, CONFIG).failures]
    assert found == [
        "node over its vcore",
        "root.fifo over its vcore",
        "is before the line above it",
        "released but not placed",
    ]
