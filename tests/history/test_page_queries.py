"""Queries for pages, in each kind of database: buckets of one object, configurations in order, and search."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.history.written_history import START, WrittenHistory
from yunikorn_history.history_filter import HistoryScope
from yunikorn_history.history_tables import (
    CONFIGS,
    HOUR,
    NODE_SERIES,
    PARTITION_SERIES,
    QUEUE_SERIES,
    SERIES,
    USER_SERIES,
)
from yunikorn_history.page_queries import PageQueries
from yunikorn_history.queries import HistoryQueries


@pytest.fixture
def pages(location: str) -> Iterator[PageQueries]:
    """Open a history with some hours of series."""
    history = WrittenHistory()
    names = (
        (QUEUE_SERIES, "root.a"),
        (QUEUE_SERIES, "root.a.b%"),
        (USER_SERIES, "Ann"),
        (PARTITION_SERIES, ""),
    )
    for kind, name in (*names, (USER_SERIES, "bob"), (NODE_SERIES, "node-ann")):
        for hour in range(3):
            data = {"used": {"vcore": 1000.5 * hour}}
            history.add(SERIES, kind=kind, name=name, level=2, time=START + hour * HOUR, data=data)
    for number, rm in enumerate(("rm", "other", "rm")):
        history.add(CONFIGS, time=START + number, rm=rm, text="", checksum="")
    for number, user in enumerate(("Ann", "bob", "Ann")):
        history.application(f"Job-{number % 2}", START + number, user=user, queue="root.a")
    history.write(location)
    queries = HistoryQueries.open(location)
    yield PageQueries(queries)
    queries.close()


def test_buckets_are_those_of_one_name_in_order(pages: PageQueries) -> None:
    found = pages.buckets("queue", "root.a", 2, START + HOUR, START + 3 * HOUR)
    assert found == [(START + hour * HOUR, {"used": {"vcore": 1000.5 * hour}}) for hour in (1, 2)]
    assert len(pages.buckets("partition", "", 2, 0, START + HOUR)) == 1
    assert pages.buckets("queue", "root", 2, 0, START + HOUR) == []
    assert pages.kept(2) == (START, START + 2 * HOUR)
    assert pages.kept(3) is None
    assert pages.is_charted("user", "Ann")
    assert not pages.is_charted("queue", "Ann")


def test_configuration_before_is_that_of_the_same_manager(pages: PageQueries) -> None:
    assert [pages.config_before(number) for number in (1, 2, 3, 9)] == [None, None, 1, None]


def test_search_ignores_case_and_takes_no_wildcards(pages: PageQueries) -> None:
    def names(text: str, scope: HistoryScope | None = None, limit: int = 9) -> dict[str, list[str]]:
        found = pages.search(text, limit, scope)
        return {kind: [name for name, _ in rows] for kind, rows in found.items() if rows}

    assert names("ANN") == {"user": ["Ann"], "node": ["node-ann"]}
    assert names("%") == {"queue": ["root.a.b%"]}
    assert names("_") == {}
    assert names("job") == {"application": ["Job-0", "Job-1"]}
    assert pages.search("job-0", 9, None)["application"] == [("Job-0", 3)]
    assert names("root", limit=1) == {"queue": ["root.a"]}
    bob = HistoryScope("bob")
    assert names("job", bob) == {"application": ["Job-1"]}
    assert names("n", bob) == {"node": ["node-ann"]}
    assert names("b", bob) == {"application": ["Job-1"], "queue": ["root.a.b%"], "user": ["bob"]}
