"""Queries of a history: filters, times, scopes and pages, in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from tests.history.written_history import START, WrittenHistory, small_history
from yunikorn_history.database import HistoryError
from yunikorn_history.fetched_rows import HistoryTooSlow
from yunikorn_history.history_filter import HistoryFilter, HistoryScope
from yunikorn_history.history_tables import AUDIT, CONFIGS, FAULTS, GAPS, HOUR, NODES, RUNS
from yunikorn_history.queries import HistoryQueries, every


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def queries(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HistoryQueries]:
    """Queries of the history of a day, in each kind of database."""
    if request.param == "sqlite":
        location = str(tmp_path_factory.mktemp("queries") / "history.db")
    else:
        location = request.getfixturevalue("postgresql_server").new_database()
    small_history(location)
    found = HistoryQueries.open(location)
    yield found
    found.close()


@pytest.fixture
def made(location: str) -> Iterator[HistoryQueries]:
    """Queries of a history with rows of the smaller tables."""
    history = WrittenHistory()
    for number in range(5):
        time = START + number * HOUR
        left = None if number == 4 else time + 10
        history.add(
            NODES,
            name=f"node-{number}",
            rm="rm",
            partition="default",
            joined=time,
            left=left,
            shape={"vcore": 1},
        )
        history.add(CONFIGS, time=time, text=f"text {number}", checksum=str(number), by="ann")
        history.add(
            AUDIT, time=time, operator="ann", what="stop queue", target={"queue": "root"}, outcome="done"
        )
        history.add(FAULTS, plugin="x", message="broken", first=time, latest=time + HOUR, count=2)
        history.add(RUNS, started=time, seen=time + 10, version="1", host="a")
        history.add(GAPS, since=time, until=time + 10, lost=7)
    history.write(location)
    found = HistoryQueries.open(location)
    yield found
    found.close()


def applications_of(queries: HistoryQueries, **wanted: object) -> list[int]:
    """Return the numbers in the ids of the wanted applications, read in small pages."""
    made = HistoryFilter(limit=3, **wanted)  # type: ignore[arg-type]
    return [int(one.application_id.removeprefix("job-")) for one in every(queries.applications, made)]


def tasks_of(queries: HistoryQueries, **wanted: object) -> list[str]:
    """Return the keys of the wanted tasks, read in small pages."""
    made = HistoryFilter(limit=3, **wanted)  # type: ignore[arg-type]
    return [one.allocation_key for one in every(queries.tasks, made)]


NEWEST_FIRST = list(reversed(range(24)))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, NEWEST_FIRST),
        ({"user": "bob"}, [one for one in NEWEST_FIRST if one % 3 == 1]),
        ({"user": "Bob"}, []),
        ({"queue": "root"}, NEWEST_FIRST),
        ({"queue": "root.web"}, NEWEST_FIRST[12:]),
        ({"queue": "root.web.eu"}, [11, 9, 7, 5, 3, 1]),
        ({"queue": "root.we"}, []),
        ({"queue": "root.web", "user": "bob"}, [10, 7, 4, 1]),
        ({"group": "team cid"}, [one for one in NEWEST_FIRST if one % 3 == 2]),
        ({"group": "team"}, []),
        ({"state": "Failed"}, [7]),
        ({"application": "job-3"}, [3]),
        ({"application": "job-3", "user": "bob"}, []),
        ({"template": "job-", "state": "Running"}, [23, 5]),
        ({"tag": "namespace=web.eu"}, [11, 9, 7, 5, 3, 1]),
        ({"tag": "cost"}, NEWEST_FIRST),
        ({"tag": "cost=LOW"}, []),
        ({"tag": "%=low"}, []),
        ({"preempted": True}, [9]),
        ({"scope": HistoryScope("ann")}, [one for one in NEWEST_FIRST if one % 3 == 0]),
        (
            {"scope": HistoryScope("ann", ("root.web",))},
            [one for one in NEWEST_FIRST if one < 12 or one % 3 == 0],
        ),
        ({"scope": HistoryScope("ann"), "queue": "root.web"}, [9, 6, 3, 0]),
        ({"scope": HistoryScope("nobody")}, []),
    ],
)
def test_applications_are_filtered(
    queries: HistoryQueries, wanted: dict[str, object], expected: list[int]
) -> None:
    assert applications_of(queries, **wanted) == expected
    if "preempted" not in wanted and "state" not in wanted:
        assert tasks_of(queries, **wanted) == [f"{key}{one}" for one in expected for key in "ba"]


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (10 * HOUR + 1, 11 * HOUR + 1, [11, 10, 9, 5]),
        (10 * HOUR, 10 * HOUR, [9, 8, 5]),
        (22 * HOUR, None, [23, 22, 21, 20, 5]),
        (None, HOUR, [0]),
        (100 * HOUR, None, [23, 5]),
    ],
)
def test_what_was_there_at_any_time_of_the_window_is_found(
    queries: HistoryQueries, since: int | None, until: int | None, expected: list[int]
) -> None:
    window = {
        "since": None if since is None else START + since,
        "until": None if until is None else START + until,
    }
    assert applications_of(queries, **window) == expected
    assert applications_of(queries, **window, queue="root.web") == [one for one in expected if one < 12]
    both = applications_of(queries, **window, scope=HistoryScope("ann", ("root.web",)))
    assert both == [one for one in expected if one < 12 or one % 3 == 0]


def test_tasks_are_found_by_node_exit_and_preemption(queries: HistoryQueries) -> None:
    assert tasks_of(queries, node="node-1", queue="root.web.eu") == ["b9", "a9", "b5", "a5", "b1", "a1"]
    assert tasks_of(queries, preempted=True) == tasks_of(queries, exit="PREEMPTED_BY_SCHEDULER") == ["b9"]
    assert len(tasks_of(queries, preempted=False)) == 47
    (victim,) = queries.tasks(HistoryFilter(preempted=True)).records
    assert victim.preempted_by == ("job-10", "a10")
    assert (victim.application_id, victim.queue, victim.user) == ("job-9", "root.web.eu", "ann")


def test_tasks_of_many_applications_are_found_by_time(
    queries: HistoryQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tasks_of(queries, queue="root.web", node="node-2")
    monkeypatch.setattr("yunikorn_history.history_search.FEW", 3)
    assert tasks_of(queries, queue="root.web", node="node-2") == expected != []


def test_many_queues_are_searched_by_time(queries: HistoryQueries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn_history.history_search.MOST_LEGS", 1)
    assert applications_of(queries, queue="root.web") == NEWEST_FIRST[12:]


def test_an_application_is_read_whole(queries: HistoryQueries) -> None:
    (found,) = queries.applications(HistoryFilter(application="job-4")).records
    assert queries.application(found.id) == found
    assert queries.application(10**15) is None
    assert (found.groups, found.tags) == (("staff", "team bob"), {"cost": "low", "namespace": "web"})
    assert found.service == {"vcore": 4000 * HOUR}
    assert [one.state for one in found.states] == ["New", "Running"]


def test_series_and_usage_are_paged(queries: HistoryQueries) -> None:
    everything = list(every(queries.queues, HistoryFilter(limit=7)))
    assert len(everything) == len({(one.time, one.name) for one in everything}) == 96
    assert [one.time for one in everything] == sorted((one.time for one in everything), reverse=True)
    below = list(every(queries.queues, HistoryFilter(limit=7, queue="root.web")))
    assert {one.name for one in below} == {"root.web", "root.web.eu"}
    one = HistoryFilter(queue="root.batch", since=START + HOUR, until=START + 3 * HOUR)
    assert [point.time - START for point in queries.queues(one).records] == [2 * HOUR, HOUR]
    usage = list(every(queries.usage, HistoryFilter(limit=7)))
    assert len(usage) == 72
    assert usage[0].service == {"vcore": 10**15}
    assert len(list(every(queries.usage, HistoryFilter(limit=7, user="bob")))) == 24
    scoped = HistoryFilter(scope=HistoryScope("bob", ("root.batch",)))
    assert {one.user for one in queries.usage(scoped).records} == {"bob"}
    assert len(queries.queues(scoped).records) == 96
    assert queries.users(scoped).records == queries.partition(scoped).records == ()
    assert queries.queues(attrs.evolve(scoped, bucket="day")).records == ()
    days = list(every(queries.partition, attrs.evolve(scoped, bucket="day", limit=7)))
    assert [(one.name, one.nodes) for one in days] == [("", 4)] * 24


def test_smaller_tables_are_paged_and_filtered_by_time(made: HistoryQueries) -> None:
    reads: tuple[Any, ...] = (made.nodes, made.configs, made.audit, made.faults, made.runs, made.gaps)
    for read in reads:
        found = [one.id for one in every(read, HistoryFilter(limit=2))]
        assert found == [5, 4, 3, 2, 1], read
        assert [one.id for one in read(HistoryFilter(until=START + 1)).records] == [1], read
    window = HistoryFilter(since=START + 3 * HOUR + 5, until=START + 4 * HOUR)
    assert [one.id for one in made.nodes(window).records] == [4]
    assert [one.id for one in made.runs(window).records] == [4]
    assert [one.id for one in made.gaps(window).records] == [4]
    [node] = made.nodes(HistoryFilter(node="node-2")).records
    assert (node.rm_id, node.partition, node.node_id) == ("rm", "default", "node-2")
    assert len(made.audit(HistoryFilter(user="ann", state="done")).records) == 5
    assert made.audit(HistoryFilter(user="bob")).records == ()
    assert made.audit(HistoryFilter(scope=HistoryScope("bob", ("root",)))).records == ()
    assert len(made.audit(HistoryFilter(scope=HistoryScope("ann"))).records) == 5
    assert made.audit(HistoryFilter(scope=HistoryScope("ann"), user="bob")).records == ()


def test_the_text_of_a_configuration_is_read_alone(made: HistoryQueries) -> None:
    assert {one.text for one in made.configs().records} == {""}
    found = made.config(2)
    assert found is not None
    assert found.text == "text 1"
    assert made.config(77) is None


@pytest.mark.parametrize(
    "name", ["'", '"', "a'; DROP TABLE names; --", "%", "_", "\\", "é\u202e", "x" * 5000]
)
def test_hostile_names_are_only_names(queries: HistoryQueries, name: str) -> None:
    for field in ("user", "group", "queue", "node", "state", "application", "template", "tag", "exit"):
        wanted = HistoryFilter(**{field: name})  # type: ignore[arg-type]
        assert queries.tasks(wanted).records == () or field == "state"
        assert queries.applications(wanted).records == () or field in ("node", "exit")


def test_a_query_that_takes_too_long_is_ended(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = WrittenHistory()
    for number in range(3000):
        history.application(f"job-{number}", START + number, tags={"cost": "low"})
    history.write(location)
    monkeypatch.setattr("yunikorn_history.fetched_rows.INSTRUCTIONS", 1)
    queries = HistoryQueries.open(location, patience=0.001)
    with pytest.raises(HistoryTooSlow, match=r"longer than 0\.001 s: ask for a shorter time"):
        queries.applications(HistoryFilter(limit=3000, tag="cost=low"))
    queries.close()


def test_a_history_that_is_missing_is_an_error() -> None:
    with pytest.raises(HistoryError, match="no such file"):
        HistoryQueries.open("missing.db")
