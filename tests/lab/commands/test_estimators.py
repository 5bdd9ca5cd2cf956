"""`yunikorn estimators` scores estimators by what they would have said about a recorded workload."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.core.kit import configuration, document, partition, queue
from yunikorn_commands.command_group import main

HEADER = "; MaxNodes: 4\n; MaxProcs: 4\n"


def jobs(*columns: tuple[int, int, int, int]) -> str:
    """Return a trace of jobs with these submit times, run times, requested times and users."""
    lines = [
        f"{number} {submit} 0 {time} 1 -1 -1 1 {limit} -1 1 {user} 1 -1 -1 -1 -1 -1"
        for number, (submit, time, limit, user) in enumerate(columns, 1)
    ]
    return HEADER + "\n".join(lines) + "\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return a trace in which one user's jobs run 100 s, and another's 1000 s, all with a limit of 3000 s."""
    file = tmp_path / "trace.swf"
    file.write_text(jobs(*((n * 2000, 100 if n % 2 else 1000, 3000, n % 2) for n in range(40))), "utf-8")
    return file


def test_estimators_are_asked_before_they_learn(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimators", "--calibrate", str(trace), "--json"]) == 0
    request, learned, chosen = json.loads(capsys.readouterr().out)
    assert request == {
        **{"name": "request", "tasks": 40, "known": 1.0, "bias": 3.0},
        **{"within_two": 0.0, "inside": 0.0},
    }
    assert learned["known"] == 0.975, "the first job was unknown"
    assert learned["within_two"] > 0.8
    assert learned["bias"] == pytest.approx(1, rel=0.07)
    assert chosen["within_two"] > 0.7, "it is learned that the limits are too long"


def test_table_has_a_row_for_each_named_estimator(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "queues.yaml"
    config.write_text(configuration(queue("default"), estimators=["learned"]), "utf-8")
    assert main(["estimators", "--calibrate", str(trace), "--config", str(config)]) == 0
    out = capsys.readouterr().out
    assert "learned" in out
    assert "request" not in out
    assert "Of 40 groups of equal tasks" in out


def test_estimator_of_the_configuration_observes_ended_tasks_on_nodes(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(
        "from yunikorn.api import RunTime, RunTimeEstimator, hookimpl\n"
        "class Mine(RunTimeEstimator):\n"
        "    name = 'mine'\n"
        "    ended = 0.0\n"
        "    def estimate(self, task, age):\n"
        "        return RunTime(self.ended, self.ended, self.ended) if self.ended else None\n"
        "    def observe(self, task, seconds):\n"
        "        assert task.uuid and task.created <= task.placed and not task.node.attributes\n"
        "        self.ended = seconds\n"
        "@hookimpl\n"
        "def yunikorn_run_time_estimators():\n"
        "    return [Mine]\n",
        "utf-8",
    )
    config = tmp_path / "queues.yaml"
    named = partition(queue("default"), estimators=["mine"])
    config.write_text(document(named, plugins={"load": ["./mine.py"]}), "utf-8")
    assert main(["estimators", "--calibrate", str(trace), "--config", str(config), "--json"]) == 0
    mine, _ = json.loads(capsys.readouterr().out)
    assert mine["known"] == 0.975


def test_configuration_without_estimators_is_refused(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "queues.yaml"
    config.write_text(configuration(queue("default")), "utf-8")
    call = ["estimators", "--calibrate", str(trace), "--config", str(config)]
    assert main(call) == 2
    assert "partition 'default' names no estimators; add estimators: [request, learned]" in (
        capsys.readouterr().err
    )
    assert main([*call, "--partition", "other"]) == 2
    assert "there is no partition 'other'; known: default" in capsys.readouterr().err


def test_file_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "list.yaml"
    file.write_text(yaml.safe_dump([1]), "utf-8")
    assert main(["estimators", "--calibrate", str(file)]) == 2
    assert "expected a mapping with the keys" in capsys.readouterr().err
