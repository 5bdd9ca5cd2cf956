"""Logs of a small machine, as an archive would have them: jobs that have really run on its nodes.

A job asks for processors and memory on each of its nodes. A scheduler in order of arrival places the jobs, so
that recorded waits and run times are possible. The same jobs are then written with every way to count memory.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs

GB = 1024**3
NODES, PROCESSORS, MEMORY = 8, 16, 64 * GB
EPOCH = 1_700_000_000
MACHINES = f"0 cluster {NODES} {PROCESSORS} 1 {MEMORY // 1024}\n"


@attrs.frozen
class RecordedJob:
    """A job that has run; times are seconds."""

    number: int
    submit: int
    wait: int
    runtime: int
    nodes: int
    ppn: int
    memory: int
    """Bytes on each of its nodes."""


def record(seed: int, count: int = 250, gap: float = 200.0) -> list[RecordedJob]:
    """Return the jobs of a log: memory and processors of a node are asked for independently."""
    rng = random.Random(seed)
    free = [[PROCESSORS, MEMORY] for _ in range(NODES)]
    running: list[tuple[int, list[int], int, int]] = []
    found, submit, clock = [], 0, 0
    for number in range(1, count + 1):
        submit += int(rng.expovariate(1 / gap))
        nodes, ppn = rng.choice([1, 1, 1, 2, 4]), rng.choice([1, 2, 4, 8, 16])
        memory = rng.choice([1, 2, 8, 16, 32, 60]) * GB
        runtime = int(rng.lognormvariate(6.0, 1.0)) + 1
        clock = max(clock, submit)
        while True:
            fitting = [place for place, (left, room) in enumerate(free) if left >= ppn and room >= memory]
            if len(fitting) >= nodes:
                break
            running.sort()
            end, places, of_processors, of_memory = running.pop(0)
            for place in places:
                free[place][0] += of_processors
                free[place][1] += of_memory
            clock = max(clock, end)
        for place in fitting[:nodes]:
            free[place][0] -= ppn
            free[place][1] -= memory
        running.append((clock + runtime, fitting[:nodes], ppn, memory))
        found.append(RecordedJob(number, submit, clock - submit, runtime, nodes, ppn, memory))
    return found


COUNTED = {
    "processor": lambda job: job.memory // job.ppn,
    "node": lambda job: job.memory,
    "job": lambda job: job.memory * job.nodes,
}
UNITS = {"kb": 1024, "mb": 1024**2, "bytes": 1}


def lines_of(
    jobs: list[RecordedJob],
    owner: str,
    unit: str,
    *,
    extras: str = "",
    has_waits: bool = True,
    epoch: int = 0,
) -> Iterator[str]:
    """Yield the lines of a log; `extras` are further columns with `{nodes}` and `{ppn}`."""
    for job in jobs:
        processors = job.nodes * job.ppn
        memory = COUNTED[owner](job) // UNITS[unit]
        wait = job.wait if has_waits else -1
        columns = [job.number, job.submit + epoch, wait, job.runtime, processors, -1, -1, processors]
        columns += [2 * job.runtime, memory, 1, 7, 3, 5, 1, 2, -1, -1]
        yield " ".join(map(str, columns)) + (
            " " + extras.format(nodes=job.nodes, ppn=job.ppn) if extras else ""
        )
