"""Commands that replay the history of a scheduler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.simulation.history_rows import BEGIN, HistoryRows
from tests.rest.commands.operator_kit import Run

CONFIG = """
partitions:
  - name: default
    queues:
      - {name: root, submitacl: "*", queues: [{name: a}, {name: b}]}
"""
HOURS = 4


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """Return the options for a configuration, and a history of four hours with an application each minute."""
    (tmp_path / "queues.yaml").write_text(CONFIG)
    rows = HistoryRows()
    rows.node("n1", 0)
    for minute in range(HOURS * 60):
        queue = f"root.{'ab'[minute % 2]}"
        app = rows.application(f"job-{minute}", minute * 60_000, queue=queue, user=f"u{minute % 3}")
        for _ in range(1 + minute % 2):
            wait = 1000 * (minute % 7)
            rows.task(app, minute * 60_000, minute * 60_000 + wait, minute * 60_000 + wait + 90_000)
    rows.seen(HOURS * 3_600_000 + 100_000)
    location = rows.write(tmp_path / "history.db")
    return "--config", str(tmp_path / "queues.yaml"), "--workload", f"history:{location}"


def test_simulate_compares_with_what_happened(run: Run, files: tuple[str, ...], tmp_path: Path) -> None:
    status, out, err = run("simulate", *files, "--json", "--out", str(tmp_path / "out"), "--no-plots")
    assert (status, "a history has no conditions on nodes" in err) == (0, True)
    found = json.loads(out)
    assert (found["format"], found["began"]) == ("history", BEGIN / 1000)
    assert [(one["role"], one["name"]) for one in found["provenance"]["inputs"]] == [
        ("workload", "history.db")
    ]
    calibration = found["figures"]["calibration"]
    assert [queue["name"] for queue in calibration["queues"]] == ["root.a", "root.b"]
    assert [part["recorded_placements"] for part in calibration["load"]] == [90, 90, 90, 90, 0]
    assert [round(part["hours"], 3) for part in calibration["load"]] == [1, 1, 1, 1, 0.028]
    assert calibration["load"][1]["recorded_use"] == {"vcore": pytest.approx(2250, rel=0.01)}

    status, out, _ = run("simulate", *files)
    lines = out.splitlines()
    place = next(number for number, line in enumerate(lines) if "Recorded and simulated load" in line)
    assert lines[place + 2].split() == ["from", "placements", "simulated", "cores", "simulated"]
    assert lines[place + 5].split()[:4] == ["1h", "0m", "90", "90"]
    assert "Recorded and simulated waits by queue" in out


def test_options_choose_a_part(run: Run, files: tuple[str, ...]) -> None:
    part = ("--since", "2026-11-01T01:00Z", "--until", "2026-11-01T03:00+01:00")
    for more, count in ((("--queue", "root.a"), 30), (("--user", "u1"), 20), ((), 60)):
        status, out, err = run("simulate", *files, *part, *more, "--json")
        assert (status, json.loads(out)["applications"]["submitted"]) == (0, count + (not more)), err


def test_other_commands_replay_too(run: Run, files: tuple[str, ...]) -> None:
    setting = ("--set", "partitions[0].queues[0].queues[0].resources.max.vcore=1,2")
    status, out, err = run(
        "compare", *files, *setting, "--seeds", "2", "--resample", "users", "--jobs", "2", "--json"
    )
    assert (status, len(json.loads(out)["variants"])) == (0, 2), err
    status, out, _ = run("size", *files, "--target", "wait.max <= 1h", "--to", "2", "--jobs", "2", "--json")
    assert (status, json.loads(out)["outcome"]) == (0, "found")


def test_a_history_has_other_options_than_a_file(run: Run, files: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "nodes: [{name: n, resources: {vcore: 1}}]\n"
        "applications: [{id: a, queue: root.a, tasks: [{resources: {vcore: 1}, runtime: 1}]}]\n"
    )
    scenario = (*files[:3], str(tmp_path / "s.yaml"))
    for given, expected in (
        ((*scenario, "--user", "ann"), "--user applies to another format: "),
        ((*files, "--swf-queue", "root.a"), "--swf-queue applies to another format: "),
        ((*files, "--strict"), "--strict applies to a trace: "),
        ((*scenario, "--until", "2026-11-01"), "a date is for the workload history:FILE"),
        ((*files, "--until", "soon"), "or a date of a history"),
        ((*files, "--until", "36x"), "such as 90, 30s, 1h30m or 1d"),
        ((*files, "--since", "sometimes"), "is no time"),
        ((*files, "--since", "2027-01-01"), "the window is empty"),
        ((*files[:3], f"history:{tmp_path}/none.db"), "no such file"),
        ((*files[:3], "history:"), "expected the path of a file"),
        ((*files, "--seed", "1"), "a seed has no effect"),
    ):
        status, out, err = run("simulate", *given)
        assert (status, out, expected in err) == (2, "", True), err
