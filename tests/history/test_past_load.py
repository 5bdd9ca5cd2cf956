"""All allocations of a history, oldest first, as a replay reads them."""

from __future__ import annotations

import pytest

from tests.lab.simulation.history_rows import BEGIN, HistoryRows
from yunikorn_history import past_load as loads
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.past_load import past_load, recorded_time, repeated_ids


@pytest.fixture
def rows() -> HistoryRows:
    """Seven applications, of which three are submitted at one time and two have one id."""
    rows = HistoryRows()
    for number, at in enumerate((0, 1, 1, 1, 2, 3, 4)):
        app = rows.application(f"a{number % 6}", at, user="bob" if number == 5 else "ann")
        for task in range(number):
            rows.task(app, 10 - task, 10, 20)
    return rows


def test_batches_follow_each_other(location: str, rows: HistoryRows, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.write(location)
    for size in (1, 2, 3, 7, 100):
        monkeypatch.setattr(loads, "BATCH", size)
        found = list(past_load(location, HistoryFilter(until=BEGIN + 100)))
        assert [app["id"] for app, _ in found] == [1, 2, 3, 4, 5, 6, 7]
        assert [len(tasks) for _, tasks in found] == [0, 1, 2, 3, 4, 5, 6]
        assert [task["requested"] - BEGIN for task in found[3][1]] == [8, 9, 10]
        assert (found[1][1][0]["shape"], found[1][0]["user"]) == ({"vcore": 1000}, "ann")


def test_what_is_behind_the_end_is_not_known(location: str, rows: HistoryRows) -> None:
    rows.seen(50)
    rows.write(location)
    assert recorded_time(location) == (BEGIN, BEGIN + 50)
    assert repeated_ids(location) == {"a0"}
    found = list(past_load(location, HistoryFilter(since=BEGIN, until=BEGIN + 15)))
    assert {task["ended"] for _, tasks in found for task in tasks} == {None}
    assert not [tasks for _, tasks in past_load(location, HistoryFilter(until=BEGIN + 10)) if tasks]
    assert len(list(past_load(location, HistoryFilter(until=BEGIN + 4, user="ann")))) == 5
