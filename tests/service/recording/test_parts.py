"""A recording split into several files, by size or by renaming, replays as a single one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.core.kit import RM
from tests.service.recording.collecting_listener import CollectingListener
from tests.service.recording.test_recorder import contents, silent
from yunikorn.cli.main import main
from yunikorn.clock import ManualClock
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_service.recording.recording_reader import RecordingError, read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be renamed there")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Path of the recording."""
    return tmp_path / "run.jsonl"


def begin(recorder: RecordingWriter, registry: Registry) -> RM:
    """Return an RM with a recorded core and a node."""
    rm = RM(scheduler=RecordingScheduler(recorder, registry, ManualClock(10**18)))
    rm.node(memory=100)
    rm.app()
    return rm


def work(rm: RM, number: int) -> None:
    """Place an ask, in a second of its own."""
    rm.clock.advance(1)
    rm.ask(key=f"k{number}", memory=1)
    rm.schedule()


def replayed(registry: Registry, *files: Path) -> tuple[Replay, CollectingListener]:
    """Replay these files, and assert that the responses equal the recorded ones."""
    replay = Replay(read_recording(*files).lines, registry, listener := CollectingListener())
    replay.run()
    assert replay.comparison.first is None
    assert replay.comparison.beyond == 0
    return replay, listener


def parts(file: Path) -> list[Path]:
    """Return the files of a recording, oldest first."""
    older = [path for path in file.parent.iterdir() if path.name.startswith(f"{file.name}.")]
    return [*sorted(older, key=lambda path: int(path.suffix[1:])), file]


def test_a_recording_that_grows_is_continued_in_another_file(file: Path, registry: Registry) -> None:
    recorder = RecordingWriter(file, silent, largest=2000)
    rm = begin(recorder, registry)
    for number in range(40):
        work(rm, number)
    recorder.close()
    files = parts(file)
    assert len(files) > 10, "also beyond the ninth, in the order of their numbers"
    for path in files:
        assert path.stat().st_size < 2000 + 1000
        assert path.stat().st_mode & 0o777 == 0o600
    heads = [contents(path)[0] for path in files]
    assert "recording" in heads[0]
    start = heads[0]["recording"]["start"]
    assert [head["part"] for head in heads[1:]] == [
        {"version": 1, "number": number, "start": start} for number in range(2, len(files) + 1)
    ]
    _, listener = replayed(registry, *files)
    assert len(listener.placed()) == 40
    assert recorder.lines == sum(len(contents(path)) for path in files)


def test_core_starting_with_a_full_file_starts_a_new_file(file: Path, registry: Registry) -> None:
    for largest in (1000, 10**6, 500):
        recorder = RecordingWriter(file, silent, largest=largest)
        rm = begin(recorder, registry)
        for number in range(5):
            work(rm, number)
        recorder.close()
    files = parts(file)
    replay, listener = replayed(registry, *files)
    assert listener.beginnings == 3
    assert replay.comparison.equal == replay.comparison.recorded
    # The third core found a file of more than 500 bytes.
    (begun,) = [path for path in files[1:] if "recording" in contents(path)[0]]
    after = files[files.index(begun) + 1]
    assert contents(after)[0]["part"]["number"] == 2


def test_existing_part_is_never_overwritten(file: Path, registry: Registry) -> None:
    kept = file.with_name(f"{file.name}.7")
    kept.write_text("precious")
    recorder = RecordingWriter(file, silent, largest=500)
    rm = begin(recorder, registry)
    for number in range(5):
        work(rm, number)
    recorder.close()
    assert kept.read_text() == "precious"
    kept.unlink()
    assert min(int(path.suffix[1:]) for path in parts(file)[:-1]) == 8
    replayed(registry, *parts(file))


def test_renamed_file_is_closed_and_a_new_one_started(file: Path, registry: Registry) -> None:
    recorder = RecordingWriter(file, silent)
    rm = begin(recorder, registry)
    work(rm, 1)
    old = file.with_name("yesterday.jsonl")
    file.rename(old)
    work(rm, 2)
    recorder.reopen(rm.clock.now())
    size = old.stat().st_size
    work(rm, 3)
    recorder.close()
    assert old.stat().st_size == size
    assert contents(file)[0]["at"] == 2
    _, listener = replayed(registry, old, file)
    assert [key for key, _ in listener.placed()] == ["k1", "k2", "k3"]
    RecordingWriter(old, silent).close()


def test_empty_file_created_by_log_rotation_is_used_and_made_private(file: Path, registry: Registry) -> None:
    recorder = RecordingWriter(file, silent)
    rm = begin(recorder, registry)
    old = file.with_name("yesterday.jsonl")
    file.rename(old)
    file.touch(0o644)
    recorder.reopen(rm.clock.now())
    work(rm, 1)
    recorder.close()
    assert file.stat().st_mode & 0o777 == 0o600
    replayed(registry, old, file)


def test_file_that_was_not_renamed_is_continued(file: Path, registry: Registry) -> None:
    recorder = RecordingWriter(file, silent)
    rm = begin(recorder, registry)
    recorder.reopen(rm.clock.now())
    work(rm, 1)
    recorder.close()
    assert not [line for line in contents(file) if "part" in line]
    replayed(registry, file)


