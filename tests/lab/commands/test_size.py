"""`yunikorn size` on the command line: the smallest cluster, targets that no size meets, and bad targets."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yunikorn.cli.main import main
from yunikorn_lab.reporting import full_report, runs
from yunikorn_lab.simulation.out_folder import CLAIM, OutFolder

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

    def run(
        *targets: str, options: tuple[str, ...] = (), config: str = CONFIG, workload: str = WORKLOAD
    ) -> Any:
        (tmp_path / "queues.yaml").write_text(config, "utf-8")
        (tmp_path / "workload.yaml").write_text(workload, "utf-8")
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

    monkeypatch.setattr(runs, "study", study)
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


# -- seeds and folders -------------------------------------------------------------------------------------

DRAWN = """
nodes: [{name: n, count: 2, resources: {vcore: 1}}]
generate:
  - {id: g, count: 15, arrivals: {process: poisson, every: 20}, queue: root.web,
     tasks: [{resources: {vcore: 1}, runtime: {distribution: exponential, mean: 30}}]}
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_size_meets_a_target_if_every_seed_does(call: Call) -> None:
    options = ("--to", "4", "--neighbours", "9", "--json")
    seeds = [1, 2, 3]
    alone = {}
    for seed in seeds:
        out = call("wait.mean < 10s", options=(*options, "--seed", str(seed)), workload=DRAWN)[1]
        alone[seed] = {one["nodes"]: one["targets"][0] for one in json.loads(out)["sizes"]}
    status, out, err = call(
        "wait.mean < 10s", options=(*options, "--seeds", "1-3", "--jobs", "1"), workload=DRAWN
    )
    found = json.loads(out)
    assert (status, found["seeds"]) == (0, seeds)
    several = 0
    for size in found["sizes"]:
        mine = [alone[seed][size["nodes"]] for seed in seeds]
        assert [one["targets"][0] for one in size["seeds"]] == mine
        assert size["targets"][0]["value"] == max(one["value"] for one in mine)
        assert size["met"] == all(one["met"] for one in mine)
        several += 0 < sum(one["met"] for one in mine) < 3
        assert f"met by {sum(one['met'] for one in mine)} of 3 seeds" in err
    assert several, "no size is met by some of the seeds only"


def test_seeds_in_workers_write_identical_files(call: Call, tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        options = ("--seeds", "4,5", "--to", "3", "--out", str(tmp_path / jobs), "--jobs", jobs)
        assert call("wait.mean < 1h", options=options, workload=DRAWN)[0] == 0
    files = {
        path.relative_to(tmp_path / "1"): path.read_bytes()
        for path in (tmp_path / "1").rglob("*")
        if path.is_file()
    }
    assert {Path("size.json"), Path("size.csv"), Path("nodes-1/seed-4/report.json")} < set(files)
    for path, content in files.items():
        assert (tmp_path / "2" / path).read_bytes() == content


def test_a_folder_has_the_result_and_the_report_of_each_size(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    status, out, _ = call("root.web.wait.max <= 4m", options=("--json", "--out", str(folder)))
    assert status == 0
    assert (folder / "size.json").read_text("utf-8") == out
    found = json.loads(out)
    assert names(folder) == [CLAIM, *(f"nodes-{n}" for n in (1, 2, 3, 4, 5)), "size.csv", "size.json"]
    assert found["provenance"]["options"]["--target"] == "root.web.wait.max <= 4m"
    rows = (folder / "size.csv").read_text("utf-8").splitlines()
    assert rows[:2] == ["nodes,seed,target,value,met", "1,,root.web.wait.max <= 4m,660,0"]
    report = json.loads((folder / "nodes-3" / "report.json").read_text("utf-8"))
    assert report["nodes"] == 3
    assert report["provenance"]["options"]["--nodes-fraction"] == "3/4"
    assert "--target" not in report["provenance"]["options"]


def test_finished_sizes_are_taken_over_also_for_another_target(call: Call, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"), "--json")
    first = call("wait.max <= 4m", options=out)
    status, again, err = call("wait.max <= 4m", options=out)
    assert (status, again) == first[:2]
    assert "note: 5 finished runs with the same input were taken over" in err
    err = call("wait.max <= 3m", options=out)[2]
    assert "note: 5 finished runs with the same input were taken over" in err
    err = call("wait.max <= 4m", options=(*out, "--preempted", "fail"))[2]
    assert "taken over" not in err
    err = call("wait.max <= 5h", options=(*out, "--from", "3"))[2]
    assert f"note: {tmp_path / 'out'}: nodes-1, nodes-2 are from an earlier search" in err


def test_an_interrupted_search_continues_in_its_folder(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, folder = full_report.study, tmp_path / "out"
    tested: list[int] = []

    def study(*arguments: Any, **options: Any) -> Any:
        tested.append(len(arguments[1].nodes))
        if tested[-1] == 12:
            signal.raise_signal(signal.SIGTERM)
        return run(*arguments, **options)

    monkeypatch.setattr(runs, "study", study)
    status, out, err = call("wait.max < 1m", options=("--json", "--out", str(folder)))
    assert status == 143
    found = json.loads(out)
    assert (found["outcome"], [one["nodes"] for one in found["sizes"]]) == ("interrupted", [4, 8, 16])
    assert (folder / "size.json").read_text("utf-8") == out
    assert f"note: the result has the sizes that were tested; the same call continues in {folder}" in err
    monkeypatch.setattr(runs, "study", run)
    status, out, err = call("wait.max < 1m", options=("--json", "--out", str(folder)))
    assert (status, json.loads(out)["outcome"], json.loads(out)["smallest"]) == (0, "found", 12)
    assert "note: 3 finished runs with the same input were taken over" in err


def test_folders_are_claimed_as_by_other_commands(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with OutFolder(folder, "size") as other:
        other.prepare()
        status, out, err = call("unplaced == 0", options=("--out", str(folder)))
        assert (status, out) == (2, "")
        assert f"{folder}: another yunikorn writes there" in err
    (folder / CLAIM).write_text("compare\n", "utf-8")
    assert "has the results of `yunikorn compare`" in call("unplaced == 0", options=("--out", str(folder)))[2]
    assert call("unplaced == 0", options=("--out", str(folder), "--force"))[0] == 0
    assert "--force applies to the files of --out" in call("unplaced == 0", options=("--force",))[2]
    assert "the name is empty" in call("unplaced == 0", options=("--out", ""))[2]


def test_sizes_are_compared_as_finished_runs(
    call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert call("wait.max <= 4m", options=("--out", str(folder), "--nodes-fraction", "0.5"))[0] == 0
    assert main(["compare", str(folder / "nodes-2"), str(folder / "nodes-3")]) == 0
    out, err = capsys.readouterr()
    assert "while nodes-3 places" in out
    assert err == ""
    assert main(["compare", str(folder), str(folder / "nodes-3")]) == 2
    assert (
        f"is the folder of a whole search; name its runs, such as {folder / 'nodes-1'}"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("options", [(), ("--jobs", "2")])
def test_problems_of_the_configuration_come_first_and_name_the_file(
    call: Call, tmp_path: Path, options: tuple[str, ...]
) -> None:
    status, out, err = call("wait.max < 1h", config="partitions: [[[}\n", options=options)
    assert (status, out) == (2, "")
    assert err.startswith(f"Error: {tmp_path / 'queues.yaml'}: line 1, column 16: ")
    assert err.count("\n") == 1, err
