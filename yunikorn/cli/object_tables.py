"""Tables of queues, applications, nodes and users, from the JSON objects of the REST interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from yunikorn.cli.answer_fields import (
    MEMORY,
    NONE,
    age,
    amount_text,
    amounts,
    children,
    in_short,
    number,
    ordered,
    records,
    share,
    shown,
    text,
    texts,
)
from yunikorn.cli.rest_client import Record
from yunikorn.cli.text_columns import Column
from yunikorn.quantities import VCORE
from yunikorn.states import NODE_DRAINING, SCHEDULABLE

Rows = list[list[str]]
Table = tuple[list[Column], Rows]


def node_state(node: Record) -> str:
    """Return `Schedulable` or `Draining`."""
    return SCHEDULABLE if node.get("schedulable") is True else NODE_DRAINING


def running(record: Record, most: str) -> str:
    """Return the number of running applications, with the limit in the field `most` if there is one."""
    found = record.get("runningApps", record.get("runningApplications"))
    count = len(found) if isinstance(found, list) else number(record, "runningApps")
    limit = number(record, most)
    return f"{count}/{limit}" if limit else str(count)


def _types(found: Iterable[Record], *fields: str) -> list[str]:
    """Return the resource types of some fields of all objects; vcore and memory always."""
    used = {name for one in found for field in fields for name in amounts(one, field)}
    return ordered({VCORE, MEMORY, *used})


def _shares(types: Sequence[str], of: str) -> list[Column]:
    return [Column(f"{name} used/{of}", right=True, optional=name not in (VCORE, MEMORY)) for name in types]


def queues(found: Sequence[Record], now: int) -> Table:
    """Return the table of queues."""
    used, quota = "allocatedResource", "maxResource"
    types = _types(found, used, quota)
    columns = [
        Column("queue"),
        Column("state"),
        Column("apps", right=True),
        *_shares(types, "quota"),
        Column("guaranteed", whole=True, optional=True),
        Column("pending", whole=True, optional=True),
    ]
    rows = [
        [
            shown(text(one, "queuename")),
            shown(text(one, "status")),
            running(one, "maxRunningApps"),
            *(share(amounts(one, used), amounts(one, quota), name) for name in types),
            in_short(amounts(one, "guaranteedResource")),
            in_short(amounts(one, "pendingResource")),
        ]
        for one in found
    ]
    return columns, rows


def waiting_tasks(app: Record) -> int:
    """Return the number of allocations that an application still wants."""
    return sum(number(ask, "pendingCount") or 1 for ask in records(app.get("requests")))


def apps(found: Sequence[Record], now: int) -> Table:
    """Return the table of applications."""
    used = "usedResource"
    types = _types(found, used)
    columns = [
        Column("application"),
        Column("queue"),
        Column("user"),
        Column("state"),
        Column("age", right=True, optional=True),
        Column("tasks", right=True),
        Column("waiting", right=True),
        *(Column(name, right=True, optional=True) for name in types),
        Column("pending", whole=True, optional=True),
    ]
    rows = [
        [
            shown(text(one, "applicationID")),
            shown(text(one, "queueName")),
            shown(text(one, "user")),
            shown(text(one, "applicationState")),
            age(number(one, "submissionTime"), now),
            str(len(records(one.get("allocations")))),
            str(waiting_tasks(one)),
            *(amount_text(name, amounts(one, used).get(name, 0)) for name in types),
            in_short(amounts(one, "pendingResource")),
        ]
        for one in found
    ]
    return columns, rows


def nodes(found: Sequence[Record], now: int) -> Table:
    """Return the table of nodes."""
    used, size = "allocated", "capacity"
    types = _types(found, used, size)
    columns = [
        Column("node"),
        Column("state"),
        Column("tasks", right=True),
        *_shares(types, "size"),
        Column("occupied", whole=True, optional=True),
        Column("reserved for", optional=True),
    ]
    rows = [
        [
            shown(text(one, "nodeID")),
            node_state(one),
            str(len(records(one.get("allocations")))),
            *(share(amounts(one, used), amounts(one, size), name) for name in types),
            in_short(amounts(one, "occupied")),
            ", ".join(texts(one.get("reservations"))) or NONE,
        ]
        for one in found
    ]
    return columns, rows


def with_queues(users: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Yield the use of each queue by each user, as objects with `userName` and the fields of the queue."""
    for user in users:
        for queue in children(user.get("queues")):
            below = {name: value for name, value in queue.items() if name != "children"}
            yield {"userName": text(user, "userName"), **below}


def users(found: Sequence[Record], now: int) -> Table:
    """Return the table of the use of queues by users."""
    used, limit = "resourceUsage", "maxResources"
    types = _types(found, used, limit)
    columns = [Column("user"), Column("queue"), Column("apps", right=True), *_shares(types, "limit")]
    rows = [
        [
            shown(text(one, "userName")),
            shown(text(one, "queuePath")),
            running(one, "maxApplications"),
            *(share(amounts(one, used), amounts(one, limit), name) for name in types),
        ]
        for one in found
    ]
    return columns, rows


TABLES: dict[str, Callable[[Sequence[Record], int], Table]] = {
    "queues": queues,
    "apps": apps,
    "nodes": nodes,
    "users": users,
}
"""Tables by kind, from objects and the current time (ns)."""
