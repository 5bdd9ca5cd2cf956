"""Tables of queues, applications, nodes and users, from the JSON objects of the REST interface.

A table is a list of fields: a column, and the function that makes its cells.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from yunikorn.quantities import MEMORY, VCORE, ordered
from yunikorn.states import NODE_DRAINING, SCHEDULABLE
from yunikorn_commands.text_columns import TextColumn
from yunikorn_rest.commands.answer_fields import (
    NONE,
    age,
    amount_text,
    amounts,
    app_state,
    children,
    in_short,
    number,
    records,
    share,
    shown,
    text,
    texts,
)
from yunikorn_rest.commands.rest_client import Record

Rows = list[list[str]]
Table = tuple[list[TextColumn], Rows]
Field = tuple[TextColumn, Callable[[Record], str]]
"""A column, and its cell for an object."""


# -- fields ----------------------------------------------------------------------------------------------


def table(found: Iterable[Record], *fields: Field) -> Table:
    """Return the table of some objects."""
    return [column for column, _ in fields], [[cell(one) for _, cell in fields] for one in found]


def named(title: str, field: str) -> Field:
    """Return the column of a text."""
    return TextColumn(title), lambda one: shown(text(one, field))


def counted(title: str, cell: Callable[[Record], object], *, optional: bool = False) -> Field:
    """Return the column of a number."""
    return TextColumn(title, right=True, optional=optional), lambda one: str(cell(one))


def sized(title: str, field: str, *, optional: bool = False) -> Field:
    """Return the column of amounts of all resource types."""
    return TextColumn(title, whole=True, optional=optional), lambda one: in_short(amounts(one, field))


def aged(field: str, now: int, *, optional: bool = False) -> Field:
    """Return the column of the time since a moment."""
    return counted("age", lambda one: age(number(one, field), now), optional=optional)


def shares(found: Iterable[Record], used: str, size: str, of: str) -> Iterator[Field]:
    """Yield a column `USED/SIZE` for each resource type; those of vcore and memory are always shown."""
    for name in resource_types(found, used, size):
        column = TextColumn(f"{name} used/{of}", right=True, optional=name not in (VCORE, MEMORY))
        yield column, functools.partial(share_text, used, size, name)


def share_text(used: str, size: str, name: str, one: Record) -> str:
    """Return `USED/SIZE` of a resource type, from two fields of an object."""
    return share(amounts(one, used), amounts(one, size), name)


def resource_types(found: Iterable[Record], *fields: str) -> list[str]:
    """Return the resource types of some fields of all objects; vcore and memory always."""
    used = {name for one in found for field in fields for name in amounts(one, field)}
    return ordered({VCORE, MEMORY, *used})


def joined(value: object) -> str:
    """Return the texts of a list in one line."""
    return ", ".join(texts(value)) or NONE


# -- tables ----------------------------------------------------------------------------------------------


def node_state(node: Record) -> str:
    """Return `Schedulable` or `Draining`."""
    return SCHEDULABLE if node.get("schedulable") is True else NODE_DRAINING


def domain(node: Record) -> str:
    """Return the innermost domain of a node, of each topology source."""
    known = node.get("domains")
    found = sorted(map(str, known.values())) if isinstance(known, dict) else []
    return joined([one for one in found if not any(other.startswith(f"{one}/") for other in found)])


def running(record: Record, most: str) -> str:
    """Return the number of running applications, with the limit in the field `most` if there is one."""
    found = record.get("runningApps", record.get("runningApplications"))
    count = len(found) if isinstance(found, list) else number(record, "runningApps")
    limit = number(record, most)
    return f"{count}/{limit}" if limit else str(count)


def tasks(one: Record) -> int:
    """Return the number of allocations of an application or on a node."""
    return len(records(one.get("allocations")))


def used_text(app: Record, name: str) -> str:
    """Return the amount of a resource type that an application uses."""
    return amount_text(name, amounts(app, "usedResource").get(name, 0))


def waiting_tasks(app: Record) -> int:
    """Return the number of allocations that an application still wants."""
    return sum(number(ask, "pendingCount") or 1 for ask in records(app.get("requests")))


def queues(found: Sequence[Record], now: int) -> Table:
    """Return the table of queues."""
    return table(
        found,
        named("queue", "queuename"),
        named("state", "status"),
        counted("apps", lambda one: running(one, "maxRunningApps")),
        *shares(found, "allocatedResource", "maxResource", "quota"),
        sized("guaranteed", "guaranteedResource", optional=True),
        sized("pending", "pendingResource", optional=True),
    )


def apps(found: Sequence[Record], now: int) -> Table:
    """Return the table of applications."""

    def used(name: str) -> Field:
        return counted(name, lambda one: used_text(one, name), optional=True)

    return table(
        found,
        named("application", "applicationID"),
        named("queue", "queueName"),
        named("user", "user"),
        (TextColumn("state"), lambda one: shown(app_state(one))),
        aged("submissionTime", now, optional=True),
        counted("tasks", tasks),
        counted("waiting", waiting_tasks),
        *map(used, resource_types(found, "usedResource")),
        sized("pending", "pendingResource", optional=True),
    )


def nodes(found: Sequence[Record], now: int) -> Table:
    """Return the table of nodes."""
    return table(
        found,
        named("node", "nodeID"),
        (TextColumn("state"), node_state),
        *([(TextColumn("domain"), domain)] if any(one.get("domains") for one in found) else []),
        counted("tasks", tasks),
        *shares(found, "allocated", "capacity", "size"),
        sized("occupied", "occupied", optional=True),
        (TextColumn("reserved for", optional=True), lambda one: joined(one.get("reservations"))),
    )


def with_queues(users: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Yield the use of each queue by each user, as objects with `userName` and the fields of the queue."""
    for user in users:
        for queue in children(user.get("queues")):
            below = {name: value for name, value in queue.items() if name != "children"}
            yield {"userName": text(user, "userName"), **below}


def users(found: Sequence[Record], now: int) -> Table:
    """Return the table of the use of queues by users."""
    return table(
        found,
        named("user", "userName"),
        named("queue", "queuePath"),
        counted("apps", lambda one: running(one, "maxApplications")),
        *shares(found, "resourceUsage", "maxResources", "limit"),
    )


TABLES: dict[str, Callable[[Sequence[Record], int], Table]] = {
    "queues": queues,
    "apps": apps,
    "nodes": nodes,
    "users": users,
}
"""Tables by kind, from objects and the current time (ns)."""
