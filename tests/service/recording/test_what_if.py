"""Replays of a recording under another configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.kit import RM, configuration, queue
from tests.service.recording.collecting_listener import CollectingListener
from tests.service.recording.random_history import RandomHistory
from tests.service.recording.script import app, ask, node, play, register
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import TerminationType
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay


def limited(most: int, **keys: object) -> str:
    """Return a configuration with this max of `root.a`."""
    return configuration(queue("a", resources={"max": {"memory": most}}), queue("b"), **keys)


def what_if(file: Path, registry: Registry, config: str) -> tuple[CollectingListener, Replay]:
    """Replay a file under this configuration, and return the listener."""
    listener = CollectingListener()
    replay = Replay(read_recording(file).lines, registry, listener, config)
    replay.run()
    return listener, replay


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Path of the recording."""
    return tmp_path / "run.jsonl"


@pytest.fixture
def rm(file: Path, registry: Registry) -> RM:
    """Return an RM with a recorded core and a max of 2 for `root.a`."""
    recorder = RecordingWriter(file, print)
    return RM(limited(2), scheduler=RecordingScheduler(recorder, registry, ManualClock(10**18)))


def test_larger_quota_places_more_at_the_same_times(rm: RM, file: Path, registry: Registry) -> None:
    rm.node(memory=9)
    rm.app()
    rm.ask(count=5, memory=1)
    rm.schedule(1)
    rm.clock.advance(1)
    rm.schedule(1)
    assert len(rm.running) == 2
    listener, replay = what_if(file, registry, limited(4))
    assert {at for at, _, response in listener.responses if response.new_allocations} == {0}
    assert len(listener.placed()) == 4
    assert not replay.comparison.is_possible


def test_recorded_releases_apply_to_renamed_allocations(rm: RM, file: Path, registry: Registry) -> None:
    rm.node(memory=9)
    rm.app("big", "root.a")
    rm.app("other", "root.b")
    rm.ask("big", "x", 3, memory=1)
    rm.ask("other", "y", 1, memory=1)
    rm.schedule(256)
    # Two of three x were placed; the uuid of y has another number now.
    for allocation in list(rm.running.values()):
        rm.clock.advance(5)
        rm.release(allocation.application_id, uuid=allocation.uuid)
        rm.schedule(256)
    listener, replay = what_if(file, registry, limited(9))
    assert replay.replayed_rm is not None
    assert replay.replayed_rm.unknown == 0
    ended = [one for _, _, response in listener.responses for one in response.released_allocations]
    assert sorted(one.allocation_key for one in ended) == ["x", "x", "y"]
    assert {one.message for one in ended} == {"allocation remove as per RM request"}


def test_releases_without_a_counterpart_are_counted(rm: RM, file: Path, registry: Registry) -> None:
    rm.node(memory=9)
    rm.app()
    rm.ask(count=2, memory=1)
    rm.schedule(256)
    rm.release(uuid=list(rm.running)[1])
    _, replay = what_if(file, registry, limited(1))
    assert replay.replayed_rm is not None
    assert replay.replayed_rm.unknown == 1


def test_new_preemptions_are_confirmed(file: Path, registry: Registry) -> None:
    tree = [queue("a", resources={"guaranteed": {"memory": 4}}), queue("b")]
    off, on = (configuration(*tree, preemption={"enabled": enabled}) for enabled in (False, True))
    recorder = RecordingWriter(file, print)
    rm = RM(off, scheduler=RecordingScheduler(recorder, registry, ManualClock(10**18)))
    rm.node(memory=4)
    rm.app("big", "root.b")
    rm.ask("big", count=4, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", count=2, memory=1)
    for _ in range(20):
        rm.clock.advance(10)
        rm.scheduler.fire_timers()
        rm.schedule(256)
    assert not rm.entries("released_allocations")
    listener, _ = what_if(file, registry, on)
    reported = [one for _, _, response in listener.responses for one in response.released_allocations]
    assert {one.termination_type for one in reported} == {TerminationType.PREEMPTED_BY_SCHEDULER}
    assert [key for key, _ in listener.placed()] == ["ask"] * (4 + len(reported))
    assert len(reported) == 2


def test_recorded_configurations_are_skipped(rm: RM, file: Path, registry: Registry) -> None:
    rm.node(memory=9)
    rm.app()
    rm.reload(limited(3))
    rm.ask(count=9, memory=1)
    rm.schedule(256)
    listener, _ = what_if(file, registry, limited(5))
    assert listener.remarks == [(7, "reload is ignored: --config replaces all configurations")]
    assert len(listener.placed()) == 5


def test_random_recording_replays_under_another_configuration(tmp_path: Path, registry: Registry) -> None:
    for seed in range(3):
        file = tmp_path / f"{seed}.jsonl"
        life = RandomHistory(seed, file, registry)
        life.live(200)
        listener, _ = what_if(file, registry, limited(2))
        again, _ = what_if(file, registry, limited(2))
        assert listener.responses == again.responses
        assert listener.placed()


def test_handwritten_recording_can_be_replayed_as_a_what_if(registry: Registry) -> None:
    lines = [register(limited(1)), node(memory=9), app(), ask(count=5, memory=1)]
    assert len(play(registry, *lines)[0].placed()) == 1
    assert len(play(registry, *lines, config=limited(3))[0].placed()) == 3
    assert len(play(registry, *lines, {"schedule": 2}, config=limited(3))[0].placed()) == 2
