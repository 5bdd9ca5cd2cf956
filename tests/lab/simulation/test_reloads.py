"""Scenarios with configuration reloads, and with nodes that join and leave."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import indent

import pytest

from tests.lab.simulation.test_replay import Replay, conserved
from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.out_folder import REPORT, FolderRecorder, OutFolder
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.workload import Reloaded, ReloadReport

ONE_CORE = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a, resources: {max: {vcore: 1}}}]
"""
THREE_CORES = ONE_CORE.replace("vcore: 1", "vcore: 3")
PARENT = ONE_CORE.replace("resources: {max: {vcore: 1}}", "parent: true, queues: [{name: leaf}]")
TWO_PARTITIONS = (
    THREE_CORES
    + """
  - name: other
    queues: [{name: root, submitacl: "*", queues: [{name: a}]}]
"""
)
WORK = """
nodes:
  - {name: n, resources: {vcore: 4}}
applications:
  - {id: a, queue: root.a, tasks: [{count: 6, resources: {vcore: 1}, runtime: 10}]}
"""


class ConfigurationRecorder(Recorder):
    """Records notifications about configurations."""

    def __init__(self) -> None:
        self.received: list[Reloaded] = []

    def reloaded(self, event: Reloaded) -> None:
        self.received.append(event)


def play(folder: Path, scenario: str, registry: Registry, config: str = ONE_CORE, **files: str) -> Report:
    """Simulate a scenario with these `files` beside it; assert that counts add up."""
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    path = folder / "workload.yaml"
    path.write_text(scenario, "utf-8")
    with OutFolder(folder / "out") as out:
        report = simulate(config, read_workload(path), registry, recorder=FolderRecorder(out))
        out.open(REPORT).write(report.to_json())
    assert conserved(report)
    return report


def starts(folder: Path) -> list[tuple[float, str]]:
    """Return start time and application of all placements."""
    lines = (folder / "out" / "decisions.jsonl").read_text("utf-8").splitlines()
    decisions = [json.loads(line) for line in lines]
    return [(line["time"], line["application"]) for line in decisions if line["event"] == "allocation"]


def test_configuration_applies_from_its_time(tmp_path: Path, registry: Registry) -> None:
    report = play(tmp_path, WORK + "events: [{at: 15s, config: more.yaml}]", registry, more=THREE_CORES)
    # One after the other; at 15 two more start beside the one that has run since 10.
    assert [time for time, _ in starts(tmp_path)] == [0, 10, 15, 15, 20, 25]
    assert report.reloads == [ReloadReport(15.0, "more.yaml", True, "")]
    assert json.loads(report.to_json())["reloads"][0]["config"] == "more.yaml"
    assert Replay(tmp_path / "out", THREE_CORES).failures == []


def test_configuration_applies_to_arrivals_of_the_same_instant(tmp_path: Path, registry: Registry) -> None:
    late = WORK.replace("{id: a,", "{id: a, submit: 5,")
    play(tmp_path, late + "events: [{at: 5, config: more.yaml}]", registry, more=THREE_CORES)
    assert [time for time, _ in starts(tmp_path)] == [5, 5, 5, 15, 15, 15]


def test_limits_are_those_of_the_current_configuration(tmp_path: Path, registry: Registry) -> None:
    report = play(tmp_path, WORK + "events: [{at: 5, config: more.yaml}]", registry, more=THREE_CORES)
    # Five are blocked from 0 to 5 by the first quota, then three by the second from 5 to 10, and so on.
    assert report.limit_waits.tasks is not None
    assert report.limit_waits.tasks.count == 5
    assert [time for time, _ in starts(tmp_path)] == [0, 5, 5, 10, 15, 15]
    assert report.limit_waits.tasks.mean == pytest.approx((5 + 5 + 10 + 15 + 15) / 5)