@pytest.mark.parametrize("obstacle", ["another recorder", "something else", "a folder"])
def test_old_file_is_continued_if_no_new_one_can_be_created(
    file: Path, registry: Registry, obstacle: str
) -> None:
    warnings: list[str] = []
    recorder = RecordingWriter(file, warnings.append)
    rm = begin(recorder, registry)
    old = file.with_name("yesterday.jsonl")
    file.rename(old)
    other = None
    if obstacle == "another recorder":
        other = RecordingWriter(file, silent)
    elif obstacle == "something else":
        file.write_text("precious")
    else:
        file.mkdir()
    recorder.reopen(rm.clock.now())
    assert len(warnings) == 1
    assert warnings[0].endswith("the recording continues in the file that had this name before")
    assert str(file) in warnings[0]
    work(rm, 1)
    recorder.close()
    replayed(registry, old)
    if other is not None:
        other.close()
    if obstacle == "something else":
        assert file.read_text() == "precious"


def test_file_that_cannot_be_renamed_is_continued_and_reported_once(
    file: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    warnings: list[str] = []
    recorder = RecordingWriter(file, warnings.append, largest=500)
    rm = begin(recorder, registry)
    monkeypatch.setattr(os, "rename", refuse)
    for number in range(10):
        work(rm, number)
    recorder.close()
    assert len(warnings) == 1
    assert "Permission denied" in warnings[0]
    replayed(registry, *parts(file))


# -- reading ------------------------------------------------------------------------------------------------


def three_parts(file: Path, registry: Registry) -> list[Path]:
    """Return a recording in three files."""
    recorder = RecordingWriter(file, silent)
    rm = begin(recorder, registry)
    for number in (1, 2):
        work(rm, number)
        file.rename(file.with_name(f"run.jsonl.{number}"))
        recorder.reopen(rm.clock.now())
    work(rm, 3)
    recorder.close()
    return parts(file)


@pytest.mark.parametrize(
    ("order", "reported"),
    [
        (
            (1, 2),
            "run.jsonl.2: part (line 1): is part 2 of a recording that started at 2001-09-09T01:46:40Z",
        ),
        (
            (0, 2),
            "run.jsonl: part (line 1): is part 3 of the core that started at 2001-09-09T01:46:40Z",
        ),
        ((2,), "run.jsonl: part (line 1): is part 3 of a recording"),
    ],
)
def test_missing_or_misordered_parts_are_reported(
    file: Path, registry: Registry, order: tuple[int, ...], reported: str
) -> None:
    files = three_parts(file, registry)
    with pytest.raises(RecordingError) as refused:
        read_recording(*(files[index] for index in order))
    assert reported in str(refused.value)


def test_duplicate_file_is_rejected(file: Path, registry: Registry) -> None:
    files = three_parts(file, registry)
    link = file.with_name("link")
    link.symlink_to(files[0])
    for twice in ([files[0], *files], [*files, link], [files[0], files[0]]):
        with pytest.raises(UsageError) as refused:
            read_recording(*twice)
        assert "is given twice" in str(refused.value)


def test_truncated_end_of_a_previous_core_is_omitted_with_a_remark(file: Path, registry: Registry) -> None:
    files = three_parts(file, registry)
    recorder = RecordingWriter(file, silent)
    work(begin(recorder, registry), 4)
    recorder.close()
    for path in files[:2]:
        path.unlink()
    recording = read_recording(file)
    (remark,) = recording.remarks
    start = next(n for n, line in enumerate(contents(file), 1) if "recording" in line)
    assert remark.startswith(f"{file}: line {start}: the lines above were ignored")
    assert "2001-09-09T01:46:40Z" in remark
    _, listener = replayed(registry, file)
    assert [key for key, _ in listener.placed()] == ["k4"]


def test_part_of_another_recording_is_rejected(file: Path, registry: Registry, tmp_path: Path) -> None:
    files = three_parts(file, registry)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "run.jsonl"
    recorder = RecordingWriter(other, silent)
    RM(scheduler=RecordingScheduler(recorder, registry, ManualClock(5)))
    recorder.close()
    with pytest.raises(RecordingError, match="give the earlier files too, oldest first"):
        read_recording(other, files[1])


def test_missing_lines_between_two_parts_are_detected(file: Path, registry: Registry) -> None:
    files = three_parts(file, registry)
    files[0].write_bytes(files[0].read_bytes()[:-5])
    with pytest.raises(RecordingError, match=r"run\.jsonl\.2: part \(line 1\): .*run\.jsonl\.1 is cut off"):
        read_recording(*files)


def test_command_replays_parts_and_names_the_file_of_a_difference(
    file: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    files = three_parts(file, registry)
    assert main(["replay", "--quiet", *map(str, files)]) == 0
    assert "identical to the recording" in capsys.readouterr().out
    text = files[1].read_text()
    files[1].write_text(text.replace('"nodeID": "n1"', '"nodeID": "n2"'))
    line = 1 + next(number for number, one in enumerate(text.splitlines()) if "newAllocations" in one)
    assert main(["replay", "--quiet", *map(str, files)]) == 1
    assert f"first in {files[1]}: line {line}: newAllocations[0].nodeID" in capsys.readouterr().out


def test_the_form_of_a_part_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text(json.dumps({"part": {"version": 2, "number": "x", "start": "today"}}) + "\n")
    with pytest.raises(RecordingError) as refused:
        read_recording(file)
    assert "part.number" in str(refused.value)
    file.write_text(json.dumps({"part": {"version": 2, "number": 2, "start": "today"}}) + "\n")
    with pytest.raises(RecordingError) as refused:
        read_recording(file)
    assert "part.version (line 1): is 2; this version reads 1 only" in str(refused.value)
    assert "part.start (line 1): expected a date" in str(refused.value)
