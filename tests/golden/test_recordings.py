"""Golden recordings replay with the very same responses: a change of structure has changed no decision.

A recording holds all that went into a core, and every response. The set covers each mechanism (see
`scenarios/`), two resource managers that do at random all that can be recorded, a server that is killed,
and both layouts. `record.py` makes them.
"""

from __future__ import annotations

import gzip

import pytest

from tests.golden.record import RECORDINGS, recorders
from tests.recording.listening import Ear
from yunikorn.recording.recording_reader import parse_recording
from yunikorn.recording.replayer import Replay
from yunikorn.registry import Registry


def test_every_scenario_has_its_recording_and_no_recording_is_left_over() -> None:
    assert {path.name for path in RECORDINGS.iterdir()} == {f"{name}.jsonl.gz" for name in recorders()}


@pytest.mark.parametrize("name", recorders())
def test_replays_byte_for_byte(name: str, registry: Registry) -> None:
    data = gzip.decompress((RECORDINGS / f"{name}.jsonl.gz").read_bytes())
    recording = parse_recording(data, name)
    ear = Ear()
    replay = Replay(recording.lines, registry, ear)
    replay.run()
    assert str(replay.comparison.first or "") == ""
    recorded = sum(line.kind == "response" for line in recording.lines)
    assert replay.comparison.equal == recorded > 10
    # The process that was killed had given one response more than it could write.
    assert len(ear.responses) == recorded + (name == "killed")
    assert replay.answers.unknown == 0
