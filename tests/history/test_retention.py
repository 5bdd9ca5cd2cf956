"""Removal of old history by age and by size."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from tests.history.made_history import UNTIL, make_history
from tests.history.test_store import batch_of, made_row, rows_of
from yunikorn.clock import MILLISECOND, ManualClock
from yunikorn_history import unused_texts
from yunikorn_history.database import HistoryWriter, open_reader, open_writer
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
    METADATA,
    NAMES,
    NODES,
    RUNS,
    SERIES,
    SHAPES,
    USAGE,
)
from yunikorn_history.retention import Retention, RetentionLimits, staying_bytes, used_bytes
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import Ids


def column_of(location: str, table: sa.Table, name: str) -> list[Any]:
    """Return a column of all rows, by primary key."""
    place = table.c.keys().index(name)
    return [row[place] for row in rows_of(location, table)]


def finish(
    retention: Retention, writer: HistoryWriter, now: int = UNTIL, known: Mapping[str, Ids] | None = None
) -> int:
    """Carry out a round, and return the number of its steps."""
    steps = 1
    while retention.step(writer, now, known):
        steps += 1
    return steps


def test_rows_go_when_their_end_is_older_than_the_limit(location: str) -> None:
    old, young = UNTIL - 31 * DAY, UNTIL - 29 * DAY
    ends = {APPLICATIONS: "ended", ALLOCATIONS: "ended", RUNS: "ended", NODES: "left", GAPS: "until"}
    ends |= {FAULTS: "latest", AUDIT: "time"}
    writer = open_writer(location)
    batch = batch_of(
        *((table, made_row(table, id=1, **{end: old})) for table, end in ends.items()),
        *((table, made_row(table, id=2, **{end: young})) for table, end in ends.items()),
        *((table, made_row(table, id=3)) for table in (APPLICATIONS, ALLOCATIONS, RUNS, NODES)),
        # The configuration in use is never too old, and each resource manager has its own.
        *((CONFIGS, made_row(CONFIGS, id=number, rm=number % 2, time=number)) for number in range(1, 6)),
    )
    RowWriter(writer).write(batch)
    finish(Retention(RetentionLimits(30 * DAY)), writer)
    writer.close()
    for table in (APPLICATIONS, ALLOCATIONS, RUNS, NODES):
        assert column_of(location, table, "id") == [2, 3], table.name
    for table in (GAPS, FAULTS, AUDIT):
        assert column_of(location, table, "id") == [2], table.name
    assert column_of(location, CONFIGS, "id") == [4, 5]


def test_a_clock_that_jumps_ahead_removes_nothing_until_it_stays_there_for_a_day(
    location: str, caplog: pytest.LogCaptureFixture
) -> None:
    def kept(now: int) -> int:
        # Each round as that of another process.
        finish(Retention(RetentionLimits(30 * DAY)), writer, now)
        return len(rows_of(location, AUDIT)) + len(rows_of(location, SERIES))

    writer = open_writer(location)
    rows = [(AUDIT, made_row(AUDIT, id=1, time=UNTIL)), (SERIES, made_row(SERIES, level=1, time=UNTIL))]
    RowWriter(writer).write(batch_of(*rows))
    assert kept(UNTIL) == 2
    assert not caplog.messages
    ahead = UNTIL + 400 * DAY
    assert [kept(ahead), kept(ahead + DAY // 2)] == [2, 2]
    (message,) = caplog.messages
    assert "the clock is 400.0 days ahead of the latest removal of old rows" in message
    # It was wrong; the next time it is not, and stays.
    assert [kept(UNTIL + DAY // 24), kept(ahead)] == [2, 2]
    assert [kept(ahead + DAY - 1), kept(ahead + DAY)] == [2, 0]
    writer.close()


def test_without_an_age_everything_is_kept(location: str) -> None:
    writer = open_writer(location)
    RowWriter(writer).write(batch_of((ALLOCATIONS, made_row(ALLOCATIONS, id=1, ended=1))))
    finish(Retention(RetentionLimits(None)), writer)
    writer.close()
    assert len(rows_of(location, ALLOCATIONS)) == 1


def test_series_and_usage_go_by_level(location: str) -> None:
    make_history(location, applications=20, allocations=100, days=8, minutes=0.2)
    writer = open_writer(location)
    finish(Retention(RetentionLimits(levels={1: DAY // 10, 2: 3 * DAY, 3: 6 * DAY})), writer)
    writer.close()
    for table in (SERIES, USAGE):
        oldest: dict[int, int] = {}
        for level, time in zip(
            column_of(location, table, "level"), column_of(location, table, "time"), strict=True
        ):
            oldest[level] = min(time, oldest.get(level, time))
        assert oldest.pop(1, UNTIL) >= UNTIL - DAY // 10
        assert oldest[2] >= UNTIL - 3 * DAY
        assert oldest[3] == UNTIL - 6 * DAY


def test_a_round_has_many_small_transactions_between_which_rows_are_written(location: str) -> None:
    make_history(location, applications=200, allocations=2000, days=4, minutes=0, hours=0)
    writer = open_writer(location)
    rows = RowWriter(writer)
    retention = Retention(RetentionLimits(DAY // 24))
    counts = []
    number = 1
    while retention.step(writer, UNTIL):
        number += 1
        rows.write(batch_of((FAULTS, made_row(FAULTS, id=number, latest=UNTIL))))
        counts.append(len(rows_of(location, ALLOCATIONS)))
    writer.close()
    assert counts[0] == 1500
    assert counts[-1] < 200
    assert column_of(location, FAULTS, "id") == [*range(2, number + 1)]


def test_the_oldest_allocations_go_first_if_the_history_is_too_large(
    location: str, caplog: pytest.LogCaptureFixture
) -> None:
    make_history(location, applications=100, allocations=8_000, days=4, minutes=0, hours=0, nodes=3, queues=2)
    writer = open_writer(location)
    with writer.transaction() as connection:
        if writer.dialect == "postgresql":
            connection.execute(sa.text("ANALYZE"))
        size, _ = used_bytes(connection)
    before = sorted(end for end in column_of(location, ALLOCATIONS, "ended") if end)
    retention = Retention(RetentionLimits(size=round(size * 0.7)))
    with caplog.at_level(logging.WARNING, "yunikorn.history"):
        finish(retention, writer)
    kept = sorted(end for end in column_of(location, ALLOCATIONS, "ended") if end)
    assert kept == before[len(before) - len(kept) :]
    assert len(before) * 0.3 < len(kept) < len(before) * 0.75
    assert len(rows_of(location, APPLICATIONS)) == 100
    (message,) = caplog.messages
    assert "(--history-size): removed the oldest of it: " in message
    assert message.endswith(" allocations")
    if writer.dialect == "sqlite":
        # The space is used again: another round removes nothing.
        assert finish(retention, writer) == 1
    writer.close()


def test_applications_and_then_buckets_go_if_allocations_do_not_suffice(
    location: str, caplog: pytest.LogCaptureFixture
) -> None:
    make_history(location, applications=100, allocations=300, days=4)
    writer = open_writer(location)
    if writer.dialect == "postgresql":
        with writer.transaction() as connection:
            connection.execute(sa.text("ANALYZE"))
    with writer.transaction() as connection:
        least = round(staying_bytes(connection) * 1.06)
    retention = Retention(RetentionLimits(size=least))
    with caplog.at_level(logging.WARNING, "yunikorn.history"):
        finish(retention, writer)
        kept = {table: rows_of(location, table) for table in (ALLOCATIONS, APPLICATIONS, SERIES, USAGE)}
        assert "; it still has " in caplog.messages[-1]
        # Nothing more can go, which is said once.
        finish(retention, writer)
        finish(retention, writer)
        finish(Retention(RetentionLimits(size=least // 2)), writer)
    assert ["allow it more" in message for message in caplog.messages] == [False, True, True]
    writer.close()
    assert kept == {table: rows_of(location, table) for table in kept}
    hour = UNTIL - UNTIL % HOUR
    for table in (ALLOCATIONS, APPLICATIONS):
        assert all(end is None or end >= hour for end in column_of(location, table, "ended"))
    for table in (SERIES, USAGE):
        levels, times = (column_of(location, table, name) for name in ("level", "time"))
        assert all(time >= UNTIL - UNTIL % LEVELS[level] for level, time in zip(levels, times, strict=True))


def test_texts_that_nothing_refers_to_go_after_a_month(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_history(location, applications=40, allocations=200, days=4)
    clock = ManualClock(UNTIL * MILLISECOND)
    reader = open_reader(location)
    referred = {NAMES: {0}, SHAPES: set[int]()}
    for table in METADATA.tables.values():
        for column in table.c:
            target = METADATA.tables.get(str(column.info.get("refers")))
            if target is not None:
                with reader.reading() as connection:
                    referred[target] |= set(connection.scalars(sa.select(column)))
    reader.close()
    writer = open_writer(location, clock)
    rows = RowWriter(writer)
    unused = made_row(NAMES, id=90_000, text="gone"), made_row(SHAPES, id=90_000, amounts="gone")
    rows.write(batch_of((NAMES, unused[0]), (SHAPES, unused[1])))
    rows.write(batch_of((NAMES, made_row(NAMES, id=90_001, text="again"))))
    found = rows.load()
    known = {"names": Ids("names", found.names, 90_002), "shapes": Ids("shapes", found.shapes, 90_001)}
    retention = Retention(RetentionLimits())
    monkeypatch.setattr(unused_texts, "ROWS", 50)
    for days in (0, 29):
        clock.advance(days * 86_400)
        finish(retention, writer, known=known)
        assert {90_000, 90_001} <= set(column_of(location, NAMES, "id"))
    clock.advance(2 * 86_400)
    # It occurs while the rows are looked through.
    assert retention.step(writer, UNTIL, known)
    assert known["names"].of("again") == 90_001
    assert finish(retention, writer, known=known) > 20
    assert set(column_of(location, NAMES, "id")) == referred[NAMES] | {90_001}
    assert set(column_of(location, SHAPES, "id")) == referred[SHAPES]
    assert (known["names"].of("gone"), known["names"].of("again")) == (90_002, 90_001)
    clock.advance(86_400)
    assert finish(retention, writer, known=known) < 20
    writer.close()