def test_configuration_in_conflict_with_running_work_is_rejected_and_reported(
    tmp_path: Path, registry: Registry
) -> None:
    report = play(tmp_path, WORK + "events: [{at: 5, config: parent.yaml}]", registry, parent=PARENT)
    [reload] = report.reloads
    assert not reload.taken
    assert "queue root.a cannot change its type now" in reload.reason
    assert report.tasks.ended == 6
    assert [time for time, _ in starts(tmp_path)] == [0, 10, 20, 30, 40, 50]


def test_invalid_configuration_is_reported_before_the_run(tmp_path: Path, registry: Registry) -> None:
    broken = ONE_CORE.replace("vcore: 1", "vcore: lots")
    events = "events: [{at: 15s, config: broken.yaml}, {at: 20, config: worse.yaml}]"
    with pytest.raises(InputError) as caught:
        play(tmp_path, WORK + events, registry, broken=broken, worse="partitions: 7")
    text = str(caught.value)
    assert re.search(r"broken.yaml: partitions\S+ \(line 7, column", text)
    assert "'lots'" in text
    assert "worse.yaml: partitions (line 1, column" in text
    assert not (tmp_path / "out").exists()


def test_unreadable_configuration_is_a_problem_of_the_scenario(tmp_path: Path, registry: Registry) -> None:
    events = "events: [{at: 15s, config: missing.yaml}, {at: x, config: '', node: n}, {config: [a]}]"
    with pytest.raises(InputError) as caught:
        play(tmp_path, WORK + events, registry)
    text = str(caught.value)
    assert "events[0].config" in text
    assert "missing.yaml: cannot be read: No such file or directory" in text
    assert re.search(r"events\[1\].node \(.*\): unknown key", text)
    assert re.search(r"events\[1\].at \(.*\): expected seconds", text)
    assert re.search(r"events\[2\].at \(.*\): required", text)
    assert re.search(r"events\[2\].config \(.*\): expected a text", text)


