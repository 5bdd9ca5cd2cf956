"""Queries of a history: pages of records, newest first.

A page begins behind the last record of the page before, by its time and number, so that the hundredth page
of millions is as fast as the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Generic, TypeVar

import attrs
import msgspec
import sqlalchemy as sa
from sqlalchemy import Column, ColumnElement, Table

from yunikorn_history import history_tables as tables
from yunikorn_history.database import open_reader
from yunikorn_history.fetched_rows import FetchedRows, HistoryConnections
from yunikorn_history.history_filter import EVERYTHING, HistoryFilter, Position
from yunikorn_history.history_search import HistorySearch, newest
from yunikorn_history.history_tables import ALLOCATIONS, APPLICATIONS
from yunikorn_history.known_names import unknown_names
from yunikorn_history.past_records import (
    USUAL_GROUPS,
    HistoryGap,
    PastAction,
    PastApplication,
    PastConfig,
    PastFault,
    PastNode,
    PastNodeChange,
    PastRun,
    PastRunTimes,
    PastSize,
    PastState,
    PastTask,
    SeriesPoint,
    UsagePoint,
)
from yunikorn_history.run_times import read_run_times
from yunikorn_plugins.run_time_groups import LADDER, RESOURCE, RunTimes, quantile

T = TypeVar("T")
Values = dict[str, Any]
"""Values of a row by column."""
LEVELS = {"minute": 1, "hour": 2, "day": 3}
"""Levels of series by the name of their buckets."""
_BUCKETS = {level: name for name, level in LEVELS.items()}
_NAMES_OF = {
    tables.QUEUE_SERIES: "queue",
    tables.USER_SERIES: "user",
    tables.NODE_SERIES: "node",
    tables.PARTITION_SERIES: "partition",
}


@attrs.frozen
class HistoryPage(Generic[T]):
    """Records of a page, newest first, and the position behind them if others follow."""

    records: tuple[T, ...]
    following: Position | None = None


Read = Callable[[HistoryFilter], HistoryPage[T]]


def every(read: Read[T], wanted: HistoryFilter) -> Iterator[T]:
    """Yield the records of all pages of a query."""
    while True:
        page = read(wanted)
        yield from page.records
        if page.following is None:
            return
        wanted = attrs.evolve(wanted, after=page.following)


class HistoryQueries:
    """Queries of a history that is open for reading, from any thread."""

    def __init__(self, connections: HistoryConnections) -> None:
        self.connections = connections

    @classmethod
    def open(cls, location: str, patience: float | None = None) -> HistoryQueries:
        """Open the history at a path or URL; raises `HistoryError`.

        Queries that take longer than `patience` seconds end with `HistoryTooSlow`.
        """
        return cls(HistoryConnections(open_reader(location), patience))

    def close(self) -> None:
        """Close the history."""
        self.connections.close()

    def unknown_names(self, wanted: HistoryFilter) -> list[tuple[str, str]]:
        """Return the names of a filter that the history has at no time, as (filter, why)."""
        with self.connections.connected() as fetched:
            return list(unknown_names(fetched, wanted))

    # -- applications and tasks ----------------------------------------------------------------------

    def applications(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[PastApplication]:
        """Return applications by the time of their submission."""
        with self.connections.connected() as fetched:
            rows = HistorySearch(fetched, wanted).applications()
            page = fetched.records(APPLICATIONS, rows)
            return _page(page, wanted, "submitted", _application)

    def application(self, number: int) -> PastApplication | None:
        """Return a submission of an application by its number; None if there is none."""
        return next(iter(self.applications(HistoryFilter(number=number, limit=1)).records), None)

    def tasks(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[PastTask]:
        """Return allocations by the time of their placement."""
        with self.connections.connected() as fetched:
            rows = HistorySearch(fetched, wanted).tasks()
            page = fetched.records(ALLOCATIONS, rows)
            numbers = {one["app"] for one in page}
            columns = [APPLICATIONS.c[name] for name in ("id", "app_id", "queue", "user")]
            owners = fetched.rows(sa.select(*columns).where(APPLICATIONS.c.id.in_(numbers)))
            known = {one["id"]: one for one in fetched.records_of(columns, owners)}
            return _page(page, wanted, "placed", lambda one: _task(one, known.get(one["app"], {})))

    def read_run_times(
        self, wanted: HistoryFilter = EVERYTHING, kinds: Sequence[tuple[str, ...]] = LADDER
    ) -> RunTimes:
        """Return run times of the tasks that ended in a time, by groups of some kinds."""
        return read_run_times(self.connections, wanted, kinds)

    def run_times(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[PastRunTimes]:
        """Return run times of tasks by groups, those with the most tasks first."""
        by = wanted.by or USUAL_GROUPS
        groups = self.read_run_times(wanted, (by,)).groups[by]
        ordered = sorted(groups.items(), key=lambda one: (-one[1].total(), one[0]))
        begin = 0 if wanted.after is None else wanted.after[0]
        end = begin + wanted.limit
        following = (end, 0) if end < len(ordered) else None
        return HistoryPage(tuple(_run_times(by, *one) for one in ordered[begin:end]), following)

    # -- series and usage ----------------------------------------------------------------------------

    def queues(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[SeriesPoint]:
        """Return the use of queues over time."""
        return self._series(tables.QUEUE_SERIES, wanted)

    def users(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[SeriesPoint]:
        """Return the use by users over time."""
        return self._series(tables.USER_SERIES, wanted)

    def node_series(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[SeriesPoint]:
        """Return the use of nodes over time."""
        return self._series(tables.NODE_SERIES, wanted)

    def partition(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[SeriesPoint]:
        """Return the use of the whole partition over time."""
        return self._series(tables.PARTITION_SERIES, wanted)

    def _series(self, kind: int, wanted: HistoryFilter) -> HistoryPage[SeriesPoint]:
        table, c, level = tables.SERIES, tables.SERIES.c, LEVELS[wanted.bucket]
        order = (c.time, c.name, c.rm, c.partition)
        with self.connections.connected() as fetched:
            search = HistorySearch(fetched, wanted)
            names = search.names_of_series(_NAMES_OF[kind])
            # One name has all of its buckets in the order of the page; of several, all are in that of time.
            single = names is not None and len(names) <= 1
            where: list[ColumnElement[bool]] = [c.level == level]
            where.append(c.kind == kind if single else c.kind + 0 == kind)
            if names is not None:
                where.append(c.name == sum(names) if single else (c.name + 0).in_(names))
                where += [] if names else [sa.false()]
            where += [*_buckets(c.time, wanted), *search.places(table), *_before(order, wanted)]
            # The keys are in the index by time, where those of other kinds are passed over quickly.
            newest_first = [column.desc() for column in order]
            keys = sa.select(*table.primary_key).where(*where).order_by(*newest_first)
            some = keys.limit(wanted.limit + 1).subquery()
            same = sa.and_(*(table.c[name] == column for name, column in some.c.items()))
            rows = fetched.rows(sa.select(table).join(some, same).order_by(*newest_first))
            return _keyed_page(fetched, table, rows, [column.name for column in order], wanted, _point)

    def usage(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[UsagePoint]:
        """Return the exact service of users in leaf queues, by hours or days."""
        table, c = tables.USAGE, tables.USAGE.c
        keys = [column for column in table.primary_key if column.name != "level"]
        with self.connections.connected() as fetched:
            where = [c.level == max(LEVELS[wanted.bucket], LEVELS["hour"]), *_buckets(c.time, wanted)]
            where += HistorySearch(fetched, wanted).visible({column.name: column + 0 for column in keys})
            where += HistorySearch(fetched, wanted).places(table)
            where += _before(keys, wanted)
            statement = sa.select(table).where(*where).order_by(*(key.desc() for key in keys))
            rows = fetched.rows(statement.limit(wanted.limit + 1))
            return _keyed_page(fetched, table, rows, [key.name for key in keys], wanted, _usage)

    # -- smaller tables ------------------------------------------------------------------------------

    def nodes(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[PastNode]:
        """Return nodes by the time of their addition."""
        c = tables.NODES.c
        where: list[ColumnElement[bool]] = (
            [] if wanted.since is None else [sa.or_(c.left.is_(None), c.left >= wanted.since)]
        )
        return self._small(c.joined, where, {"name": wanted.node}, wanted, _node)

    def configs(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[PastConfig]:
        """Return configurations, without their texts, by the time at which they came into use."""
        c = tables.CONFIGS.c
        return self._small(c.time, _since(c.time, wanted), {"by": wanted.user}, wanted, _config)

    def config(self, number: int) -> PastConfig | None:
        """Return a configuration with its text, by its number; None if there is none."""
        found = self._numbered(tables.CONFIGS, number)
        return attrs.evolve(_config(found), text=found["text"]) if found else None

    def audit(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[PastAction]:
        """Return actions of operators (`user`), with their outcome (`state`)."""
        c = tables.AUDIT.c
        where, user = _since(c.time, wanted), wanted.user
        if wanted.scope is not None:
            user = wanted.scope.user
            where += [sa.false()] if wanted.user not in ("", user) else []
        named = {"operator": user, "outcome": wanted.state}
        return self._small(c.time, where, named, wanted, partial(_made, PastAction, {}))

    def faults(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[PastFault]:
        """Return failures of plugins by the time of their latest occurrence."""
        c = tables.FAULTS.c
        where = _since(c.latest, wanted)
        where += [] if wanted.until is None else [c.first < wanted.until]
        lasting = attrs.evolve(wanted, until=None)
        return self._small(c.latest, where, {}, lasting, partial(_made, PastFault, {}))

    def runs(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[PastRun]:
        """Return runs of the scheduler."""
        c = tables.RUNS.c
        return self._small(c.started, _since(c.seen, wanted), {}, wanted, partial(_made, PastRun, {}))

    def gaps(self, wanted: HistoryFilter = EVERYTHING) -> HistoryPage[HistoryGap]:
        """Return times whose events were lost."""
        c = tables.GAPS.c
        return self._small(c.since, _since(c.until, wanted), {}, wanted, partial(_made, HistoryGap, {}))

    def _small(
        self,
        moment: Column[int],
        where: list[ColumnElement[bool]],
        named: Mapping[str, str],
        wanted: HistoryFilter,
        made: Callable[[Values], T],
    ) -> HistoryPage[T]:
        """Return a page of a table with a time and a number, of rows with the given names."""
        table = moment.table
        assert isinstance(table, Table)
        with self.connections.connected() as fetched:
            search = HistorySearch(fetched, wanted)
            given = [table.c[column].in_(search.named(text)) for column, text in named.items() if text]
            where = [*where, *(search.places(table) if "partition" in table.c else [])]
            until = [] if wanted.until is None else [moment < wanted.until]
            statement = sa.select(table).where(*where, *until, *given)
            rows = fetched.rows(newest(statement, moment, table.c.id, wanted))
            return _page(fetched.records(table, rows), wanted, moment.name, made)

    def _numbered(self, table: Table, number: int) -> Values | None:
        with self.connections.connected() as fetched:
            rows = fetched.rows(sa.select(table).where(table.c.id == number))
            return next(iter(fetched.records(table, rows)), None)


def _page(
    rows: Sequence[Values], wanted: HistoryFilter, moment: str, made: Callable[[Values], T]
) -> HistoryPage[T]:
    last = rows[wanted.limit - 1] if len(rows) > wanted.limit else None
    following = None if last is None else (last[moment], last["id"])
    return HistoryPage(tuple(made(one) for one in rows[: wanted.limit]), following)


def _keyed_page(
    fetched: FetchedRows,
    table: Table,
    rows: list[list[Any]],
    key: Sequence[str],
    wanted: HistoryFilter,
    made: Callable[[Values], T],
) -> HistoryPage[T]:
    """Return a page of a table without numbers, whose positions are those of a key."""
    page = fetched.records(table, rows[: wanted.limit])
    following = None
    if len(rows) > wanted.limit:
        last = dict(zip(table.c.keys(), rows[wanted.limit - 1], strict=True))
        following = tuple(last[name] for name in key)
    return HistoryPage(tuple(made(one) for one in page), following)


def _before(key: Sequence[ColumnElement[int]], wanted: HistoryFilter) -> list[ColumnElement[bool]]:
    """Return the condition of the rows behind the page before, whose key begins with a time."""
    if wanted.after is None:
        return []
    # The comparison of the times alone can use the index.
    return [key[0] <= wanted.after[0], sa.tuple_(*key) < sa.tuple_(*map(sa.literal, wanted.after))]


def _since(moment: Column[int], wanted: HistoryFilter) -> list[ColumnElement[bool]]:
    return [] if wanted.since is None else [moment >= wanted.since]


def _buckets(moment: Column[int], wanted: HistoryFilter) -> list[ColumnElement[bool]]:
    until = [] if wanted.until is None else [moment < wanted.until]
    return [*_since(moment, wanted), *until]


# -- records ---------------------------------------------------------------------------------------------


def _made(kind: type[T], columns: Mapping[str, str], one: Values, **given: Any) -> T:
    """Return a record with the values of its columns, which have its names or those of `columns`."""
    fields: Any = kind
    for name in _names_of(fields):
        value = one.get(columns.get(name, name))
        if value is not None and name not in given:
            given[name] = tuple(value) if type(value) is list else value
    return kind(**given)


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind))


def _application(one: Values) -> PastApplication:
    states = tuple(PastState(time=time, state=state, reason=why) for time, state, why in one["states"] or ())
    return _made(PastApplication, {"rm_id": "rm", "application_id": "app_id"}, one, states=states)


def _task(one: Values, owner: Values) -> PastTask:
    flags, cause = one["flags"], one["preemptor"]
    columns = {"application": "app", "allocation_key": "key", "node_id": "node", "resource": "shape"}
    return _made(
        PastTask,
        {**columns, "message": "reason"},
        one,
        application_id=owner.get("app_id", ""),
        queue=owner.get("queue", ""),
        user=owner.get("user", ""),
        preempted_by=_preemptor(cause),
        sizes=tuple(PastSize(until=until, resource=size) for until, size in one["sizes"] or ()),
        placeholder=bool(flags & tables.PLACEHOLDER),
        recovered=bool(flags & tables.RECOVERED),
        preempted=bool(flags & tables.PREEMPTED),
        originator=bool(flags & tables.ORIGINATOR),
        is_end_estimated=bool(flags & tables.ESTIMATED_END),
    )


def _preemptor(cause: str) -> tuple[str, ...]:
    if not cause.startswith("["):
        return (cause,) if cause else ()
    return msgspec.json.decode(cause, type=tuple[str, ...])


def _run_times(by: Sequence[str], names: Sequence[str], buckets: Counter[int]) -> PastRunTimes:
    given: dict[str, Any] = dict(zip(by, names, strict=True))
    if RESOURCE in given:
        given[RESOURCE] = msgspec.json.decode(given[RESOURCE] or "{}")
    shares: dict[str, Any] = {f"p{percent}": quantile(buckets, percent / 100) for percent in (50, 90, 95, 99)}
    return PastRunTimes(**given, tasks=buckets.total(), **shares)


def _point(one: Values) -> SeriesPoint:
    data = {**one["data"], "time": one["time"], "name": one["name"]}
    drained = 1 - data.get("schedulable", 1)
    data |= {"rm_id": one["rm"], "partition": one["partition"]}
    return _made(SeriesPoint, {}, data, bucket=_BUCKETS[one["level"]], drained=drained)


def _usage(one: Values) -> UsagePoint:
    keys = {name: value for name, value in one.items() if name != "data"}
    return _made(UsagePoint, {"rm_id": "rm"}, {**one["data"], **keys}, bucket=_BUCKETS[one["level"]])


def _node(one: Values) -> PastNode:
    changes = tuple(
        PastNodeChange(time=time, kind=kind, text=text) for time, kind, text in one["changes"] or ()
    )
    return _made(PastNode, {"rm_id": "rm", "node_id": "name", "capacity": "shape"}, one, changes=changes)


def _config(one: Values) -> PastConfig:
    return _made(PastConfig, {"rm_id": "rm", "policy_group": "group"}, one, text="")
