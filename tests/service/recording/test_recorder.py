"""Writing a recording: it survives a kill, is continued later, and its failures do not stop the core."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.core.kit import RM
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.clock import SECOND, ManualClock
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AllocationAsk,
    NodePredicatesArgs,
    PredicatesArgs,
    RegisterResourceManagerRequest,
    UpdateRequest,
)
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay


def silent(warning: str) -> None:
    """Fail the test on any warning."""
    raise AssertionError(warning)


def contents(file: Path) -> list[dict[str, Any]]:
    """Return the decoded lines."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Path of the recording."""
    return tmp_path / "run.jsonl"


def recorded(file: Path, registry: Registry, **options: Any) -> tuple[RM, RecordingWriter]:
    """Return an RM with a recorded core."""
    recorder = RecordingWriter(file, silent)
    return RM(scheduler=RecordingScheduler(recorder, registry, ManualClock(), **options)), recorder


def test_every_line_is_flushed_immediately(file: Path, registry: Registry) -> None:
    rm, recorder = recorded(file, registry)
    rm.node(memory=1)
    assert [list(line)[-1] for line in contents(file)] == ["recording", "register", "update", "response"]
    rm.app()
    rm.ask(memory=1)
    rm.clock.advance(1.5)
    rm.schedule(7)
    assert contents(file)[-2] == {"at": 1.5, "schedule": 7}
    assert "newAllocations" in contents(file)[-1]["response"]
    assert recorder.lines == len(contents(file))


def test_a_recording_is_readable_by_its_owner_only(file: Path, registry: Registry) -> None:
    recorded(file, registry)
    assert file.stat().st_mode & 0o077 == 0


def test_killed_process_loses_at_most_the_last_line(file: Path, registry: Registry, tmp_path: Path) -> None:
    script = tmp_path / "endless.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.core.kit import RM\n"
        "from tests.service.recording.test_recorder import recorded\n"
        "from yunikorn.framework.registry import Registry\n"
        "rm, _ = recorded(Path(sys.argv[1]), Registry.load(third_party=False))\n"
        "rm.node(memory=10**9)\n"
        "rm.app()\n"
        "number = 0\n"
        "while True:\n"
        "    number += 1\n"
        "    rm.ask(key=f'k{number}', memory=1)\n"
        "    rm.schedule(1)\n"
        "    print(number, flush=True)\n",
        "utf-8",
    )
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, script, file], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        assert process.stdout is not None
        for _ in range(50):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        done = 50 + len(process.stdout.read().splitlines())
    recording = read_recording(file)
    listener = CollectingListener()
    replay = Replay(recording.lines, registry, listener)
    replay.run()
    assert len(listener.placed()) in (done, done + 1)
    # The response of the last decision may be missing.
    assert replay.comparison.first is None
    assert replay.comparison.beyond <= 1


def test_recording_is_continued_after_a_truncated_line(file: Path, registry: Registry) -> None:
    for size in (3, 5):
        rm, recorder = recorded(file, registry)
        rm.node(memory=size)
        recorder.close()
        with file.open("ab") as cut:
            cut.write(b'{"at": 1, "upda')
    recording = read_recording(file)
    assert recording.remarks == [
        f"{file}: line 5: the line is cut off and was ignored",
        f"{file}: line 10: the line is cut off and was ignored",
    ]
    listener = CollectingListener()
    replay = Replay(recording.lines, registry, listener)
    replay.run()
    assert (listener.beginnings, replay.comparison.equal, replay.comparison.first) == (2, 2, None)


def test_other_files_are_not_changed(file: Path) -> None:
    file.write_text("partitions: []\n", "utf-8")
    with pytest.raises(UsageError, match=r"run\.jsonl: exists, and is not a recording: give another file"):
        RecordingWriter(file, silent)
    assert file.read_text("utf-8") == "partitions: []\n"


def test_unwritable_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be written: No such file or directory"):
        RecordingWriter(tmp_path / "nowhere" / "run.jsonl", silent)
    with pytest.raises(UsageError, match=r"cannot be written: Is a directory"):
        RecordingWriter(tmp_path, silent)


