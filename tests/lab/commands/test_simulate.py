"""`yunikorn simulate` on the command line: output, files, exit status, one clear message for bad input."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yunikorn.cli.main import main
from yunikorn.clock import SECOND
from yunikorn_lab.simulation.out_folder import FolderRecorder

QUICKSTART = Path(__file__).parents[3] / "examples" / "quickstart"
CONFIG = 'partitions: [{name: default, queues: [{name: root, submitacl: "*", queues: [{name: default}]}]}]\n'
NODES = "nodes: [{name: n, resources: {vcore: 1, memory: 1Gi}}]\n"
SCENARIO = NODES + (
    "applications: [{id: a, queue: root.default, tasks: [{count: 3, resources: {vcore: 1}, runtime: 10}]}]\n"
)
JOB = "{} {} -1 10 1 -1 -1 -1 -1 -1 1 7 3 5 1 2 -1 -1"

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `yunikorn simulate` on texts; return exit status, standard output, standard error."""

    def run(*arguments: str, config: str = CONFIG, **files: str) -> tuple[int, str, str]:
        names = {"workload": "workload.yaml", "trace": "trace.swf", "nodes": "nodes.yaml"}
        (tmp_path / "queues.yaml").write_text(config, "utf-8")
        command = ["simulate", "--config", str(tmp_path / "queues.yaml")]
        for key, text in files.items():
            (tmp_path / names[key]).write_text(text, "utf-8")
            command += ["--nodes" if key == "nodes" else "--workload", str(tmp_path / names[key])]
        status = main([*command, *arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    return run


def report_of(text: str) -> Any:
    """Return the report, parsed from JSON."""
    return json.loads(text)


def test_quickstart_shows_the_effect_of_policies(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--config", str(QUICKSTART / "queues.yaml"), "--workload", str(QUICKSTART / "workload.yaml")]
    assert main(["simulate", *files]) == 0
    out, err = capsys.readouterr()
    assert "26 submitted: 26 finished" in out
    assert "root.products" in out
    assert "decisions per second" in out
    assert "\x1b" not in out
    note, warning = err.splitlines()
    assert note == "note: offered load over 57m: memory 0.90, vcore 1.81"
    assert warning.startswith("warning: the offered load is above 1: vcore 1.81 in partition default")
    assert main(["simulate", *files, "--json"]) == 0
    products, research = report_of(capsys.readouterr().out)["queues"]
    assert (products["queue"], research["queue"]) == ("root.products", "root.research")
    assert products["application_wait"]["mean"] < research["application_wait"]["mean"] / 10
    assert abs(products["utilisation"]["vcore"] - research["utilisation"]["vcore"]) < 0.01


SHARED = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: batch}
          - {name: web, maxapplications: 1, resources: {guaranteed: {vcore: 2}}}
"""
CROWD = """
nodes: [{name: n, resources: {vcore: 4}}]
applications:
  - {id: batch, queue: root.batch, tasks: [{count: 4, resources: {vcore: 1}, runtime: 100, timeout: 90}]}
  - {id: web, queue: root.web, submit: 10, tasks: [{count: 2, resources: {vcore: 1}, runtime: 20}]}
  - {id: gang, queue: root.web, submit: 45, gang: Soft, tasks: [{resources: {vcore: 2}, runtime: 20}]}
"""


def test_tables_show_preemption_gangs_and_limits(call: Call) -> None:
    status, out, _ = call("--preempted", "fail", config=SHARED, workload=CROWD)
    assert status == 0
    lines = {" ".join(line.split()) for line in out.splitlines()}
    assert {
        "tasks 7 asked for: 5 ended (2 timed out), 2 failed, 0 running, 0 waiting",
        "preempted 2 tasks",
        "lost work 1m 20s of 2 tasks (preempted)",
        "gangs 1 submitted: 1 fully allocated, 0 waiting",
        "gangs (until fully allocated) 1 15s 15s 15s 15s",
        "applications blocked by limits 1 15s 15s 15s 15s",
        "requests blocked by limits 1 15s 15s 15s 15s",
        "no more applications may run: queue root.web 15s",
    } <= lines
    # Without the option the two start again at 60: the third application finds the node full until then.
    _, out, _ = call(config=SHARED, workload=CROWD)
    assert "7 asked for: 7 ended (4 timed out), 0 running, 0 waiting; 2 restarts" in out


def test_workload_can_be_held_compressed_and_run_on_fewer_nodes(call: Call) -> None:
    four = SCENARIO.replace("{name: n, ", "{name: n, count: 4, ")
    _, out, err = call("--hold", "--nodes-fraction", "1/2", "--speed-up", "10", workload=four)
    assert "3 asked for: 0 ended, 2 running, 1 waiting" in out
    assert err == "note: 2 of 4 nodes are used\n"
    for option, value in (("--speed-up", "fast"), ("--nodes-fraction", "1/0")):
        status, _, err = call(option, value, workload=four)
        assert status == 2
        assert f"expected a number such as 10 or 0.25, got '{value}'" in err


def test_json_equals_files_and_is_independent_of_the_machine(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    status, out, err = call("--json", "--no-plots", "--out", str(folder), workload=SCENARIO)
    assert status == 0
    assert (folder / "report.json").read_text("utf-8") == out
    assert "decisions per second" in err
    assert "second" not in json.dumps(list(report_of(out)))
    decisions = [json.loads(line) for line in (folder / "decisions.jsonl").read_text("utf-8").splitlines()]
    assert [(line["time"], line["event"]) for line in decisions] == [
        (0, "allocation"),
        (10, "release"),
        (10, "allocation"),
        (20, "release"),
        (20, "allocation"),
        (30, "release"),
    ]
    first = decisions[0]
    assert {key: first[key] for key in ("application", "ask", "queue", "node", "partition", "resources")} == {
        "application": "a",
        "ask": "task-1",
        "queue": "root.default",
        "node": "n",
        "partition": "default",
        "resources": {"vcore": 1000},
    }
    assert json.loads((folder / "applications.jsonl").read_text("utf-8")) == {
        "application": "a",
        "user": "nobody",
        "queue": "root.default",
        "submitted": 0.0,
        "started": 0.0,
        "ended": 30.0,
        "outcome": "finished",
        "reason": "",
        "tasks": 3,
        "restarts": 0,
    }


def test_equal_calls_print_identical_output(call: Call, tmp_path: Path) -> None:
    outputs = [call("--json", "--out", str(tmp_path / name), workload=SCENARIO)[1] for name in "ab"]
    assert outputs[0] == outputs[1]
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_jobs_of_a_trace_are_placed_by_the_templates(call: Call) -> None:
    config = CONFIG.replace("{name: default}]", "{name: u7}, {name: u8}]")
    trace = "; MaxProcs: 2\n" + JOB.format(1, 0) + "\n" + JOB.format(2, 5).replace(" 7 3 ", " 8 3 ")
    status, out, _ = call("--json", "--swf-queue", "root.u{user}", config=config, trace=trace)
    assert status == 0
    assert [queue["queue"] for queue in report_of(out)["queues"]] == ["root.u7", "root.u8"]


def test_rejections_are_listed_with_their_reason(call: Call) -> None:
    config = CONFIG.replace("{name: default}]", "{name: other}]")
    status, out, _ = call(config=config, workload=SCENARIO)
    assert status == 0
    assert "1 submitted: 0 finished, 1 rejected" in out
    assert "Rejected applications" in out
    (reason,) = report_of(call("--json", config=config, workload=SCENARIO)[1])["rejections"]
    assert (reason["count"], reason["example"]) == (1, "a")
    assert reason["reason"]


def test_until_ends_early(call: Call) -> None:
    status, out, _ = call("--json", "--until", "15s", workload=SCENARIO)
    report = report_of(out)
    assert (status, report["outcome"], report["times"]["stopped"]) == (0, "until", 15.0)
    assert (report["tasks"]["ended"], report["tasks"]["running"], report["tasks"]["waiting"]) == (1, 1, 1)
    assert "until 15s" in call("--until", "15", workload=SCENARIO)[1]


def test_oversized_tasks_are_reported_and_the_simulation_continues(call: Call) -> None:
    workload = SCENARIO.replace("vcore: 1}, runtime", "vcore: 7}, runtime")
    status, out, err = call(workload=workload)
    assert status == 0
    assert "note: 3 tasks of 1 application fit on no node and will never be allocated: a asks for" in err
    assert "3 tasks fit on no node" in out


def test_bad_lines_are_skipped_with_a_report_or_fatal(call: Call, tmp_path: Path) -> None:
    trace = "; MaxProcs: 2\n" + JOB.format(1, 0) + "\nnonsense\n" + JOB.format(1, 9)
    status, out, err = call("--json", trace=trace)
    assert status == 0
    assert report_of(out)["input"] == {"lines skipped": 2}
    assert "trace.swf: line 3: expected 18 columns of numbers, got 1" in err
    assert "trace.swf: line 4: job number 1 was already used on line 2" in err
    status, out, err = call("--json", "--strict", "--out", str(tmp_path / "out"), trace=trace)
    assert (status, out) == (2, "")
    assert "line 3" in err
    assert "line 4" in err
    assert not (tmp_path / "out").exists()


def test_nodes_are_read_from_a_separate_file(call: Call) -> None:
    status, out, _ = call("--json", workload=SCENARIO, nodes=NODES.replace("name: n", "name: m, count: 3"))
    assert (status, report_of(out)["nodes"]) == (0, 3)
    assert report_of(out)["times"]["makespan"] == 10


@pytest.mark.parametrize(
    ("config", "workload", "arguments", "reported"),
    [
        (
            "partitions: [{name: default, queus: []}]",
            SCENARIO,
            (),
            "queues.yaml: partitions[0].queus (line 1, column",
        ),
        ("- nothing", SCENARIO, (), "queues.yaml: line 1, column 1: "),
        (CONFIG, "", (), "workload.yaml: is empty"),
        (CONFIG, "[]", (), "expected a mapping with the keys"),
        (CONFIG, "nodes: [", (), "workload.yaml: line "),
        (CONFIG, NODES, (), "contains no applications"),
        (CONFIG, SCENARIO.replace("vcore: 1, memory: 1Gi", ""), (), "a node needs at least one resource"),
        (CONFIG, SCENARIO, ("--until", "soon"), "expected seconds or a duration"),
        (CONFIG, SCENARIO, ("--until", "-5s"), "a time cannot be below 0"),
        (CONFIG, SCENARIO, ("--format", "pdf"), "'pdf' is not one of"),
        (CONFIG, SCENARIO, ("--format", "swf"), "expected 18 columns of numbers"),
        ("", SCENARIO, (), "queues.yaml: is empty"),
        (CONFIG, JOB.format(1, 0), ("--format", "swf"), "the header describes no nodes"),
        (CONFIG, "; MaxProcs: 2000000\n" + JOB.format(1, 0), ("--format", "swf"), "at most 1,000,000 nodes"),
        (CONFIG, f"; MaxProcs: {'9' * 5000}\n" + JOB.format(1, 0), ("--format", "swf"), "no nodes"),
        (CONFIG, SCENARIO, ("--nodes", "missing.yaml"), "missing.yaml: cannot be read: No such file"),
        (CONFIG, SCENARIO, ("--out", "/dev/null/folder"), "cannot write to /dev/null/folder"),
    ],
)
def test_invalid_input_is_one_message(
    call: Call, config: str, workload: str, arguments: tuple[str, ...], reported: str
) -> None:
    status, out, err = call(*arguments, config=config, workload=workload)
    assert (status, out) == (2, "")
    assert reported in err


def test_errors_of_configuration_and_workload_are_reported_together(call: Call) -> None:
    status, out, err = call(config="partitions: [{name: default, queus: []}]", workload="[]")
    assert (status, out) == (2, "")
    assert "queues.yaml: partitions[0].queus (line 1, column" in err
    assert "workload.yaml: line 1, column" in err
    assert err.count("Error: ") == 1


def test_invalid_templates_are_one_message(call: Call) -> None:
    templates = ("--swf-queue", "root.{quue}", "--swf-user", "{")
    status, _, err = call(*templates, trace="; MaxProcs: 2\n" + JOB.format(1, 0))
    assert status == 2
    assert "the unknown field '{quue}'; known: {queue}, {user}, {group}, {application}, {partition}" in err
    assert "the template '{' for user cannot be read" in err


def test_missing_configuration_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "queues.yaml")
    assert main(["simulate", "--config", missing, "--workload", str(QUICKSTART / "workload.yaml")]) == 2
    assert f"{missing}: cannot be read: No such file or directory" in capsys.readouterr().err


def test_a_bad_configuration_leaves_the_files_of_an_earlier_run(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    call("--no-plots", "--out", str(folder), workload=SCENARIO)
    before = (folder / "decisions.jsonl").read_bytes()
    assert call("--out", str(folder), config="partitions: 5", workload=SCENARIO)[0] == 2
    assert before
    assert (folder / "decisions.jsonl").read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_cleanly_with_the_report_so_far(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    released = FolderRecorder.released

    def press(self: FolderRecorder, *arguments: Any) -> None:
        released(self, *arguments)
        monkeypatch.setattr(FolderRecorder, "released", released)
        signal.raise_signal(number)

    monkeypatch.setattr(FolderRecorder, "released", press)
    before = signal.getsignal(number)
    status, out, err = call("--json", "--no-plots", "--out", str(tmp_path / "out"), workload=SCENARIO)
    report = report_of(out)
    assert (status, report["outcome"], report["tasks"]["ended"]) == (128 + number, "interrupted", 1)
    assert "interrupted: reporting what happened so far" in err
    assert report_of((tmp_path / "out" / "report.json").read_text("utf-8")) == report
    assert signal.getsignal(number) is before


def test_sighup_stays_ignored_after_nohup(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang_up(self: FolderRecorder, *arguments: Any) -> None:
        signal.raise_signal(signal.SIGHUP)

    monkeypatch.setattr(FolderRecorder, "released", hang_up)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert call("--no-plots", "--out", str(tmp_path / "out"), workload=SCENARIO)[0] == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def press(self: FolderRecorder, *arguments: Any) -> None:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(number)

    monkeypatch.setattr(FolderRecorder, "allocated", press)
    status, out, _ = call("--out", str(tmp_path / "out"), workload=SCENARIO)
    assert (status, out) == (128 + number, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_copies_of_a_signal_are_one_signal(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    moments = [0, SECOND // 2, SECOND]
    monkeypatch.setattr("yunikorn_commands.signals.stopwatch", lambda: moments.pop(0))

    def hang_up(self: FolderRecorder, *arguments: Any) -> None:
        while moments:
            signal.raise_signal(number)

    monkeypatch.setattr(FolderRecorder, "allocated", hang_up)
    status, out, _ = call("--json", "--no-plots", "--out", str(tmp_path / "out"), workload=SCENARIO)
    assert (status, report_of(out)["outcome"]) == (128 + number, "interrupted")


def test_the_same_signal_later_is_a_second_one(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [0, SECOND + 1]
    monkeypatch.setattr("yunikorn_commands.signals.stopwatch", lambda: moments.pop(0))

    def press(self: FolderRecorder, *arguments: Any) -> None:
        while moments:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(FolderRecorder, "allocated", press)
    status, out, _ = call("--out", str(tmp_path / "out"), workload=SCENARIO)
    assert (status, out) == (128 + signal.SIGTERM, "")


def test_a_third_ctrl_c_ends_a_plugin_that_suppresses_the_second(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: list[object] = []

    def press(self: FolderRecorder, *arguments: Any) -> None:
        if handlers:
            return
        signal.raise_signal(signal.SIGINT)
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        handlers.append(signal.getsignal(signal.SIGINT))

    monkeypatch.setattr(FolderRecorder, "allocated", press)
    _, _, err = call("--out", str(tmp_path / "out"), workload=SCENARIO)
    assert handlers == [signal.SIG_DFL]
    assert "(Ctrl-C again ends without a report; once more if a plugin suppresses that)" in err


def test_closed_output_pipe_is_no_error_of_the_report(tmp_path: Path) -> None:
    (tmp_path / "queues.yaml").write_text(CONFIG, "utf-8")
    (tmp_path / "workload.yaml").write_text(SCENARIO, "utf-8")
    files = ["--config", str(tmp_path / "queues.yaml"), "--workload", str(tmp_path / "workload.yaml")]
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "yunikorn", "simulate", *files],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=False,
        )
    finally:
        os.close(write)
    assert done.returncode == 141
    assert all(line.startswith(("note: ", "warning: ")) for line in done.stderr.splitlines())


def test_control_characters_in_names_are_escaped(call: Call) -> None:
    name = '"a\\e[31m\\nb"'
    workload = f"name: {name}\n" + SCENARIO.replace("id: a,", f"id: {name}, partition: {name},")
    status, out, err = call(workload=workload)
    assert status == 0
    assert "\x1b" not in out + err
    assert "Simulation of a\\x1b[31m\\nb" in out
    assert "a\\x1b[31m\\nb asks for vcore 1" in err
