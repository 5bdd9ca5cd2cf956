"""Golden recordings replay with exactly the recorded responses, so refactoring has changed no decision.

A recording contains all inputs of a core and all its responses. The set covers each mechanism (see
`scenarios/`), random operations of two resource managers, a server that is killed, and both layouts.
`record.py` writes the recordings. A failing test means that a change alters decisions or responses. If that
is intended, write the recording again.
"""

from __future__ import annotations

import gzip

import pytest

from tests.golden.record import RECORDINGS, recorders
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.framework.registry import Registry
from yunikorn_service.recording.recording_reader import parse_recording
from yunikorn_service.recording.replayer import Replay


def test_scenarios_and_recordings_match() -> None:
    assert {path.name for path in RECORDINGS.iterdir()} == {f"{name}.jsonl.gz" for name in recorders()}


@pytest.mark.parametrize("name", recorders())
def test_replay_is_byte_identical(name: str, registry: Registry) -> None:
    data = gzip.decompress((RECORDINGS / f"{name}.jsonl.gz").read_bytes())
    recording = parse_recording(data, name)
    listener = CollectingListener()
    replay = Replay(recording.lines, registry, listener)
    replay.run()
    assert str(replay.comparison.first or "") == ""
    recorded = sum(line.kind == "response" for line in recording.lines)
    assert replay.comparison.equal == recorded > 10
    # The killed process had sent one more response than it could record.
    assert len(listener.responses) == recorded + (name == "killed")
    assert replay.answers.unknown == 0
