"""`yunikorn compare` on the command line: variants, differences, files, and errors before any run."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from tests.lab.commands.comparison_kit import WORKLOAD
from yunikorn.cli.main import main
from yunikorn.errors import UsageError
from yunikorn_lab.commands import compare, run_options
from yunikorn_lab.commands.workload import WorkloadSource
from yunikorn_lab.reporting import runs
from yunikorn_lab.reporting import workers as runs_workers
from yunikorn_lab.simulation.out_folder import CLAIM

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: a, properties: {application.sort.policy: fifo}, resources: {guaranteed: {vcore: 1}}}
          - {name: b, resources: {max: {vcore: 2}}}
"""
GUIDE = Path(__file__).parents[3] / "docs" / "comparing.md"
POLICY = "partitions[0].queues[0].queues[0].properties.application.sort.policy"
LIMIT = "partitions[0].queues[0].queues[1].resources.max.vcore"

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `yunikorn compare` in this process; return exit status, standard output, standard error."""

    def run(*arguments: str, config: str = CONFIG, workload: str = WORKLOAD, jobs: int = 1) -> Any:
        (tmp_path / "queues.yaml").write_text(config, "utf-8")
        (tmp_path / "workload.yaml").write_text(workload, "utf-8")
        files = ["--config", str(tmp_path / "queues.yaml"), "--workload", str(tmp_path / "workload.yaml")]
        status = main(["compare", *files, "--jobs", str(jobs), *arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    return run


def rows(found: Any) -> dict[tuple[str, str], Any]:
    """Return the rows of a comparison in JSON by section and name."""
    return {(row["section"], row["name"]): row for row in found["rows"]}


def test_setting_is_compared_with_the_unchanged_configuration(call: Call) -> None:
    status, out, err = call("--set", f"{POLICY}=fair", "--json")
    assert status == 0
    assert [line.partition(" ")[0] for line in err.splitlines()] == ["note:", "warning:"]
    found = json.loads(out)
    assert found["variants"] == ["baseline", "fair"]
    assert found["seeds"] == []
    table = rows(found)
    # Under fifo a short job waits for all tasks of the long one that came before it.
    first, fair = table["applications", "wait, first task, mean"]["values"]
    assert first > 2 * fair
    assert table["applications", "wait, first task, mean"]["differs"] == [False, True]
    assert table["totals", "applications finished"] == {
        "section": "totals",
        "name": "applications finished",
        "values": [4, 4],
        "halves": [None, None],
        "differs": [False, False],
    }
    assert [len(reports) for reports in found["reports"]] == [1, 1]
    assert found["reports"][1][0]["figures"]["queues"][0]["name"] == "root.a"


def test_wait_targets_have_a_row_each_that_is_marked_like_others(call: Call) -> None:
    arguments = ("--set", f"{POLICY}=fifo,fair", "--slo", "root=0", "--slo", "root.a=3m", "--json")
    status, out, _ = call(*arguments)
    found = rows(json.loads(out))
    names = ("root within 0s", "root.a within 3m")
    never, some = (found["met wait targets", name] for name in names)
    assert status == 0
    assert (never["values"], never["differs"]) == ([0, 0], [False, False])
    assert (some["values"], some["differs"]) == ([0.0, 0.75], [False, True])
    status, _, err = call("--set", f"{POLICY}=fair", "--slo", "root.nowhere=5m")
    assert (status, "--slo root.nowhere=5m: unknown queue 'root.nowhere'" in err) == (2, True)


def test_divergence_is_described_with_its_reason(call: Call) -> None:
    _, out, _ = call("--set", f"{POLICY}=fifo,fair,stateaware", "--json")
    found = json.loads(out)
    assert found["variants"] == ["fifo", "fair", "stateaware"]
    fair, stateaware = found["divergences"]
    assert fair["time"] == 60
    # At 60 both places are free again: the long job has no allocation and comes first; here the two runs
    # diverge.
    assert fair["equal"] == 3
    # One task of the long job has just been placed again, on one of two cores.
    assert fair["sentence"] == (
        "At 1m, after 3 equal decisions, fifo places t of long (root.a) on n-2, while fair places t of "
        "short-1 (root.a) on n-2; fair: short-1 has share 0, long 1."
    )
    assert stateaware["variant"] == "stateaware"


TWO_JOBS = """
nodes: [{name: n, resources: {vcore: 1}}]
applications:
  - {id: run, queue: root.a, tasks: [{name: t, resources: {vcore: 1}, runtime: 60}]}
  - {id: x, submit: 10, queue: root.a, tasks: [{name: t, priority: 1, resources: {vcore: 1}, runtime: 60}]}
  - {id: y, submit: 20, queue: root.a, tasks: [{name: t, priority: 5, resources: {vcore: 1}, runtime: 60}]}