def test_full_disk_is_reported_once_and_the_core_continues(
    file: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    recorder = RecordingWriter(file, warnings.append)
    rm = RM(scheduler=RecordingScheduler(recorder, registry, ManualClock()))

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    rm.node(memory=1)
    rm.app()
    rm.ask(memory=1)
    assert rm.schedule() == [("app", "ask", "n1")]
    assert warnings == [f"{file}: recording has stopped: No space left on device"]
    assert recorder.failure == warnings[0]
    recorder.close()


def test_line_written_in_parts_is_complete(
    file: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    rm, _ = recorded(file, registry)
    rm.node(memory=1)
    assert [list(line)[-1] for line in contents(file)] == ["recording", "register", "update", "response"]


def test_unrepresentable_entries_leave_a_reported_gap(file: Path, registry: Registry) -> None:
    rm, _ = recorded(file, registry)
    rm.app()
    rm.update(asks=[AllocationAsk("k", "app", resource_ask=Resource(memory=2**70))])
    gap = contents(file)[-2]
    assert gap["gap"].startswith(
        "update with a value that no message can represent: asks[0].resource_ask: Value out of range"
    )
    listener = CollectingListener()
    Replay(read_recording(file).lines, registry, listener).run()
    assert [remark for _, remark in listener.remarks] == [f"the recording has a gap here: {gap['gap']}"]


def test_header_contains_the_initial_state_of_the_core(file: Path, registry: Registry) -> None:
    groups = Configurations({"": "", "batch": b"\xff"}, allow_rm_config=False)
    recorder = RecordingWriter(file, silent)
    clock = ManualClock(5 * SECOND + 1)
    scheduler = RecordingScheduler(
        recorder, registry, clock, Timeouts(session=None, starting=90 * SECOND), groups
    )
    with pytest.raises(Exception, match="UTF-8"):
        scheduler.register_resource_manager(
            RegisterResourceManagerRequest("rm", policy_group="batch"), Deaf()
        )
    recorder.close()
    first, read, register = contents(file)
    assert first["recording"] == {
        "version": 1,
        "start": "1970-01-01T00:00:05.000000001Z",
        "yunikorn": "0.1.0",
        "groups": ["", "batch"],
        "allow_rm_config": False,
        "periods": {"starting": "1m30s", "session": None},
    }
    # Data that a registration reads comes before it, so that a replay can go line by line.
    assert read["configuration"] == {"group": "batch", "hex": "ff"}
    assert register["register"] == {"rmID": "rm", "policyGroup": "batch"}
    listener = CollectingListener()
    Replay(read_recording(file).lines, registry, listener).run()
    assert "UTF-8" in listener.refusals[0][1]


class Deaf:
    """A callback that ignores all responses."""

    def recv_update_response(self, response: object) -> None:
        """Ignore the response."""


class Asked(Deaf):
    """An RM that answers predicates with a given answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def predicates(self, args: PredicatesArgs) -> Any:
        """Return the answer; raise it if it is an exception."""
        return self._answer()

    def node_predicates(self, args: NodePredicatesArgs) -> Any:
        """Return the answer; raise it if it is an exception."""
        return self._answer()

    def _answer(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [5, ["n1"], {"n1": 5}, ValueError("half\ud800"), {"n1": "no"}, {}])
def test_all_answers_are_recorded_including_none(file: Path, registry: Registry, answer: object) -> None:
    recorder = RecordingWriter(file, silent)
    scheduler = RecordingScheduler(recorder, registry, ManualClock())
    rm = RM(scheduler=scheduler, rm_id="other")
    scheduler.register_resource_manager(
        RegisterResourceManagerRequest("rm", config=PREDICATES), Asked(answer)
    )
    rm.rm_id = "rm"
    rm.node(memory=1)
    rm.app(queue_name="root.a")
    scheduler.update(UpdateRequest("rm", [AllocationAsk("k", "app", resource_ask=Resource(memory=1))]))
    scheduler.schedule()
    scheduler.schedule()
    lines = contents(file)
    (asked,) = {json.dumps(line["answer"]) for line in lines if "answer" in line}
    assert json.loads(asked)["nodes"] == ["n1"]
    listener = CollectingListener()
    replay = Replay(read_recording(file).lines, registry, listener)
    replay.run()
    assert replay.comparison.first is None
    assert bool(listener.placed()) == (answer == {})


PREDICATES = json.dumps(
    {
        "partitions": [
            {
                "name": "default",
                "predicates": [{"name": "rm"}],
                "queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "a"}]}],
            }
        ]
    }
)
