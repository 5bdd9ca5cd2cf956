"""`yunikorn size` on the command line: the smallest cluster, targets that no size meets, and bad targets."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yunikorn.cli import size
from yunikorn.cli.main import main
from yunikorn.reporting import full_report

CONFIG = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: web}, {name: idle}]}]
"""
# Twelve tasks of a minute at one moment: on n nodes the last ones wait for (12 - 1) // n minutes.
WORKLOAD = """
nodes: [{name: n, count: 4, resources: {vcore: 1}}]
applications:
  - {id: a, count: 12, queue: root.web, tasks: [{resources: {vcore: 1}, runtime: 60}]}
"""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `yunikorn size` in this process; return exit status, standard output, standard error."""

    def run(*targets: str, options: tuple[str, ...] = (), config: str = CONFIG) -> Any:
        (tmp_path / "queues.yaml").write_text(config, "utf-8")
        (tmp_path / "workload.yaml").write_text(WORKLOAD, "utf-8")
        files = ["--config", str(tmp_path / "queues.yaml"), "--workload", str(tmp_path / "workload.yaml")]
        asked = [part for target in targets for part in ("--target", target)]
        status = main(["size", *files, *asked, *options])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_smallest_cluster_below_that_of_the_workload(call: Call) -> None:
    status, out, err = call("root.web.wait.max <= 4m")
    assert status == 0
    assert "The smallest tested cluster that meets the targets has 3 nodes." in out
    assert "2 nodes: not met (root.web.wait.max <= 4m: 5m)" in err


def test_smallest_cluster_above_that_of_the_workload_as_json(call: Call) -> None:
    status, out, _ = call("wait.max < 1m", "unplaced == 0", options=("--json",))
    found = json.loads(out)
    assert (status, found["outcome"], found["smallest"], found["nodes"]) == (0, "found", 12, 4)
    assert [one["nodes"] for one in found["sizes"]] == [4, 8, 10, 11, 12, 13, 14, 16]
    assert found["sizes"][0]["targets"][0] == {
        "target": "wait.max < 1m",
        "value": 120.0,
        "met": False,
        "reason": "",
    }


def test_target_that_no_size_meets(call: Call) -> None:
    status, out, _ = call("root.idle.wait.max < 1m", options=("--to", "9"))
    assert status == 1
    assert "No tested size up to 9 nodes meets the targets." in out
    assert "no application was in root.idle" in out


def test_bounds_of_the_search(call: Call) -> None:
    status, out, _ = call("unplaced == 0", options=("--from", "2", "--json"))
    assert (status, json.loads(out)["smallest"]) == (0, 2)
    status, _, err = call("unplaced == 0", options=("--from", "5", "--to", "4"))
    assert (status, "--from 5 is larger than --to 4" in err) == (2, True)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "root.wbe.wait.max < 1m",
            "--target 'root.wbe.wait.max < 1m': unknown queue 'root.wbe', did you mean 'root.web'?",
        ),
        ("wait.p99 < 1m", "--target 'wait.p99 < 1m': unknown figure 'wait.p99'"),
    ],
)
def test_bad_target_ends_the_command_before_any_run(call: Call, target: str, message: str) -> None:
    status, out, err = call(target)
    assert (status, out) == (2, "")
    assert message in err
    assert "nodes: " not in err


def test_unknown_queue_is_an_error_also_where_rules_create_queues(call: Call) -> None:
    rules = CONFIG + "    placementrules: [{name: provided, create: true}]\n"
    status, _, err = call("root.wbe.wait.max < 1m", config=rules)
    assert status == 2
    assert "unknown queue 'root.wbe', did you mean 'root.web'?" in err


def test_interrupted_search_prints_the_sizes_tested_so_far(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = full_report.study

    def study(*arguments: Any, **options: Any) -> Any:
        if len(arguments[1].nodes) != 4:
            signal.raise_signal(signal.SIGINT)
        return run(*arguments, **options)

    monkeypatch.setattr(size, "study", study)
    status, out, err = call("wait.max < 1m")
    assert status == 130
    assert "No tested size meets the targets so far." in out
    assert "4 nodes: not met" in err


def test_notes_about_what_the_nodes_of_the_workload_cannot_meet(call: Call) -> None:
    config = CONFIG.replace("{name: idle}", "{name: idle, resources: {guaranteed: {vcore: 9}}}")
    status, out, err = call("unplaced == 0", options=("--json",), config=config)
    (note,) = [line for line in err.splitlines() if "queues.yaml" in line]
    assert note.startswith("note: ")
    assert "root.idle" in note
    assert (status, json.loads(out)["smallest"]) == (0, 1)
