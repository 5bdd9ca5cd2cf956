"""Removal of old history, by age and by size, in transactions so short that rows are written in between."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

import attrs
import sqlalchemy as sa
from sqlalchemy import Column, ColumnElement, Table
from sqlalchemy.engine import Connection

from yunikorn.clock import SECOND, stopwatch
from yunikorn_history.database import HistoryWriter
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    AUDIT,
    CONFIGS,
    DAY,
    FAULTS,
    GAPS,
    HOUR,
    LEVELS,
    META,
    METADATA,
    NAMES,
    NODES,
    RUNS,
    SERIES,
    USAGE,
)
from yunikorn_history.rows import Ids
from yunikorn_history.unused_texts import remove_unused_texts

_log = logging.getLogger("yunikorn.history")

SLOW, FAST = SECOND // 20, SECOND // 50
"""Durations of a transaction (ns) above and below which the next one removes half or twice as many rows."""
FIRST_ROWS, FEWEST_ROWS, MOST_ROWS = 500, 20, 20_000
CLOCK, AHEAD = "clock", "clock_ahead"
"""Keys of `meta` for the time (ms) of the latest round, and for that at which the clock was too far ahead."""
JUMP, STAY = DAY, DAY
"""Time (ms) after the latest round from which on a clock is doubted, and for how long it then is."""


@attrs.frozen
class RetentionLimits:
    """Limits of a history; ages in milliseconds."""

    age: int | None = 400 * DAY
    """Age of the oldest applications, allocations, nodes, configurations, runs, faults and decisions of
    operators, from their end on; None keeps all."""
    levels: dict[int, int] = attrs.Factory(lambda: {1: 2 * DAY, 2: 90 * DAY, 3: 730 * DAY})
    """Age of the oldest buckets of series and usage, by level: minutes, hours and days."""
    size: int | None = None
    """Bytes that rows and indexes occupy; None for any number."""


@attrs.frozen
class _Rule:
    """Rows to remove: those whose `time` is before a limit, oldest first."""

    table: Table
    time: Column[int]
    condition: ColumnElement[bool] | None = None
    level: int = 0


_latest_configs = sa.select(sa.func.max(CONFIGS.c.id)).group_by(CONFIGS.c.rm, CONFIGS.c.group)
_ALLOCATIONS = _Rule(ALLOCATIONS, ALLOCATIONS.c.ended)
_APPLICATIONS = _Rule(APPLICATIONS, APPLICATIONS.c.ended)
_RULES = (
    _ALLOCATIONS,
    _APPLICATIONS,
    _Rule(AUDIT, AUDIT.c.time),
    _Rule(CONFIGS, CONFIGS.c.time, CONFIGS.c.id.not_in(_latest_configs)),
    _Rule(FAULTS, FAULTS.c.latest),
    _Rule(GAPS, GAPS.c.until),
    _Rule(NODES, NODES.c.left),
    _Rule(RUNS, RUNS.c.ended),
)


class Retention:
    """Removal of what exceeds the limits, in rounds of many small steps."""

    def __init__(self, limits: RetentionLimits) -> None:
        self._limits = limits
        self._round: Iterator[None] | None = None
        self._rows = FIRST_ROWS
        self._writer: HistoryWriter | None = None
        self._is_too_small = False
        """True after the log said that what stays is larger than the limit."""

    def step(self, writer: HistoryWriter, now: int, ids: Mapping[str, Ids] | None = None) -> bool:
        """Remove a few rows in a transaction; return True until a round is over. Raises `HistoryError`.

        `now` is in milliseconds, and `ids` are those of the recorder, to remove texts that are not used. One
        round an hour is enough.
        """
        if self._round is None or writer is not self._writer:
            self._writer, self._round = writer, self._steps(writer, now, ids or {})
        try:
            next(self._round)
        except StopIteration:
            self._round = None
        except BaseException:
            self._round = None
            raise
        return self._round is not None

    def _steps(self, writer: HistoryWriter, now: int, ids: Mapping[str, Ids]) -> Iterator[None]:
        limits = self._limits
        with writer.transaction() as connection:
            is_plausible = _is_plausible(connection, writer, now)
        if is_plausible:
            yield from self._remove_old(writer, now)
        if limits.size is not None:
            yield from self._shrink(writer, limits.size, now)
        if ids:
            yield from remove_unused_texts(writer, ids)

    def _remove_old(self, writer: HistoryWriter, now: int) -> Iterator[None]:
        limits, removed = self._limits, 0
        if limits.age is not None:
            before = now - limits.age
            for rule in _RULES:
                for count in self._remove(writer, rule, rule.time < before):
                    removed += count
                    yield
        for rule in self._buckets():
            for count in self._remove(writer, rule, rule.time < now - limits.levels[rule.level]):
                removed += count
                yield
        if removed:
            _log.info("%s: removed %d rows that were older than the limits", writer.location, removed)

    def _shrink(self, writer: HistoryWriter, limit: int, now: int) -> Iterator[None]:
        """Remove the oldest allocations, then applications, then buckets, until the rest fits.

        What runs, what ended in the present hour, and the present bucket of each level stay; if what stays
        does not fit alone, nothing is removed.
        """
        with writer.transaction() as connection:
            size, row_sizes = used_bytes(connection)
            staying = staying_bytes(connection) if size > limit else 0
        if staying > limit * 0.95:
            self._warn_of_small_limit(writer, size, limit)
            return
        if size <= limit:
            self._is_too_small = False
            return
        before, removed = size, dict.fromkeys((ALLOCATIONS, APPLICATIONS, SERIES, USAGE), 0)
        # Removal to below the limit, so that not every round removes a little, and reports it.
        for rule in (_ALLOCATIONS, _APPLICATIONS, *self._buckets()):
            present = now - now % LEVELS.get(rule.level, HOUR)
            for count in self._remove(writer, rule, rule.time < present):
                removed[rule.table] += count
                yield
                if row_sizes:
                    freed = sum(count * row_sizes.get(table, 0) for table, count in removed.items())
                    size = before - int(freed)
                else:
                    with writer.transaction() as connection:
                        size, _ = used_bytes(connection)
                if size <= limit * 0.95:
                    break
            if size <= limit * 0.95:
                break
        if not any(removed.values()):
            self._warn_of_small_limit(writer, size, limit)
            return
        what = ", ".join(f"{count:,} {table.name}" for table, count in removed.items() if count)
        _log.warning(
            "%s: it had %d MiB, and may have %d (--history-size): removed the oldest of it: %s%s",
            writer.location,
            before >> 20,
            limit >> 20,
            what,
            f"; it still has {size >> 20} MiB" if size > limit else "",
        )

    def _warn_of_small_limit(self, writer: HistoryWriter, size: int, limit: int) -> None:
        if not self._is_too_small:
            self._is_too_small = True
            _log.warning(
                "%s: it has %d MiB, and may have %d (--history-size), and too little of it can be removed:"
                " what runs, names, configurations and the present hour stay: allow it more",
                writer.location,
                size >> 20,
                limit >> 20,
            )

    def _buckets(self) -> list[_Rule]:
        return [
            _Rule(table, table.c.time, table.c.level == level, level)
            for level in self._limits.levels
            for table in (SERIES, USAGE)
        ]

    def _remove(self, writer: HistoryWriter, rule: _Rule, limit: ColumnElement[bool]) -> Iterator[int]:
        """Remove the rows of a rule, and return the number of each transaction."""
        keys = [*rule.table.primary_key]
        conditions = [limit] if rule.condition is None else [rule.condition, limit]
        while True:
            rows = self._rows
            chosen = sa.select(*keys).where(*conditions).order_by(rule.time).limit(rows)
            key = keys[0] if len(keys) == 1 else sa.tuple_(*keys)
            begin = stopwatch()
            with writer.transaction() as connection:
                count = connection.execute(sa.delete(rule.table).where(key.in_(chosen))).rowcount
            took = stopwatch() - begin
            if took > SLOW:
                self._rows = max(FEWEST_ROWS, rows // 2)
            elif took < FAST and count == rows:
                self._rows = min(MOST_ROWS, rows * 2)
            if count:
                yield count
            if count < rows:
                return


def _is_plausible(connection: Connection, writer: HistoryWriter, now: int) -> bool:
    """Return False for a time that is far after the latest round, until a day has passed from then on.

    A clock that is wrong for some hours would make everything too old at once. What this finds is kept, so
    that a scheduler that is often started again, or that was off for long, removes old rows in the end.
    """
    kept = {CLOCK: now} | {
        key: int(value)
        for key, value in connection.execute(sa.select(META).where(META.c.key.in_((CLOCK, AHEAD)))).all()
    }
    ahead = kept.get(AHEAD)
    is_plausible = now - kept[CLOCK] <= JUMP or (ahead is not None and now - ahead >= STAY)
    if is_plausible:
        kept = {CLOCK: now}
    elif ahead is None or now < ahead:
        kept[AHEAD] = now
        _log.warning(
            "%s: the clock is %.1f days ahead of the latest removal of old rows: if it is right for a day,"
            " they are removed by age again; check the clock of this machine",
            writer.location,
            (now - kept[CLOCK]) / DAY,
        )
    connection.execute(sa.delete(META).where(META.c.key.in_((CLOCK, AHEAD))))
    connection.execute(sa.insert(META), [{"key": key, "value": str(time)} for key, time in kept.items()])
    return is_plausible


def used_bytes(connection: Connection) -> tuple[int, dict[Table, float]]:
    """Return the bytes of a database without those of removed rows, and the mean size of rows of a table.

    New rows take the place of removed ones. SQLite counts the free pages, and needs no sizes of rows.
    """
    if connection.dialect.name == "sqlite":
        pages, free, size = (
            int(connection.scalar(sa.text(f"PRAGMA {name}")) or 0)
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size, {}
    total, row_sizes = 0, dict[Table, float]()
    for table in (ALLOCATIONS, APPLICATIONS, SERIES, USAGE):
        mean = sa.text(f"SELECT avg(pg_column_size(t)) FROM (SELECT * FROM {table.name} LIMIT 500) t")
        width = float(connection.scalar(mean) or 0)
        rows, heap, whole = connection.execute(_SIZES, {"table": table.name}).one()
        if rows and heap and width:
            # A heap of so many rows of their mean size is as much of the present one as is in use.
            used = whole * min(1.0, rows * (width + ROW_POINTER) / heap)
            total += round(used)
            row_sizes[table] = used / rows
    return total, row_sizes


def staying_bytes(connection: Connection) -> int:
    """Return about how many bytes of `used_bytes` have texts and rows that removal by size does not remove.

    These are the texts alone, without the space around them, so that it is rather too few.
    """
    total = 0
    for table in METADATA.tables.values():
        is_removed = table in (ALLOCATIONS, APPLICATIONS, SERIES, USAGE)
        if is_removed and "ended" not in table.c:
            continue
        if not is_removed and connection.dialect.name != "sqlite":
            continue  # which are not counted there
        lengths = (sa.func.coalesce(sa.func.length(sa.cast(column, sa.Text())), 0) for column in table.c)
        query = sa.select(sa.func.sum(sum(lengths, sa.literal(0))))
        if is_removed:
            query = query.where(table.c.ended.is_(None))
        # The index of names has them once more.
        total += int(connection.scalar(query) or 0) * (2 if table is NAMES else 1)
    return total


ROW_POINTER = 4
"""Bytes in a page of PostgreSQL that lead to a row."""
_SIZES = sa.text(
    # The count of live rows is empty after a crash, until the table is analysed again.
    "SELECT CASE WHEN n_live_tup > 0 THEN n_live_tup ELSE greatest(reltuples, 0) END,"
    " pg_relation_size(relid), pg_total_relation_size(relid)"
    " FROM pg_stat_user_tables JOIN pg_class ON oid = relid WHERE relid = CAST(:table AS regclass)"
)
