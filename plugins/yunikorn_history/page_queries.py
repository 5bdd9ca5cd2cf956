"""Queries of a history for pages: the buckets of one object, and a search over names."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
import sqlalchemy as sa

from yunikorn_history.history_filter import HistoryFilter, HistoryScope
from yunikorn_history.history_search import HistorySearch
from yunikorn_history.history_tables import (
    CONFIGS,
    NAMES,
    PARTITION_SERIES,
    SERIES,
)
from yunikorn_history.past_records import PastMatch
from yunikorn_history.queries import HistoryQueries
from yunikorn_history.record_search import SERIES_OF, RecordSearch, with_series
from yunikorn_history.rows import clean_text
from yunikorn_history.sampled_series import merged_data

Bucket = tuple[int, Mapping[str, Any]]
"""Begin of a minute, hour or day (ms), and what `series.data` has of it."""


Place = tuple[str, str]
"""Resource manager and partition."""


class PageQueries:
    """Further queries of an open history, from any thread."""

    def __init__(self, queries: HistoryQueries) -> None:
        self._connections = queries.connections

    def kept(self, level: int) -> tuple[int, int] | None:
        """Return the begins of the first and of the last bucket of the partition; None without any."""
        c = SERIES.c
        where = [c.kind == PARTITION_SERIES, c.name == 0, c.level == level]
        times = sa.select(sa.func.min(c.time), sa.func.max(c.time)).where(*where)
        with self._connections.connected() as fetched:
            first, last = fetched.rows(times)[0]
            return None if first is None else (first, last)

    def buckets(
        self, kind: str, name: str, level: int, since: int, until: int, place: Place | None = None
    ) -> list[Bucket]:
        """Return the buckets of a queue, user, node or, without a name, of everything, oldest first.

        Equal names of several partitions are added up, unless one is given.
        """
        c, code = SERIES.c, SERIES_OF.get(kind, PARTITION_SERIES)
        rm, partition = place or ("", "")
        with self._connections.connected() as fetched:
            search = HistorySearch(fetched, HistoryFilter(rm=rm, partition=partition))
            # Numbers, because SQLite would read the rows of all names in the order of time for a subquery.
            where = [c.kind == code, c.name.in_(search.named(clean_text(name))), c.level == level]
            where += [c.time >= since, c.time < until, *search.places(SERIES)]
            statement = sa.select(c.time, c.data).where(*where).order_by(c.time)
            parts = groupby(fetched.rows(statement), itemgetter(0))
            merged = [(time, merged_data(code, [text for _, text in of])) for time, of in parts]
            return [(time, msgspec.json.decode(text)) for time, text in merged]

    def is_charted(self, kind: str, name: str) -> bool:
        """Return True if a queue, user or node has a series."""
        with self._connections.connected() as fetched:
            numbers = fetched.ids(sa.select(NAMES.c.id).where(NAMES.c.text == clean_text(name)))
            return bool(with_series(fetched, kind, numbers, 1))

    def charted(self, kind: str, limit: int, scope: HistoryScope | None) -> list[str]:
        """Return the first names of queues, users or nodes that have a series."""
        c = NAMES.c
        same = [SERIES.c.kind == SERIES_OF[kind], SERIES.c.name == c.id]
        with self._connections.connected() as fetched:
            visible = HistorySearch(fetched, HistoryFilter(scope=scope)).names_of_series(kind)
            seen = [] if visible is None else [c.id.in_(visible)]
            where = [*seen, sa.select(SERIES.c.time).where(*same).limit(1).exists()]
            found = fetched.rows(sa.select(c.text).where(*where).order_by(c.text).limit(limit))
            return [text for (text,) in found]

    def config_before(self, number: int) -> int | None:
        """Return the number of the configuration that another one took the place of; None without any."""
        c, after = CONFIGS.c, CONFIGS.alias().c
        same = [after.id == number, c.rm == after.rm, c.group == after.group, c.id < number]
        with self._connections.connected() as fetched:
            found = fetched.ids(sa.select(c.id).where(*same).order_by(c.id.desc()).limit(1))
            return found[0] if found else None

    def search(self, text: str, limit: int, scope: HistoryScope | None) -> list[PastMatch]:
        """Return what contains a text, whatever the case of its letters; at most `limit` of each kind."""
        with self._connections.connected() as fetched:
            return list(RecordSearch(fetched, clean_text(text), limit, scope).found())
