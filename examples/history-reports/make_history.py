"""Make the history of two weeks of a small cluster, for a first look at `yunikorn report`.

    python examples/history-reports/make_history.py FILE

A real history is written by `yunikorn serve --history FILE`.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from typing import Any

from sqlalchemy import Table, Text

from yunikorn_history.database import open_writer
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    DAY,
    HOUR,
    MINUTE,
    PARTITION_SERIES,
    PREEMPTED,
    QUEUE_SERIES,
    RUNS,
    SERIES,
    USAGE,
)
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import Ids, RowBatch

BEGIN, DAYS = 1_772_409_600_000, 14
"""Monday, the second of March 2026, in milliseconds since 1970."""
JOBS = (
    ("root.science", "ada", 8, 1, 9, 12, False),
    ("root.science", "bea", 16, 6, 11, 45, False),
    ("root.batch", "cleo", 16, 2, 6, 3, True),
    ("root.batch", "cleo", 4, 12, 20, 1, False),
)
"""Queue, user, cores, hours at which the job of a day begins and ends, minutes of waiting, preempted."""
GIB = 1 << 30
GUARANTEED = {"root.science": {"vcore": 16_000}}
CAPACITY = {"memory": 128 * GIB, "nvidia.com/gpu": 4, "vcore": 32_000}


def main(file: str) -> None:
    """Write the history to a new file."""
    names, shapes, batch = Ids("names", {}), Ids("shapes", {}), RowBatch()
    end = BEGIN + DAYS * DAY
    add(batch, RUNS, id=1, started=BEGIN, seen=end)
    for number in range(DAYS * len(JOBS)):
        day = BEGIN + number // len(JOBS) * DAY
        queue, user, cores, begin, until, minutes, preempted = JOBS[number % len(JOBS)]
        size = size_of(cores)
        placed, ended = day + begin * HOUR, day + until * HOUR
        submitted = placed - minutes * (1 + number % 3) * MINUTE
        application = {
            "id": number + 1,
            "app_id": f"{user}-{number:03}",
            "queue": names.of(queue),
            "user": names.of(user),
            "submitted": submitted,
            "started": placed,
            "ended": ended,
            "waits": text({"quota" if queue == "root.batch" else "nodes": placed - submitted}),
            "longest_wait": names.of("quota" if queue == "root.batch" else "nodes"),
            "tasks": 1,
            "preempted": int(preempted),
        }
        add(batch, APPLICATIONS, **application)
        task = {"shape": shapes.of(text(size)), "requested": submitted, "placed": placed, "ended": ended}
        if preempted:
            task |= {"flags": PREEMPTED, "reason": names.of("preempted for a guarantee")}
            task["preemptor"] = names.of(text([f"bea-{number - 1:03}", "task-0"]))
        add(batch, ALLOCATIONS, id=number + 1, app=number + 1, key="task-0", **task)
    for day in range(BEGIN, end, DAY):
        add_day(batch, names, day)
    shapes.move_to(batch)
    names.move_to(batch)
    writer = open_writer(file)
    RowWriter(writer).write(batch)
    writer.close()


def add_day(batch: RowBatch, names: Ids, day: int) -> None:
    """Add the sums of a day, in which all jobs begin and end."""
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for queue, user, cores, begin, until, _, preempted in JOBS:
        found = sums.setdefault((queue, user), {"service": defaultdict(int), "started": 0, "ended": 0})
        found["started"] += 1
        found["ended"] += 1
        for name, amount in size_of(cores).items():
            found["service"][name] += amount * (until - begin) * HOUR
        if preempted:
            found["preempted"] = 1
            found["lost"] = {name: amount * (until - begin) * HOUR for name, amount in size_of(cores).items()}
    for (queue, user), found in sums.items():
        add(batch, USAGE, level=3, time=day, queue=names.of(queue), user=names.of(user), data=text(found))
    for queue in ("root.science", "root.batch"):
        guaranteed = {"guaranteed": GUARANTEED[queue]} if queue in GUARANTEED else {}
        series = {"n": 1440, "used": {"vcore": 6_000.0}, "pending": {"vcore": 900.0}, **guaranteed}
        add(batch, SERIES, kind=QUEUE_SERIES, name=names.of(queue), level=3, time=day, data=text(series))
    idle = {"nodes": {"vcore": 6_000 * HOUR}, "quota": {"vcore": 2_500 * HOUR}}
    used = {"memory": 40.0 * GIB, "nvidia.com/gpu": 0.7, "vcore": 10_000.0}
    whole = {"n": 1440, "capacity": CAPACITY, "used": used, "idle": idle}
    add(batch, SERIES, kind=PARTITION_SERIES, level=3, time=day, data=text(whole))


def size_of(cores: int) -> dict[str, int]:
    """Return the size of a job, which has a GPU if it is large."""
    gpus = {"nvidia.com/gpu": 2} if cores > 8 else {}
    return {"memory": 4 * cores * GIB, **gpus, "vcore": 1000 * cores}


def text(value: object) -> str:
    """Return compact JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def add(batch: RowBatch, table: Table, **values: Any) -> None:
    """Add a row, with 0, an empty text or None where nothing is given."""
    row = {
        column.name: None if column.nullable else "" if isinstance(column.type, Text) else 0
        for column in table.c
    }
    batch.add(table.name, tuple({**row, **values}.values()))


if __name__ == "__main__":
    main(*sys.argv[1:])
