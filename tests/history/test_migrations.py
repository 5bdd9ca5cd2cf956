"""Histories of older versions, converted when a scheduler opens them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa

from tests.history.test_database import execute
from tests.history.test_store import batch_of, made_row, rows_of
from tests.history.written_history import START, WrittenHistory
from yunikorn_history.database import HistoryLocation, HistoryReader, open_writer
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.history_tables import ALLOCATIONS, APPLICATIONS, NAMES, NODES, SERIES
from yunikorn_history.page_queries import PageQueries
from yunikorn_history.queries import HistoryQueries
from yunikorn_history.row_writer import RowWriter

UUID = "00f1e2d3-c4b5-4697-8879-6a5b4c3d2e1f"
BACK_TO_2 = (
    *("DROP INDEX applications_tags", "DROP INDEX applications_preempted"),
    *("DROP INDEX allocations_preempted", "DROP INDEX allocations_exit"),
    "ALTER TABLE applications ADD COLUMN old TEXT",
    "UPDATE applications SET old = (SELECT text FROM names WHERE id = tags AND id > 0)",
    "ALTER TABLE applications DROP COLUMN tags",
    "ALTER TABLE applications RENAME COLUMN old TO tags",
    "DELETE FROM names WHERE text LIKE '{%'",
    "INSERT INTO names SELECT 500, tags FROM applications WHERE id = 1",
    f'UPDATE applications SET states = \'[[{START},"New",""],[{START + 5},"Completed",""]]\'',
    "UPDATE allocations SET flags = 0 WHERE id < 4",
    f"""UPDATE allocations SET "key" = '{UUID}' WHERE id = 1""",
    """UPDATE allocations SET "key" = substr("key", 2) WHERE id = 2""",
    *("DROP TABLE task_keys", "DROP INDEX applications_place"),
    "UPDATE meta SET value = '2' WHERE key = 'schema'",
)
"""Statements that make the tables of version 2."""


def test_keys_ends_and_tags_of_version_2_are_found(location: str) -> None:
    history = WrittenHistory()
    states = [[START, "New", ""], [START + 5, "Completed", ""]]
    for number, tags in enumerate(({"cost": "low"}, {}, {"cost": "high"}, {"cost": "high"})):
        app = history.application(f"app-{number}", START, tags=tags, preempted=number % 2, states=states)
        key = (UUID, "=odd", "plain", "late")[number]
        end = ("STOPPED_BY_RM", "TIMEOUT", "TIMEOUT", "PREEMPTED_BY_SCHEDULER")[number]
        history.task(app, key, START + number, ended=START + 9, exit=end, flags=4 * (number == 3))
    history.write(location)
    for statement in BACK_TO_2:
        execute(location, statement)
    execute(location, "UPDATE applications SET tags = NULL WHERE id = 2")
    open_writer(location).close()
    queries = HistoryQueries.open(location)
    apps = {one.application_id: one for one in queries.applications().records}
    assert [apps[f"app-{number}"].tags for number in range(4)] == [
        *({"cost": "low"}, {}),
        *({"cost": "high"}, {"cost": "high"}),
    ]
    assert [one.state for one in apps["app-0"].states] == ["New", "Completed"]
    found = queries.applications(HistoryFilter(tag="cost=high")).records
    assert {one.application_id for one in found} == {"app-2", "app-3"}
    found = queries.applications(HistoryFilter(preempted=True)).records
    assert {one.application_id for one in found} == {"app-1", "app-3"}
    for wanted, keys in (
        (HistoryFilter(exit="TIMEOUT"), ["plain", "=odd"]),
        (HistoryFilter(exit="STOPPED_BY_RM"), [UUID]),
        (HistoryFilter(preempted=True), ["late"]),
    ):
        assert [one.allocation_key for one in queries.tasks(wanted).records] == keys
    for key, name in ((UUID, "app-0"), ("=odd", "app-1"), ("plain", "app-2")):
        assert [one.text for one in PageQueries(queries).search(key, 9, None) if one.kind == "task"] == [name]
    queries.close()
    reader = HistoryReader(HistoryLocation.parse(location))
    with reader.reading() as connection:
        for table in (APPLICATIONS, ALLOCATIONS):
            indexes = {one["name"] for one in sa.inspect(connection).get_indexes(table.name)}
            assert indexes == {index.name for index in table.indexes}
            columns = {one["name"] for one in sa.inspect(connection).get_columns(table.name)}
            assert columns == set(table.c.keys())
    reader.close()


def test_doubts_of_version_2_have_their_tags_as_names(location: str) -> None:
    low, high = '{"cost": "low"}', '{"cost": "high"}'
    history = WrittenHistory()
    history.application("app", START, state="New", tags={"cost": "low"})
    history.write(location)
    for statement in BACK_TO_2:
        execute(location, statement)
    doubts = [
        {"before": made_row(APPLICATIONS, tags=tags), "time": START} for tags in (low, high, high, None)
    ]
    execute(location, f"UPDATE applications SET tags = '{low}', doubts = '{json.dumps(doubts)}'")
    open_writer(location).close()
    texts: dict[Any, Any] = {number: text for number, text in rows_of(location, NAMES)}
    row: dict[str, Any] = dict(zip(APPLICATIONS.c.keys(), rows_of(location, APPLICATIONS)[0], strict=True))
    kept = [dict(zip(row, one["before"], strict=True))["tags"] for one in json.loads(row["doubts"])]
    assert [texts[number] for number in (row["tags"], *kept)] == [low, low, high, high, ""]
    assert [*texts.values()].count(high) == 1


@pytest.mark.parametrize(("partitions", "place"), [(["default"], (1, 2)), (["default", "gpu"], (0, 0))])
def test_series_of_version_1_become_those_of_the_partition_if_there_was_only_one(
    location: str, partitions: list[str], place: tuple[int, int]
) -> None:
    writer = open_writer(location)
    for statement in (
        *BACK_TO_2,
        "DROP TABLE series",
        "CREATE TABLE series (kind SMALLINT, name INTEGER, level SMALLINT, time BIGINT, data TEXT NOT NULL,"
        " PRIMARY KEY (kind, name, level, time))",
        "CREATE INDEX series_time ON series (level, time)",
        "INSERT INTO series VALUES (1, 9, 2, 3600000, '{}'), (4, 0, 3, 1795800000000, '{}')",
        "ALTER TABLE applications DROP COLUMN doubts",
        "UPDATE meta SET value = '1' WHERE key = 'schema'",
    ):
        with writer.transaction() as connection:
            connection.execute(sa.text(statement))
    nodes = [made_row(NODES, id=number, rm=1, partition=2 + number) for number, _ in enumerate(partitions)]
    RowWriter(writer).write(batch_of(*((NODES, row) for row in nodes)))
    writer.close()
    open_writer(location).close()
    kept = sorted(rows_of(location, SERIES))
    assert kept == [(1, 9, 2, 3_600_000, *place, "{}"), (4, 0, 3, 1_795_800_000_000, *place, "{}")]
    # What comes now has all columns and the same keys as in a new history.
    RowWriter(writer).write(batch_of(*((table, made_row(table)) for table in (SERIES, APPLICATIONS))))
    writer.close()
    assert len(rows_of(location, SERIES)) == 3
    assert rows_of(location, APPLICATIONS)[0][-1] is None
