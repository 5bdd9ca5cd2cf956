"""Rows of a history, as reports read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs
import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from yunikorn.errors import UsageError
from yunikorn.text import suggest
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    DAY,
    NAMES,
    PARTITION_SERIES,
    PREEMPTED,
    RUNS,
    SERIES,
    SHAPES,
    USAGE,
    USER_SERIES,
)
from yunikorn_history.sampled_series import merged_data
from yunikorn_lab.history_reports.price_list import PriceList
from yunikorn_lab.history_reports.report_window import (
    DAYS,
    HOURS,
    Grouping,
    ReportFilter,
    ReportWindow,
    spell_time,
)

ROOT = "root"
AT_ONCE = 500
"""Number of ids in a condition."""
Amounts = dict[str, int]
_AMOUNTS = msgspec.json.Decoder(dict[str, int])
_TEXTS = msgspec.json.Decoder(dict[str, str])


class UsageData(msgspec.Struct):
    """Column `data` of `usage`."""

    service: Amounts = {}
    placeholder: Amounts = {}
    lost: Amounts = {}
    started: int = 0
    ended: int = 0
    preempted: int = 0


class SeriesData(msgspec.Struct):
    """Column `data` of `series`, as far as reports need it."""

    n: int = 0
    used: dict[str, float] = {}
    pending: dict[str, float] = {}
    guaranteed: Amounts = {}
    max: Amounts = {}
    capacity: Amounts = {}
    waits: dict[str, int] = {}
    idle: dict[str, Amounts] = {}
    mean: dict[str, dict[str, float]] = {}

    @property
    def mean_capacity(self) -> Mapping[str, float]:
        """Mean capacity."""
        return self.mean.get("capacity", self.capacity)

    @property
    def mean_guarantee(self) -> Mapping[str, float]:
        """Mean guarantee."""
        return self.mean.get("guaranteed", self.guaranteed)


_USAGE = msgspec.json.Decoder(UsageData)
_SERIES = msgspec.json.Decoder(SeriesData)


def amounts_of(text: str | None) -> Amounts:
    """Return the amounts of a column with JSON."""
    return _AMOUNTS.decode(text) if text else {}


@attrs.define(eq=False)
class ReportSource:
    """A connection to a history, with what a report is of."""

    connection: Connection
    window: ReportWindow
    wanted: ReportFilter
    prices: PriceList | None = None
    has_pictures: bool = False
    """False if no pictures are wanted, for which more is read."""
    is_partial: bool = False
    """True for the applications and usage of some users and queues, beside the series of all."""
    texts: dict[int, str] = attrs.Factory(dict)
    """Names by id."""
    shapes: dict[int, Amounts] = attrs.Factory(dict)
    _subjects: dict[int, str] = attrs.Factory(dict)
    """Names of groups by the column of their subject."""
    _queues: set[int] = attrs.field(init=False)
    _users: set[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Read the names; raises `UsageError` if there is no such queue or user."""
        self.texts = {number: text for number, text in self.rows(sa.select(NAMES))}
        queue, user = self.wanted.queue, self.wanted.user
        self._queues = {
            number for number, text in self.texts.items() if text == queue or text.startswith(f"{queue}.")
        }
        self._users = {number for number, text in self.texts.items() if text == user}
        columns = (("queue", queue, self._queues), ("user", user, self._users))
        for name, text, found in columns:
            column = APPLICATIONS.c[name]
            if text and not any(
                self.connection.scalar(sa.select(sa.exists().where(column == number))) for number in found
            ):
                every = {self.texts.get(row[0], "") for row in self.rows(sa.select(column).distinct())}
                raise UsageError(f"--{name}: the history has no {name} '{text}'{suggest(text, every)}")

    def rows(self, statement: sa.Select[Any]) -> Iterator[Sequence[Any]]:
        """Return the rows of a statement, which are not kept in memory."""
        streamed = self.connection.execution_options(yield_per=10_000)
        return iter(streamed.execute(statement))

    def name(self, number: int) -> str:
        """Return the name with an id."""
        return self.texts.get(number, "")

    def shape(self, number: int) -> Amounts:
        """Return the amounts with an id."""
        if not self.shapes:
            self.shapes = {row[0]: amounts_of(row[1]) for row in self.rows(sa.select(SHAPES))}
        return self.shapes.get(number, {})

    def resource_types(self) -> set[str]:
        """Return the resource types of all allocations that the history has."""
        self.shape(0)
        return {name for amounts in self.shapes.values() for name in amounts}

    def queues(self) -> set[str]:
        """Return the queues that the history has, and the queues above them."""
        paths = [
            text.split(".") for text in self.texts.values() if text == ROOT or text.startswith(f"{ROOT}.")
        ]
        return {".".join(path[:count]) for path in paths for count in range(1, len(path) + 1)}

    def _selected(self, table: sa.Table) -> list[sa.ColumnElement[bool]]:
        found: list[sa.ColumnElement[bool]] = []
        if self.wanted.queue:
            found.append(table.c.queue.in_(self._queues))
        if self.wanted.user:
            found.append(table.c.user.in_(self._users))
        return found

    @property
    def currency(self) -> str:
        """Currency of the prices; empty without."""
        return self.prices.currency if self.prices is not None else ""

    # -- groups -------------------------------------------------------------------------------------

    def subject(self, grouping: Grouping, value: int) -> str:
        """Return the name of a group, given the id of the column of its subject; empty without one."""
        if not grouping.subject:
            return ""
        found = self._subjects.get(value)
        if found is None:
            text = self.name(value)
            found = tag_of(grouping.tag, text) if grouping.tag else text
            found = primary_group(found) if grouping.subject == "group" else found
            self._subjects[value] = found
        return found

    def check(self, grouping: Grouping) -> None:
        """Raise `UsageError` for a tag, or prices of resources or queues, that the history does not have."""
        if grouping.tag:
            texts = self.texts.values()
            known = {name for text in texts if text.startswith("{") for name in _TEXTS.decode(text)}
            if grouping.tag not in known:
                near = suggest(grouping.tag, known)
                kept = f"; it has: {', '.join(sorted(known))}" if known else ""
                raise UsageError(
                    f"--by: no application of the history has the tag '{grouping.tag}'{near}{kept}"
                    " (--history-tags of the scheduler chooses which are kept)"
                )
        if self.prices is not None:
            of_nodes = (data.capacity for _, _, data in self.series(PARTITION_SERIES))
            self.prices.check(self.resource_types().union(*of_nodes), self.queues())

    # -- tables -------------------------------------------------------------------------------------

    def usage(self, *columns: str) -> Iterator[tuple[int, tuple[int, ...], UsageData]]:
        """Yield time, these columns and data of the usage in the window."""
        table, window = USAGE, self.window
        wanted = (table.c.time, table.c.data, *(table.c[name] for name in columns))
        statement = sa.select(*wanted).where(
            table.c.level == window.level,
            table.c.time >= window.since,
            table.c.time < window.until,
            *self._selected(table),
        )
        for time, data, *keys in self.rows(statement):
            yield time, tuple(keys), _USAGE.decode(data)

    def series(self, kind: int) -> Iterator[tuple[int, int, SeriesData]]:
        """Yield id of the name, time and data of the series of a kind in the window, by name and time.

        Equal names of several partitions are added up.
        """
        table, window = SERIES, self.window
        statement = (
            sa.select(table.c.name, table.c.time, table.c.data)
            .where(
                table.c.kind == kind,
                # The names make the primary key the best index, in the order of which the rows are.
                table.c.name.in_(self._names_of(kind)),
                table.c.level == window.level,
                table.c.time >= window.since,
                table.c.time < window.until,
            )
            .order_by(table.c.name, table.c.time)
        )
        for (name, time), parts in groupby(self.rows(statement), lambda row: (row[0], row[1])):
            yield name, time, _SERIES.decode(merged_data(kind, [data for *_, data in parts]))

    def _names_of(self, kind: int) -> set[int]:
        if kind == PARTITION_SERIES:
            return {0}
        if kind == USER_SERIES:
            users = sa.select(USAGE.c.user).where(USAGE.c.level == self.window.level).distinct()
            return {row[0] for row in self.rows(users)}
        if self.wanted.queue:
            return self._queues
        return {number for number, text in self.texts.items() if text == ROOT or text.startswith(f"{ROOT}.")}

    def applications(self, *columns: str, submitted: bool = False) -> Iterator[Sequence[Any]]:
        """Yield columns of the applications that were there in the window, or were submitted in it."""
        c, window = APPLICATIONS.c, self.window
        where = [c.submitted < window.until, *self._selected(APPLICATIONS)]
        if submitted:
            where.append(c.submitted >= window.since)
        else:
            where.append(sa.or_(c.ended.is_(None), c.ended > window.since))
        return self.rows(sa.select(*(c[name] for name in columns)).where(*where))

    def tasks_of(self, applications: Iterable[int], *columns: str) -> Iterator[Sequence[Any]]:
        """Yield columns of the allocations of these applications."""
        numbers = list(applications)
        for start in range(0, len(numbers), AT_ONCE):
            some = numbers[start : start + AT_ONCE]
            chosen = sa.select(*(ALLOCATIONS.c[name] for name in columns))
            yield from self.rows(chosen.where(ALLOCATIONS.c.app.in_(some)))

    def placements(self, *columns: str) -> Iterator[Sequence[Any]]:
        """Yield columns of the applications of tasks that were placed in the window, with their waits."""
        a, c, window = ALLOCATIONS.c, APPLICATIONS.c, self.window
        statement = (
            sa.select(a.placed, a.requested, a.flags, *(c[name] for name in columns))
            .join(APPLICATIONS, a.app == c.id)
            .where(a.placed >= window.since, a.placed < window.until, *self._selected(APPLICATIONS))
        )
        return self.rows(statement)

    def preemptions(self, column: str) -> Iterator[Sequence[Any]]:
        """Yield the allocations that were preempted in the window, by their ends.

        Each has id, queue, user and this column of its application.
        """
        a, c, window = ALLOCATIONS.c, APPLICATIONS.c, self.window
        statement = (
            sa.select(a.placed, a.ended, a.flags, a.shape, a.sizes, a.reason, a.preemptor)
            .add_columns(c.id, c.app_id, c.queue, c.user, c[column].label("subject"))
            .join(APPLICATIONS, a.app == c.id)
            .where(
                a.ended >= window.since,
                a.ended < window.until,
                a.flags.bitwise_and(PREEMPTED) != 0,
                *self._selected(APPLICATIONS),
            )
            .order_by(a.ended, a.id)
        )
        return self.rows(statement)

    def applications_named(self, ids: Iterable[str], column: str) -> Iterator[Sequence[Any]]:
        """Yield id, submission and a column of the applications with these ids, by submission."""
        c, wanted = APPLICATIONS.c, sorted(ids)
        for start in range(0, len(wanted), AT_ONCE):
            some = wanted[start : start + AT_ONCE]
            chosen = sa.select(c.app_id, c.submitted, c[column])
            yield from self.rows(chosen.where(c.app_id.in_(some)).order_by(c.submitted))


