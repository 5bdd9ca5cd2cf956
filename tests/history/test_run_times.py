"""Run times of the past, for estimates."""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import closing

import attrs
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.kit import RM, configuration, queue
from tests.lab.simulation.history_rows import BEGIN, HistoryRows
from yunikorn.clock import MILLISECOND, ManualClock
from yunikorn.errors import ConfigError
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_history.history_filter import EVERYTHING, HistoryFilter
from yunikorn_history.history_tables import ESTIMATED_END, PLACEHOLDER, PREEMPTED
from yunikorn_history.queries import HistoryQueries
from yunikorn_plugins import run_time_groups
from yunikorn_plugins.run_time_groups import (
    FEWEST,
    GROUPS,
    LADDER,
    RunTimes,
    bucket_of,
    lowest_of,
    quantile,
)

SMALL, LARGE = {"vcore": 1000}, {"vcore": 4000}


@given(st.integers(0, 2**50))
def test_buckets_are_an_eighth_of_a_power_of_two(time: int) -> None:
    bucket = bucket_of(time)
    low, high = lowest_of(bucket), lowest_of(bucket + 1)
    assert low <= time < high
    assert high - low == 1 or (high - low) / low <= 1 / 8


def test_quantiles_are_those_of_the_times() -> None:
    rng = random.Random(3)
    times = [round(rng.lognormvariate(10, 2)) for _ in range(20_000)]
    buckets = Counter(map(bucket_of, times))
    for share in (0.01, 0.5, 0.9, 0.99, 1):
        wanted = float(numpy.quantile(times, share))
        assert quantile(buckets, share) == pytest.approx(wanted, rel=0.07)
    assert quantile({}, 0.5) == 0


def read(location: str, wanted: HistoryFilter = EVERYTHING, kinds: object = LADDER) -> RunTimes:
    """Return the run times of a history."""
    with closing(HistoryQueries.open(location)) as queries:
        return queries.read_run_times(wanted, kinds)  # type: ignore[arg-type]


def names(
    user: str = "ann", queue: str = "root.a", template: str = "etl", shape: object = SMALL
) -> dict[str, str]:
    """Return the names of a task."""
    text = json.dumps(shape)
    return dict(zip(GROUPS, (user, queue, template, text), strict=True))


@pytest.fixture
def rows() -> HistoryRows:
    """Tasks of 10 s (etl of ann, small), 100 s (etl of bob, large), and a single one of an hour."""
    rows = HistoryRows()
    for number in range(FEWEST):
        for user, shape, seconds in (("ann", SMALL, 10), ("bob", LARGE, 100)):
            app = rows.application(f"etl-{number}", number, user=user, template="etl")
            rows.task(app, 0, 1000, 1000 + seconds * 1000, shape=shape)
    app = rows.application("train", 0, user="ann", template="train", queue="root.a.gpu")
    rows.task(app, 0, 0, 3_600_000, shape=LARGE)
    for flags in (PLACEHOLDER, PREEMPTED, ESTIMATED_END):
        rows.task(app, 0, 0, 1, flags=flags)
    rows.task(app, 0, 0, None)
    return rows


def test_estimator_knows_the_run_times_of_a_history_from_the_start_on(
    location: str, rows: HistoryRows
) -> None:
    end = BEGIN + 100_000
    text = configuration(queue("a"), estimators=[{"name": "history", "path": rows.write(location)}])
    clock = ManualClock(end * MILLISECOND)
    rm = RM(text, scheduler=Scheduler(Registry.load(third_party=False), clock))
    rm.app("etl-9", "root.a", user="ann")
    rm.ask("etl-9", resource=SMALL)
    (asked,) = rm.find_app("etl-9").asks.values()
    found = rm.at_work().policies.run_times.of(asked)
    assert found is not None
    assert found.median == pytest.approx(10, rel=0.07)
    for path, fault in (("nowhere.sqlite", "no such file"), ("mysql://x", "not the address of a")):
        with pytest.raises(ConfigError, match=fault):
            RM(configuration(queue("a"), estimators=[{"name": "history", "path": path}]))


def test_estimates_come_from_the_finest_group_with_enough_tasks(location: str, rows: HistoryRows) -> None:
    found = read(rows.write(location))
    for wanted, by, tasks, seconds in (
        (names(), ("user", "template", "resource"), FEWEST, 10),
        (names("bob", shape=SMALL), ("user", "template"), FEWEST, 100),
        (names("eve", shape=LARGE), ("template", "resource"), FEWEST, 100),
        (names("eve", template="new"), ("queue",), 2 * FEWEST, 10),
        (names("eve", "root.b", "new"), (), 2 * FEWEST + 1, 100),
        (names("ann", "root.b", "train", LARGE), (), 2 * FEWEST + 1, 100),
    ):
        estimate = found.estimate(wanted, (0.5,))
        assert estimate is not None
        assert (estimate.by, estimate.tasks) == (by, tasks)
        assert estimate.quantiles[0] == pytest.approx(seconds * 1000, rel=0.07)
    assert RunTimes().estimate(names(), (0.5,)) is None


def test_filters_choose_times_queues_and_users(location: str, rows: HistoryRows) -> None:
    rows.write(location)
    for wanted, tasks in (
        (HistoryFilter(), 41),
        (HistoryFilter(user="ann"), 21),
        (HistoryFilter(queue="root.a.gpu"), 1),
        (HistoryFilter(since=BEGIN + 12_000), 21),
        (HistoryFilter(until=BEGIN + 12_000), 20),
        (HistoryFilter(user="nobody"), 0),
    ):
        [group] = read(location, wanted, ((),)).groups[()].values() or [Counter[int]()]
        assert group.total() == tasks


def test_memory_is_bounded_by_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_time_groups, "MOST_GROUPS", 3)
    found = RunTimes(((GROUPS[0],), ()))
    for number in range(10):
        found.add((f"u{number}", "q", "t", "s"), bucket_of(number))
    assert list(found.groups["user",]) == [("u0",), ("u1",), ("u2",)]
    assert found.groups[()][()].total() == 10


def test_an_empty_history_has_no_run_times(location: str) -> None:
    assert not any(read(HistoryRows().write(location)).groups.values())


def test_pages_have_the_groups_with_the_most_tasks_first(location: str, rows: HistoryRows) -> None:
    rows.write(location)
    with closing(HistoryQueries.open(location)) as queries:
        wanted = HistoryFilter(by=("user", "resource"), limit=2)
        page = queries.run_times(wanted)
        assert [(one.user, one.resource, one.tasks) for one in page.records] == [
            *(("ann", SMALL, FEWEST), ("bob", LARGE, FEWEST)),
        ]
        assert page.records[0].p50 == pytest.approx(10_000, rel=0.07)
        assert page.following is not None
        last = queries.run_times(attrs.evolve(wanted, after=page.following))
        assert [(one.user, one.tasks) for one in last.records] == [("ann", 1)]
        assert last.following is None
        first, second = queries.run_times(HistoryFilter(by=("queue",))).records
        assert (first.user, first.queue, second.queue) == ("", "root.a", "root.a.gpu")
        assert {one.template for one in queries.run_times().records} == {"etl", "train"}
