"""Pages of a history from which old rows are removed, and to which rows are added, while they are read."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import attrs

from tests.history.made_history import UNTIL, make_history
from tests.history.test_store import batch_of, made_row
from yunikorn_history.database import HistoryWriter, open_writer
from yunikorn_history.history_filter import EVERYTHING, HistoryFilter
from yunikorn_history.history_tables import ALLOCATIONS, APPLICATIONS, DAY, HOUR, NODE_SERIES, SERIES
from yunikorn_history.queries import HistoryQueries, every
from yunikorn_history.retention import Retention, RetentionLimits
from yunikorn_history.row_writer import RowWriter

DAYS, ROUNDS = 2, 8
KINDS = ("applications", "tasks", "queues", "users", "node_series", "usage")
LIMITS = RetentionLimits(DAY, {1: DAY, 2: DAY, 3: DAY})


def key_of(one: Any) -> Hashable:
    """Return what tells a record from all others."""
    if hasattr(one, "id"):
        return int(one.id)
    fields = ("time", "name", "rm_id", "partition", "queue", "user", "groups", "tags")
    return tuple(str(getattr(one, name, "")) for name in fields)


def change(writer: HistoryWriter, number: int) -> None:
    """Remove what is old by now, and write rows that begin now."""
    retention = Retention(LIMITS)
    # At first nothing, and at last some of what was read.
    while retention.step(writer, UNTIL - DAY + number * 5 * HOUR):
        pass
    new, time = 1_000_000 + number, UNTIL + number
    app = made_row(APPLICATIONS, id=new, app_id="new", submitted=time)
    task = made_row(ALLOCATIONS, id=new, app=new, key="new", placed=time)
    series = made_row(SERIES, kind=NODE_SERIES, level=2, time=time, name=number, data="{}")
    RowWriter(writer).write(batch_of((APPLICATIONS, app), (ALLOCATIONS, task), (SERIES, series)))


def test_nothing_comes_twice_and_nothing_that_stays_is_left_out(location: str) -> None:
    make_history(location, applications=80, allocations=600, days=DAYS, minutes=0, nodes=5, queues=3)
    writer = open_writer(location)
    queries = HistoryQueries.open(location)
    before = {kind: len([*every(getattr(queries, kind), EVERYTHING)]) for kind in KINDS}
    wanted = {kind: HistoryFilter(limit=before[kind] // ROUNDS) for kind in KINDS}
    found: dict[str, list[Hashable]] = {kind: [] for kind in KINDS}
    unread, number = {*KINDS}, 0
    while unread:
        for kind in [*unread]:
            page = getattr(queries, kind)(wanted[kind])
            found[kind] += map(key_of, page.records)
            wanted[kind] = attrs.evolve(wanted[kind], after=page.following)
            if page.following is None:
                unread.remove(kind)
        change(writer, number)
        number += 1
    for kind in KINDS:
        kept = {key_of(one) for one in every(getattr(queries, kind), HistoryFilter(until=UNTIL))}
        assert len(found[kind]) == len({*found[kind]}), kind
        assert kept <= {*found[kind]}, kind
        # The last pages were gone, and some of what was read.
        assert len(kept) < len(found[kind]) < before[kind], kind
    assert 3 < number < ROUNDS
    queries.close()
    writer.close()
