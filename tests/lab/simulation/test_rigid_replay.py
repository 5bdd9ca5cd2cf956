"""An independent replay of logs of rigid jobs: every job starts when a small event simulation says it does.

The replay shares no code with the scheduler. It decides which jobs start, in order of submission, and takes
from the files of the run only the nodes of a job that starts. Jobs follow others, and have memory per node.
"""

from __future__ import annotations

import heapq
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from yunikorn.framework.registry import Registry
from yunikorn_lab.simulation.out_folder import FolderRecorder, OutFolder
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.run import simulate

CONFIG = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]\n"
KINDS = ((6, 4, 16), (2, 8, 64))
"""Nodes, processors and GB of the kinds of nodes of a machine."""
EPOCH = 1_356_998_400
GB = 2**30
PATIENCE = 600
"""Seconds after which a job that finds no room holds back those after it."""


@attrs.define
class LoggedJob:
    """A job as its line has it; times are seconds."""

    number: int
    submit: int
    runtime: int
    nodes: int
    per_node: int
    memory: int
    """KB on each node."""
    after: tuple[int, ...]
    think: int
    first_try: float | None = None

    @property
    def processors(self) -> int:
        """Number of tasks."""
        return self.nodes * self.per_node

    @property
    def needs(self) -> dict[str, int]:
        """Amounts of each task."""
        return {"vcore": 1000, "memory": -(-self.memory * 1024 // self.per_node)}

    def line(self) -> str:
        """Return the line of the log, with 20 columns."""
        after = "&".join(map(str, self.after)) or "-1"
        start = (
            f"{self.number} {self.submit + EPOCH} -1 {self.runtime} {self.processors} -1 -1 {self.processors}"
        )
        return f"{start} -1 {self.memory} 1 7 3 5 1 2 {after} {self.think} {self.nodes} {self.per_node}"


def draw(seed: int, count: int = 120) -> list[LoggedJob]:
    """Return the jobs of a log; half of them follow up to three others, which may stand below them."""
    rng = random.Random(seed)
    numbers = list(range(1, count + 1))
    rng.shuffle(numbers)
    clock, jobs = 0, []
    for place, number in enumerate(numbers):
        clock += rng.choice([0, 0, 5, 60, 120])
        behind = rng.sample(numbers[max(place - 20, 0) : place], min(place, rng.choice([0, 0, 1, 3])))
        wide = rng.choice([(1, 1), (1, 4), (2, 2), (4, 4), (2, 1)])
        memory = rng.choice([1, 2, 8, 15]) * GB // 1024
        runtime = rng.choice([0, 1, 60, 900, rng.randint(1, 2000)])
        think = rng.choice([-1, 0, 30])
        jobs.append(LoggedJob(number, clock, runtime, *wide, memory, tuple(behind), think))
    first = jobs[0].submit
    for job in jobs:
        job.submit -= first
    if seed % 2:  # forward references: lines in the order of their numbers, not of their times
        jobs.sort(key=lambda job: job.number)
    return jobs


class RigidReplay:
    """Starts of jobs in order of submission, on nodes that the run has chosen for them."""

    def __init__(self, jobs: Sequence[LoggedJob], folder: Path) -> None:
        self._chosen: dict[int, list[tuple[float, str]]] = defaultdict(list)
        for line in _lines(folder / "decisions.jsonl"):
            if line["event"] == "allocation":
                place = float(line["time"]), line["node"]
                self._chosen[int(line["application"].removeprefix("job-"))].append(place)
        self._free = {line["node"]: dict(line["resources"]) for line in _lines(folder / "nodes.jsonl")}
        ordered = sorted(jobs, key=lambda job: job.submit)
        self._places = {job.number: place for place, job in enumerate(ordered)}
        self._missing = {job.number: set(job.after) for job in jobs}
        self._events = [(job.submit, 1, self._places[job.number], job) for job in ordered if not job.after]
        heapq.heapify(self._events)
        self._jobs = ordered
        self.starts: dict[int, float] = {}

    def run(self) -> dict[int, float]:
        """Return the start of each job."""
        waiting: list[LoggedJob] = []
        while self._events:
            now = self._events[0][0]
            arrived = []
            while self._events and self._events[0][0] == now:
                _, arrives, _, job = heapq.heappop(self._events)
                if arrives:
                    arrived.append(job)
                else:
                    self._end(job, now)
            # Of jobs submitted at one instant, those that follow others come last.
            waiting += sorted(arrived, key=lambda job: (bool(job.after), self._places[job.number]))
            while (found := self._next(waiting, now)) is not None:
                waiting.remove(found)
                self._start(found, now)
        return self.starts

    def _end(self, job: LoggedJob, now: int) -> None:
        self._move(job, 1)
        for other in self._jobs:
            if job.number in self._missing[other.number]:
                self._missing[other.number].remove(job.number)
                if not self._missing[other.number]:
                    ready = max(other.submit, now + max(other.think, 0))
                    heapq.heappush(self._events, (ready, 1, self._places[other.number], other))

    def _next(self, waiting: Sequence[LoggedJob], now: int) -> LoggedJob | None:
        for job in waiting:
            rooms = (min(free[name] // job.needs[name] for name in free) for free in self._free.values())
            if sum(rooms) >= job.processors:
                return job
            job.first_try = now if job.first_try is None else job.first_try
            if now - job.first_try >= PATIENCE:
                return None
        return None

    def _start(self, job: LoggedJob, now: int) -> None:
        chosen = self._chosen[job.number]
        assert [time for time, _ in chosen] == [now] * job.processors, job
        self.starts[job.number] = now
        self._move(job, -1)
        assert all(amount >= 0 for free in self._free.values() for amount in free.values()), job
        heapq.heappush(self._events, (now + job.runtime, 0, self._places[job.number], job))

    def _move(self, job: LoggedJob, sign: int) -> None:
        for _, node in self._chosen[job.number]:
            for name, amount in job.needs.items():
                self._free[node][name] += sign * amount


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, path.read_text("utf-8").splitlines())


@pytest.mark.parametrize("seed", range(6))
def test_every_job_starts_when_the_replay_starts_it(seed: int, registry: Registry, tmp_path: Path) -> None:
    jobs = draw(seed)
    log = tmp_path / "log.swf"
    log.write_text("\n".join(job.line() for job in jobs), "utf-8")
    machines = [
        f"{kind} k{kind} {nodes} {each} 1 {gb * GB // 1024}" for kind, (nodes, each, gb) in enumerate(KINDS)
    ]
    (tmp_path / "log.swf.machines").write_text("\n".join(machines), "utf-8")
    workload = read_workload(log)
    assert any("KB per node" in remark for remark in workload.remarks)
    with OutFolder(tmp_path / "out") as out:
        report = simulate(CONFIG, workload, registry, recorder=FolderRecorder(out))
    starts = RigidReplay(jobs, tmp_path / "out").run()
    assert len(starts) == len(jobs) == report.applications.finished
    assert report.dependencies is not None
    assert report.dependencies.submitted == sum(1 for job in jobs if job.after)
