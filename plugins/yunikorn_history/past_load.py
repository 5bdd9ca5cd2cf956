"""Applications of a history with all their allocations, oldest first, for a replay.

They are read in batches, each in a transaction of its own: a reader that takes its time has no month in
memory, and keeps no writer from cleaning up. All readings of one time up to `until` are equal, because what a
recorder adds meanwhile is later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import sqlalchemy as sa

from yunikorn_history.database import open_reader
from yunikorn_history.fetched_rows import HistoryConnections
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.history_search import HistorySearch
from yunikorn_history.history_tables import ALLOCATIONS, APPLICATIONS, RUNS

BATCH = 1_000
"""Number of applications that are read at once."""
Values = dict[str, Any]
"""Values of a row by column, with texts and amounts in place of their numbers."""
_APP, _TASK = APPLICATIONS.c, ALLOCATIONS.c
_OF_APPLICATIONS = (
    *(_APP.id, _APP.app_id, _APP.rm, _APP.partition, _APP.queue, _APP.user, _APP.groups, _APP.tags),
    *(_APP.gang, _APP.gang_timeout, _APP.submitted),
)
_OF_TASKS = (
    *(_TASK.app, _TASK.node, _TASK.shape, _TASK.task_group, _TASK.priority),
    *(_TASK.requested, _TASK.placed, _TASK.ended, _TASK.flags),
)


def recorded_time(location: str) -> tuple[int, int] | None:
    """Return the times of the first submission and of the latest record; None for an empty history."""
    columns = (RUNS.c.seen, _APP.submitted, _TASK.placed, _TASK.ended)
    with closing(open_reader(location)) as reader, reader.reading() as connection:
        first = connection.scalar(sa.select(sa.func.min(_APP.submitted)))
        latest = [connection.scalar(sa.select(sa.func.max(one))) for one in columns]
    return None if first is None else (first, max(filter(None, latest)))


def repeated_ids(location: str) -> frozenset[str]:
    """Return the ids of applications that were submitted several times."""
    statement = sa.select(_APP.app_id).group_by(_APP.app_id).having(sa.func.count() > 1)
    with closing(open_reader(location)) as reader, reader.reading() as connection:
        return frozenset(connection.scalars(statement))


def past_load(location: str, wanted: HistoryFilter) -> Iterator[tuple[Values, list[Values]]]:
    """Yield applications that were there from `since` on, and their allocations in the order of requests.

    Times after `until` are None, as if they were not known yet.
    """
    since, until = wanted.since or 0, wanted.until
    assert until is not None
    connections = HistoryConnections(open_reader(location), None)
    last = -1, -1
    with closing(connections):
        while True:
            with connections.connected() as fetched:
                search = HistorySearch(fetched, wanted)
                there = sa.or_(_APP.submitted >= since, _APP.ended.is_(None), _APP.ended > since)
                behind = sa.or_(_APP.submitted > last[0], _APP.id > last[1])
                where = [there, behind, _APP.submitted >= last[0], _APP.submitted < until]
                where += [_APP.user.in_(search.named(wanted.user))] if wanted.user else []
                where += [_APP.queue.in_(search.below(wanted.queue))] if wanted.queue else []
                statement = sa.select(*_OF_APPLICATIONS).where(*where).order_by(_APP.submitted, _APP.id)
                applications = fetched.records_of(_OF_APPLICATIONS, fetched.rows(statement.limit(BATCH)))
                tasks: dict[int, list[Values]] = {one["id"]: [] for one in applications}
                of_these = sa.select(*_OF_TASKS).where(_TASK.app.in_(tasks), _TASK.placed < until)
                rows = fetched.rows(of_these.order_by(_TASK.requested, _TASK.id))
                for one in fetched.records_of(_OF_TASKS, rows):
                    if one["ended"] is not None and one["ended"] > until:
                        one["ended"] = None
                    tasks[one["app"]].append(one)
            for one in applications:
                yield one, tasks[one["id"]]
            if len(applications) < BATCH:
                return
            last = applications[-1]["submitted"], applications[-1]["id"]
