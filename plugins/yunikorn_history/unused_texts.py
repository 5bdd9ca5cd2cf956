"""Removal of names and shapes that no row refers to, once a month, in transactions of a few rows.

While the rows are looked through, the recorder goes on. It may refer to a text that was in the database when
it began, and did not occur since. So a text is taken from its memory before it is removed, and one that has
occurred meanwhile is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy import Column, ColumnElement, Table

from yunikorn_history.database import HistoryWriter
from yunikorn_history.history_tables import LEVELS, META, METADATA, NAMES, SHAPES
from yunikorn_history.row_writer import DOUBTFUL
from yunikorn_history.rows import Ids

CHECKED = "texts_checked"
"""Key of `meta` for the time at which unused texts were removed."""
CHECK_INTERVAL = timedelta(days=30)
ROWS = 10_000
"""Number of rows of a table in a transaction."""


def remove_unused_texts(writer: HistoryWriter, known: Mapping[str, Ids]) -> Iterator[None]:
    """Remove unused rows of `names` and `shapes` if that is due, one transaction at a time.

    `known` are the ids of the recorder by the name of their table.
    """
    if not _is_due(writer):
        return
    used = {table.name: {0} for table in (NAMES, SHAPES)}
    for table in METADATA.tables.values():
        columns = [column for column in table.c if "refers" in column.info]
        if columns:
            yield from _note_used(writer, table, columns, used)
    for table in (NAMES, SHAPES):
        last: int | None = 0
        while last is not None:
            last = _remove_some(writer, table, last, used[table.name], known[table.name])
            yield
    _set_checked(writer)


def _is_due(writer: HistoryWriter) -> bool:
    with writer.transaction() as connection:
        checked = connection.scalar(sa.select(META.c.value).where(META.c.key == CHECKED))
        # Doubts have names that other rows may not have.
        is_doubtful = connection.scalar(sa.select(DOUBTFUL.exists()))
    if checked is None:
        _set_checked(writer)
    return (
        checked is not None
        and not is_doubtful
        and writer.now >= datetime.fromisoformat(checked) + CHECK_INTERVAL
    )


def _set_checked(writer: HistoryWriter) -> None:
    with writer.transaction() as connection:
        connection.execute(sa.delete(META).where(META.c.key == CHECKED))
        values = {"key": CHECKED, "value": writer.now.isoformat(timespec="seconds")}
        connection.execute(sa.insert(META), [values])


def _note_used(
    writer: HistoryWriter, table: Table, columns: list[Column[int]], used: dict[str, set[int]]
) -> Iterator[None]:
    """Add the ids in columns of a table to those that are used."""
    parts: list[list[ColumnElement[bool]]] = [[]]
    if "level" in table.c:
        parts = [[table.c.level == level] for level in LEVELS]
    place = table.c.id if "id" in table.c else table.c.time
    for part in parts:
        end: int | None = -1
        while end is not None:
            behind = [*part, place > end]
            following = sa.select(place).where(*behind).order_by(place).limit(ROWS).subquery()
            with writer.transaction() as connection:
                end = connection.scalar(sa.select(sa.func.max(following.c[0])))
                for column in columns if end is not None else ():
                    found = sa.select(column).where(*behind, place <= end).distinct()
                    used[column.info["refers"]].update(connection.scalars(found))
            yield


def _remove_some(writer: HistoryWriter, table: Table, last: int, used: set[int], ids: Ids) -> int | None:
    """Remove unused texts after an id, and return the last id that was looked at; None at the end."""
    with writer.transaction() as connection:
        rows = connection.execute(
            sa.select(table).where(table.c.id > last).order_by(table.c.id).limit(ROWS)
        ).all()
        unused = ids.forget((number, text) for number, text in rows if number not in used)
        connection.execute(sa.delete(table).where(table.c.id.in_(unused)))
    return rows[-1][0] if rows else None
