"""The openb traces: CSV lists of nodes and pods, fractional GPUs, and problems in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.simulation.test_replay import conserved, play
from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_commands.input_source import InputError
from yunikorn_lab.reporting.full_report import study
from yunikorn_lab.simulation.adjustments import Adjustments
from yunikorn_lab.simulation.openb import OpenbOptions, read_openb, read_openb_nodes
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.workload import Workload

CONFIG = """
partitions:
  - name: default
    PREDICATES
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: default}]
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
plain,8000,16384,0,
four,16000,32768,4,T4
one,8000,16384,1,V100M16
"""
HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
PODS = HEADER + (
    "p1,6000,12288,1,460,,LS,Running,100,700,130\n"
    "p2,1000,1024,2,1000,V100M32|T4,BE,Succeeded,110,200,110\n"
    "p3,500,512,0,0,,BE,Pending,120,150,\n"
)


def read(pods: str, strict: bool = False, **options: str) -> Workload:
    """Return the workload of a list of pods on three nodes."""
    nodes = read_openb_nodes(NODES, "nodes.csv", options.get("gpus", "share"))
    return read_openb(pods, "pods.csv", "pods.csv", OpenbOptions(**options), nodes, strict=strict)


def test_a_pod_becomes_an_application_with_one_task() -> None:
    first, second, third = read(PODS).applications
    [task] = first.tasks
    assert (first.id, first.submit, task.count, task.runtime) == ("p1", 0, 1, 570 * SECOND)
    assert task.resources == {"vcore": 6000, "memory": 12288 * 2**20, "gpu-milli": 460}
    assert (first.queue, first.user) == ("root.default", "nobody")
    assert second.submit == 10 * SECOND
    assert second.tasks[0].resources["gpu-milli"] == 2000
    assert third.tasks[0].resources == {"vcore": 500, "memory": 512 * 2**20}


def test_recorded_waits_last_from_creation_to_scheduling() -> None:
    assert [each.recorded_wait for each in read(PODS).applications] == [30 * SECOND, 0, None]


def test_times_count_from_the_first_creation_and_missing_ones_are_replaced_and_counted() -> None:
    workload = read(PODS + "p4,1,1,0,0,,,,,,\n" + "p5,1,1,0,0,,LS,Running,130,,135\n")
    by_name = {application.id: application for application in workload.applications}
    assert workload.began is None
    assert workload.origin == 0.0  # p4 has no time and arrives at 0
    assert by_name["p1"].submit == 100 * SECOND
    assert by_name["p3"].tasks[0].runtime == 30 * SECOND
    assert by_name["p4"].tasks[0].runtime == by_name["p5"].tasks[0].runtime == 3600 * SECOND
    assert workload.counts == {
        "pods that were never scheduled, time from creation to deletion taken": 1,
        "pods without a time of creation, taken to arrive at the start": 1,
        "pods without times, 3600 s taken": 2,
        "pods that want a certain model of GPU": 1,
    }


def test_lists_with_five_columns_are_accepted() -> None:
    pods = "\n".join(",".join(line.split(",")[:5]) for line in PODS.splitlines())
    workload = read(pods)
    assert [application.submit for application in workload.applications] == [0, 0, 0]
    assert {application.tasks[0].runtime for application in workload.applications} == {3600 * SECOND}


def test_gpus_are_counted_in_thousandths_or_as_a_whole() -> None:
    shared, whole = read(PODS), read(PODS, gpus="whole")
    assert [node.resources.get("gpu-milli", 0) for node in shared.nodes] == [0, 4000, 1000]
    assert [node.resources.get("gpu", 0) for node in whole.nodes] == [0, 4, 1]
    assert [app.tasks[0].resources.get("gpu", 0) for app in whole.applications] == [1, 2, 0]
    assert all("gpu-milli" not in app.tasks[0].resources for app in whole.applications)


def test_required_gpu_model_is_enforced_by_the_predicate(tmp_path: Path, registry: Registry) -> None:
    pods = HEADER + "a,1000,1,1,1000,T4,,,0,10,0\nb,1000,1,1,1000,K80|V100M16,,,0,10,0\n"
    workload = read(pods)
    assert "only partitions with the predicate node-selector enforce it" in workload.remarks[0]
    config = CONFIG.replace("PREDICATES", "predicates: [node-selector]")
    play(tmp_path, config, workload, registry)
    text = (tmp_path / "decisions.jsonl").read_text("utf-8").splitlines()
    assert '"application": "a"' in text[0]
    assert '"node": "four"' in text[0]
    assert '"node": "one"' in text[1]


def test_queue_and_user_are_templates() -> None:
    applications = read(PODS, queue="root.{qos}.{kind}", user="{phase}").applications
    assert [app.queue for app in applications] == ["root.LS.share", "root.BE.gpus", "root.BE.cpu"]
    assert [app.user for app in applications] == ["Running", "Succeeded", "Pending"]
    assert read(HEADER + "p,1,1,1,1000,,,,,,\n", queue="{kind}.{qos}").applications[0].queue == "gpu.unknown"
    with pytest.raises(UsageError, match=r"unknown field '\{queue\}'; known: \{qos\}, \{phase\}, \{kind\}"):
        read(PODS, queue="{queue}")
    with pytest.raises(UsageError, match="unknown unit of GPUs 'milli'; known: share, whole"):
        OpenbOptions(gpus="milli").check()


BAD = [
    ("p9,1000,1", "expected 11 columns as in the header, got 3"),
    (",1,1,0,0,,,,,,", "expected a name in column name, got nothing"),
    ("p9,x,1,0,0,,,,,,", "expected thousandths of a core, a whole number from 0 to 1000000000000, got 'x'"),
    ("p9,1,,0,0,,,,,,", "expected mebibytes, a whole number from 0 to 1000000000000, got nothing"),
    ("p9,1,1,-1,0,,,,,,", "expected a number of GPUs, a whole number from 0 to 1000000, got '-1'"),
    ("p9,1,1,1,1001,,,,,,", "expected thousandths of a GPU, a whole number from 0 to 1000, got '1001'"),
    ("p9,0,0,0,0,,,,,,", "expected a pod with cores, memory or GPUs"),
    ("p9,1,1,0,0,,,,soon,,", "expected a time in seconds from 0 to 9000000000, got 'soon'"),
    ("p9,1,1,0,0,,,,5,4,", "expected a deletion_time that is not before the creation_time"),
    ("p9,1,1,0,0,,,,5,8,9", "expected a deletion_time that is not before the scheduled_time"),
    ("p1,1,1,0,0,,,,,,", "the pod name 'p1' was already used on line 2"),
]


@pytest.mark.parametrize(("line", "reported"), BAD)
def test_bad_lines_are_skipped_counted_and_shown(line: str, reported: str) -> None:
    workload = read(PODS + line + "\n")
    assert [application.id for application in workload.applications] == ["p1", "p2", "p3"]
    assert workload.counts["lines skipped"] == 1
    assert workload.remarks[0].startswith(f"pods.csv: line 5: {reported}")
    with pytest.raises(InputError, match=r"pods\.csv: line 5"):
        read(PODS + line + "\n", strict=True)


def test_first_of_many_bad_lines_are_shown() -> None:
    workload = read(PODS + "p9,x,1,0,0,,,,,,\n" * 9)
    assert len([remark for remark in workload.remarks if "line" in remark]) == 6
    assert "4 more lines like these" in workload.remarks[5]


def test_list_without_its_columns_or_pods_is_rejected() -> None:
    with pytest.raises(InputError, match=r"line 1: expected the columns name, .*; missing: cpu_milli,"):
        read("name,memory_mib,num_gpu\n")
    with pytest.raises(InputError, match="contains no pods"):
        read(HEADER)
    with pytest.raises(InputError, match=r"line 2: expected a number of GPUs.*\n.*line 4: duplicate node"):
        read_openb_nodes("sn,cpu_milli,memory_mib,gpu\na,1,1,?\nb,1,1,0\nb,1,1,0\n", "nodes.csv")


def test_quotes_blank_lines_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_text("\ufeff" + PODS.replace("p1", '"p1"').replace("\n", "\r\n") + "\r\n", "utf-8")
    (tmp_path / "nodes.csv").write_text(NODES, "utf-8")
    workload = read_workload(path)
    assert (workload.format, len(workload.applications), len(workload.nodes)) == ("openb", 3, 3)


def test_folder_or_two_files_are_accepted(tmp_path: Path) -> None:
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pods.write_text(PODS, "utf-8")
    with pytest.raises(InputError, match=r"contains no list of nodes \(CSV\); specify one with --nodes FILE"):
        read_workload(tmp_path)
    nodes.write_text(NODES, "utf-8")
    (tmp_path / "README.md").write_text("name", "utf-8")
    assert len(read_workload(tmp_path).nodes) == 3
    assert len(read_workload(tmp_path, format="openb").applications) == 3
    elsewhere = tmp_path / "nodes.yaml"
    elsewhere.write_text("nodes: [{name: n, resources: {vcore: 4}}]", "utf-8")
    assert [node.name for node in read_workload(pods, nodes=elsewhere).nodes] == ["n"]
    assert read_workload(pods, nodes=nodes, openb=OpenbOptions(gpus="whole")).nodes[1].resources["gpu"] == 4
    (tmp_path / "pods2.csv").write_text(PODS, "utf-8")
    with pytest.raises(InputError, match=r"several lists of pods: pods\.csv, pods2\.csv; specify one with"):
        read_workload(tmp_path)
    assert len(read_workload(pods).applications) == 3
    (tmp_path / "odd").mkdir()
    odd = tmp_path / "odd" / "w.yaml"
    odd.write_text("nodes: []", "utf-8")
    with pytest.raises(InputError, match=r"w\.yaml: line 1: expected the columns name"):
        read_workload(odd, format="openb")
    with pytest.raises(InputError, match="is a folder; the format swf needs a file"):
        read_workload(tmp_path, format="swf")


def test_real_lists_are_read_completely(tmp_path: Path, traces: Path, registry: Registry) -> None:
    workload = read_workload(traces / "openb")
    assert (len(workload.applications), len(workload.nodes)) == (8152, 1523)
    assert sum(node.resources.get("gpu-milli", 0) for node in workload.nodes) == 6_212_000
    held = Adjustments(hold=True).apply(workload)
    report = play(
        tmp_path, CONFIG.replace("PREDICATES", "nodesortpolicy: {type: binpacking}"), held, registry
    )
    assert conserved(report)
    # The numbers given in docs/workloads.md.
    assert (report.tasks.running, report.tasks.waiting) == (7705, 447)
    free = {node.name: dict(node.resources) for node in workload.nodes}
    check_places(tmp_path, free)
    # Tasks that wait at the end fit no node: an independent check of every node.
    placed = placed_names(tmp_path)
    waiting = [app for app in workload.applications if app.id not in placed]
    assert len(waiting) == report.tasks.waiting
    assert sum(app.tasks[0].resources.get("gpu-milli") == 8000 for app in waiting) == 1
    for application in waiting:
        wanted = application.tasks[0].resources
        assert not any(all(room.get(kind, 0) >= wanted[kind] for kind in wanted) for room in free.values())


@pytest.mark.parametrize(
    ("order", "placed", "unusable"), [("fair", 4, (1.0, 0.75)), ("binpacking", 5, (None, None))]
)
def test_spread_pods_leave_no_room_for_a_large_one(
    order: str, placed: int, unusable: tuple[float | None, float | None], registry: Registry
) -> None:
    """Four pods of a GPU each, then one of eight, and two nodes of eight: spread, 12 of 16 are unusable."""
    nodes = read_openb_nodes("sn,cpu_milli,memory_mib,gpu,model\na,8000,99,8,\nb,8000,99,8,\n", "nodes.csv")
    small = "".join(f"s{number},1,1,1,1000,,LS,Running,0,9,0\n" for number in range(4))
    pods = f"{HEADER}{small}large,1,1,8,1000,,LS,Running,10,90,20\n"
    workload = Adjustments(hold=True).apply(read_openb(pods, "p", "p", OpenbOptions(), nodes))
    config = CONFIG.replace("PREDICATES", f"nodesortpolicy: {{type: {order}}}")
    result = study(config, workload, registry)
    assert result.report.tasks.running == placed
    found = result.figures.fragmentation["default"]["gpu-milli"]
    assert (found.at_end, found.at_end_of_capacity) == unusable


def check_places(folder: Path, free: dict[str, dict[str, int]]) -> None:
    """Subtract the placements from the nodes; none may become negative."""
    for line in (folder / "decisions.jsonl").read_text("utf-8").splitlines():
        decision = json.loads(line)
        room = free[decision["node"]]
        for kind, amount in decision["resources"].items():
            room[kind] = room.get(kind, 0) - amount
            assert room[kind] >= 0, decision


def placed_names(folder: Path) -> set[str]:
    """Return the names of the placed pods."""
    lines = (folder / "decisions.jsonl").read_text("utf-8").splitlines()
    return {json.loads(line)["application"] for line in lines}
