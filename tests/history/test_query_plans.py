"""Each filter of applications and tasks has an index, which gives the rows in the order of the page.

SQLite plans without statistics, so that a small history has the plans of a large one. PostgreSQL is made to
avoid sequential scans, so that one that is left has no alternative.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import product
from typing import Any

import attrs
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from tests.history.written_history import START, small_history
from yunikorn_history import history_search
from yunikorn_history.history_filter import HistoryFilter, HistoryScope
from yunikorn_history.history_kinds import KINDS, TIMES
from yunikorn_history.history_tables import HOUR
from yunikorn_history.page_queries import PageQueries
from yunikorn_history.queries import HistoryQueries

VALUES: dict[str, Any] = {
    **{"user": "ann", "group": "staff", "queue": "root.web", "application": "job-3", "template": "job-"},
    **{"tag": "cost=low", "preempted": True, "state": "Failed", "node": "node-1"},
    "exit": "PREEMPTED_BY_SCHEDULER",
    **{"rm": "rm", "partition": "default"},
    "scope": HistoryScope("bob", ("root.batch",)),
}
"""Values of filters."""
FILTERS = [
    (kind, name) for kind in ("apps", "tasks") for name in (*KINDS[kind].filters, "scope") if name in VALUES
]
TIMED = (
    HistoryFilter(limit=3),
    HistoryFilter(limit=3, after=(START + 9 * HOUR, 5)),
    HistoryFilter(limit=3, since=START + 2 * HOUR, until=START + 20 * HOUR),
    HistoryFilter(limit=3, since=START + 2 * HOUR, until=START + 20 * HOUR, after=(START + 3 * HOUR, 2)),
)
LARGE = ("applications", "allocations")


def run(queries: HistoryQueries, kind: str, wanted: HistoryFilter) -> None:
    """Carry out a query."""
    (queries.applications if kind == "apps" else queries.tasks)(wanted)


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a small history."""
    location = str(tmp_path_factory.mktemp("plans") / "history.db")
    small_history(location)
    return location


@pytest.fixture(scope="module")
def small(small_file: str) -> Iterator[HistoryQueries]:
    """A small history in SQLite."""
    queries = HistoryQueries.open(small_file)
    yield queries
    queries.close()


@pytest.fixture
def plans(small_file: str) -> Iterator[list[str]]:
    """The plans of all queries of SQLite from now on."""
    found: list[str] = []
    beside = sqlite3.connect(small_file)

    def explain(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        if statement.startswith("SELECT"):
            found.extend(row[3] for row in beside.execute(f"EXPLAIN QUERY PLAN {statement}", parameters))

    sa.event.listen(Engine, "before_cursor_execute", explain)
    yield found
    sa.event.remove(Engine, "before_cursor_execute", explain)
    beside.close()


def test_all_filters_of_rest_are_tried() -> None:
    for kind in ("apps", "tasks"):
        assert {*KINDS[kind].accepted} - {*TIMES} <= set(VALUES)


@pytest.mark.parametrize(("kind", "name"), FILTERS)
def test_sqlite_searches_by_an_index(
    *, small: HistoryQueries, plans: list[str], kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for timed, few in product(TIMED, (2_000, 0)):
        monkeypatch.setattr(history_search, "FEW", few)
        plans.clear()
        run(small, kind, attrs.evolve(timed, **{name: VALUES[name]}))
        of_large = [line for line in plans if line.split()[1].startswith(LARGE)]
        assert of_large
        for line in of_large:
            # A scan in the order of the page ends with the page.
            in_order = "USING INDEX applications_preempted", "USING INDEX allocations_p"
            assert line.startswith("SEARCH ") or any(text in line for text in in_order), line


@pytest.mark.parametrize("preempted", [False, None])
def test_sqlite_reads_pages_of_everything_in_their_order(
    small: HistoryQueries, plans: list[str], *, preempted: bool | None
) -> None:
    for kind, index in (("apps", "applications_submitted"), ("tasks", "allocations_placed")):
        for timed in TIMED[:2]:
            plans.clear()
            run(small, kind, attrs.evolve(timed, preempted=preempted))
            assert any(f"USING INDEX {index}" in line for line in plans)
            assert not any("TEMP B-TREE" in line for line in plans)


def test_charts_read_the_rows_of_one_name(small: HistoryQueries, plans: list[str]) -> None:
    pages = PageQueries(small)
    for place in (None, ("rm", "default")):
        plans.clear()
        pages.buckets("queue", "root.web", 2, START, START + 24 * HOUR, place)
        of_series = [line for line in plans if " series " in line]
        assert of_series
        for line in of_series:
            assert "USING PRIMARY KEY (kind=? AND name=? AND level=? AND time>? AND time<?)" in line
    plans.clear()
    assert pages.charted("queue", 9, None)
    assert pages.is_charted("queue", "root.web")
    assert pages.kept(3)
    assert not [line for line in plans if line.startswith("SCAN series")]


def test_postgresql_searches_by_an_index(postgresql: str) -> None:
    small_history(postgresql)
    found: list[tuple[str, str]] = []

    def explain(connection: Any, _: object, statement: str, parameters: Any, *__: object) -> None:
        if statement.startswith("SELECT CAST(json_agg"):
            cursor = connection.connection.driver_connection.cursor()
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {statement}", parameters)
            found.extend((statement, line) for (line,) in cursor.fetchall())

    sa.event.listen(Engine, "before_cursor_execute", explain)
    queries = HistoryQueries.open(postgresql)
    try:
        for (kind, name), timed in product(FILTERS, TIMED):
            run(queries, kind, attrs.evolve(timed, **{name: VALUES[name]}))
    finally:
        queries.close()
        sa.event.remove(Engine, "before_cursor_execute", explain)
    assert any("Index" in line and " applications_user " in f"{line} " for _, line in found)
    assert not [line for line in found if "Seq Scan on a" in line[1]]
