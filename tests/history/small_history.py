"""A small made history whose rows are known, for independent calculations with numpy.

Tasks are cut by borders of hours, days, weeks and a month. There are placeholders, preempted ones as well,
preempted tasks, tasks that were recovered after a gap between two runs, tasks that still run, and tasks
without any duration.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs
import sqlalchemy as sa

from yunikorn_history.database import open_writer
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    DAY,
    HOUR,
    LEVELS,
    PARTITION_SERIES,
    PLACEHOLDER,
    PREEMPTED,
    QUEUE_SERIES,
    RECOVERED,
    RUNS,
    SERIES,
    USAGE,
    USER_SERIES,
)
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import Ids, RowBatch

BEGIN = round(datetime(2026, 2, 20, tzinfo=UTC).timestamp() * 1000)
"""Begin of the history (ms since 1970): a Friday, nine days before the end of a month."""
END = BEGIN + 21 * DAY + 7 * HOUR + 1234
"""Latest time of the history, in the middle of an hour."""
GAP = BEGIN + 10 * DAY, BEGIN + 10 * DAY + HOUR
"""Time in which no scheduler ran."""
QUEUES = {
    "root.science.physics": {"vcore": 12_000, "memory": 48 << 30},
    "root.science.biology": {"vcore": 4_000, "memory": 16 << 30},
    "root.web": {"vcore": 8_000},
    "root.batch": {},
}
"""Guarantees of leaf queues."""
PARENTS = {"root": {}, "root.science": {"vcore": 16_000}}
"""Guarantees of the queues above them."""
USERS = {"ada": ["physics", "staff"], "bea": ["biology"], "cleo": [], "dora": ["physics"]}
TEAMS = ("red", "blue", None)
TEMPLATES = ("train-*", "etl-*", "")
SIZES: tuple[dict[str, int], ...] = (
    {"vcore": 500, "memory": 1 << 30},
    {"vcore": 4_000, "memory": 16 << 30, "nvidia.com/gpu": 1},
    {"vcore": 1_000, "memory": 3_000_000_001},
)
CAUSES = ("quota", "max applications", "no room")
CAPACITY = {"vcore": 64_000, "memory": 256 << 30, "nvidia.com/gpu": 4}


@attrs.define(eq=False)
class MadeTask:
    """An allocation."""

    app: MadeApplication
    size: Mapping[str, int]
    requested: int
    placed: int
    ended: int | None
    flags: int
    reason: str = ""
    preemptor: str = ""

    @property
    def is_placeholder(self) -> bool:
        """True for a placeholder."""
        return bool(self.flags & PLACEHOLDER)

    @property
    def has_wait(self) -> bool:
        """True if the wait for the placement is known, and is that of a task."""
        return not self.is_placeholder and not (self.flags & RECOVERED and self.requested >= self.placed)

    @property
    def is_preempted(self) -> bool:
        """True for a preempted allocation."""
        return bool(self.flags & PREEMPTED)


@attrs.define(eq=False)
class MadeApplication:
    """An application with its tasks."""

    id: int
    app_id: str
    queue: str
    user: str
    team: str | None
    template: str
    submitted: int
    ended: int | None = None
    tasks: list[MadeTask] = attrs.Factory(list)
    waits: dict[str, int] = attrs.Factory(dict)

    @property
    def started(self) -> int | None:
        """Time of the first task; None without one."""
        return min((task.placed for task in self.tasks if not task.is_placeholder), default=None)

    @property
    def group(self) -> str:
        """Primary group; empty without groups."""
        return next(iter(USERS[self.user]), "")

    def service(self, *, lost: bool = False, placeholder: bool = False) -> dict[str, int]:
        """Return the service of ended tasks of a kind."""
        found: dict[str, int] = defaultdict(int)
        for task in self.tasks:
            kind = task.is_preempted and not task.is_placeholder, task.is_placeholder
            if task.ended is not None and kind == (lost, placeholder):
                for name, amount in task.size.items():
                    found[name] += amount * (task.ended - task.placed)
        return dict(found)


@attrs.define
class SmallHistory:
    """All that the history has."""

    applications: list[MadeApplication]
    series: list[tuple[int, str, int, int, dict[str, Any]]]
    """Kind, name, level, time and data."""

    @property
    def tasks(self) -> list[MadeTask]:
        """All tasks."""
        return [task for application in self.applications for task in application.tasks]

    def write(self, location: str) -> None:
        """Write the history to a database."""
        writer = open_writer(location)
        RowWriter(writer).write(self._batch())
        writer.close()

    def _batch(self) -> RowBatch:
        names, shapes, batch = Ids("names", {}), Ids("shapes", {}), RowBatch()
        add(batch, RUNS, id=1, started=BEGIN, seen=GAP[0], ended=GAP[0])
        add(batch, RUNS, id=2, started=GAP[1], seen=END)
        number = 0
        usage: dict[tuple[int, int, MadeApplication], dict[str, Any]] = {}
        for app in self.applications:
            add(batch, APPLICATIONS, **_application(app, names))
            for task in app.tasks:
                number += 1
                add(
                    batch,
                    ALLOCATIONS,
                    id=number,
                    app=app.id,
                    key=f"{app.app_id}-{number}",
                    shape=shapes.of(text(task.size)),
                    requested=task.requested,
                    placed=task.placed,
                    ended=task.ended,
                    flags=task.flags,
                    reason=names.of(task.reason),
                    preemptor=names.of(task.preemptor),
                )
                for level in (2, 3):
                    _count(usage, level, task)
        merged: dict[tuple[int, ...], dict[str, Any]] = {}
        for (level, time, app), data in usage.items():
            key = (level, time, names.of(app.queue), names.of(app.user), *_ids(app, names))
            merged[key] = _sum(merged[key], data) if key in merged else data
        for (level, time, queue, user, groups, tags), data in merged.items():
            add(
                batch,
                USAGE,
                level=level,
                time=time,
                queue=queue,
                user=user,
                groups=groups,
                tags=tags,
                data=text(data),
            )
        for kind, name, level, time, values in self.series:
            add(batch, SERIES, kind=kind, name=names.of(name), level=level, time=time, data=text(values))
        shapes.move_to(batch)
        names.move_to(batch)
        return batch


def add(batch: RowBatch, table: sa.Table, **values: Any) -> None:
    """Add a row, with 0, an empty text or None where nothing is given."""
    empty = {
        column.name: None if column.nullable else "" if isinstance(column.type, sa.Text) else 0
        for column in table.c
    }
    assert set(values) <= set(empty)
    batch.add(table.name, tuple({**empty, **values}.values()))


def text(value: object) -> str:
    """Return compact JSON with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _ids(app: MadeApplication, names: Ids) -> tuple[int, int]:
    groups = text(USERS[app.user]) if USERS[app.user] else ""
    return names.of(groups), names.of("" if app.team is None else text({"team": app.team}))


