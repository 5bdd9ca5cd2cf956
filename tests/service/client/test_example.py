"""The example shim (examples/shim) runs processes, and survives restarts of either side."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.service.client.service_process import Service
from tests.service.kit import PATIENCE

CHECKOUT = Path(__file__).parents[3]
EXAMPLE = CHECKOUT / "examples" / "shim"
WAIT = "echo $TASK $NODE >> $FOLDER/started; until [ -e $FOLDER/go ]; do sleep 0.05; done"
"""A task that reports its start, and runs until a file permits its end."""


class Toy:
    """The shim in a process of its own."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        path = os.pathsep.join([str(CHECKOUT), *filter(None, sys.path)])
        with (folder / "stderr").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-u", "-m", "examples.shim.shim", str(folder)),
                    *("--scheduler", address, "--tick", "0.05"),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=CHECKOUT,
                env={**os.environ, "PYTHONPATH": path, "FOLDER": str(folder)},
            )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())

    def says(self, *wanted: str) -> None:
        """Wait until its output contains all these lines, in any order."""
        missing = set(wanted)
        while missing:
            try:
                line = self._lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise AssertionError(f"not said: {missing}") from None
            missing -= {text for text in missing if line.startswith(text)}

    def submit(self, name: str, **fields: Any) -> None:
        """Write a job as a file, atomically."""
        job = {"command": ["sh", "-c", WAIT], **fields}
        (self.folder / "new").write_text(json.dumps(job), "utf-8")
        (self.folder / "new").rename(self.folder / f"{name}.job")

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._reap()

    def stop(self) -> int:
        """Stop the process in order; its tasks keep running."""
        self._process.terminate()
        return self._reap()

    def _reap(self) -> int:
        status = self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.stop()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A scheduler with the queues of the example."""
    (tmp_path / "scheduler").mkdir()
    config = (EXAMPLE / "queues.yaml").read_text("utf-8")
    with Service(tmp_path / "scheduler", config=config) as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of the jobs; at the end all tasks are permitted to end."""
    found = tmp_path / "jobs"
    found.mkdir()
    yield found
    (found / "go").touch()


def started(folder: Path) -> list[str]:
    """Return the started tasks, each as often as it started."""
    return sorted(line.split()[0] for line in (folder / "started").read_text("utf-8").splitlines())


def test_restarts_of_either_side_lose_and_duplicate_no_jobs(service: Service, folder: Path) -> None:
    with Toy(folder, service.address) as toy:
        toy.says("reporting 0 running tasks")
        toy.submit("job", tasks=5)
        toy.says(*[f"job-{number} runs on {node}" for number, node in ((1, "left"), (2, "right"))])
        service.kill()
        service.start()
        toy.says("reporting 4 running tasks")
        toy.kill()
    with Toy(folder, service.address) as toy:
        toy.says("reporting 4 running tasks")
        (folder / "go").touch()
        toy.says(*[f"job-{number} has ended (STOPPED_BY_RM)" for number in range(1, 6)], "job is done")
        assert started(folder) == [f"job-{number}" for number in range(1, 6)]
        assert (folder / "job.done").exists()
        toy.submit("more")
        toy.says("more is done")


def test_predicate_and_events_work_and_invalid_jobs_are_rejected(service: Service, folder: Path) -> None:
    (folder / "left.closed").touch()
    with Toy(folder, service.address) as toy:
        toy.says("reporting 0 running tasks")
        toy.submit("job", tasks=2)
        toy.submit("lost", queue="root.nowhere")
        toy.submit("wrong", speed="high")
        toy.says("job-1 runs on right", "job-2 runs on right", "lost is refused: ", "wrong is refused: ")
    assert (folder / "lost.refused").exists()
    assert (folder / "wrong.refused").exists()
    events = (folder / "events.log").read_text("utf-8")
    assert "NODE left: " in events
    assert "APP job: " in events


def test_preempted_jobs_end_and_run_again(service: Service, folder: Path) -> None:
    with Toy(folder, service.address) as toy:
        toy.says("reporting 0 running tasks")
        toy.submit("job", tasks=4)
        toy.says(*[f"job-{number} runs on {'left' if number % 2 else 'right'}" for number in range(1, 5)])
        toy.submit("quick", queue="root.urgent", command=["true"])
        toy.says("quick is done")
        (folder / "go").touch()
        toy.says("job is done")
    assert len(started(folder)) == 5
