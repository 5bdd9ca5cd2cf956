"""`--out` of `simulate`, `compare` and `workload`: one writer at a time, and no files of others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from yunikorn.cli.main import main
from yunikorn.errors import UsageError
from yunikorn_lab.simulation.out_folder import CLAIM, OutFolder

CONFIG = 'partitions: [{name: default, queues: [{name: root, submitacl: "*", queues: [{name: default}]}]}]\n'
WORKLOAD = """
nodes: [{name: n, resources: {vcore: 1}}]
applications: [{id: a, queue: root.default, tasks: [{count: 3, resources: {vcore: 1}, runtime: 10}]}]
"""
SETTING = "partitions[0].queues[0].queues[0].properties.application.sort.policy=fair"

Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command in this process; return its exit status and standard error."""

    def run(command: str, *arguments: str) -> tuple[int, str]:
        inputs = tmp_path / "inputs"
        inputs.mkdir(exist_ok=True)
        (inputs / "queues.yaml").write_text(CONFIG, "utf-8")
        (inputs / "workload.yaml").write_text(WORKLOAD, "utf-8")
        files = ["--config", str(inputs / "queues.yaml"), "--workload", str(inputs / "workload.yaml")]
        if command == "compare":
            files += ["--set", SETTING, "--jobs", "1"]
        status = main([command, *(files if command != "workload" else ()), *arguments])
        err = capsys.readouterr().err
        assert "Traceback" not in err
        return status, err

    return run


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_second_run_in_the_same_folder_is_refused(call: Call, tmp_path: Path, command: str) -> None:
    folder = tmp_path / "out"
    with OutFolder(folder, command) as first:
        first.prepare()
        for force in ((), ("--force",)):
            status, err = call(command, "--out", str(folder), "--no-plots", *force)
            assert status == 2
            assert f"{folder}: another yunikorn writes there (process {os.getpid()}): wait until it" in err
        assert [path.name for path in folder.iterdir()] == [CLAIM]
    assert call(command, "--out", str(folder), "--no-plots")[0] == 0
    assert (folder / CLAIM).read_text("utf-8") == f"{command}\n"


def test_the_lock_of_a_killed_process_is_released(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from yunikorn_lab.simulation.out_folder import OutFolder\n"
        "OutFolder(Path(sys.argv[1])).prepare()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    folder = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", script, str(folder)], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert "process" in (folder / CLAIM).read_text("utf-8")
    with OutFolder(folder) as mine:
        mine.prepare()


def test_a_folder_without_locks_needs_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("yunikorn_lab.simulation.out_folder.lock", refuse)
    with pytest.raises(UsageError, match=r"cannot lock files \(Operation not supported\): choose a folder"):
        OutFolder(tmp_path).prepare()
    with OutFolder(tmp_path, force=True) as folder:
        folder.prepare()


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_folder_with_files_of_others_needs_force(call: Call, tmp_path: Path, command: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in "abcde":
        (folder / name).write_text("mine", "utf-8")
    status, err = call(command, "--out", str(folder), "--no-plots")
    assert status == 2
    assert f"{folder}: is not a folder of results, it has a, b, c and 2 more: choose another folder" in err
    assert len(list(folder.iterdir())) == 5
    assert call(command, "--out", str(folder), "--no-plots", "--force")[0] == 0
    assert call(command, "--out", str(folder), "--no-plots")[0] == 0
    assert (folder / "a").read_text("utf-8") == "mine"


def test_files_of_an_earlier_run_without_a_claim_are_ours(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for name in ("report.json", "decisions.jsonl.part", "nodes.jsonl", ".DS_Store"):
        (folder / name).write_text("", "utf-8")
    assert call("simulate", "--out", str(folder), "--no-plots")[0] == 0


def test_results_of_two_commands_are_not_mixed(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert call("compare", "--out", str(folder), "--no-plots")[0] == 0
    status, err = call("simulate", "--out", str(folder), "--no-plots")
    assert status == 2
    assert f"{folder}: has the results of `yunikorn compare`" in err
    assert not (folder / "report.json").exists()


@pytest.mark.parametrize("command", ["simulate", "compare", "workload"])
@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_refused(call: Call, command: str, name: str) -> None:
    status, err = call(command, "--out", name)
    assert status == 2
    assert "Invalid value for '--out': the name is empty: give a" in err


@pytest.mark.parametrize("command", ["simulate", "compare", "workload"])
def test_force_without_out_is_refused(call: Call, command: str) -> None:
    status, err = call(command, "--force")
    assert status == 2
    assert "--force applies to the file" in err


def test_a_workload_replaces_its_own_file_only(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    draw = ("workload", "--applications", "3", "--out", str(path), "--seed")
    assert call(*draw, "1")[0] == 0
    first = path.read_text("utf-8")
    assert call(*draw, "2")[0] == 0
    assert path.read_text("utf-8") != first
    path.write_text(first.replace("vcore", "cores"), "utf-8")
    status, err = call(*draw, "3")
    assert status == 2
    assert f"{path}: exists, and is not as this command has written it: choose another name for --out" in err
    assert "cores" in path.read_text("utf-8")
    assert call(*draw, "1", "--force")[0] == 0
    assert path.read_text("utf-8") == first
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["workload.yaml"]


def test_a_description_that_is_written_again_has_one_checksum(call: Call, tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    assert call("workload", "--applications", "3", "--short", "--out", str(one))[0] == 0
    assert call("workload", str(one), "--short", "--out", str(two))[0] == 0
    assert one.read_bytes() == two.read_bytes()