def _application(app: MadeApplication, names: Ids) -> dict[str, Any]:
    longest = max(app.waits, key=lambda cause: app.waits[cause], default="")
    own = [task for task in app.tasks if not task.is_placeholder]
    return {
        "id": app.id,
        "app_id": app.app_id,
        "queue": names.of(app.queue),
        "user": names.of(app.user),
        "groups": _ids(app, names)[0],
        "tags": _ids(app, names)[1],
        "template": names.of(app.template),
        "submitted": app.submitted,
        "started": app.started,
        "ended": app.ended,
        "states": "[]",
        "waits": text(app.waits) if app.waits else None,
        "longest_wait": names.of(longest),
        "tasks": len(own),
        "preempted": sum(task.is_preempted for task in own),
        "service": text(app.service()),
        "lost_service": text(app.service(lost=True)),
        "placeholder_service": text(app.service(placeholder=True)),
    }


def _count(usage: dict[tuple[int, int, MadeApplication], dict[str, Any]], level: int, task: MadeTask) -> None:
    """Add a task to the usage of the buckets of a level, one after the other."""
    length = LEVELS[level]
    until = END if task.ended is None else task.ended

    def bucket(time: int) -> dict[str, Any]:
        key = (level, time // length * length, task.app)
        empty: dict[str, Any] = {"service": {}, "placeholder": {}, "lost": {}}
        return usage.setdefault(key, {**empty, "started": 0, "ended": 0, "preempted": 0})

    time = task.placed // length * length
    while time < until:
        part = min(time + length, until) - max(time, task.placed)
        for name, amount in task.size.items():
            kinds = ["service"]
            if task.is_placeholder:
                kinds.append("placeholder")
            elif task.is_preempted:
                kinds.append("lost")
            for kind in kinds:
                sums = bucket(time)[kind]
                sums[name] = sums.get(name, 0) + amount * part
        time += length
    if not task.is_placeholder:
        bucket(task.placed)["started"] += 1
        if task.ended is not None:
            bucket(task.ended)["ended"] += 1
            bucket(task.ended)["preempted"] += task.is_preempted


def _sum(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in one.items():
        if isinstance(value, dict):
            names = {*value, *other[key]}
            found[key] = {name: value.get(name, 0) + other[key].get(name, 0) for name in names}
        else:
            found[key] = value + other[key]
    return found


# -- making -----------------------------------------------------------------------------------------------


def make_history(seed: int = 1, applications: int = 120) -> SmallHistory:
    """Return a history; equal seeds give equal histories."""
    rng = random.Random(seed)
    apps = [_make_application(rng, number) for number in range(1, applications + 1)]
    for app in apps:
        for task in app.tasks:
            if task.is_preempted:
                other = rng.choice([one for one in apps if one.queue != app.queue])
                other.submitted = min(other.submitted, task.placed)
                task.preemptor = rng.choice(("quota", text([other.app_id, "pod"])))
    tasks = [task for app in apps for task in app.tasks if task.has_wait]
    return SmallHistory(apps, list(_make_series(rng, tasks)))


def _make_application(rng: random.Random, number: int) -> MadeApplication:
    app = MadeApplication(
        id=number,
        app_id=f"app-{number}",
        queue=rng.choice(list(QUEUES)),
        user=rng.choice(list(USERS)),
        team=rng.choice(TEAMS),
        template=rng.choice(TEMPLATES),
        submitted=rng.randrange(BEGIN, END - HOUR),
    )
    for _ in range(rng.randrange(6)):
        app.tasks.append(_make_task(rng, app))
    if all(task.ended is not None for task in app.tasks) and (app.tasks or rng.random() < 0.5):
        ends = [task.ended for task in app.tasks if task.ended is not None]
        app.ended = max([app.submitted + 1000, *ends])
    app.waits = {cause: rng.randrange(1, 5_000_000) for cause in CAUSES if rng.random() < 0.5}
    return app


def _make_task(rng: random.Random, app: MadeApplication) -> MadeTask:
    requested = rng.randrange(app.submitted, END - 1)
    placed = min(requested + int(rng.expovariate(1 / 600_000)), END - 1)
    if rng.random() < 0.1:
        placed = min(-(-placed // DAY) * DAY, END - 1)  # exactly at midnight
    runs = rng.choice((0, 1, HOUR, rng.randrange(3 * HOUR), rng.randrange(8 * DAY)))
    ended = None if placed + runs >= END else placed + runs
    flags = rng.choice((0, 0, 0, RECOVERED, PLACEHOLDER, PREEMPTED, PREEMPTED | PLACEHOLDER))
    if ended is None:
        flags &= ~PREEMPTED
    reason = "preempted" if flags & PREEMPTED else ""
    return MadeTask(app, rng.choice(SIZES), requested, placed, ended, flags, reason)


def ran(since: int, until: int) -> int:
    """Return for how much of a time a scheduler ran (ms)."""
    return until - since - max(0, min(until, GAP[1]) - max(since, GAP[0]))


def wait_bound(wait: int) -> int:
    """Return the upper bound of the class of a wait (ms)."""
    return next(bound for power in range(99) if (bound := round(2 ** (power / 2) + 0.499)) >= wait)


def _wait_counts(tasks: list[MadeTask], level: int) -> dict[tuple[str, int], dict[str, int]]:
    """Return the counts of waits by queue, parent, user (with @) and partition (empty), and bucket."""
    found: dict[tuple[str, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for task in tasks:
        time = task.placed // LEVELS[level] * LEVELS[level]
        queue = task.app.queue
        parents = [queue[:at] for at, char in enumerate(queue) if char == "."]
        for name in (queue, *parents, f"@{task.app.user}", ""):
            found[name, time][str(wait_bound(task.placed - task.requested))] += 1
    return found


def _make_series(
    rng: random.Random, tasks: list[MadeTask]
) -> Iterator[tuple[int, str, int, int, dict[str, Any]]]:
    for level in (2, 3):
        length, waits = LEVELS[level], _wait_counts(tasks, level)
        for time in range(BEGIN, END, length):
            for queue, guarantee in {**QUEUES, **PARENTS}.items():
                counts = waits.get((queue, time))
                if rng.random() < 0.25 and not counts:
                    continue  # nothing, such as between two runs
                times = 2 if time > BEGIN + 12 * DAY and queue == "root.web" else 1
                data: dict[str, Any] = {"n": 60}
                data["used"] = {name: rng.randrange(0, 16_000) for name in ("vcore", "memory")}
                if rng.random() < 0.6:
                    data["pending"] = {"vcore": rng.randrange(1, 9_000)}
                if guarantee:
                    data["guaranteed"] = {name: times * amount for name, amount in guarantee.items()}
                yield QUEUE_SERIES, queue, level, time, data | ({"waits": counts} if counts else {})
            for user in USERS:
                if counts := waits.get((f"@{user}", time)):
                    yield USER_SERIES, user, level, time, {"waits": counts}
            idle = {
                cause: {"vcore": rng.randrange(2_000) * length, "memory": rng.randrange(1 << 33) * length}
                for cause in CAUSES
                if rng.random() < 0.5
            }
            used = {name: amount * rng.random() for name, amount in CAPACITY.items()}
            whole = {"n": 60, "capacity": CAPACITY, "used": used, "idle": idle}
            counts = waits.get(("", time))
            if counts or rng.random() > 0.1:
                yield PARTITION_SERIES, "", level, time, whole | ({"waits": counts} if counts else {})
