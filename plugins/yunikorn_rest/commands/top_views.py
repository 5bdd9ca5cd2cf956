"""Views of `yunikorn top`: columns, cells and orders of queues, nodes and applications.

A record that is kept between refreshes has only the fields that a view shows: ten thousand nodes with all
their tasks would take a hundred megabytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from yunikorn.quantities import MEMORY, VCORE
from yunikorn.states import NODE_DRAINING, SCHEDULABLE
from yunikorn_rest.commands.answer_fields import (
    DEEPEST,
    NONE,
    age,
    amounts,
    app_state,
    in_short,
    number,
    records,
    shown,
    text,
    texts,
)
from yunikorn_rest.commands.object_tables import (
    node_state,
    resource_types,
    running,
    share_text,
    tasks,
    used_text,
    waiting_tasks,
)
from yunikorn_rest.commands.rest_client import Record

LEAST = 100
"""Rank of columns that only a wide terminal has room for."""
MOST_TIMES = 1000
"""Largest ratio of use and size that is told apart."""


@attrs.frozen
class UseBar:
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


Cell = str | UseBar


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
class TopView:
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
        chosen = [one for one in found if any(word in text(one, field).casefold() for field in self.searched)]
        key = self.orders[order]
        if key is not None:
            chosen.sort(key=lambda one: text(one, self.field))
            chosen.sort(key=lambda one: key(one, at))
        if backwards:
            chosen.reverse()
        return chosen


def part_of(used: Mapping[str, int], size: Mapping[str, int]) -> float:
    """Return the largest used part of all resource types."""
    return max((ratio(amount, size.get(name, 0)) for name, amount in used.items()), default=0.0)


# -- fields ----------------------------------------------------------------------------------------------

TopField = tuple[TopColumn, Callable[[Record], Cell]]
"""A column, and its cell for an object."""


def _content(found: Sequence[Record], style: Callable[[Record], str], *fields: TopField) -> Content:
    rows = [[cell(one) for _, cell in fields] for one in found]
    return Content([column for column, _ in fields], rows, [style(one) for one in found])


def _named(title: str, rank: int, field: str, *, shrinks: bool = True) -> TopField:
    return TopColumn(title, rank, shrinks=shrinks), lambda one: shown(text(one, field))


def _counted(title: str, rank: int, cell: Callable[[Record], object]) -> TopField:
    return TopColumn(title, rank, right=True), lambda one: str(cell(one))


def _sized(title: str, rank: int, field: str) -> TopField:
    return TopColumn(title, rank), lambda one: in_short(amounts(one, field))


def _bars(
    found: Iterable[Record], used: str, size: str, of: str, first: int, mark: str = ""
) -> Iterator[TopField]:
    """Yield two columns for each resource type, a bar and amounts, from a rank on.

    `used` and `size` are fields with amounts, and so is `mark`, which the bar marks.
    """
    for at, name in enumerate(resource_types(found, used, size)):
        usual = name in (VCORE, MEMORY)
        yield (
            TopColumn(name, 1 + at if usual else LEAST + at),
            functools.partial(_bar, used, size, mark, name),
        )
        column = TopColumn(f"used/{of}", first + at if usual else LEAST + at, right=True)
        yield column, functools.partial(share_text, used, size, name)


def _bar(used: str, size: str, mark: str, name: str, one: Record) -> UseBar:
    return UseBar(*(amounts(one, field).get(name, 0) for field in (used, size, mark)))


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
    def name(queue: Record) -> str:
        path, depth = text(queue, "queuename"), number(queue, DEPTH)
        return shown("  " * depth + path.rpartition(".")[2] if order == TREE and depth else path)

    return _content(
        found,
        lambda one: "" if text(one, "status") == "Active" else "yellow",
        (TopColumn("queue", 0, shrinks=True), name),
        _named("state", 7, "status", shrinks=False),
        _counted("apps", 3, lambda one: running(one, "maxRunningApps")),
        *_bars(found, "allocatedResource", QUOTA, "quota", 4, "guaranteedResource"),
        _sized("pending", 8, "pendingResource"),
        _sized("guaranteed", 9, "guaranteedResource"),
    )


QUEUES = TopView(
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

TASKS, WAITING, STATE = "tasks", "waiting", "state"


def _keep_node(node: Record) -> Record:
    fields = ("nodeID", "schedulable", "allocated", "capacity", "occupied", "reservations")
    return {
        **{field: node[field] for field in fields if field in node},
        TASKS: tasks(node),
    }


def _nodes(found: Sequence[Record], at: Totals, order: str) -> Content:
    return _content(
        found,
        lambda one: "" if node_state(one) == SCHEDULABLE else "yellow",
        _named("node", 0, "nodeID"),
        (TopColumn("state", 6), node_state),
        _counted("tasks", 3, lambda one: number(one, TASKS)),
        *_bars(found, "allocated", "capacity", "size", 4),
        _sized("occupied", 8, "occupied"),
        (
            TopColumn("reserved for", 9, shrinks=True),
            lambda one: ", ".join(map(shown, texts(one.get("reservations")))) or NONE,
        ),
    )


NODES = TopView(
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
    fields = ("applicationID", "queueName", "user", "submissionTime", "usedResource", "pendingResource")
    return {
        **{field: app[field] for field in fields if field in app},
        STATE: app_state(app),
        TASKS: tasks(app),
        WAITING: waiting_tasks(app),
    }


def _apps(found: Sequence[Record], at: Totals, order: str) -> Content:
    def used(name: str) -> TopField:
        return _counted(name, 7 if name in (VCORE, MEMORY) else LEAST, lambda one: used_text(one, name))

    return _content(
        found,
        lambda one: "yellow" if number(one, WAITING) and not number(one, TASKS) else "",
        _named("application", 0, "applicationID"),
        _named("queue", 4, "queueName"),
        _named("user", 5, "user"),
        _named("state", 3, STATE, shrinks=False),
        _counted("age", 6, lambda one: age(number(one, "submissionTime"), at.now)),
        (
            TopColumn("started", 2),
            lambda one: UseBar(number(one, TASKS), number(one, TASKS) + number(one, WAITING)),
        ),
        _counted("tasks", 1, lambda one: number(one, TASKS)),
        _counted("waiting", 1, lambda one: number(one, WAITING)),
        *map(used, resource_types(found, "usedResource")),
        _sized("pending", 8, "pendingResource"),
    )


APPS = TopView(
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
