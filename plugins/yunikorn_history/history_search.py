"""Search of the rows of applications and allocations, each way by an index that has the order of the page.

A database that is free to choose would read and sort all rows of a user, or of all queues below one, for
each page. So a filter that has an index with the time is searched by it, once for each of its values, and
the first rows of each are merged. Other filters are hidden from the indexes (`+ 0`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import msgspec
import sqlalchemy as sa
from sqlalchemy import Column, ColumnElement, Select, Table

from yunikorn_history.fetched_rows import FetchedRows
from yunikorn_history.history_filter import HistoryFilter, HistoryScope, Position
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    DAY,
    HAS_PREEMPTED,
    HAS_TAGS,
    IS_PREEMPTED,
    IS_UNUSUAL,
    NAMES,
    PREEMPTED,
    USUAL_EXITS,
)

Where = ColumnElement[bool]
FEW = 2_000
"""Number of applications up to which tasks are found by their applications, and not by their times."""
MOST_LEGS = 100
"""Number of queues, or of lists of groups, up to which each is searched by its index."""
MOST_PLACES = 100
"""Number of partitions of all resource managers up to which each is searched by an index."""
ROOT = "root"
_APP, _TASK = APPLICATIONS.c, ALLOCATIONS.c


def newest(
    statement: Select[Any], time: Column[int], number: Column[int], wanted: HistoryFilter
) -> Select[Any]:
    """Return the statement for a page, newest first, with one row more if another page follows."""
    return _ordered(statement.where(*_behind(time, number, wanted.after)), time, number, wanted.limit + 1)


def _ordered(statement: Select[Any], time: Column[int], number: Column[int], limit: int) -> Select[Any]:
    return statement.order_by(time.desc(), number.desc()).limit(limit)


def _behind(time: Column[int], number: Column[int], after: Position | None) -> list[Where]:
    if after is None:
        return []
    return [time <= after[0], sa.or_(time < after[0], number < after[1])]


class HistorySearch:
    """Search with one filter on one connection."""

    def __init__(self, fetched: FetchedRows, wanted: HistoryFilter) -> None:
        self._fetched, self._wanted = fetched, wanted

    def applications(self) -> list[list[Any]]:
        """Return the rows of a page of applications, and one more if another page follows."""
        return self._search(_APP.submitted, self._legs_of_applications(), self._wanted.limit + 1)

    def tasks(self) -> list[list[Any]]:
        """Return the rows of a page of allocations, and one more if another page follows."""
        return self._search(_TASK.placed, self._legs_of_tasks(), self._wanted.limit + 1)

    # -- pages ---------------------------------------------------------------------------------------

    def _search(self, time: Column[int], legs: _Legs, limit: int) -> list[list[Any]]:
        """Return rows that were there in the wanted time: first those that began in it.

        Those that began before are found by their ends; an index has both.
        """
        table, wanted = time.table, self._wanted
        assert isinstance(table, Table)
        until = [] if wanted.until is None else [time < wanted.until]
        if wanted.since is None:
            return self._window(time, legs, until, limit)
        found: list[list[Any]] = []
        if wanted.after is None or wanted.after[0] >= wanted.since:
            found = self._window(time, legs, [time >= wanted.since, *until], limit)
        if len(found) < limit:
            inner = table.alias()
            before = sa.select(inner.c.id).where(inner.c[time.name] < wanted.since)
            lasting = sa.union_all(
                before.where(inner.c.ended >= wanted.since), before.where(inner.c.ended.is_(None))
            )
            where = [time < wanted.since, table.c.id.in_(lasting), *until]
            found += self._window(time, legs.as_filters(), where, limit - len(found))
        return found

    def _window(self, time: Column[int], legs: _Legs, where: list[Where], limit: int) -> list[list[Any]]:
        table = time.table
        assert isinstance(table, Table)
        number, where = table.c.id, [*where, *legs.filters, *_behind(time, table.c.id, self._wanted.after)]
        if not legs.legs:
            return []
        if len(legs.legs) == 1:
            return self._fetched.rows(
                _ordered(sa.select(table).where(*legs.legs, *where), time, number, limit)
            )
        parts = (_ordered(sa.select(number).where(leg, *where), time, number, limit) for leg in legs.legs)
        numbers = sa.union_all(*(sa.select(part.subquery().c.id) for part in parts))
        return self._fetched.rows(_ordered(sa.select(table).where(number.in_(numbers)), time, number, limit))

    # -- filters -------------------------------------------------------------------------------------

    def _legs_of_applications(self) -> _Legs:
        wanted = self._wanted
        legs = _Legs()
        if wanted.number is not None:
            legs.add(_APP.id == wanted.number, _APP.id == wanted.number)
        if wanted.application:
            legs.add(_APP.app_id == wanted.application, _APP.app_id.concat("") == wanted.application)
        for column, text in ((_APP.template, wanted.template), (_APP.user, wanted.user)):
            if text:
                legs.add_values(column, self.named(text))
        if wanted.queue and wanted.queue != ROOT:
            legs.add_values(_APP.queue, self.below(wanted.queue))
        if wanted.group:
            legs.add_values(_APP.groups, self.with_group(wanted.group))
        if wanted.state:
            legs.add_values(_APP.state, self.named(wanted.state))
        if wanted.scope is not None:
            users, queues = self.named(wanted.scope.user), self.seen(wanted.scope)
            visible = sa.or_((_APP.user + 0).in_(users), (_APP.queue + 0).in_(queues))
            each = [*(_APP.user == one for one in users), *(_APP.queue == one for one in queues)]
            legs.add_all(each, visible)
        if wanted.tag:
            tags = self.with_tag(wanted.tag)
            few = [_APP.tags == one for one in tags] if len(tags) <= MOST_LEGS else [_APP.tags.in_(tags)]
            legs.add_all([HAS_TAGS & one for one in few], (_APP.tags + 0).in_(tags))
        places = self.places(APPLICATIONS)
        if places:
            pairs = self._places_of_applications()
            legs.add_all(
                [sa.and_(_APP.partition == one, _APP.rm == rm) for one, rm in pairs], sa.and_(*places)
            )
        if wanted.preempted:
            legs.add(HAS_PREEMPTED, _APP.preempted + 0 > 0)
        elif wanted.preempted is not None:
            legs.filters.append(_APP.preempted == 0)
        return legs

    def _legs_of_tasks(self) -> _Legs:
        wanted = self._wanted
        legs = _Legs()
        of_application = attrs.evolve(wanted, node="", exit="", preempted=None, state="", after=None)
        apps = HistorySearch(self._fetched, of_application)._legs_of_applications()
        if not apps.is_everything:
            numbers = self._applications_of(apps)
            if len(numbers) <= FEW:
                legs.add(_TASK.app.in_(numbers), (_TASK.app + 0).in_(numbers))
            else:
                same = sa.select(sa.literal(1)).where(_APP.id == _TASK.app, apps.condition())
                legs.filters.append(same.exists())
        if wanted.node:
            legs.add_values(_TASK.node, self.named(wanted.node))
        if wanted.exit in USUAL_EXITS:
            legs.filters.append((_TASK.exit + 0).in_(self.named(wanted.exit)))
        elif wanted.exit:
            exits = self.named(wanted.exit)
            legs.add_all([IS_UNUSUAL & (_TASK.exit == one) for one in exits], (_TASK.exit + 0).in_(exits))
        if wanted.preempted:
            legs.add(IS_PREEMPTED, _TASK.flags.op("&")(PREEMPTED) != 0)
        elif wanted.preempted is not None:
            legs.filters.append(_TASK.flags.op("&")(PREEMPTED) == 0)
        return legs

    def _applications_of(self, apps: _Legs) -> list[int]:
        """Return the numbers of the wanted applications, of more than `FEW` any."""
        wanted, where = self._wanted, list(apps.filters)
        if not apps.legs:
            return []
        if wanted.until is not None:
            where.append(_APP.submitted < wanted.until)
        if wanted.since is not None:
            # Tasks of an application that failed end after it.
            where.append(sa.or_(_APP.ended.is_(None), _APP.ended + 0 >= wanted.since - DAY))
        parts = [sa.select(_APP.id).where(leg, *where).limit(FEW + 1) for leg in apps.legs]
        numbers = sa.union_all(*(sa.select(part.subquery().c.id) for part in parts))
        return sorted({row[0] for row in self._fetched.rows(numbers.limit(FEW + 1))})

    # -- names ---------------------------------------------------------------------------------------

    def named(self, text: str) -> list[int]:
        """Return the number of a text, if the history has it."""
        return self._fetched.ids(sa.select(NAMES.c.id).where(NAMES.c.text == text))

    def below(self, path: str) -> list[int]:
        """Return the numbers of a queue and of those below it."""
        prefix = sa.func.substr(NAMES.c.text, 1, len(path) + 1) == f"{path}."
        return self._fetched.ids(sa.select(NAMES.c.id).where((NAMES.c.text == path) | prefix))

    def seen(self, scope: HistoryScope) -> list[int]:
        """Return the numbers of the queues that a scope has."""
        rules = {path: path in scope.queues for path in (*scope.queues, *scope.without)}
        if not rules:
            return []
        any_queue = sa.func.substr(NAMES.c.text, 1, len(ROOT)) == ROOT
        known = self._fetched.rows(sa.select(NAMES).where(any_queue))
        return [number for number, path in known if _innermost(rules, path)]

    def with_group(self, group: str) -> list[int]:
        """Return the numbers of lists with a group."""
        lists = sa.select(NAMES).where(sa.func.substr(NAMES.c.text, 1, 2) == '["')
        return [number for number, text in self._fetched.rows(lists) if group in msgspec.json.decode(text)]

    def with_tag(self, tag: str) -> list[int]:
        """Return the numbers of tags with `KEY=VALUE`, or with `KEY`, which is a part of their JSON."""
        key, equals, value = tag.partition("=")
        text = msgspec.json.encode(key).decode() + ":"
        if equals:
            text += msgspec.json.encode(value).decode()
        # A comparison by LIKE would ignore the case in SQLite, and know wildcards.
        position = sa.func.instr if self._fetched.is_sqlite else sa.func.strpos
        is_object = sa.func.substr(NAMES.c.text, 1, 1) == "{"
        return self._fetched.ids(sa.select(NAMES.c.id).where(is_object, position(NAMES.c.text, text) > 0))

    def names_of_series(self, kind: str) -> list[int] | None:
        """Return the numbers of the wanted queues, users or nodes; None for all."""
        wanted = self._wanted
        found: set[int] | None = {0} if kind == "partition" else None
        text = {"user": wanted.user, "node": wanted.node}.get(kind, "")
        if text:
            found = set(self.named(text))
        elif kind == "queue" and wanted.queue not in ("", ROOT):
            found = set(self.below(wanted.queue))
        if kind == "user" and wanted.scope is not None:
            own = set(self.named(wanted.scope.user))
            found = own if found is None else found & own
        return None if found is None else sorted(found)

    def _places_of_applications(self) -> list[tuple[int, int]]:
        """Return the wanted partitions with their resource managers; of too many for an index, some more."""
        partitions, rms = (
            {*self.named(text)} if text else None for text in (self._wanted.partition, self._wanted.rm)
        )
        found, columns = list[tuple[int, int]](), (_APP.partition, _APP.rm)
        last = -1, -1
        # A step by the index for each pair, and not a look at each application.
        for _ in range(MOST_PLACES):
            behind = sa.tuple_(*columns) > sa.tuple_(*last)
            rows = self._fetched.rows(sa.select(*columns).where(behind).order_by(*columns).limit(1))
            if not rows:
                return found
            last = rows[0][0], rows[0][1]
            if all(one is None or number in one for one, number in zip((partitions, rms), last, strict=True)):
                found.append(last)
        return found + [last] * (MOST_LEGS + 1)

    def places(self, table: Table) -> list[Where]:
        """Return the conditions of rows of the wanted resource manager and partition."""
        given = {"rm": self._wanted.rm, "partition": self._wanted.partition}
        return [(table.c[name] + 0).in_(self.named(text)) for name, text in given.items() if text]

    def visible(self, columns: Mapping[str, ColumnElement[int]]) -> list[Where]:
        """Return the conditions of rows with a queue and a user, by the columns that have them."""
        wanted, found = self._wanted, list[Where]()
        if wanted.user and "user" in columns:
            found.append(columns["user"].in_(self.named(wanted.user)))
        if wanted.queue not in ("", ROOT) and "queue" in columns:
            found.append(columns["queue"].in_(self.below(wanted.queue)))
        if wanted.group and "groups" in columns:
            found.append(columns["groups"].in_(self.with_group(wanted.group)))
        if wanted.node and "node" in columns:
            found.append(columns["node"].in_(self.named(wanted.node)))
        if wanted.scope is not None:
            own = [columns["user"].in_(self.named(wanted.scope.user))] if "user" in columns else []
            if "queue" in columns:
                own.append(columns["queue"].in_(self.seen(wanted.scope)))
            found.append(sa.or_(sa.false(), *own))
        return found


def _innermost(rules: Mapping[str, bool], path: str) -> bool:
    """Return the value of the rule for a queue, or for the nearest queue above it; False without one."""
    while path and path not in rules:
        path = path.rpartition(".")[0]
    return rules.get(path, False)


class _Legs:
    """Conditions by an index, one of which a row has to meet, and filters, all of which it has to meet."""

    def __init__(self) -> None:
        self.legs: list[Where] = [sa.true()]
        self.filters: list[Where] = []
        self._is_taken = False
        self._as_filters: list[Where] = []
        """Conditions that mean the same as the legs, without an index."""

    @property
    def is_everything(self) -> bool:
        """True if there is no condition."""
        return not (self._is_taken or self.filters)

    def add(self, leg: Where, as_filter: Where) -> None:
        """Add a condition by an index, and the same without one."""
        self.add_all([leg], as_filter)

    def add_values(self, column: Column[int], values: Sequence[int]) -> None:
        """Add the condition that a column has one of these values."""
        self.add_all([column == value for value in values], (column + 0).in_(values))

    def add_all(self, legs: list[Where], as_filter: Where) -> None:
        """Add the condition that one of these is met, which is also `as_filter`."""
        if self._is_taken or len(legs) > MOST_LEGS:
            self.filters.append(as_filter)
        else:
            self.legs, self._as_filters, self._is_taken = legs, [as_filter], True

    def as_filters(self) -> _Legs:
        """Return the same conditions without an index."""
        found = _Legs()
        found.filters = [*self._as_filters, *self.filters]
        return found

    def condition(self) -> Where:
        """Return all conditions without an index."""
        return sa.and_(sa.true(), *self._as_filters, *self.filters)