"""


def test_a_divergence_of_priorities_names_them(call: Call) -> None:
    setting = "root.a.properties.application.sort.priority=disabled,enabled"
    found = json.loads(call("--set", setting, "--json", workload=TWO_JOBS)[1])["divergences"][0]
    assert found["sentence"].endswith("; fifo: y has priority 5, x 1.")


def test_a_divergence_of_submissions_names_them(call: Call) -> None:
    setting = "root.a.properties.application.sort.priority=enabled,disabled"
    found = json.loads(call("--set", setting, "--json", workload=TWO_JOBS)[1])["divergences"][0]
    assert found["sentence"].endswith("; fifo: x has submission at 10s, y 20s.")


def test_a_divergence_between_queues_names_their_shares(call: Call) -> None:
    workload = """
nodes: [{name: n, count: 4, resources: {vcore: 1}}]
applications:
  - {id: x, queue: root.a, tasks: [{name: t, count: 5, resources: {vcore: 1}, runtime: 60}]}
  - {id: y, queue: root.c, tasks: [{name: t, count: 5, resources: {vcore: 1}, runtime: 60}]}
"""
    config = CONFIG + "          - {name: c, resources: {guaranteed: {vcore: 1}}}\n"
    setting = "root.c.resources.guaranteed.vcore=1,4"
    out = call("--set", setting, "--json", workload=workload, config=config)[1]
    sentence = json.loads(out)["divergences"][0]["sentence"]
    assert "; fair: root.c has share 0.25, root.a 1." in sentence


def test_an_application_that_is_stopped_says_so_at_the_decision(call: Call) -> None:
    workload = """
nodes: [{name: n, count: 2, resources: {vcore: 1}}]
applications:
  - {id: x, queue: root.b, tasks: [{name: t, count: 2, resources: {vcore: 1}, runtime: 60}]}
  - {id: y, submit: 1, queue: root.b, tasks: [{name: t, resources: {vcore: 1}, runtime: 60}]}
  - {id: z, submit: 1, queue: root.a, tasks: [{name: t, resources: {vcore: 1}, runtime: 60}]}
