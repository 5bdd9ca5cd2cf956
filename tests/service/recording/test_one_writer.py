"""A recording has a single writer and is readable by its owner only; a truncated end is no difference."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.recording.collecting_listener import CollectingListener
from tests.service.recording.test_recorder import recorded, silent
from yunikorn.cli.main import main
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_service.recording.recording_reader import parse_recording
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay

UNIX = pytest.mark.skipif(sys.platform == "win32", reason="needs locks and permissions of files")


@UNIX
def test_a_second_recorder_is_refused_and_changes_nothing(tmp_path: Path, registry: Registry) -> None:
    file = tmp_path / "run.jsonl"
    rm, recorder = recorded(file, registry)
    rm.node(memory=1)
    before = file.read_bytes()
    with pytest.raises(UsageError, match=r"run\.jsonl: another process records into this file"):
        RecordingWriter(file, silent)
    assert file.read_bytes() == before
    recorder.close()
    RecordingWriter(file, silent).close()


@UNIX
def test_the_lock_ends_with_the_process(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    script = (
        "import sys; from pathlib import Path\n"
        "from yunikorn_service.recording.recording_writer import RecordingWriter\n"
        "keep = RecordingWriter(Path(sys.argv[1]), print); print('there', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, file],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        with pytest.raises(UsageError, match="another process records"):
            RecordingWriter(file, silent)
        process.kill()
        process.wait()
    RecordingWriter(file, silent).close()


@UNIX
def test_readable_file_is_made_private(tmp_path: Path, registry: Registry) -> None:
    file = tmp_path / "run.jsonl"
    file.touch()
    file.chmod(0o664)
    rm, recorder = recorded(file, registry)
    assert file.stat().st_mode & 0o777 == 0o600
    rm.node(memory=1)
    recorder.close()
    file.chmod(0o644)
    RecordingWriter(file, silent).close()
    assert file.stat().st_mode & 0o777 == 0o600


@UNIX
def test_permissions_of_other_files_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "passwd"
    file.write_text("root:x:0:0\n")
    file.chmod(0o644)
    with pytest.raises(UsageError, match="exists, and is not a recording"):
        RecordingWriter(file, silent)
    assert file.stat().st_mode & 0o777 == 0o644


# -- truncated end ----------------------------------------------------------------------------------------


def whole(file: Path, registry: Registry) -> bytes:
    """Return a recording of two cores whose applications are placed, fail and end."""
    for _ in range(2):
        rm, recorder = recorded(file, registry)
        rm.node(memory=2)
        rm.app()
        for key in ("a", "b", "ü"):
            rm.ask(key=key, memory=1)
        rm.schedule()
        rm.clock.advance(1.5)
        rm.release(key="b")
        rm.schedule(5)
        recorder.close()
    return file.read_bytes()


def test_truncated_recording_has_no_difference(tmp_path: Path, registry: Registry) -> None:
    data = whole(tmp_path / "run.jsonl", registry)
    first = data.index(b"\n") + 1
    ends = [index + 1 for index, byte in enumerate(data) if byte == ord("\n")]
    cuts = sorted({cut for end in ends for cut in (end, end - 1, end - 20) if cut >= first})
    beyond = 0
    for cut in cuts:
        recording = parse_recording(data[:cut], "f")
        replay = Replay(recording.lines, registry, CollectingListener())
        replay.run()
        assert replay.comparison.first is None, (cut, str(replay.comparison.first))
        beyond += replay.comparison.beyond
    assert beyond > 0


def test_restart_of_a_killed_core_leaves_a_truncated_tail_within_the_file(
    tmp_path: Path, registry: Registry
) -> None:
    lines = whole(tmp_path / "run.jsonl", registry).splitlines(keepends=True)
    again = next(number for number, line in enumerate(lines) if number and b'"recording"' in line)
    assert b'"response"' in lines[again - 1]
    recording = parse_recording(b"".join(lines[: again - 1] + lines[again:]), "f")
    replay = Replay(recording.lines, registry, CollectingListener())
    replay.run()
    assert (replay.comparison.first, replay.comparison.beyond) == (None, 1)


def test_a_response_that_is_missing_before_the_end_is_a_difference(
    tmp_path: Path, registry: Registry
) -> None:
    lines = whole(tmp_path / "run.jsonl", registry).splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if b'"response"' in line)
    del lines[last]
    # Another call follows the one without a response: the file does not end there, so it is a difference.
    lines.append(b'{"at": 9, "schedule": 5}\n')
    replay = Replay(parse_recording(b"".join(lines), "f").lines, registry, CollectingListener())
    replay.run()
    assert str(replay.comparison.first) == "a response to rm at 1.5 s is new"
    assert replay.comparison.beyond == 0


def test_a_recording_that_was_closed_has_no_tail(tmp_path: Path, registry: Registry) -> None:
    file = tmp_path / "run.jsonl"
    rm, recorder = recorded(file, registry)
    rm.node(memory=1)
    rm.app()
    rm.scheduler.close()
    recorder.close()
    lines = file.read_bytes().splitlines(keepends=True)
    close = next(number for number, line in enumerate(lines) if b'"close"' in line)
    replay = Replay(parse_recording(b"".join(lines[: close + 1]), "f").lines, registry, CollectingListener())
    replay.run()
    assert replay.comparison.first is None
    assert replay.comparison.beyond == len(lines) - close - 1


def test_command_distinguishes_a_truncated_tail_from_a_difference(
    tmp_path: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.jsonl"
    lines = whole(file, registry).splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if b'"response"' in line)
    file.write_bytes(b"".join(lines[:last]) + lines[last][:30])
    assert main(["replay", "--quiet", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "the line is cut off and was ignored" in err
    assert "identical to the recording" in out
    assert "the recording is cut off: 1 response after its end could not be compared" in out
    assert main(["replay", "--quiet", "--json", str(file)]) == 0
    reported = json.loads(capsys.readouterr().out)["replay"]
    assert (reported["identical"], reported["difference"], reported["beyond"]) == (True, None, 1)


def test_decisions_are_not_added_to_a_recording_that_ends_before_the_first_one(
    tmp_path: Path, registry: Registry
) -> None:
    rm, recorder = recorded(tmp_path / "run.jsonl", registry)
    rm.node(memory=1)
    rm.app()
    rm.ask(memory=1)
    rm.app("later")
    recorder.close()
    data = (tmp_path / "run.jsonl").read_bytes()
    replay = Replay(parse_recording(data, "f").lines, registry, listener := CollectingListener())
    replay.run()
    assert replay.comparison.first is None
    assert listener.placed() == []
