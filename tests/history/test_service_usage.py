"""Exact usage: equal to a plain recomputation from the rows of allocations, whatever happens in between."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
import sqlalchemy as sa

from yunikorn_history.database import HistoryAway
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    DAY,
    HOUR,
    LEVELS,
    METADATA,
    MINUTE,
    PLACEHOLDER,
    PREEMPTED,
    RUNS,
    SHAPES,
    USAGE,
)
from yunikorn_history.rows import Ids, Row, RowBatch
from yunikorn_history.service_usage import ServiceUsage, UsageKey, periods_of

START = 20_000 * DAY + 7 * HOUR
SECOND = 1000


@attrs.define(eq=False)
class Task:
    """An allocation of a history."""

    number: int
    key: UsageKey
    placed: int
    amounts: dict[str, int]
    placeholder: bool
    sizes: list[list[Any]] = attrs.Factory(list)
    ended: int | None = None
    preempted: bool = False

    def row(self, shapes: Ids) -> Row:
        """Return the row of the allocation."""
        flags = PLACEHOLDER * self.placeholder + PREEMPTED * self.preempted
        sizes = json.dumps(self.sizes) if self.sizes else None
        values = {
            "id": self.number,
            "app": self.key[3],
            "key": str(self.number),
            "shape": shapes.of(json.dumps(self.amounts)),
            "sizes": sizes,
            "requested": self.placed,
            "placed": self.placed,
            "ended": self.ended,
            "flags": flags,
        }
        return tuple(values.get(column.name, 0) for column in ALLOCATIONS.c)


class Recorded:
    """A database, and the recorder of its allocations, which may be killed between two commits."""

    def __init__(self, now: int) -> None:
        self.engine = sa.create_engine("sqlite://")
        METADATA.create_all(self.engine)
        self.tasks: list[Task] = []
        self.shapes = Ids(SHAPES.name, {})
        self.left: dict[int, int] = {}
        """Ends of applications by id."""
        self.changed: dict[int, Task] = {}
        self.start(now)

    def start(self, now: int) -> None:
        """Begin, or continue after a kill."""
        self.usage = ServiceUsage(self.find, now)

    def find(self, query: sa.Select[Any]) -> list[Any]:
        """Return rows of the database."""
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(query)]

    def place(self, key: UsageKey, at: int, amounts: dict[str, int], *, placeholder: bool = False) -> Task:
        """Record a placement."""
        task = Task(len(self.tasks) + 1, key, at, amounts, placeholder)
        self.tasks.append(task)
        self.changed[task.number] = task
        self.usage.placed(key, at, amounts, placeholder=placeholder)
        return task

    def resize(self, task: Task, at: int, amounts: dict[str, int]) -> None:
        """Record another size."""
        self.usage.resized(task.key, at, task.amounts, amounts, placeholder=task.placeholder)
        task.sizes.append([at, task.amounts])
        task.amounts = amounts
        self.changed[task.number] = task

    def end(self, task: Task, at: int, *, preempted: bool = False) -> None:
        """Record an end."""
        task.ended, task.preempted = at, preempted
        periods = periods_of(task.placed, at, task.amounts, json.dumps(task.sizes))
        self.usage.ended(task.key, periods, placeholder=task.placeholder, preempted=preempted)
        self.changed[task.number] = task

    def commit(self, now: int, *, ends: bool = False) -> RowBatch:
        """Write what was recorded; returns the rows of the usage."""
        batch = RowBatch()
        self.usage.add_rows(now, batch, ends=ends)
        with self.engine.begin() as connection:
            for task in self.changed.values():
                app = tuple(
                    {
                        "id": task.key[3],
                        "app_id": str(task.key[3]),
                        "states": "[]",
                        "ended": self.left.get(task.key[3]),
                    }.get(column.name, dict(zip(NAMED, task.key, strict=False)).get(column.name, 0))
                    for column in APPLICATIONS.c
                )
                batch.add(APPLICATIONS.name, app)
                batch.add(ALLOCATIONS.name, task.row(self.shapes))
            self.shapes.move_to(batch)
            for name, rows in batch.rows.items():
                table = METADATA.tables[name]
                names = table.c.keys()
                values = [dict(zip(names, row, strict=True)) for row in rows]
                connection.execute(table.insert().prefix_with("OR REPLACE"), values)
        self.changed = {}
        return batch

    def found(self) -> dict[Any, Any]:
        """Return the usage in the database, without what is zero."""
        rows = self.find(sa.select(USAGE))
        every = {(level, time, tuple(key)): json.loads(data) for level, time, *key, data in rows}
        return {at: data for at, data in every.items() if data != {"service": {}}}


NAMED = ("rm", "partition", "queue", "user", "groups")


def recomputed(tasks: list[Task], until: int) -> dict[Any, Any]:
    """Return the usage that follows from the allocations, second by second as it were."""
    found: dict[Any, Any] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    for task in tasks:
        ended = until if task.ended is None else task.ended
        for level, length in list(LEVELS.items())[1:]:
            counts = {"started": task.placed, "ended": task.ended}
            counts["preempted"] = task.ended if task.preempted else None
            for name, at in counts.items():
                if at is not None and not task.placeholder:
                    found[level, at - at % length, task.key][name][""] += 1
            for since, end, amounts in periods_of(task.placed, ended, task.amounts, json.dumps(task.sizes)):
                for time in range(since - since % length, end, length):
                    part = min(end, time + length) - max(since, time)
                    for name, amount in amounts.items() if part > 0 else ():
                        fields = ["service"] + ["placeholder"] * task.placeholder
                        fields += ["lost"] * (task.preempted and not task.placeholder)
                        for field in fields:
                            found[level, time, task.key][field][name] += amount * part
    return {
        at: dict(plain(data)) for at, data in found.items() if any(map(any, map(dict.values, data.values())))
    }


def plain(data: dict[str, dict[str, int]]) -> Iterator[tuple[str, Any]]:
    """Yield what a row has."""
    yield "service", {}
    for field, amounts in data.items():
        kept = {name: amount for name, amount in amounts.items() if amount}
        if kept:
            yield field, kept.get("", kept)


def key(number: int) -> UsageKey:
    """Return the key of a user."""
    return (1, 2, 3 + number % 2, 10 + number, 20, 0)


@pytest.mark.parametrize("seed", range(12))
def test_usage_equals_a_recomputation_from_the_allocations(seed: int) -> None:
    rng = random.Random(seed)
    now = START + rng.randrange(DAY)
    recorded = Recorded(now)
    running: list[Task] = []
    for _ in range(60):
        now += rng.choice((7, 1_999, 40 * SECOND, 3 * MINUTE, HOUR + 1, rng.choice((MINUTE, 30 * HOUR))))
        amounts = {"memory": rng.choice((0, 2**40)) + rng.randrange(9), "vcore": rng.randrange(1, 9)}
        late = rng.choice((0, 0, 0, 1, 5 * SECOND, HOUR))
        event = rng.random()
        if event < 0.45 or not running:
            placeholder = rng.random() < 0.2
            running.append(
                recorded.place(key(rng.randrange(3)), now - late, amounts, placeholder=placeholder)
            )
        elif event < 0.55:
            task = rng.choice(running)
            latest = max([task.placed, *(at for at, _ in task.sizes)])
            recorded.resize(task, max(latest, now - late), amounts)
        else:
            task = running.pop(rng.randrange(len(running)))
            latest = max([task.placed, *(at for at, _ in task.sizes)])
            recorded.end(task, max(latest, now - late), preempted=rng.random() < 0.4)
        if rng.random() < 0.7:
            recorded.commit(now)
            if rng.random() < 0.2:
                recorded.start(now)
    recorded.commit(now, ends=True)
    assert recorded.found() == recomputed(recorded.tasks, now)


def test_what_runs_is_written_each_minute_and_not_with_each_commit() -> None:
    recorded = Recorded(START)
    recorded.place(key(0), START + 1, {"vcore": 1000})
    written = [USAGE.name in recorded.commit(START + second * SECOND).rows for second in range(1, 130)]
    assert sum(written) == 2


def test_a_task_that_was_preempted_after_days_is_lost_on_each_of_them() -> None:
    recorded = Recorded(START)
    task = recorded.place(key(0), START, {"vcore": 1})
    for hour in range(1, 60):
        recorded.commit(START + hour * HOUR)
    recorded.end(task, START + 60 * HOUR, preempted=True)
    recorded.commit(START + 60 * HOUR, ends=True)
    days = {at: data for at, data in recorded.found().items() if at[0] == 3}
    assert [data["lost"] for data in days.values()] == [data["service"] for data in days.values()]
    assert sum(data["lost"]["vcore"] for data in days.values()) == 60 * HOUR
    assert recorded.found() == recomputed(recorded.tasks, START + 60 * HOUR)


def test_a_task_whose_application_has_ended_runs_no_more_after_a_restart() -> None:
    recorded = Recorded(START)
    recorded.place(key(0), START, {"vcore": 1})
    recorded.left[key(0)[3]] = START + HOUR
    recorded.commit(START + HOUR)
    with recorded.engine.begin() as connection:
        run = {"id": 1, "started": START, "seen": START + HOUR, "version": "1", "host": "h"}
        connection.execute(RUNS.insert(), run)
    recorded.start(START + 3 * HOUR)
    recorded.commit(START + 3 * HOUR, ends=True)
    hours = [data for at, data in recorded.found().items() if at[0] == 2]
    assert sum(data["service"].get("vcore", 0) for data in hours) == HOUR
    assert sum(data.get("ended", 0) for data in hours) == 1


@pytest.mark.parametrize("step", [4000 * DAY, -4000 * DAY, 20 * DAY, -20 * DAY])
def test_a_clock_that_is_set_makes_few_rows_and_is_right_again_afterwards(step: int) -> None:
    recorded = Recorded(START)
    before = recorded.place(key(0), START, {"vcore": 1})
    recorded.commit(START + MINUTE)
    during = recorded.place(key(1), START + step, {"vcore": 2})
    recorded.commit(START + step)
    recorded.end(during, START + 2 * HOUR)
    recorded.commit(START + 2 * HOUR)
    after = recorded.place(key(2), START + 2 * HOUR, {"vcore": 5})
    recorded.commit(START + 3 * HOUR)
    recorded.end(after, START + 4 * HOUR)
    recorded.end(before, START + 4 * HOUR)
    recorded.commit(START + 5 * HOUR, ends=True)
    found = recorded.found()
    assert len(found) < 2_000
    of_after = [
        data["service"].get("vcore", 0) for at, data in found.items() if at[0] == 2 and at[2] == key(2)
    ]
    assert sum(of_after) == 10 * HOUR
    assert all(
        amount >= 0 for at, data in found.items() if at[2] == key(0) for amount in data["service"].values()
    )


def test_amounts_of_any_size_and_names_of_any_kind_are_summed() -> None:
    recorded = Recorded(START)
    amounts = {'a"b\n\0\ud800': 2**63 - 1, "": 3, "vcore": 0}
    recorded.place(key(0), START, amounts)
    recorded.commit(START + 26 * HOUR, ends=True)
    days = [data["service"] for at, data in recorded.found().items() if at[0] == 3]
    assert sum(one['a"b\n\0\ud800'] for one in days) == (2**63 - 1) * 26 * HOUR
    assert sum(one[""] for one in days) == 3 * 26 * HOUR


def test_a_checkpoint_whose_reading_fails_may_be_tried_again() -> None:
    recorded = Recorded(START)
    task = recorded.place(key(0), START, {"vcore": 1})
    for hour in range(1, 30):
        recorded.commit(START + hour * HOUR)
    recorded.end(task, START + 2 * HOUR, preempted=True)
    find, now = recorded.find, START + 30 * HOUR
    for failing in range(4):
        left = [failing]

        def fail(query: sa.Select[Any], left: list[int] = left) -> list[Any]:
            if not left[0]:
                raise HistoryAway("away")
            left[0] -= 1
            return find(query)

        recorded.usage._find = fail
        with pytest.raises(HistoryAway):
            recorded.usage.add_rows(now, RowBatch())
    recorded.usage._find = find
    recorded.commit(now)
    recorded.commit(now + MINUTE, ends=True)
    assert recorded.found() == recomputed(recorded.tasks, now + MINUTE)