"""
    found = json.loads(call("--set", f"{LIMIT}=2,1", "--json", workload=workload)[1])["divergences"][0]
    assert "quota of queue root.b" in found["sentence"]


def test_an_earlier_decision_of_a_variant_is_explained_by_the_first_one(call: Call) -> None:
    queues = "queues: [{name: a, resources: {max: {vcore: 1}}}, {name: b}]"
    config = f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*', {queues}}}]}}]\n"
    task = "tasks: [{resources: {vcore: 1}, runtime: 10}]"
    workload = (
        "nodes: [{name: n, resources: {vcore: 4}}]\napplications:\n"
        f"  - {{id: one, queue: root.a, {task}}}\n  - {{id: two, queue: root.a, submit: 1, {task}}}\n"
        f"  - {{id: three, queue: root.b, submit: 5, {task}}}\n"
    )
    setting = "root.a.resources.max.vcore=1,2"
    status, out, _ = call("--set", setting, config=config, workload=workload)
    assert status == 0
    assert (
        "At 1s, after 1 equal decision, max.vcore=1 makes no decision until 5s, when it places task-1 of "
        "three (root.b) on n, while max.vcore=2 places task-1 of two (root.a) on n; under max.vcore=1 two is "
        "stopped by: over the quota of queue root.a"
    ) in " ".join(out.split())


def test_table_marks_significant_differences(call: Call) -> None:
    _, out, _ = call("--set", f"{POLICY}=fifo,fair", "--all-figures")
    lines = {line.split("  ")[1].strip(): line for line in out.splitlines() if line.startswith("   ")}
    assert "2 variants of workload.yaml" in out
    assert "▼" in lines["wait, first task, mean"]
    assert "▼" not in lines["applications finished"]
    assert "▲" not in lines["applications finished"]
    assert "larger or smaller than under fifo" in out


def test_variants_are_all_combinations_of_configurations_and_settings(call: Call, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(CONFIG.replace("max: {vcore: 2}", "max: {vcore: 5}"), "utf-8")
    arguments = ("--config", str(other), "--set", f"{POLICY}=fifo,fair", "--set", f"{LIMIT}=1,2", "--json")
    _, out, _ = call(*arguments)
    assert json.loads(out)["variants"] == [
        f"{config} {policy} max.vcore={limit}"
        for config in ("queues", "other")
        for policy in ("fifo", "fair")
        for limit in (1, 2)
    ]


def test_comparison_writes_its_files(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    status, out, _ = call("--set", f"{POLICY}=fifo,fair", "--out", str(folder), "--json")
    assert status == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        CLAIM,
        "1-fifo",
        "2-fair",
        "compare-queues.png",
        "compare-shares.png",
        "compare-time.png",
        "compare-waits.png",
        "compare.csv",
        "compare.html",
        "compare.json",
    ]
    names = [
        CLAIM,
        "applications.csv",
        "decisions.log.z",
        "idle.csv",
        "inputs.json",
        "queues.csv",
        "report.json",
        "results.json.gz",
        "users.csv",
        "utilisation.csv",
    ]
    assert sorted(path.name for path in (folder / "2-fair").iterdir()) == names
    assert (folder / "compare.json").read_text("utf-8") == out
    with (folder / "compare.csv").open(encoding="utf-8", newline="") as file:
        (found,) = [
            row
            for row in csv.DictReader(file)
            if (row["figure"], row["variant"]) == ("wait of tasks, mean", "fair")
        ]
    (row,) = [row for row in json.loads(out)["rows"] if row["name"] == "wait of tasks, mean"]
    assert (float(found["value"]), found["differs"]) == (row["values"][1], "1")
    page = (folder / "compare.html").read_text("utf-8")
    assert page.count("<figure>") == page.count("<svg ") == 4
    assert "after 3 equal decisions" in page
    assert "http" not in page


def test_folders_of_an_earlier_comparison_are_reported_and_kept(call: Call, tmp_path: Path) -> None:
    options = ("--no-plots", "--out", str(tmp_path / "out"))
    assert "earlier" not in call("--set", f"{POLICY}=fifo,fair,stateaware", *options)[2]
    status, _, err = call("--set", f"{POLICY}=stateaware,fifo", *options)
    assert status == 0
    assert f"note: {tmp_path / 'out'}: 1-fifo, 2-fair, 3-stateaware are from an earlier comparison" in err
    assert (tmp_path / "out" / "3-stateaware" / "report.json").is_file()


def test_worker_processes_write_identical_files(call: Call, tmp_path: Path) -> None:
    arguments = ("--set", f"{POLICY}=fifo,fair", "--json", "--no-plots", "--out")
    alone = call(*arguments, str(tmp_path / "one"), jobs=1)
    together = call(*arguments, str(tmp_path / "two"), jobs=2)
    assert alone == together
    for path in (tmp_path / "one").rglob("*.*"):
        if path.is_file():
            other = tmp_path / "two" / path.relative_to(tmp_path / "one")
            assert path.read_bytes() == other.read_bytes(), path


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ((), "there is nothing to compare: give two configurations (--config A --config B) or a setting"),
        (("--set", "partitons[0].name=x"), "did you mean 'partitions'?"),
        (("--set", f"{LIMIT}=1,many"), f"--set {LIMIT}=many: {LIMIT}: expected a whole number"),
        (("--set", f"{POLICY}=fare"), "did you mean 'fair'?"),
        (("--set", "nonsense"), "expected PATH=VALUE"),
        (("--no-plots",), "--no-plots applies to the files of --out"),
        (("--set", f"{POLICY}=fair", "--seeds", "1-"), "expected whole numbers such as 1,2,7"),
        (("--set", f"{POLICY}=fair", "--seeds", "5-3"), "expected whole numbers"),
        (("--set", f"{POLICY}=fair", "--seeds", "1-3"), "a seed has no effect"),
        (("--set", f"{POLICY}=fair", "--out", "/dev/null/x"), "cannot write to /dev/null/x"),
        (("--set", f"{LIMIT}={','.join(map(str, range(1, 70)))}"), "69 variants are too many"),
    ],
)
def test_invalid_calls_fail_with_one_message_before_any_run(
    call: Call, arguments: tuple[str, ...], reported: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "compare", lambda *_, **__: pytest.fail("it ran"))
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert reported in err


def test_all_invalid_settings_are_reported_together(call: Call) -> None:
    _, _, err = call("--set", f"{LIMIT}=1,many,-5", "--set", f"{POLICY}=fifo,fare")
    assert f"{LIMIT}=many" in err
    assert f"{LIMIT}=-5" in err
    assert "fare" in err


def test_each_invalid_path_and_value_is_reported_once_across_combinations(call: Call) -> None:
    nowhere = POLICY.replace("queues[0].prop", "queues[7].prop")
    found = call("--set", f"{nowhere}=fifo,fair", "--set", "foo=3", "--set", f"{LIMIT}=-5,many")
    assert found[:2] == (2, "")
    lines = found[2].removeprefix("Error: ").splitlines()
    expected = [nowhere, "foo=3", f"{LIMIT}=-5", f"{LIMIT}=many"]
    assert sorted(line.split(": ")[0] for line in lines) == sorted(f"--set {one}" for one in expected)


def test_errors_of_settings_configurations_and_workload_are_reported_together(
    call: Call, tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing.yaml")
    config = CONFIG.replace("submitacl", "submitcal")
    status, out, err = call("--config", missing, "--set", "nonsense", config=config, workload="[]")
    assert (status, out) == (2, "")
    for reported in (
        "missing.yaml: cannot be read",
        "did you mean 'submitacl'?",
        "--set nonsense",
        "workload.yaml: ",
    ):
        assert reported in err, reported


def test_invalid_configuration_is_not_reported_as_invalid_setting(call: Call, tmp_path: Path) -> None:
    status, _, err = call("--set", f"{POLICY}=fair", config=CONFIG.replace("submitacl", "submitcal"))
    assert status == 2
    assert "queues.yaml: partitions[0].queues[0].submitcal (line " in err
    assert "did you mean 'submitacl'?" in err
    assert "--set" not in err


def test_real_trace_is_compared_under_three_policies(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "queues.yaml"
    config.write_text(CONFIG.replace("max: {vcore: 2}", "max: {vcore: 200}"), "utf-8")
    arguments = ["--workload", str(traces / "swf" / "hpc2n.swf"), "--swf-queue", "root.a", "--until", "192h"]
    policies = f"{POLICY}=fifo,fair,stateaware"
    options = ["--jobs", "1", "--json"]
    assert main(["compare", "--config", str(config), "--set", policies, *arguments, *options]) == 0
    found = json.loads(capsys.readouterr().out)
    fair, stateaware = found["divergences"]
    # Waiting rigid jobs all have no allocations, so fair is fifo.
    assert fair["time"] is None
    assert stateaware["time"] is not None
    values = rows(found)["applications", "bounded slowdown, mean"]["values"]
    assert values[0] == values[1] < values[2]


def test_comparison_of_the_guide_differs_as_documented(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its first ten days: three queues with guarantees, and a limit that one user meets."""
    block = re.search(r"^`teams.yaml`\n\n```yaml\n(.*?)^```$", GUIDE.read_text("utf-8"), re.M | re.S)
    assert block is not None
    (tmp_path / "teams.yaml").write_text(block[1], "utf-8")
    arguments = ["--config", str(tmp_path / "teams.yaml"), "--workload", str(traces / "swf" / "hpc2n.swf")]
    policies = "partitions[0].queues[0].properties.application.sort.policy=fifo,fair,stateaware"
    options = ["--swf-queue", "", "--swf-jobs", "tasks", "--until", "240h"]
    options += ["--jobs", "1", "--no-plots", "--json"]
    out = tmp_path / "out"
    assert main(["compare", *arguments, "--set", policies, *options, "--out", str(out)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [divergence_report["time"] for divergence_report in found["divergences"]] == [385_378, 511_863]
    assert "; fair: job-68 has share 0, job-67 0.275." in found["divergences"][0]["sentence"]
    assert "other applications of queue root.others have precedence" in found["divergences"][1]["sentence"]
    slowdowns = {}
    for variant in ("1-fifo", "2-fair", "3-stateaware"):
        users = json.loads((out / variant / "report.json").read_text("utf-8"))["figures"]["users"]
        slowdowns[variant] = {user["name"]: user["slowdown"]["mean"] for user in users if user["slowdown"]}
    fifo, fair, stateaware = slowdowns.values()
    # `fair` starts everything early; under `stateaware` an application blocked by a limit blocks others of
    # its queue.
    assert fair["user1"] < fifo["user1"] / 2
    assert stateaware["user22"] > fifo["user22"] * 2
    assert stateaware["user1"] < fifo["user1"] * 1.2


def test_killed_worker_is_reported_with_a_suggestion(tmp_path: Path) -> None:
    expected = pytest.raises(UsageError, match=f"use --jobs 1; the same call takes over .* in {tmp_path}")
    with expected, run_options.working(runs_workers.WorkerPool(2), tmp_path):
        raise BrokenProcessPool


def test_an_error_ends_the_workers() -> None:
    futures = []

    def fail() -> None:
        with runs_workers.WorkerPool(2) as pool:
            futures.append(pool.submit(signal.pause))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert isinstance(futures[0].exception(), BrokenProcessPool)


def test_workers_that_start_after_a_signal_end_at_once() -> None:
    with runs_workers.WorkerPool(2) as pool:
        pool.stop()
        with pytest.raises(BrokenProcessPool):
            pool.submit(signal.pause).result()


def test_workers_end_with_the_process_that_was_killed() -> None:
    script = (
        "import os, signal\n"
        "from yunikorn_lab.reporting.workers import WorkerPool\n"
        "with WorkerPool(2) as executor:\n"
        "    executor.submit(os.getpid).result()\n"
        "    executor.submit(signal.pause)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        # The workers have the pipe open, too: it ends when the last of them does.
        assert process.communicate(timeout=120)[0] == b""
    assert process.returncode == -signal.SIGKILL


def test_interrupted_run_leaves_partial_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "workload.yaml").write_text(WORKLOAD, "utf-8")

    monkeypatch.setattr(runs, "_watch", lambda progress: False)
    folder = tmp_path / "out"
    source = WorkloadSource(workload=tmp_path / "workload.yaml")
    played = runs.play(runs.Order("fifo", CONFIG, source, folder=folder))
    assert (played.result, played.error) == (None, "interrupted")
    assert all(path.suffix == ".part" for path in folder.iterdir() if path.name != CLAIM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_comparison_with_the_finished_runs(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    play = runs._play

    def interrupted(order: runs.Order, *more: Any) -> Any:
        if order.name == "stateaware":
            signal.raise_signal(number)
        return play(order, *more)

    monkeypatch.setattr(runs, "_play", interrupted)
    folder = tmp_path / "out"
    status, out, err = call("--set", f"{POLICY}=fifo,fair,stateaware", "--out", str(folder))
    assert status == 128 + number
    assert "2 variants of workload.yaml" in out
    assert "wait, first task, mean" in out
    assert (
        "note: 1 run was not finished, and the results have only the others; the same call continues" in err
    )
    incomplete = json.loads((folder / "compare.json").read_text("utf-8"))
    assert (incomplete["unfinished"], incomplete["variants"]) == (1, ["fifo", "fair"])
    assert "(incomplete: 1 run was not finished)" in " ".join(out.split())
    assert "(incomplete: 1 run was not finished)" in (folder / "compare.html").read_text("utf-8")
    assert (folder / "2-fair" / "report.json").is_file()


def test_a_second_signal_ends_a_comparison_at_once(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(runs, "_play", interrupted)
    status, out, _ = call("--set", f"{POLICY}=fifo,fair", "--out", str(tmp_path / "out"))
    assert (status, out) == (143, "")


def test_a_signal_before_the_first_run_has_ended_leaves_no_table(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = runs._play

    def interrupted(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return play(*arguments)

    monkeypatch.setattr(runs, "_play", interrupted)
    status, out, err = call("--set", f"{POLICY}=fifo,fair")
    assert (status, out) == (143, "")
    assert "interrupted before the end of the first run" in err


def test_table_says_how_many_marks_chance_would_give(call: Call) -> None:
    workload = """
nodes: [{name: n, count: 4, resources: {vcore: 1}}]
generate:
  - id: batch
    count: 20
    arrivals: {process: poisson, every: 20s}
    queue: root.a
    tasks: [{resources: {vcore: 1}, runtime: {distribution: exponential, mean: 60s}}]
"""
    out = call("--set", f"{POLICY}=fifo,fair", "--seeds", "1-3", workload=workload)[1]
    out = " ".join(out.split())
    found = re.search(
        r"(\d+) of (\d+) compared figures are marked; chance alone would mark about ([0-9.]+)", out
    )
    assert found is not None
    assert float(found[3]) == pytest.approx(int(found[2]) * 0.05, abs=0.051)
    assert out.count("▲") + out.count("▼") >= int(found[1])
    assert "chance" not in call("--set", f"{POLICY}=fifo,fair")[1]


TRACE = "; MaxProcs: 2\n" + "".join(
    f"{number} {number * 40000} -1 {3600 * (1 + number % 7)} 1 -1 -1 -1 -1 -1 1 {number % 3} 1 1 1 1 -1 -1\n"
    for number in range(1, 80)
)


def test_seeds_resample_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queues.yaml").write_text(CONFIG, "utf-8")
    (tmp_path / "trace.swf").write_text(TRACE, "utf-8")
    files = [
        "--config",
        str(tmp_path / "queues.yaml"),
        "--workload",
        str(tmp_path / "trace.swf"),
        "--swf-queue",
        "root.a",
    ]
    seeds = ["--set", f"{POLICY}=fifo,fair", "--jobs", "1", "--json", "--seeds", "1-3"]
    assert main(["compare", *files, *seeds]) == 0
    out, err = capsys.readouterr()
    assert "note: a bootstrap of 6 weeks with seed 1" in err
    reports = json.loads(out)["reports"]
    assert len({report["applications"]["submitted"] for report in reports[0]}) > 1
    assert [one["provenance"]["seed"] for one in reports[1]] == [1, 2, 3]
    # The blocks that were chosen are part of the provenance.
    assert {one["provenance"]["options"]["--resample"] for one in reports[0]} == {"weeks"}
    # One of the runs by itself.
    assert main(["simulate", *files, "--json", "--resample", "weeks", "--seed", "3"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert alone["applications"] == reports[0][2]["applications"]
    assert alone["task_wait"] == reports[0][2]["task_wait"]


def test_draws_that_contradict_each_other_are_refused(call: Call) -> None:
    setting = ("--set", f"{POLICY}=fifo,fair")
    assert "--shuffle has one seed: leave it out" in call(*setting, "--seeds", "1-2", "--shuffle", "3")[2]
    assert "--resample draws with a seed" in call(*setting, "--resample", "days")[2]
    assert "exclude each other" in call(*setting, "--resample", "days", "--shuffle", "1", "--seed", "1")[2]
    assert "arrive at different times" in call(*setting, "--shuffle", "1")[2]
