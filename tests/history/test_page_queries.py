"""Queries for pages, in each kind of database: buckets of one object, configurations in order, and search."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.history.written_history import START, WrittenHistory
from yunikorn_history.history_filter import HistoryFilter, HistoryScope
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
from yunikorn_history.queries import HistoryQueries, every


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


def test_equal_names_of_partitions_are_added_up_and_told_apart(location: str) -> None:
    history = WrittenHistory()
    parts = (
        ("rm", "default", 60, 100.0),
        ("rm", "gpu", 60, 10.0),
        ("other", "default", 30, 8.0),
        ("", "", 6, 5.0),
    )
    for rm, partition, samples, used in parts:
        for kind, name in ((QUEUE_SERIES, "root.a"), (PARTITION_SERIES, "")):
            data = {"n": samples, "used": {"vcore": used}, "running": 2, "waits": {"1000": 3}}
            data |= {"guaranteed": {"vcore": 7}} if kind == QUEUE_SERIES else {"nodes": 4}
            place = {"rm": rm, "partition": partition}
            history.add(SERIES, kind=kind, name=name, level=2, time=START, data=data, **place)
    history.write(location)
    queries = HistoryQueries.open(location)
    # Means over the 60 samples of the hour, of which one partition had half, and rows of version 1 a tenth.
    whole = {"n": 60, "used": {"vcore": 114.5}, "running": 5.2, "waits": {"1000": 12}}
    pages = PageQueries(queries)
    assert pages.buckets("queue", "root.a", 2, 0, 2 * START) == [
        (START, {**whole, "guaranteed": {"vcore": 28}})
    ]
    assert pages.buckets("partition", "", 2, 0, 2 * START) == [(START, {**whole, "nodes": 16})]
    ((_, own),) = pages.buckets("queue", "root.a", 2, 0, 2 * START, ("rm", "gpu"))
    assert own["used"] == {"vcore": 10}
    assert pages.buckets("queue", "root.a", 2, 0, 2 * START, ("rm", "none")) == []

    def found(**wanted: str) -> list[tuple[str, str, float]]:
        points = every(queries.queues, HistoryFilter(limit=1, **wanted))  # type: ignore[arg-type]
        return sorted((one.rm_id, one.partition, one.used["vcore"]) for one in points)

    assert found() == sorted((rm, partition, used) for rm, partition, _, used in parts)
    assert found(partition="default") == [("other", "default", 8), ("rm", "default", 100)]
    assert found(partition="gpu", rm="rm") == [("rm", "gpu", 10)]
    assert found(partition="gpu", rm="other") == []
    queries.close()


def test_configuration_before_is_that_of_the_same_manager(pages: PageQueries) -> None:
    assert [pages.config_before(number) for number in (1, 2, 3, 9)] == [None, None, 1, None]


def test_texts_that_no_database_takes_are_found_nowhere(pages: PageQueries) -> None:
    for text in ("\0", "\ud800"):
        assert pages.search(text, 9, None) == []
        assert not pages.is_charted("queue", text)
        assert pages.buckets("queue", text, 2, START, START + HOUR, (text, text)) == []


def test_search_ignores_case_and_takes_no_wildcards(pages: PageQueries) -> None:
    def names(text: str, scope: HistoryScope | None = None, limit: int = 9) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one in pages.search(text, limit, scope):
            found.setdefault(one.kind, []).append(one.name)
        return found

    assert names("ANN") == {"user": ["Ann"], "node": ["node-ann"]}
    assert names("%") == {"queue": ["root.a.b%"]}
    assert names("_") == {}
    assert names("job") == {"application": ["Job-0", "Job-1"]}
    assert [(one.name, one.id) for one in pages.search("job-0", 9, None)] == [("Job-0", 3)]
    assert names("root", limit=1) == {"queue": ["root.a"]}
    bob = HistoryScope("bob")
    assert names("job", bob) == {"application": ["Job-1"]}
    assert names("n", bob) == {"node": ["node-ann"]}
    assert names("b", bob) == {"application": ["Job-1"], "queue": ["root.a.b%"], "user": ["bob"]}
