"""`yunikorn validate --nodes`: guarantees, maxima and limits against the nodes of a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yunikorn.cli.main import main

NODES = """\
nodes:
  - {name: node, count: 10, resources: {vcore: 10, memory: 64Gi}}
"""
CONFIG = """\
partitions:
  - name: default
    queues:
      - name: root
        limits:
          - {users: ["*"], maxresources: {memory: 900Gi, vcore: 100}}
        queues:
          - name: a
            resources:
              guaranteed: {vcore: 60}
              max: {vcore: 500, memory: 640Gi}
          - name: b
            resources: {guaranteed: {vcore: 41}}
            queues:
              - name: c
                resources: {guaranteed: {vcore: 10}}
          - name: d
            queues:
              - name: e
                resources: {guaranteed: {gpu: 4, memory: 700Gi}}
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a configuration and nodes."""
    (tmp_path / "queues.yaml").write_text(CONFIG)
    (tmp_path / "nodes.yaml").write_text(NODES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], nodes: str = "nodes.yaml") -> list[str]:
    """Return the findings of the configuration, without their paths."""
    assert main(["validate", "--nodes", nodes, "queues.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    return [f"{line.split(':')[0].strip()} {line.partition('(')[2]}" for line in lines]


@pytest.mark.usefixtures("files")
def test_what_the_nodes_cannot_provide_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys) == [
        "warning line 6, column 51): memory 900Gi is never reached, because all nodes together have memory"
        " 640Gi: lower the limit, or leave it out",
        "warning line 8, column 11): the queues below root are guaranteed vcore 101 in total, but all nodes"
        " together have vcore 100: lower their guarantees, or add nodes",
        "warning line 20, column 47): queue root.d.e is guaranteed gpu 4, but no node has gpu: lower the"
        " guarantee, or add nodes",
        "warning line 20, column 58): queue root.d.e is guaranteed memory 700Gi, but all nodes together have"
        " memory 640Gi: lower the guarantee, or add nodes",
        "hint line 11, column 28): queue root.a never reaches its max of vcore 500, because all nodes"
        " together have vcore 100: it limits nothing in a cluster of this size",
    ]


def test_an_amount_that_all_nodes_have_is_no_finding(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files.joinpath("nodes.yaml").write_text(
        "nodes: [{name: big, resources: {vcore: 101, memory: 900Gi, gpu: 4}}]\n"
    )
    (hint,) = found(capsys)
    assert hint.startswith("hint line 11")


def test_nodes_that_join_later_count(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with files.joinpath("nodes.yaml").open("a") as stream:
        stream.write(
            "events:\n"
            "  - {at: 1h, node: late, action: add, resources: {vcore: 1, memory: 60Gi, gpu: 4}}\n"
            "  - {at: 2h, node: late, action: remove}\n"
            "  - {at: 3h, node: later, action: add, resources: {vcore: 1}}\n"
        )
    assert [line[:15] for line in found(capsys)] == ["warning line 6,", "hint line 11, c"]


def test_a_partition_without_nodes_is_not_compared(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files.joinpath("nodes.yaml").write_text("nodes: [{name: n, partition: gpu, resources: {vcore: 1}}]\n")
    (hint,) = found(capsys)
    assert hint.endswith("no node is in partition default: its queues were not compared with the cluster")


@pytest.mark.parametrize("name", ["cluster.machines", "nodes.csv"])
def test_other_formats_of_nodes_are_read(files: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {
        "cluster.machines": "1 big 1 101 1.0",
        "nodes.csv": "sn,cpu_milli,memory_mib,gpu,model\nbig,101000,1000000,4,\n",
    }
    files.joinpath(name).write_text(texts[name] + "\n")
    assert not any("vcore 101 in total" in line for line in found(capsys, name))


@pytest.mark.usefixtures("files")
def test_hints_never_fail(capsys: pytest.CaptureFixture[str]) -> None:
    Path("queues.yaml").write_text("partitions: [{queues: [{name: a, resources: {max: {vcore: 101}}}]}]\n")
    strict = ["--fail-on-warning", "--strict-yunikorn"]
    assert main(["validate", *strict, "--nodes", "nodes.yaml", "queues.yaml"]) == 0
    assert "hint: partitions[0].queues[0].resources.max.vcore" in capsys.readouterr().out
    main(["validate", "--format", "sarif", "--nodes", "nodes.yaml", "queues.yaml"])
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("hint", "note")


@pytest.mark.usefixtures("files")
def test_nodes_that_cannot_be_read_are_an_error_of_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    Path("nodes.yaml").write_text("nodes: [{name: n, resources: {vcore: x}}]\n")
    assert main(["validate", "--nodes", "nodes.yaml", "queues.yaml"]) == 2
    assert "nodes.yaml: nodes[0].resources.vcore (line 1, column 38)" in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_simulate_and_compare_say_the_same_as_notes(capsys: pytest.CaptureFixture[str]) -> None:
    Path("work.yaml").write_text(
        f"{NODES}applications:\n"
        "  - {id: app, queue: root.a, tasks: [{resources: {vcore: 1}, runtime: 1s}]}\n"
    )
    call = ["--config", "queues.yaml", "--workload", "work.yaml", "--json"]
    assert main(["simulate", *call]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "all nodes" in line or "gpu" in line]
    assert len(notes) == 5
    assert notes[1] == (
        "note: queues.yaml: partitions[0].queues[0].queues: the queues below root are guaranteed vcore 101"
        " in total, but all nodes together have vcore 100: lower their guarantees, or add nodes"
    )
    assert main(["compare", *call, "--set", "root.a.resources.guaranteed.vcore=59", "--jobs", "1"]) == 0
    compared = capsys.readouterr().err
    assert compared.count("note: queues") == 5
    assert compared.count("vcore 101 in total") == 1
