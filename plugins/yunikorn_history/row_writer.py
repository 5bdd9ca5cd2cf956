"""Writing of rows to a history database, and reading of what a recorder continues from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import attrs
import msgspec
import sqlalchemy as sa
from sqlalchemy import BigInteger, Column, Table, TextClause
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Connection

from yunikorn_history.database import HistoryAway, HistoryCorrupt, HistoryLocked, HistoryWriter
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    DAY,
    METADATA,
    NAMES,
    NODES,
    RUNS,
    SERIES,
    SHAPES,
)
from yunikorn_history.packed_columns import PackedText
from yunikorn_history.rows import Row, RowBatch, clean_text
from yunikorn_history.task_keys import forget_blocks, settled_blocks, write_blocks

LARGEST_PART = 64 << 20
"""Characters of JSON above which the texts of rows are cut."""
_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]
FIRST_TEXTS, LATEST_TEXTS = 10_000, 100_000
"""Numbers of texts that a recorder has in memory at its start; others that come again get new ids."""
RECENT = 7 * DAY
MOST_IDS = 10_000
"""Number of ids in a condition."""
INDEXED_TEXT = 500
"""Length of an indexed text; an index of PostgreSQL holds no text above 2,700 bytes."""


DOUBTFUL = sa.select(APPLICATIONS.c.id).where(
    APPLICATIONS.c.ended.is_(None), APPLICATIONS.c.doubts.is_not(None)
)


_TASK = ALLOCATIONS.c
_OPEN: dict[Table, sa.Select[Any] | sa.CompoundSelect[Any]] = {
    RUNS: sa.select(RUNS).where(RUNS.c.ended.is_(None)),
    APPLICATIONS: sa.select(APPLICATIONS).where(APPLICATIONS.c.ended.is_(None)),
    # Not one condition, for which PostgreSQL would read the whole table.
    ALLOCATIONS: sa.union_all(
        sa.select(ALLOCATIONS).where(_TASK.ended.is_(None)),
        sa.select(ALLOCATIONS).where(_TASK.ended.is_not(None), _TASK.app.in_(DOUBTFUL)),
    ),
    NODES: sa.select(NODES).where(NODES.c.left.is_(None)),
}


@attrs.frozen
class OpenRows:
    """Rows of a database from which a recorder continues."""

    names: dict[str, int]
    """Ids by text: of all names or, if there are many, of those that may come again."""
    shapes: dict[str, int]
    highest: dict[str, int]
    """Highest id in each table; 0 without rows."""
    open: dict[str, list[Row]]
    """Rows without an end: of runs, applications, allocations and nodes (`left`); and all allocations of
    applications with doubts."""


@attrs.frozen
class RefusedRow:
    """A row that a database does not take."""

    table: str
    row: Row
    error: Exception


class RowWriter:
    """Writer of batches of rows."""

    def __init__(self, writer: HistoryWriter) -> None:
        self._writer = writer
        self._settled = self._highest = 0
        """Block before which all keys have digests, and the highest id of earlier runs, until those have."""

    def write(self, batch: RowBatch) -> None:
        """Write a batch in one transaction; rows of the same primary keys are replaced.

        Raises `HistoryError`. Nothing is written then, or, if only the answer was lost, everything; a batch
        may be written again.
        """
        parts = [
            (METADATA.tables[name], encode_rows(METADATA.tables[name], rows))
            for name, rows in batch.rows.items()
            if rows
        ]
        with self._writer.transaction() as connection:
            for table, text in parts:
                connection.execute(upsert(table, self._writer.dialect), {"rows": text})
            ids: Iterator[Any] = (row[0] for row in batch.rows.get(ALLOCATIONS.name, ()))
            settled = settled_blocks(max(self._highest, *ids, 0))
            has_rest = settled > self._settled and write_blocks(connection, settled)
        if settled > self._settled and not has_rest:
            self._settled, self._highest = settled, 0

    def write_parts(self, batch: RowBatch) -> list[RefusedRow]:
        """Write a batch without the rows that the database refuses, in many transactions; return those rows.

        Raises what the row of the run raises, because other rows are then no better.
        """
        refused: list[RefusedRow] = []
        self.write(RowBatch({RUNS.name: batch.rows.get(RUNS.name, [])}))
        self._write_part([(table, row) for table, rows in batch.rows.items() for row in rows], refused)
        return refused

    def _write_part(self, rows: list[tuple[str, Row]], refused: list[RefusedRow]) -> None:
        batch = RowBatch()
        for table, row in rows:
            batch.add(table, row)
        try:
            self.write(batch)
        except (HistoryAway, HistoryCorrupt, HistoryLocked):
            raise
        except Exception as error:
            if len(rows) == 1:
                refused.append(RefusedRow(*rows[0], error))
                return
            middle = len(rows) // 2
            self._write_part(rows[:middle], refused)
            self._write_part(rows[middle:], refused)

    def load(self) -> OpenRows:
        """Return what a recorder needs from earlier runs; raises `HistoryError`."""
        with self._writer.transaction() as connection:
            highest = {
                name: connection.scalar(sa.select(sa.func.max(table.c.id))) or 0
                for name, table in METADATA.tables.items()
                if "id" in table.c
            }
            found = {
                table.name: [tuple(row) for row in connection.execute(statement)]
                for table, statement in _OPEN.items()
            }
            self._highest = highest[ALLOCATIONS.name]
            forget_blocks(connection, self._highest)
            names, shapes = (_ids(connection, table, highest[table.name], found) for table in (NAMES, SHAPES))
            return OpenRows(names, shapes, highest, found)


def _ids(connection: Connection, table: Table, highest: int, found: dict[str, list[Row]]) -> dict[str, int]:
    """Return texts with their ids, of many only the first ones, the latest ones, and those that rows have."""
    number, text = table.c
    parts = [sa.or_(number <= FIRST_TEXTS, number > highest - LATEST_TEXTS)]
    if highest > FIRST_TEXTS + LATEST_TEXTS:
        used = {one for name, rows in found.items() for one in _referred(METADATA.tables[name], rows, table)}
        if table is NAMES:
            used.update(_names_of_series(connection))
        rest = sorted(one for one in used if FIRST_TEXTS < one <= highest - LATEST_TEXTS)
        parts += [number.in_(rest[place : place + MOST_IDS]) for place in range(0, len(rest), MOST_IDS)]
    selected = (sa.select(text, number).where(part) for part in parts)
    return {row[0]: row[1] for one in selected for row in connection.execute(one)}


def _referred(table: Table, rows: list[Row], to: Table) -> Iterator[Any]:
    """Yield the ids in rows that refer to a table."""
    for place, column in enumerate(table.c):
        if column.info.get("refers") == to.name:
            yield from {row[place] for row in rows}


def _names_of_series(connection: Connection) -> Iterator[int]:
    """Yield the ids of names that had anything in the latest days: present buckets keep their ids."""
    c = SERIES.c
    latest = sa.select(sa.func.max(c.time)).where(c.level == 3).scalar_subquery()
    recent = sa.select(c.name, c.rm, c.partition).where(c.level == 3, c.time >= latest - RECENT).distinct()
    for row in connection.execute(recent):
        yield from row


def encode_rows(table: Table, rows: list[Row]) -> str:
    """Return JSON of rows, the last one of each primary key."""
    keys = [table.c.keys().index(column.name) for column in table.primary_key]
    if len(keys) == 1:
        (key,) = keys
        latest = list({row[key]: row for row in rows}.values())
    else:
        latest = list({tuple(row[key] for key in keys): row for row in rows}.values())
    packed = {
        place: column.type.pack for place, column in enumerate(table.c) if isinstance(column.type, PackedText)
    }
    for place, pack in packed.items():
        latest = [(*row[:place], pack(row[place]), *row[place + 1 :]) for row in latest]
    try:
        text = msgspec.json.encode(latest).decode()
    except UnicodeEncodeError:  # lone surrogates
        text = ""
    if not text or len(text) > LARGEST_PART or "\\u0000" in text:
        latest = [
            tuple(clean_text(value) if isinstance(value, str) else value for value in row) for row in latest
        ]
        text = msgspec.json.encode(latest).decode()
    return text


@cache
def upsert(table: Table, dialect: str) -> TextClause:
    """Return the statement that writes the rows of the parameter `rows`, JSON of a list of lists.

    It is one statement for any number of rows, because a thread that steps a database once per row waits for
    the interpreter's lock each time.
    """
    names = [f'"{name}"' for name in table.c.keys()]  # noqa: SIM118 - not a dict
    keys = [f'"{column.name}"' for column in table.primary_key]
    is_sqlite = dialect == "sqlite"
    # Without a condition, SQLite takes ON for that of a join.
    source = "json_each(:rows) WHERE true" if is_sqlite else "jsonb_array_elements(CAST(:rows AS jsonb))"
    values = [_value(column, place, is_sqlite) for place, column in enumerate(table.c)]
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    return sa.text(
        f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {', '.join(values)} FROM {source}"
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"
    )


def _value(column: Column[Any], place: int, is_sqlite: bool) -> str:
    """Return the expression for a value of a row, which any text and number of a resource manager fit."""
    value = f"json_extract(value, '$[{place}]')" if is_sqlite else f"value ->> {place}"
    if isinstance(column.type, sa.Text):
        return f"substr({value}, 1, {INDEXED_TEXT})" if column is APPLICATIONS.c.app_id else value
    limit = 2**63 - 1 if isinstance(column.type, BigInteger) else 2**31 - 1
    if "refers" in column.info or column.primary_key:
        limit = 0
    if is_sqlite:
        return f"min(max({value}, {-limit}), {limit})" if limit else value
    kind = column.type.compile(dialect=_POSTGRESQL)
    if not limit:
        return f"CAST({value} AS {kind})"
    # Not its least and greatest, which ignore an empty value instead of returning it.
    number = f"CAST({value} AS numeric)"
    beyond = f"WHEN {number} > {limit} THEN {limit} WHEN {number} < {-limit} THEN {-limit}"
    return f"CAST(CASE {beyond} ELSE {number} END AS {kind})"