def tag_of(name: str, text: str) -> str:
    """Return the value of a tag in JSON; empty without the tag."""
    return _TEXTS.decode(text).get(name, "") if text else ""


def primary_group(text: str) -> str:
    """Return the first group of a JSON list; empty without groups."""
    try:
        return str(next(iter(json.loads(text)), "")) if text else ""
    except ValueError:
        return text


def covered_times(connection: Connection) -> list[tuple[int, int]]:
    """Return begin and end of the times in which a scheduler ran (ms since 1970), in order.

    Runs that overlap, such as after the clock was set back, are one time.
    """
    c, found = RUNS.c, list[tuple[int, int]]()
    for started, seen, ended in connection.execute(sa.select(c.started, c.seen, c.ended).order_by(c.started)):
        begin, end = started, max(started, seen, ended or 0)
        if found and begin <= found[-1][1]:
            begin, before = found.pop()
            end = max(before, end)
        found.append((begin, end))
    return found


def _has_hours(connection: Connection, begin: int) -> bool:
    """Return True if sums of hours reach back to a time, or as far as those of days."""
    hours, days = (
        connection.scalar(
            sa.select(sa.func.min(SERIES.c.time)).where(
                SERIES.c.kind == PARTITION_SERIES, SERIES.c.name == 0, SERIES.c.level == level
            )
        )
        for level in (HOURS, DAYS)
    )
    return days is None or (hours is not None and hours < max(days + DAY, begin + 1))


def open_window(connection: Connection, since: int | None, until: int | None) -> ReportWindow:
    """Return the window of a report; raises `UsageError` if the history has nothing of it."""
    runs = covered_times(connection)
    if not runs:
        raise UsageError("the history is empty: no scheduler has written to it yet")
    first, latest = runs[0][0], runs[-1][1]
    begin, end = first if since is None else since, latest if until is None else until
    if begin >= latest or end <= first:
        raise UsageError(
            f"the history has nothing of this time: it begins at {spell_time(first)} and ends at "
            f"{spell_time(latest)}"
        )
    begin, end = max(begin, first), min(end, latest)
    return ReportWindow.around(begin, end, runs, has_hours=_has_hours(connection, begin))
