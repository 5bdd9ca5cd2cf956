"""Copy of what a running scheduler shows of its history: a database in memory, for programs that need one.

It has the records that its reader may see. Columns of which records have nothing are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import Column, Table

from yunikorn_history import history_tables as tables
from yunikorn_history.history_kinds import KINDS
from yunikorn_history.queries import LEVELS
from yunikorn_history.row_writer import encode_rows, upsert
from yunikorn_history.rows import Ids, Row, RowBatch

Record = Mapping[str, Any]
Listed = Callable[..., Iterable[Record]]
"""Function that returns the records of a route below `/ws/v1/`, with filters as texts."""
AT_ONCE = 5_000
"""Number of rows that are written together."""
PAGE = 2000
"""Number of records in an answer."""
SERIES = {"queues": tables.QUEUE_SERIES, "users": tables.USER_SERIES, "partition": tables.PARTITION_SERIES}
TABLES = {
    "runs": tables.RUNS,
    "apps": tables.APPLICATIONS,
    "tasks": tables.ALLOCATIONS,
    "usage": tables.USAGE,
    **dict.fromkeys(SERIES, tables.SERIES),
}
"""Tables by the kinds of records that can be copied."""
FIELDS = {
    "rm": "rmID",
    "app_id": "applicationID",
    "gang_timeout": "gangTimeout",
    "longest_wait": "longestWait",
    "lost_service": "lostService",
    "placeholder_service": "placeholderService",
    "app": "application",
    "key": "allocationKey",
    "node": "nodeID",
    "shape": "resource",
    "task_group": "taskGroup",
}
"""Fields of records whose columns have other names."""
FLAGS = {"placeholder": tables.PLACEHOLDER, "recovered": tables.RECOVERED, "preempted": tables.PREEMPTED}
"""Bits of `allocations.flags` by the fields that programs need."""


class HistoryCopy:
    """A history in memory."""

    def __init__(self, listed: Listed) -> None:
        """Create an empty one, which reads records by a function."""
        self._listed = listed
        self._names, self._shapes = Ids("names", {}), Ids("shapes", {})
        self._engine = sa.create_engine("sqlite://")
        self.connection = self._engine.connect()
        tables.METADATA.create_all(self.connection)
        self.connection.execute(tables.NAMES.insert(), [{"id": 0, "text": ""}])

    def close(self) -> None:
        """Forget everything."""
        self.connection.close()
        self._engine.dispose()

    def read(self, kind: str, wanted: Mapping[str, str | int], most: int | None = None) -> None:
        """Add the records of a kind that filters want, the newest `most` if that is given."""
        table = TABLES[kind]
        filters = {name: str(value) for name, value in wanted.items() if value}
        records = self._listed(f"history/{KINDS[kind].path}", **filters, limit=str(min(most or PAGE, PAGE)))
        left = iter(islice(records, most))
        while some := list(islice(left, AT_ONCE)):
            batch = RowBatch({table.name: [self._row(kind, table, one) for one in some]})
            self._names.move_to(batch)
            self._shapes.move_to(batch)
            for name, rows in batch.rows.items():
                of = tables.METADATA.tables[name]
                self.connection.execute(upsert(of, "sqlite"), {"rows": encode_rows(of, rows)})

    def _row(self, kind: str, table: Table, record: Record) -> Row:
        made: dict[str, Any] = {}
        if table is tables.ALLOCATIONS:
            made = _of_task(record)
        elif table is tables.APPLICATIONS:
            states = record.get("states", ())
            made = {"states": [[one["time"], one["state"], one.get("reason", "")] for one in states]}
        elif "data" in table.c:
            keys = {FIELDS.get(column.name, column.name) for column in table.primary_key}
            data = {name: value for name, value in record.items() if name not in keys | {"bucket", "drained"}}
            made = {"level": LEVELS[record["bucket"]], "kind": SERIES.get(kind), "data": data}
        return tuple(
            self._value(column, made.get(column.name, record.get(FIELDS.get(column.name, column.name))))
            for column in table.c
        )

    def _value(self, column: Column[Any], value: Any) -> Any:
        if column.info.get("json") and value is not None:
            value = msgspec.json.encode(value, order="sorted").decode()
        ids = {"names": self._names, "shapes": self._shapes}.get(column.info.get("refers", ""))
        if ids is not None:
            return ids.of(value or "")
        return getattr(column.default, "arg", None) if value is None else value


def _of_task(record: Record) -> dict[str, Any]:
    by = record.get("preemptedBy", ())
    sizes = [[one["until"], one["resource"]] for one in record.get("sizes", ())]
    return {
        "flags": sum(bit for name, bit in FLAGS.items() if record.get(name)),
        "reason": record.get("message"),
        "preemptor": msgspec.json.encode(by).decode() if len(by) > 1 else "".join(by),
        "sizes": sizes or None,
        "shape": record.get("resource", {}),
    }
