"""A replay returns exactly the recorded responses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.kit import RM
from tests.service.recording.collecting_listener import CollectingListener
from tests.service.recording.random_history import RandomHistory
from yunikorn.clock import SECOND, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay


@pytest.mark.parametrize("seed", range(8))
def test_replayed_responses_equal_recorded_ones(seed: int, tmp_path: Path, registry: Registry) -> None:
    file = tmp_path / "life.jsonl"
    life = RandomHistory(seed, file, registry)
    life.live(400)
    received = [response for manager in life.managers.values() for response in manager.received]
    recording = read_recording(file)
    listener = CollectingListener()
    replay = Replay(recording.lines, registry, listener)
    replay.run()
    assert str(replay.comparison.first or "") == ""
    assert replay.comparison.equal == len(listener.responses) == len(received)
    assert [rm.received for rm in life.managers.values()] == [listener.of(rm_id) for rm_id in life.managers]
    assert sum(len(response.new_allocations) for response in received) > 15
    assert replay.answers.unknown == 0


def test_restarted_server_continues_the_same_file(tmp_path: Path, registry: Registry) -> None:
    file = tmp_path / "life.jsonl"
    for seed in (1, 2):
        RandomHistory(seed, file, registry).live(60)
    listener = CollectingListener()
    replay = Replay(read_recording(file).lines, registry, listener)
    replay.run()
    assert listener.beginnings == 2
    assert replay.comparison.first is None
    assert replay.comparison.equal == len(listener.responses) > 20


def test_recording_changes_no_decision(tmp_path: Path, registry: Registry) -> None:
    """The same operations give the same responses without a recorder."""
    from yunikorn.interface.scheduler import Scheduler

    class Unrecorded(RandomHistory):
        def begin(self) -> Scheduler:  # type: ignore[override]
            timeouts = super().begin()._sessions.core_context.timeouts
            return Scheduler(self.registry, self.clock, timeouts, configurations=self.groups)

    lives = [kind(5, tmp_path / kind.__name__, registry) for kind in (RandomHistory, Unrecorded)]
    for life in lives:
        life.live(150)
    recorded, untaped = ([manager.received for manager in life.managers.values()] for life in lives)
    assert recorded == untaped


def test_recording_can_be_continued_by_hand(tmp_path: Path, registry: Registry) -> None:
    file = tmp_path / "run.jsonl"
    rm = RM(scheduler=RecordingScheduler(RecordingWriter(file, print), registry, ManualClock(10**18)))
    rm.node(memory=1)
    rm.app()
    rm.ask(memory=1)
    rm.schedule()
    rm.release()
    with file.open("a", encoding="utf-8") as more:
        # Timers fire in between, although the recording has no entries for them.
        more.write('{"advance": 30}\n')
    listener = CollectingListener()
    replay = Replay(read_recording(file).lines, registry, listener)
    replay.run()
    (at, _, response) = listener.responses[-1]
    assert (at, response.updated_applications[0].state) == (30 * SECOND, "Completed")
    assert str(replay.comparison.first) == "a response to rm at 30 s is new"
