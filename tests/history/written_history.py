"""Histories for tests of what reads them, whose rows are given with texts and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Table

from tests.history.test_store import made_row
from yunikorn_history.database import open_writer
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    HOUR,
    PARTITION_SERIES,
    PREEMPTED,
    QUEUE_SERIES,
    SERIES,
    USAGE,
)
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import Ids, RowBatch

START = 1_764_201_600_000
"""2025-11-27 00:00 UTC (ms)."""


def json_of(value: object) -> str:
    """Return compact JSON with sorted keys, as a recorder writes it."""
    return msgspec.json.encode(value, order="sorted").decode()


class WrittenHistory:
    """Rows of a history that a test gives."""

    def __init__(self) -> None:
        self._ids = {"names": Ids("names", {}), "shapes": Ids("shapes", {})}
        self._batch = RowBatch()
        self._highest: dict[str, int] = {}

    def add(self, table: Table, **values: Any) -> int:
        """Add a row, and return its id."""
        found: dict[str, Any] = {}
        number = self._highest[table.name] = self._highest.get(table.name, 0) + 1
        if "id" in table.c:
            found["id"] = number
        for name, value in values.items():
            info = table.c[name].info
            if info.get("json") and value is not None:
                value = json_of(value)
            if "refers" in info:
                value = self._ids[info["refers"]].of(value)
            found[name] = value
        self._batch.add(table.name, made_row(table, **found))
        return number

    def application(self, app_id: str, submitted: int, **values: Any) -> int:
        """Add an application."""
        given: dict[str, Any] = {
            "rm": "rm",
            "partition": "default",
            "queue": "root.default",
            "user": "ann",
            "groups": ["staff"],
            "template": app_id.rstrip("0123456789"),
            "state": "Completed",
            "states": [[submitted, "New", ""]],
            "tags": {},
        }
        return self.add(APPLICATIONS, app_id=app_id, submitted=submitted, **{**given, **values})

    def task(self, app: int, key: str, placed: int, **values: Any) -> int:
        """Add an allocation."""
        given: dict[str, Any] = {"node": "node-1", "shape": {"vcore": 1000}, "requested": placed - 500}
        return self.add(ALLOCATIONS, app=app, key=key, placed=placed, **{**given, **values})

    def write(self, location: str) -> None:
        """Write everything that was added to the history at a location."""
        for ids in self._ids.values():
            ids.move_to(self._batch)
        writer = open_writer(location)
        RowWriter(writer).write(self._batch)
        writer.close()


def small_history(location: str) -> None:
    """Write a history of a day: an application each hour, with two tasks each."""
    history = WrittenHistory()
    users, queues = ("ann", "bob", "cid"), ("root.web", "root.web.eu", "root.batch")
    for hour in range(24):
        begin = START + hour * HOUR
        user, queue = users[hour % 3], queues[hour % 2 if hour < 12 else 2]
        ended = None if hour in (5, 23) else begin + 2 * HOUR
        app = history.application(
            f"job-{hour}",
            begin,
            queue=queue,
            user=user,
            groups=["staff", f"team {user}"],
            tags={"cost": "low", "namespace": queue.removeprefix("root.")},
            started=begin + 60_000,
            ended=ended,
            state="Running" if ended is None else ("Failed" if hour == 7 else "Completed"),
            states=[[begin, "New", ""], [begin + 60_000, "Running", ""]],
            waits={"no node fits": 60_000},
            longest_wait="no node fits",
            tasks=2,
            preempted=int(hour == 9),
            service={"vcore": 2000 * 2 * HOUR},
        )
        for key in ("a", "b"):
            is_victim = hour == 9 and key == "b"
            history.task(
                app,
                f"{key}{hour}",
                begin + 60_000,
                node=f"node-{hour % 4}",
                ended=ended,
                exit="" if ended is None else "PREEMPTED_BY_SCHEDULER" if is_victim else "STOPPED_BY_RM",
                preemptor=json_of(["job-10", "a10"]) if is_victim else "",
                flags=PREEMPTED if is_victim else 0,
            )
        for path in ("root", *queues):
            used: Mapping[str, Any] = {"n": 60, "used": {"vcore": 1500.5}, "running": 2, "waits": {"1000": 3}}
            history.add(SERIES, kind=QUEUE_SERIES, name=path, level=2, time=begin, data=used)
        history.add(SERIES, kind=PARTITION_SERIES, level=3, time=begin, data={"n": 1, "nodes": 4})
        for user in users:
            service = {"service": {"vcore": 10**15}, "started": 2}
            keys: dict[str, Any] = {"rm": "rm", "partition": "default", "queue": "root.web", "user": user}
            history.add(USAGE, level=2, time=begin, groups=["staff"], tags={}, data=service, **keys)
    history.write(location)