def test_removed_partition_removes_its_nodes_and_applications(tmp_path: Path, registry: Registry) -> None:
    scenario = """
nodes:
  - {name: n, resources: {vcore: 4}}
  - {name: o, resources: {vcore: 4}, partition: other}
applications:
  - {id: a, queue: root.a, submit: 30, tasks: [{resources: {vcore: 1}, runtime: 10}]}
  - {id: b, queue: root.a, partition: other, tasks: [{count: 6, resources: {vcore: 1}, runtime: 20}]}
  - {id: c, queue: root.a, partition: other, submit: 20, tasks: [{resources: {vcore: 1}, runtime: 20}]}
events:
  - {at: 10, config: one.yaml}
  - {at: 15, node: o, action: drain}
"""
    report = play(tmp_path, scenario, registry, TWO_PARTITIONS, one=THREE_CORES)
    counts = report.applications
    assert (counts.finished, counts.failed, counts.rejected) == (1, 1, 1)
    assert report.tasks.dropped == 7
    assert report.utilisation["other"] == {"vcore": 1.0}
    lines = (tmp_path / "out" / "nodes.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["add", "add", "remove"]
    assert report.node_troubles == ["node o was not changed: failed to find node o"]
    # The replay has no partitions, so both share a quota.
    assert Replay(tmp_path / "out", THREE_CORES.replace("vcore: 3", "vcore: 7")).failures == []


def test_recorders_receive_configurations(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "more.yaml").write_text(THREE_CORES, "utf-8")
    path = tmp_path / "workload.yaml"
    path.write_text(WORK + "events: [{at: 15s, config: more.yaml}]", "utf-8")
    configurations = ConfigurationRecorder()
    simulate(ONE_CORE, read_workload(path), registry, recorder=configurations)
    assert configurations.received == [Reloaded(15 * SECOND, "more.yaml", THREE_CORES)]


def test_configurations_stay_when_nodes_come_from_elsewhere(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "more.yaml").write_text(THREE_CORES, "utf-8")
    path, nodes = tmp_path / "workload.yaml", tmp_path / "nodes.yaml"
    path.write_text(WORK + "events: [{at: 15s, config: more.yaml}]", "utf-8")
    nodes.write_text(
        "nodes: [{name: m, resources: {vcore: 2}}]\n"
        "events: [{at: 5, config: more.yaml}, {at: 20, node: m, action: drain}]"
    )
    workload = read_workload(path, nodes=nodes)
    assert [event.at / SECOND for event in workload.reloads] == [5, 15]
    assert [event.node.name for event in workload.events] == ["m"]


LOST = """
nodes: [{name: n, count: 2, resources: {vcore: 2}, attributes: {zone: a}}]
applications:
  - {id: a, queue: root.a, tasks: [{count: 4, resources: {vcore: 1}, runtime: 10}]}
events:
  - {at: 4, node: n-1, action: remove}
  - {at: 8, node: n-1, action: add}
"""


def test_lost_node_returns_unchanged(tmp_path: Path, registry: Registry) -> None:
    wide = ONE_CORE.replace("vcore: 1", "vcore: 9")
    report = play(tmp_path, LOST, registry, wide)
    assert (report.tasks.ended, report.tasks.restarted) == (4, 2)
    assert [time for time, _ in starts(tmp_path)] == [0, 0, 0, 0, 8, 8]
    lines = (tmp_path / "out" / "nodes.jsonl").read_text("utf-8").splitlines()
    assert json.loads(lines[-1])["resources"] == {"vcore": 2000}
    assert Replay(tmp_path / "out", wide).failures == []


def test_unknown_node_needs_resources(tmp_path: Path, registry: Registry) -> None:
    with pytest.raises(
        InputError, match=r"events\[1\]\.resources \(line 7, column 5\): required, but missing"
    ):
        play(tmp_path, LOST.replace("node: n-1, action: add", "node: n-3, action: add"), registry)


def test_an_event_that_names_no_configuration_is_no_event_of_a_node(
    tmp_path: Path, registry: Registry
) -> None:
    with pytest.raises(InputError) as caught:
        play(tmp_path, LOST + "  - {at: 9, config: }\n", registry)
    assert [problem.path for problem in caught.value.problems] == ["events[2].config"]


def test_task_without_end_never_ends(tmp_path: Path, registry: Registry) -> None:
    report = play(tmp_path, WORK.replace("runtime: 10", "runtime: forever"), registry, THREE_CORES)
    assert (report.tasks.running, report.tasks.waiting, report.tasks.ended) == (3, 3, 0)
    assert report.outcome == "complete"


def config_map(text: str, name: str = "yunikorn-configs") -> str:
    """Return a ConfigMap as `kubectl` prints it."""
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n  queues.yaml: |\n"
    return head + indent(text.lstrip("\n"), "    ")


def test_configurations_to_load_may_be_config_maps(tmp_path: Path, registry: Registry) -> None:
    events = "events: [{at: 15s, config: more.yaml}]"
    other = config_map(ONE_CORE, "other")
    report = play(tmp_path, WORK + events, registry, more=f"{config_map(THREE_CORES)}---\n{other}")
    assert [one.taken for one in report.reloads] == [True]
    assert [time for time, _ in starts(tmp_path)] == [0, 10, 15, 15, 20, 25]
    (remark,) = read_workload(tmp_path / "workload.yaml").remarks
    assert remark.startswith("more.yaml")
    assert "ConfigMap other is ignored" in remark


def test_problems_of_config_maps_to_load_point_into_their_files(tmp_path: Path, registry: Registry) -> None:
    broken = config_map(ONE_CORE.lstrip("\n").replace("vcore: 1", "vcore: lots"))
    events = "events: [{at: 15s, config: broken.yaml}]"
    with pytest.raises(InputError) as refused:
        play(tmp_path, WORK + events, registry, broken=broken)
    line = 1 + next(number for number, text in enumerate(broken.splitlines()) if "lots" in text)
    assert f"(line {line}, column" in str(refused.value)
    with pytest.raises(InputError, match=r"events\[0\].config .*no ConfigMap is called"):
        play(tmp_path, WORK + events, registry, broken=config_map(ONE_CORE, "other"))
