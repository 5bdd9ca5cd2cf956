"""Views of `yunikorn top`: columns, cells and orders of queues, nodes and applications.

A record that is kept between refreshes has only the fields that a view shows: ten thousand nodes with all
their tasks would take a hundred megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from yunikorn.cli.answer_fields import (
    DEEPEST,
    MEMORY,
    NONE,
    age,
    amount_text,
    amounts,
    in_short,
    number,
    ordered,
    records,
    share,
    shown,
    text,
    texts,
)
from yunikorn.cli.object_tables import node_state, running, waiting_tasks
from yunikorn.cli.rest_client import Record
from yunikorn.quantities import VCORE
from yunikorn.states import NODE_DRAINING, SCHEDULABLE

LEAST = 100
"""Rank of columns that only a wide terminal has room for."""
MOST_TIMES = 1000
"""Largest ratio of use and size that is told apart."""


@attrs.frozen
class Bar:
    """Use of a resource, drawn as a bar."""

    used: int
    size: int
    """Amount of a full bar; 0 if there is none."""
    guaranteed: int = 0
    """Amount that is marked on the bar; 0 for no mark."""

    def part(self) -> float:
        """Return the used part of the size, which may be above 1; 0 without a size."""
        return ratio(self.used, self.size)


def ratio(used: int, size: int) -> float:
    """Return the used part of a size, between 0 and `MOST_TIMES`, for numbers of any length."""
    return max(0, min(used, MOST_TIMES * size)) / size if size > 0 else 0.0


Cell = str | Bar


@attrs.frozen
class TopColumn:
    """A column of a view."""

    title: str
    rank: int
    """Importance: columns of high rank are left out first."""
    right: bool = False
    shrinks: bool = False
    """True for texts that may be shortened."""


@attrs.frozen
class Content:
    """Columns of a view, and the cells of some records."""

    columns: Sequence[TopColumn]
    rows: Sequence[Sequence[Cell]]
    styles: Sequence[str]
    """Style of each row; empty for the usual one."""


@attrs.frozen
class Totals:
    """Sizes that parts are compared with."""

    size: Mapping[str, int]
    """Capacity of the partition."""
    now: int
    """Current time (ns since 1970)."""


Order = Callable[[Record, Totals], Any]


@attrs.frozen
class View:
    """A view: a list of the REST interface, and its presentation."""

    title: str
    path: str
    """Path of the list below a partition."""
    field: str
    """Field with the name."""
    keep: Callable[[Record], Record]
    """Function that returns the fields of an object that the view shows."""
    orders: Mapping[str, Order | None]
    """Keys by the name of the order; None for the order in which the objects come."""
    content: Callable[[Sequence[Record], Totals, str], Content]
    """Function that returns the cells, for an order."""
    searched: tuple[str, ...]
    """Fields that the filter looks at."""

    def select(
        self, found: Iterable[Record], order: str, backwards: bool, wanted: str, at: Totals
    ) -> list[Record]:
        """Return the records that contain a text, in an order."""
        word = wanted.casefold()
        chosen = [one for one in found if not word or self._contains(one, word)]
        key = self.orders[order]
        if key is not None:
            chosen.sort(key=lambda one: text(one, self.field))
            chosen.sort(key=lambda one: key(one, at))
        if backwards:
            chosen.reverse()
        return chosen

    def _contains(self, one: Record, word: str) -> bool:
        return any(word in text(one, field).casefold() for field in self.searched)


def part_of(used: Mapping[str, int], size: Mapping[str, int]) -> float:
    """Return the largest used part of all resource types."""
    return max((ratio(amount, size.get(name, 0)) for name, amount in used.items()), default=0.0)


def _types(found: Iterable[Record], *fields: str) -> list[str]:
    return ordered(
        {VCORE, MEMORY, *(name for one in found for field in fields for name in amounts(one, field))}
    )


def _bars(types: Sequence[str], of: str, first: int) -> list[TopColumn]:
    """Return two columns for each resource type, a bar and amounts, from a rank on."""
    columns = []
    for at, name in enumerate(types):
        usual = name in (VCORE, MEMORY)
        columns.append(TopColumn(name, 1 + at if usual else LEAST + at))
        columns.append(TopColumn(f"used/{of}", first + at if usual else LEAST + at, right=True))
    return columns


# -- queues ----------------------------------------------------------------------------------------------

QUOTA = "quotaInForce"
DEPTH = "depth"


def queue_records(root: Record) -> list[Record]:
    """Return the queues of a tree, parents first, each with its depth and the quota in force."""
    found: list[Record] = []
    _add_queues(root, 0, {}, found)
    return found


def _add_queues(queue: Record, depth: int, above: Mapping[str, int], found: list[Record]) -> None:
    own = amounts(queue, "maxResource")
    quota = {**above, **{name: min(value, above.get(name, value)) for name, value in own.items()}}
    kept = (
        *("queuename", "status", "allocatedResource", "guaranteedResource", "pendingResource"),
        "runningApps",
    )
    slim = {field: queue[field] for field in (*kept, "maxRunningApps") if field in queue}
    found.append({**slim, QUOTA: quota, DEPTH: depth})
    if depth < DEEPEST:
        for child in records(queue.get("children")):
            _add_queues(child, depth + 1, quota, found)


TREE = "tree"


def _queues(found: Sequence[Record], at: Totals, order: str) -> Content:
    used = "allocatedResource"
    types = _types(found, used, QUOTA)
    columns = [
        TopColumn("queue", 0, shrinks=True),
        TopColumn("state", 7),
        TopColumn("apps", 3, right=True),
        *_bars(types, "quota", 4),
        TopColumn("pending", 8),
        TopColumn("guaranteed", 9),
    ]
    rows: list[list[Cell]] = []
    styles = []
    for one in found:
        name = text(one, "queuename")
        if order == TREE and number(one, DEPTH):
            name = "  " * number(one, DEPTH) + name.rpartition(".")[2]
        cells: list[Cell] = [shown(name), shown(text(one, "status")), running(one, "maxRunningApps")]
        cells += _use(types, amounts(one, used), amounts(one, QUOTA), amounts(one, "guaranteedResource"))
        rows.append(
            [*cells, in_short(amounts(one, "pendingResource")), in_short(amounts(one, "guaranteedResource"))]
        )
        styles.append("" if text(one, "status") == "Active" else "yellow")
    return Content(columns, rows, styles)


def _use(
    types: Sequence[str],
    used: Mapping[str, int],
    size: Mapping[str, int],
    guaranteed: Mapping[str, int] | None = None,
) -> list[Cell]:
    cells: list[Cell] = []
    for name in types:
        mark = guaranteed.get(name, 0) if guaranteed else 0
        cells.append(Bar(used.get(name, 0), size.get(name, 0), mark))
        cells.append(share(used, size, name))
    return cells


QUEUES = View(
    title="queues",
    path="queues",
    field="queuename",
    keep=lambda one: one,
    orders={
        TREE: None,
        "use": lambda one, at: -part_of(amounts(one, "allocatedResource"), amounts(one, QUOTA)),
        "pending": lambda one, at: -part_of(amounts(one, "pendingResource"), at.size),
        "apps": lambda one, at: -number(one, "runningApps"),
        "name": lambda one, at: text(one, "queuename"),
    },
    content=_queues,
    searched=("queuename",),
)

# -- nodes -----------------------------------------------------------------------------------------------

TASKS, WAITING = "tasks", "waiting"


def _keep_node(node: Record) -> Record:
    fields = ("nodeID", "schedulable", "allocated", "capacity", "occupied", "reservations")
    return {
        **{field: node[field] for field in fields if field in node},
        TASKS: len(records(node.get("allocations"))),
    }


def _nodes(found: Sequence[Record], at: Totals, order: str) -> Content:
    types = _types(found, "allocated", "capacity")
    columns = [
        TopColumn("node", 0, shrinks=True),
        TopColumn("state", 6),
        TopColumn("tasks", 3, right=True),
        *_bars(types, "size", 4),
        TopColumn("occupied", 8),
        TopColumn("reserved for", 9, shrinks=True),
    ]
    rows: list[list[Cell]] = [
        [
            shown(text(one, "nodeID")),
            node_state(one),
            str(number(one, TASKS)),
            *_use(types, amounts(one, "allocated"), amounts(one, "capacity")),
            in_short(amounts(one, "occupied")),
            ", ".join(map(shown, texts(one.get("reservations")))) or NONE,
        ]
        for one in found
    ]
    return Content(columns, rows, ["" if node_state(one) == SCHEDULABLE else "yellow" for one in found])


NODES = View(
    title="nodes",
    path="nodes",
    field="nodeID",
    keep=_keep_node,
    orders={
        "name": lambda one, at: text(one, "nodeID"),
        "use": lambda one, at: -part_of(amounts(one, "allocated"), amounts(one, "capacity")),
        "tasks": lambda one, at: -number(one, TASKS),
        "state": lambda one, at: node_state(one) != NODE_DRAINING,
        "reserved": lambda one, at: -len(texts(one.get("reservations"))),
    },
    content=_nodes,
    searched=("nodeID",),
)

# -- applications ----------------------------------------------------------------------------------------


def _keep_app(app: Record) -> Record:
    fields = ("applicationID", "queueName", "user", "applicationState", "submissionTime", "usedResource")
    return {
        **{field: app[field] for field in (*fields, "pendingResource") if field in app},
        TASKS: len(records(app.get("allocations"))),
        WAITING: waiting_tasks(app),
    }


def _apps(found: Sequence[Record], at: Totals, order: str) -> Content:
    types = _types(found, "usedResource")
    columns = [
        TopColumn("application", 0, shrinks=True),
        TopColumn("queue", 4, shrinks=True),
        TopColumn("user", 5, shrinks=True),
        TopColumn("state", 3),
        TopColumn("age", 6, right=True),
        TopColumn("started", 2),
        TopColumn("tasks", 1, right=True),
        TopColumn("waiting", 1, right=True),
        *(TopColumn(name, 7 if name in (VCORE, MEMORY) else LEAST, right=True) for name in types),
        TopColumn("pending", 8),
    ]
    rows: list[list[Cell]] = []
    styles = []
    for one in found:
        tasks, waiting = number(one, TASKS), number(one, WAITING)
        rows.append(
            [
                shown(text(one, "applicationID")),
                shown(text(one, "queueName")),
                shown(text(one, "user")),
                shown(text(one, "applicationState")),
                age(number(one, "submissionTime"), at.now),
                Bar(tasks, tasks + waiting),
                str(tasks),
                str(waiting),
                *(amount_text(name, amounts(one, "usedResource").get(name, 0)) for name in types),
                in_short(amounts(one, "pendingResource")),
            ]
        )
        styles.append("yellow" if waiting and not tasks else "")
    return Content(columns, rows, styles)


APPS = View(
    title="apps",
    path="applications/active",
    field="applicationID",
    keep=_keep_app,
    orders={
        "waiting": lambda one, at: -number(one, WAITING),
        "use": lambda one, at: -part_of(amounts(one, "usedResource"), at.size),
        "age": lambda one, at: number(one, "submissionTime"),
        "queue": lambda one, at: text(one, "queueName"),
        "name": lambda one, at: text(one, "applicationID"),
    },
    content=_apps,
    searched=("applicationID", "queueName", "user"),
)

VIEWS = {view.title: view for view in (QUEUES, NODES, APPS)}
"""Views by name, in the order of the keys 1 to 3."""
