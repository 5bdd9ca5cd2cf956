"""Rows written to a history and read from it, in SQLite and PostgreSQL."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from yunikorn_history.database import HistoryError, HistoryLocked, open_reader, open_writer
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    CONFIGS,
    FAULTS,
    METADATA,
    NAMES,
    RUNS,
    SERIES,
    SHAPES,
    USAGE,
)
from yunikorn_history.open_rows import json_text
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import Ids, Row, RowBatch


def made_row(table: sa.Table, **values: object) -> Row:
    """Return a row of a table, with 0, an empty text or None where nothing is given."""
    assert set(values) <= set(table.c.keys())
    empty = {
        column.name: None if column.nullable else "" if isinstance(column.type, sa.Text) else 0
        for column in table.c
    }
    return tuple({**empty, **values}.values())


def batch_of(*rows: tuple[sa.Table, Row]) -> RowBatch:
    """Return a batch with rows of tables."""
    batch = RowBatch()
    for table, row in rows:
        batch.add(table.name, row)
    return batch


def rows_of(location: str, table: sa.Table) -> list[Row]:
    """Return the rows of a table in the order of their primary keys."""
    reader = open_reader(location)
    with reader.reading() as connection:
        found = connection.execute(sa.select(table).order_by(*table.primary_key))
        rows = [tuple(row) for row in found]
    reader.close()
    return rows


def test_rows_of_every_table_are_read_as_they_were_written(location: str) -> None:
    written: dict[str, list[Row]] = {}
    for table in METADATA.sorted_tables:
        if table.name not in ("meta", "names"):
            values: dict[str, object] = {}
            for number, column in enumerate(table.c):
                is_text = isinstance(column.type, sa.Text)
                values[column.name] = f'{{"a":"{number}"}}' if is_text else 100 + number
            empty = made_row(table, **{column.name: 7 for column in table.primary_key})
            written[table.name] = [empty, tuple(values.values())]
    writer = open_writer(location)
    RowWriter(writer).write(RowBatch(written))
    writer.close()
    for name, rows in written.items():
        assert rows_of(location, METADATA.tables[name]) == rows


def test_a_row_takes_the_place_of_one_with_the_same_primary_key(location: str) -> None:
    writer = open_writer(location)
    rows = RowWriter(writer)
    rows.write(batch_of((FAULTS, made_row(FAULTS, id=1, count=1)), (FAULTS, made_row(FAULTS, id=2, count=1))))
    rows.write(batch_of((FAULTS, made_row(FAULTS, id=2, count=2)), (FAULTS, made_row(FAULTS, id=2, count=3))))
    bucket = {"level": 2, "time": 3_600_000, "queue": 1}
    for data in ("{}", '{"n":1}'):
        rows.write(
            batch_of(
                (USAGE, made_row(USAGE, **bucket, data="[]")), (USAGE, made_row(USAGE, **bucket, data=data))
            )
        )
    writer.close()
    assert [(row[0], row[5]) for row in rows_of(location, FAULTS)] == [(1, 1), (2, 3)]
    assert [row[-1] for row in rows_of(location, USAGE)] == ['{"n":1}']


def test_a_recorder_continues_from_names_ids_and_open_rows(location: str) -> None:
    writer = open_writer(location)
    rows = RowWriter(writer)
    names, shapes = Ids("names", {}), Ids("shapes", {})
    batch = batch_of(
        (RUNS, made_row(RUNS, id=3, started=1, ended=2)),
        (RUNS, made_row(RUNS, id=4, started=3)),
        (APPLICATIONS, made_row(APPLICATIONS, id=8, app_id="over", ended=5)),
        (APPLICATIONS, made_row(APPLICATIONS, id=9, app_id="running", user=names.of("ann"))),
        (ALLOCATIONS, made_row(ALLOCATIONS, id=20, app=9, shape=shapes.of('{"vcore":1000}'))),
        (ALLOCATIONS, made_row(ALLOCATIONS, id=21, app=9, ended=5)),
        (SERIES, made_row(SERIES, kind=1, level=1, time=60_000, data="{}")),
    )
    names.move_to(batch)
    shapes.move_to(batch)
    rows.write(batch)
    writer.close()
    again = open_writer(location)
    known = RowWriter(again).load()
    again.close()
    assert known.names == {"": 0, "ann": 1}
    assert known.shapes == {'{"vcore":1000}': 1}
    assert {name: number for name, number in known.highest.items() if number} == {
        "allocations": 21,
        "applications": 9,
        "names": 1,
        "runs": 4,
        "shapes": 1,
    }
    assert {name: [row[0] for row in found] for name, found in known.open.items()} == {
        "runs": [4],
        "applications": [9],
        "allocations": [20],
        "nodes": [],
    }
    assert known.open["applications"][0] == made_row(APPLICATIONS, id=9, app_id="running", user=1)


def test_a_failed_transaction_writes_nothing_and_the_next_one_works(location: str) -> None:
    writer = open_writer(location)
    rows = RowWriter(writer)
    with pytest.raises(HistoryError):
        # The run has no version.
        rows.write(batch_of((FAULTS, made_row(FAULTS, id=1)), (RUNS, (1, 0, 0, None, None, None))))
    rows.write(batch_of((FAULTS, made_row(FAULTS, id=2))))
    writer.close()
    assert [row[0] for row in rows_of(location, FAULTS)] == [2]


def test_a_second_writer_is_refused_and_readers_are_not(location: str) -> None:
    writer = open_writer(location)
    RowWriter(writer).write(batch_of((FAULTS, made_row(FAULTS, id=1))))
    with pytest.raises(HistoryLocked):
        open_writer(location)
    assert len(rows_of(location, FAULTS)) == 1
    RowWriter(writer).write(batch_of((FAULTS, made_row(FAULTS, id=2))))
    assert len(rows_of(location, FAULTS)) == 2
    writer.close()
    open_writer(location).close()


def test_a_reader_sees_one_state_while_the_writer_continues(location: str) -> None:
    writer = open_writer(location)
    rows = RowWriter(writer)
    rows.write(batch_of((FAULTS, made_row(FAULTS, id=1))))
    reader = open_reader(location)
    count = sa.select(sa.func.count()).select_from(FAULTS)
    with reader.reading() as connection:
        assert connection.scalar(count) == 1
        rows.write(batch_of((FAULTS, made_row(FAULTS, id=2))))
        assert connection.scalar(count) == 1
    with reader.reading() as connection:
        assert connection.scalar(count) == 2
    reader.close()
    writer.close()


HOSTILE = [
    "'); DROP TABLE names; --",
    '"; \\ %s :rows {0} $1 ?',
    "a\0b",
    "\ud800 lone",
    "‮rtl‬ \u200b \U0010ffff",
    "x" * 1_000_000,
    " ",
    "\x1b[31m\n\r\t",
]


def test_hostile_texts_are_kept_as_far_as_databases_allow(location: str) -> None:
    writer = open_writer(location)
    rows = RowWriter(writer)
    for _ in range(2):
        known = rows.load()
        names = Ids("names", known.names, known.highest["names"] + 1)
        numbers = [names.of(text) for text in HOSTILE]
        batch = batch_of(
            *(
                (APPLICATIONS, made_row(APPLICATIONS, id=number, app_id=text, user=number, states=text))
                for number, text in zip(numbers, HOSTILE, strict=True)
            ),
            (CONFIGS, made_row(CONFIGS, id=1, text="\0".join(HOSTILE))),
        )
        names.move_to(batch)
        rows.write(batch)
        # Another process gives them the same ids.
        assert numbers == [*range(1, len(HOSTILE) + 1)]
    writer.close()
    kept = {number: text for number, text in rows_of(location, NAMES)}
    for number, text in enumerate(HOSTILE, 1):
        if text in ("a\0b", "\ud800 lone", HOSTILE[5]):
            assert kept[number] != text
        else:
            assert kept[number] == text
    assert kept[3] == "a\ufffdb"
    assert kept[6] == "x" * 4000 + "... (1,000,000 characters)"
    app_ids = [str(row[APPLICATIONS.c.keys().index("app_id")]) for row in rows_of(location, APPLICATIONS)]
    assert [len(app_id) for app_id in app_ids] == [min(len(text), 500) for text in HOSTILE[:3]] + [
        len("\ufffd" * 3 + " lone")
    ] + [min(len(text), 500) for text in HOSTILE[4:]]


def test_numbers_beyond_64_bits_are_kept_in_amounts_and_cut_in_columns(location: str) -> None:
    large = 2**70
    amounts = json_text({"memory": large})
    writer = open_writer(location)
    allocation = made_row(
        ALLOCATIONS,
        id=1,
        requested=-large,
        placed=2**63 - 1,
        ended=large,
        priority=2**40,
        sizes=f"[[{large},{amounts}]]",
    )
    usage = made_row(USAGE, level=2, time=1, data=f'{{"service":{amounts}}}')
    RowWriter(writer).write(batch_of((ALLOCATIONS, allocation), (USAGE, usage), (SHAPES, (1, amounts))))
    writer.close()
    (row,) = rows_of(location, ALLOCATIONS)
    kept = dict(zip(ALLOCATIONS.c.keys(), row, strict=True))
    assert kept["requested"] == -(2**63 - 1)
    assert kept["placed"] == kept["ended"] == 2**63 - 1
    assert kept["priority"] == 2**31 - 1
    assert str(kept["sizes"]) == f'[[{large},{{"memory":{large}}}]]'
    assert rows_of(location, USAGE)[0][-1] == f'{{"service":{{"memory":{large}}}}}'
    assert rows_of(location, SHAPES) == [(1, f'{{"memory":{large}}}')]
