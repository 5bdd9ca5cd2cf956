"""Search for tasks and applications in a long history: by beginnings, by an index, in both databases."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from tests.history.test_store import batch_of, made_row, rows_of
from tests.history.written_history import START, WrittenHistory
from yunikorn_history import record_search, task_keys
from yunikorn_history.database import open_writer
from yunikorn_history.history_tables import ALLOCATIONS, TASK_KEYS
from yunikorn_history.page_queries import PageQueries
from yunikorn_history.queries import HistoryQueries
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import RowBatch

RNG = Random(1)
KEYS = [str(uuid.UUID(int=RNG.getrandbits(128))) for _ in range(40)]
KEYS[2:6] = "driver-1", "=marked", "pod", KEYS[2].upper()
OLD = 24
"""Number of tasks whose keys have digests; of the others, a search reads the keys."""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"BLOCK": 4, "UNSETTLED": len(KEYS) - OLD, "AT_ONCE": 3, "REMOVAL": 1}.items():
        monkeypatch.setattr(task_keys, name, value)
    monkeypatch.setattr(record_search, "LATEST_APPLICATIONS", 3)


@pytest.fixture
def pages(location: str) -> Iterator[PageQueries]:
    """Open a history with ten applications of four tasks each."""
    history = WrittenHistory()
    for number in range(10):
        app = history.application(f"Job-{number}", START + number)
        for key in KEYS[number * 4 : number * 4 + 4]:
            history.add(ALLOCATIONS, app=app, key=key, requested=START, placed=START)
    history.write(location)
    write_blocks(location)
    queries = HistoryQueries.open(location)
    yield PageQueries(queries)
    queries.close()


def write_blocks(location: str) -> list[int]:
    """Write all digests, and return the blocks that have some."""
    writer = open_writer(location)
    with writer.transaction() as connection:
        while task_keys.write_blocks(connection, task_keys.settled_blocks(len(KEYS))):
            pass
        blocks = sorted(connection.scalars(sa.select(TASK_KEYS.c.block)))
    writer.close()
    return blocks


def found(pages: PageQueries, text: str) -> list[tuple[str, str]]:
    return [(one.name, one.text) for one in pages.search(text, 9, None) if one.kind == "task"]


def test_keys_are_found_whole_and_uuids_by_their_beginning(pages: PageQueries) -> None:
    for place in (0, 1, 7, 11, 25, 39):
        key, app = KEYS[place], f"Job-{place // 4}"
        for text in (key, key[:6], key[:7].upper(), key[:8], key[:9], key[:20]):
            assert (key, app) in found(pages, text), text
        assert all(one.startswith(key[:7]) for one, _ in found(pages, key[:7]))
        assert found(pages, key[:-1] + "?") == []
    for place in (2, 3, 4, 5):
        assert found(pages, KEYS[place]) == [(KEYS[place], f"Job-{place // 4}")]
    assert found(pages, "=mar") == []
    assert found(pages, "%") == []


def test_applications_are_found_by_their_beginning_and_the_latest_by_any_part(pages: PageQueries) -> None:
    def names(text: str) -> list[str]:
        return [one.name for one in pages.search(text, 4, None) if one.kind == "application"]

    assert names("Job-1") == ["Job-1"]
    assert names("Job") == ["Job-9", "Job-8", "Job-7", "Job-6"]
    assert names("ob-8") == ["Job-8"]
    assert names("ob-1") == []


def test_digests_go_with_their_tasks(pages: PageQueries, location: str) -> None:
    assert write_blocks(location) == [*range(6)]
    writer = open_writer(location)
    with writer.transaction() as connection:
        connection.execute(ALLOCATIONS.delete().where(ALLOCATIONS.c.id.between(5, 16)))
        connection.execute(TASK_KEYS.delete().where(TASK_KEYS.c.block == 5))
    writer.close()
    assert write_blocks(location) == [0, 1, 4, 5]
    assert found(pages, KEYS[8]) == []
    assert found(pages, KEYS[21]) == [(KEYS[21], "Job-5")]


def test_a_scheduler_without_tasks_writes_the_digests_of_earlier_ones_whatever_ids_are_missing(
    pages: PageQueries, location: str
) -> None:
    writer = open_writer(location)
    with writer.transaction() as connection:
        connection.execute(TASK_KEYS.delete())
        # A task that runs on is older than those that were removed.
        connection.execute(ALLOCATIONS.delete().where(ALLOCATIONS.c.id.between(4, 19)))
    rows = RowWriter(writer)
    rows.load()
    for _ in range(2):
        rows.write(RowBatch())
    writer.close()
    assert {block for block, _ in rows_of(location, TASK_KEYS)} == {0, 5}
    for place in (0, 20):
        assert found(pages, KEYS[place]) == [(KEYS[place], f"Job-{place // 4}")]


def test_tasks_with_the_ids_of_removed_ones_are_found(pages: PageQueries, location: str) -> None:
    writer = open_writer(location)
    with writer.transaction() as connection:
        connection.execute(ALLOCATIONS.delete().where(ALLOCATIONS.c.id > 1))
    rows = RowWriter(writer)
    assert rows.load().highest[ALLOCATIONS.name] == 1
    rows.write(batch_of((ALLOCATIONS, made_row(ALLOCATIONS, id=2, app=1, key="next"))))
    writer.close()
    assert found(pages, "next") == [("next", "Job-0")]


def test_searches_use_indexes(pages: PageQueries, location: str) -> None:
    plans: list[str] = []

    def explain(connection: Any, _: object, statement: str, parameters: Any, *__: object) -> None:
        if statement.startswith("SELECT"):
            driver = connection.connection.driver_connection
            if connection.dialect.name == "sqlite":
                rows = driver.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
                plans.extend(row[3] for row in rows)
                return
            cursor = driver.cursor()
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {statement}", parameters)
            plans.extend(line for (line,) in cursor.fetchall())

    sa.event.listen(Engine, "before_cursor_execute", explain)
    try:
        pages.search(KEYS[1], 9, None)
    finally:
        sa.event.remove(Engine, "before_cursor_execute", explain)
    text = "\n".join(plans)
    assert "applications_app_id" in text
    if location.startswith("postgresql"):
        assert "allocations_pkey" in text
        assert "Seq Scan on al" not in text
        assert "Seq Scan on ap" not in text
    else:
        assert "SEARCH allocations USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in text
        assert "SCAN al" not in text
        assert "SCAN ap" not in text
