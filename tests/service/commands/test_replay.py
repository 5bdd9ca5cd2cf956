"""`yunikorn replay` on the command line: output, exit status, and one clear message for bad input."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.kit import RM, configuration, queue
from yunikorn.cli.main import main
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `yunikorn replay`; return exit status, standard output, standard error."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        status = main(["replay", *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def recording(tmp_path: Path, registry: Registry) -> Path:
    """A node, an application, and three asks, of which a quota admits two."""
    file = tmp_path / "run.jsonl"
    recorder = RecordingWriter(file, print)
    text = configuration(queue("a", resources={"max": {"memory": 2}}))
    rm = RM(text, scheduler=RecordingScheduler(recorder, registry, ManualClock(1_700_000_000_000_000_000)))
    rm.node(memory=9)
    rm.app()
    rm.clock.advance(0.25)
    rm.ask(count=3, memory=1)
    rm.schedule()
    recorder.close()
    return file


def test_every_response_is_printed_as_text(call: Call, recording: Path) -> None:
    status, out, err = call(recording)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "a core starts at 2023-11-14T22:13:20Z"
    assert lines[1:3] == [
        "             0 s  rm  node n1 accepted",
        "             0 s  rm  application app accepted",
    ]
    number = 1_700_000_000_000_001
    assert f"          0.25 s  rm  allocation ask#{number} of app on node n1 (memory 1)" in lines
    assert lines[-2:] == [
        "4 responses, 2 allocations, 0 releases, 0 rejected",
        "identical to the recording: 4 responses",
    ]


def test_json_is_in_the_form_of_recordings(call: Call, recording: Path) -> None:
    status, out, _ = call(recording, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    there = [json.loads(line) for line in recording.read_text("utf-8").splitlines()]
    assert status == 0
    assert [line for line in lines if "response" in line] == [line for line in there if "response" in line]
    assert lines[-1] == {
        "replay": {
            "responses": 4,
            "allocations": 2,
            "releases": 0,
            "rejected": 0,
            "failed_node_updates": 0,
            "identical": True,
            "difference": None,
            "beyond": 0,
        }
    }


def test_difference_is_printed_and_sets_the_exit_status(call: Call, recording: Path) -> None:
    text = recording.read_text("utf-8")
    recording.write_text(
        text.replace('"nodeID": "n1", "applicationID"', '"nodeID": "n2", "applicationID"'), "utf-8"
    )
    status, out, _ = call(recording, "--quiet")
    assert status == 1
    number = 1 + next(n for n, line in enumerate(text.splitlines()) if "newAllocations" in line)
    assert out.splitlines()[-1] == (
        f"differs from the recording, first in line {number}:"
        " newAllocations[0].nodeID was 'n2', and is now 'n1'"
    )
    status, out, _ = call(recording, "--json", "--quiet")
    assert status == 1
    assert json.loads(out)["replay"]["identical"] is False


def test_what_if_prints_recorded_and_replayed_results(call: Call, recording: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(configuration(queue("a")), "utf-8")
    status, out, err = call(recording, "--config", other, "--quiet")
    assert (status, err, out.splitlines()) == (
        0,
        "",
        [
            "4 responses, 3 allocations, 0 releases, 0 rejected",
            "recorded: 4 responses, 2 allocations, 0 releases, 0 rejected",
        ],
    )


def test_invalid_configuration_is_reported_as_in_other_commands(
    call: Call, recording: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("partitions: [{name: default, quees: []}]", "utf-8")
    status, out, err = call(recording, "--config", other)
    assert (status, out) == (2, "")
    assert f"{other}: partitions[0].quees (line 1" in err
    other.write_text("\n", "utf-8")
    assert f"{other}: is empty" in call(recording, "--config", other)[2]
    status, _, err = call(recording, "--config", tmp_path / "nowhere.yaml")
    assert status == 2
    assert "nowhere.yaml: cannot be read: No such file or directory" in err


def test_all_problems_of_an_invalid_recording_are_reported(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text('{"schedule": "x"}\n{"advanc": 1}\n', "utf-8")
    status, out, err = call(file)
    assert (status, out) == (2, "")
    assert err.splitlines()[0].startswith(f"Error: {file}: schedule (line 1): ")
    assert err.splitlines()[1].startswith(f"{file}: advanc (line 2): unknown key, did you mean 'advance'?")


def test_truncated_lines_and_refused_calls_are_noted(call: Call, recording: Path) -> None:
    with recording.open("a", encoding="utf-8") as more:
        more.write('{"rm": "ghost\\u001b[2J", "stop": true}\n{"at": 1, "sto')
    status, out, err = call(recording, "--quiet")
    assert status == 0
    assert err.splitlines() == [
        f"note: {recording}: line 12: the line is cut off and was ignored",
        "note: line 11: stop was refused: no resource manager 'ghost\\x1b[2J' is registered; registered: rm",
    ]
    assert "\x1b" not in out + err


def test_missing_protobuf_is_reported_with_what_to_install(
    recording: Path, run_python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    blocked = tmp_path / "blocked" / "google" / "protobuf"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'google.protobuf'\", name='google.protobuf')\n", "utf-8"
    )
    (blocked.parent / "__init__.py").write_text("", "utf-8")
    done = run_python("-m", "yunikorn", "replay", str(recording), installed=tmp_path / "blocked")
    assert (done.returncode, done.stdout) == (2, "")
    assert "protobuf is not installed" in done.stderr


def test_replay_does_not_import_grpc(
    recording: Path, run_python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "grpc.py").write_text("raise ImportError('grpc was imported')\n", "utf-8")
    done = run_python("-m", "yunikorn", "replay", str(recording), "--quiet", installed=blocked)
    assert (done.returncode, done.stderr) == (0, "")
