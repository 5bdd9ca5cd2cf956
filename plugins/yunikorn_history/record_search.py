"""Search for a text over all kinds of records.

Names of queues, users and nodes may contain the text anywhere. Ids of applications begin with it, or contain
it, if they are among the latest. Keys of tasks are searched as `task_keys` says. Of configurations, decisions
of operators and failures of plugins, the latest are read. So a search ends soon, however long the history is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Subquery, Table

from yunikorn_history.fetched_rows import FetchedRows
from yunikorn_history.history_filter import HistoryFilter, HistoryScope
from yunikorn_history.history_search import HistorySearch
from yunikorn_history.history_tables import (
    APPLICATIONS,
    AUDIT,
    CONFIGS,
    FAULTS,
    NAMES,
    NODE_SERIES,
    QUEUE_SERIES,
    SERIES,
    USER_SERIES,
)
from yunikorn_history.past_records import PastMatch
from yunikorn_history.task_keys import KeySearch, begins_with

SERIES_OF = {"queue": QUEUE_SERIES, "user": USER_SERIES, "node": NODE_SERIES}
"""Kinds of series with names."""
LOOKED_AT = 2_000
"""Number of texts that match a search among which names of objects are looked for."""
LATEST_APPLICATIONS = 100_000
"""Number of the latest applications whose ids may contain the text anywhere."""
MOST_IDS = 10_000
"""Number of ids with the same beginning of which the latest are found."""
LATEST = {CONFIGS: 200, AUDIT: 10_000, FAULTS: 1_000}
"""Numbers of the latest rows of a table that are read."""
RECORDS = (
    ("configuration", CONFIGS, "time", ("", "by"), ("by", "source"), ("text",)),
    ("action", AUDIT, "time", ("what", "operator"), ("operator", "what", "outcome"), ("target", "reason")),
    ("fault", FAULTS, "latest", ("plugin", "message"), ("plugin",), ("message",)),
)
"""Kind, table, column of the time, columns to show, and columns with names and with texts to search."""


class RecordSearch:
    """Search for one text on one connection, as far as a scope has the records."""

    def __init__(self, fetched: FetchedRows, text: str, limit: int, scope: HistoryScope | None) -> None:
        self._fetched, self._text, self._limit = fetched, text, limit
        self._search = HistorySearch(fetched, HistoryFilter(scope=scope))
        self._scope = scope

    def found(self) -> Iterator[PastMatch]:
        """Yield what matches, at most `limit` of each kind."""
        yield from self._applications()
        yield from self._names()
        yield from self._tasks()
        yield from self._records()

    def _contains(self, column: Any) -> ColumnElement[bool]:
        found: ColumnElement[bool] = column.icontains(self._text, autoescape=True)
        return found

    def _applications(self) -> Iterator[PastMatch]:
        c = APPLICATIONS.c
        seen = self._search.visible({"user": c.user, "queue": c.queue})
        begins = begins_with(c.app_id, self._text, self._fetched)
        highest = sa.select(sa.func.max(c.id)).scalar_subquery()
        parts = (
            sa.select(c.app_id, c.id).where(begins, *seen).limit(MOST_IDS),
            sa.select(c.app_id, c.id).where(
                c.id > highest - LATEST_APPLICATIONS, self._contains(c.app_id), *seen
            ),
        )
        found = sa.union_all(*(sa.select(part.subquery()) for part in parts)).subquery().c
        latest = sa.func.max(found.id).label("latest")
        matching = sa.select(found.app_id, latest).group_by(found.app_id).order_by(latest.desc())
        for app_id, number in self._fetched.rows(matching.limit(self._limit)):
            yield PastMatch(kind="application", name=app_id, id=number)

    def _names(self) -> Iterator[PastMatch]:
        matching = sa.select(NAMES).where(self._contains(NAMES.c.text)).order_by(NAMES.c.text)
        named = self._fetched.rows(matching.limit(LOOKED_AT))
        for kind in SERIES_OF:
            # Without a scope, there is no list of names.
            visible = self._search.names_of_series(kind)
            numbers = [number for number, _ in named if visible is None or number in visible]
            known = with_series(self._fetched, kind, numbers, self._limit)
            for number, name in named:
                if number in known:
                    yield PastMatch(kind=kind, name=name, id=number)

    def _tasks(self) -> Iterator[PastMatch]:
        app = APPLICATIONS.c
        seen = self._search.visible({"user": app.user, "queue": app.queue})
        for key, number, app_id in KeySearch(self._fetched, self._text).found(self._limit, seen):
            yield PastMatch(kind="task", name=key, id=number, text=app_id)

    def _records(self) -> Iterator[PastMatch]:
        for kind, table, time, (name, text), names, texts in RECORDS:
            for one in self._latest(table, time, names, texts):
                title = one.get(name) or f"{kind} {one['id']}"
                yield PastMatch(kind=kind, name=title, id=one["id"], text=one[text], time=one[time])

    def _latest(
        self, table: Table, time: str, names: Sequence[str], texts: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Return the latest rows whose names or texts contain the text, newest first, without long texts."""
        scope = self._scope if table is AUDIT else None
        own = [] if scope is None else [table.c.operator.in_(self._search.named(scope.user))]
        recent: Subquery = (
            sa.select(table).where(*own).order_by(table.c[time].desc()).limit(LATEST[table]).subquery()
        )
        used = sa.union(*(sa.select(recent.c[name]) for name in names))
        matching = sa.select(NAMES.c.id).where(NAMES.c.id.in_(used), self._contains(NAMES.c.text))
        where = [
            *(recent.c[name].in_(matching) for name in names),
            *(self._contains(recent.c[one]) for one in texts),
        ]
        shown = [column for column in table.c if column.name in ("id", time, *names, "message")]
        statement = sa.select(*(recent.c[column.name] for column in shown)).where(sa.or_(*where))
        rows = self._fetched.rows(statement.order_by(recent.c[time].desc()).limit(self._limit))
        return self._fetched.records_of(shown, rows)


def with_series(fetched: FetchedRows, kind: str, numbers: Sequence[int], limit: int) -> set[int]:
    """Return the first names that a series of this kind has."""
    same = [SERIES.c.kind == SERIES_OF[kind], SERIES.c.name == NAMES.c.id]
    series = sa.select(SERIES.c.time).where(*same).limit(1).exists()
    names = sa.select(NAMES.c.id).where(NAMES.c.id.in_(numbers), series).order_by(NAMES.c.text)
    return set(fetched.ids(names.limit(limit)))
