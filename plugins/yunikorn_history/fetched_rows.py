"""Rows of a history as records: with texts and amounts in place of the numbers that refer to them.

A statement fetches its rows as one JSON text. A thread that fetched them one by one would wait for the
interpreter's lock after each row while the core is busy.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import Column, Table, func
from sqlalchemy.engine import Connection

from yunikorn.clock import SECOND, stopwatch
from yunikorn_history.database import HistoryError, HistoryReader
from yunikorn_history.history_tables import METADATA, NAMES, SHAPES
from yunikorn_history.packed_columns import PackedText

INSTRUCTIONS = 2_000_000
"""Number of instructions of SQLite from one look at the time to the next."""
MOST_TEXTS = 100_000
"""Number of texts that are remembered."""
QUERY_CANCELLED = "57014"
"""State of a statement that PostgreSQL ended because of its time limit."""

Texts = dict[str, dict[int, str]]
Statement = sa.Select[Any] | sa.CompoundSelect[Any]


class HistoryTooSlow(HistoryError):
    """Query that took longer than it may."""


class FetchedRows:
    """Rows of the statements of one query, all of the same state of the database."""

    def __init__(self, connection: Connection, texts: Texts) -> None:
        self._connection, self._texts = connection, texts
        self.is_sqlite = connection.dialect.name == "sqlite"

    def rows(self, statement: Statement) -> list[list[Any]]:
        """Return the rows of a statement, in its order."""
        inner = statement.subquery()
        if self.is_sqlite:
            text: Any = func.json_group_array(func.json_array(*inner.c))
        else:
            text = sa.cast(func.json_agg(func.json_build_array(*inner.c)), sa.Text)
        found = self._connection.scalar(sa.select(text))
        return [] if found is None else msgspec.json.decode(found, type=list[list[Any]])

    def ids(self, statement: Statement) -> list[int]:
        """Return the first column of a statement."""
        return [row[0] for row in self.rows(statement)]

    def records(self, table: Table, rows: list[list[Any]]) -> list[dict[str, Any]]:
        """Return rows by the names of their columns, with texts, and with the values of JSON."""
        return self.records_of(table.c, rows)

    def records_of(self, columns: Iterable[Column[Any]], rows: list[list[Any]]) -> list[dict[str, Any]]:
        """Return rows with some columns likewise."""
        named: dict[str, tuple[Any, ...]] = {}
        for column, values in zip(columns, zip(*rows, strict=True), strict=bool(rows)):
            refers = column.info.get("refers")
            if refers is not None:
                known = self.texts(METADATA.tables[refers], values)
                values = tuple([known[value] for value in values])
            if isinstance(column.type, PackedText):
                values = tuple(map(column.type.unpack, values))
            if column.info.get("json"):
                decoded = {text: msgspec.json.decode(text) for text in set(values) if text}
                values = tuple([decoded.get(text) for text in values])
            named[column.name] = values
        return [dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True)]

    def texts(self, table: Table, numbers: Iterable[int]) -> dict[int, str]:
        """Return texts of `names` or `shapes`, among them those with these numbers; a lost one is empty."""
        known = self._texts[table.name]
        unknown = {number for number in numbers if number not in known}
        if unknown:
            known.update(dict.fromkeys(unknown, ""))
            wanted = sa.select(table).where(table.c.id.in_(unknown))
            known.update({number: text for number, text in self.rows(wanted)})
        return known


def unread_texts() -> Texts:
    """Return the texts that are known without reading."""
    return {NAMES.name: {0: ""}, SHAPES.name: {0: ""}}


class HistoryConnections:
    """Connections to a history, and the texts that they have in common."""

    def __init__(self, reader: HistoryReader, patience: float | None) -> None:
        """Use an open history; queries end after `patience` seconds."""
        self._reader, self._patience = reader, patience
        self._texts: Texts = {}

    def close(self) -> None:
        """Close the history."""
        self._reader.close()

    @contextmanager
    def connected(self) -> Iterator[FetchedRows]:
        """Provide a connection; raises `HistoryError`."""
        if not self._texts or sum(map(len, self._texts.values())) > MOST_TEXTS:
            self._texts = unread_texts()
        try:
            with self._reader.reading() as connection:
                if self._patience is not None:
                    _limit(connection, self._patience)
                yield FetchedRows(connection, self._texts)
        except HistoryError as error:
            cause = getattr(error.__cause__, "orig", error.__cause__)
            interrupted = getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT
            if interrupted or getattr(cause, "sqlstate", None) == QUERY_CANCELLED:
                text = f"the query takes longer than {self._patience:g} s: ask for a shorter time"
                raise HistoryTooSlow(text) from error
            raise


def _limit(connection: Connection, patience: float) -> None:
    """End what is done on a connection, which is used once, after some seconds."""
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {round(patience * 1000)}")
        return
    until = stopwatch() + round(patience * SECOND)
    driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(lambda: stopwatch() > until, INSTRUCTIONS)
