"""Write the golden recordings: `python -m tests.golden.record [NAME...]`, all of them without names.

Run it only for a change that is meant to alter decisions or responses, and name the change and the affected
recordings in the commit message.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.golden import newer_layout, worker_answers
from tests.service.recording.collecting_listener import CollectingListener
from tests.service.recording.random_history import RandomHistory
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn_lab.simulation.engine import Simulation
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_service.recording.recording_reader import parse_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.json_form import to_json

HERE = Path(__file__).parent
RECORDINGS = HERE / "recordings"
SCENARIOS = sorted(path.name for path in (HERE / "scenarios").iterdir())
STEPS = 300
"""Number of random operations in the recording of two resource managers."""


def record_scenario(name: str, file: Path, registry: Registry) -> None:
    """Simulate a scenario of `scenarios/` with a recorded core."""
    folder = HERE / "scenarios" / name
    clock = ManualClock()
    core = RecordingScheduler(RecordingWriter(file, print), registry, clock)
    workload = read_workload(folder / "workload.yaml")
    Simulation(workload, core, clock, config=(folder / "queues.yaml").read_text()).run()
    core.close()


def record_two_managers(seed: int, file: Path, registry: Registry) -> None:
    """Record random operations of two resource managers, including lost connections."""
    RandomHistory(seed, file, registry).live(STEPS)


def record_killed(file: Path, registry: Registry) -> None:
    """Run two servers one after the other on one recording; the first is killed while it writes a line."""
    RandomHistory(101, file, registry).live(STEPS // 2)
    file.write_bytes(file.read_bytes()[:-25])
    RandomHistory(102, file, registry).live(STEPS // 2)


def record_newer_layout(file: Path, registry: Registry) -> None:
    """Send hand-written messages of the newer layout, and write each response after its message."""
    lines: list[str] = []
    given = 0
    for count, line in enumerate(newer_layout.LINES, 1):
        lines.append(json.dumps(line))
        listener = CollectingListener()
        played = "\n".join(json.dumps(one) for one in newer_layout.LINES[:count]).encode()
        Replay(parse_recording(played, "newer layout").lines, registry, listener).run()
        for _, rm_id, response in listener.responses[given:]:
            content = to_json(v0_11.UPDATE_RESPONSE.to_wire(response))
            lines.append(json.dumps({"rm": rm_id, "response": content}))
        given = len(listener.responses)
    file.write_text("\n".join(lines) + "\n")


def record_workers(file: Path, registry: Registry) -> None:
    """Record the answers of a resolver that workers call."""
    workers = worker_answers.ScriptedWorkers()
    writer = RecordingWriter(file, print)
    worker_answers.play(RecordingScheduler(writer, registry, ManualClock(), workers=workers))


def recorders() -> dict[str, Callable[[Path, Registry], None]]:
    """Return the name of every recording with the function that writes it."""
    found: dict[str, Callable[[Path, Registry], None]] = {}
    for name in SCENARIOS:
        found[name] = lambda file, registry, name=name: record_scenario(name, file, registry)  # type: ignore[misc]
    for seed in range(6):
        found[f"two-managers-{seed}"] = lambda file, registry, seed=seed: (  # type: ignore[misc]
            record_two_managers(seed, file, registry)
        )
    found["killed"] = record_killed
    found["newer-layout"] = record_newer_layout
    found["workers"] = record_workers
    return found


def main(names: list[str]) -> None:
    """Write the named recordings, or all."""
    registry = Registry.load(third_party=False)
    RECORDINGS.mkdir(exist_ok=True)
    for name, record in recorders().items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{name}.jsonl"
            record(file, registry)
            packed = gzip.compress(file.read_bytes(), mtime=0)
        (RECORDINGS / f"{name}.jsonl.gz").write_bytes(packed)
        print(f"{name}: {len(packed)} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
