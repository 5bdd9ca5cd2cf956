"""`yunikorn describe`: one application, queue or node of a running scheduler.

Descriptions of one application, queue or node, from the JSON object of the REST interface.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import click

from yunikorn.quantities import ordered
from yunikorn.resources import INT32_MIN
from yunikorn_commands.output import echo
from yunikorn_commands.text_columns import (
    WIDE,
    TextColumn,
    print_heading,
    print_pairs,
    print_table,
    terminal_width,
)
from yunikorn_rest.commands import object_tables
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
    time_text,
)
from yunikorn_rest.commands.object_tables import Field, aged, counted, joined, named, sized, table
from yunikorn_rest.commands.rest_client import Record, RestConnection, quoted
from yunikorn_rest.commands.server_options import (
    LISTS,
    below_partition,
    connect,
    names_beginning,
    partition_option,
    reading_options,
)

QUEUE_AMOUNTS = {
    "allocated": "allocatedResource",
    "guaranteed": "guaranteedResource",
    "quota": "maxResource",
    "headroom": "headroom",
    "pending": "pendingResource",
}
"""Fields of the amounts of a queue, by the title of their column."""


def describe_app(app: Record, now: int, width: int | None) -> None:
    """Print an application, with its states, its tasks, and the requests that wait."""
    rejected = text(app, "rejectedMessage")
    print_pairs(
        [
            ("application", shown(text(app, "applicationID"))),
            ("queue", shown(text(app, "queueName"))),
            ("user", shown(text(app, "user"))),
            ("groups", joined(app.get("groups"))),
            ("state", shown(app_state(app))),
            *([("rejected", shown(rejected))] if rejected else []),
            ("submitted", _when(number(app, "submissionTime"), now)),
            *([("ended", _when(number(app, "finishedTime"), now))] if number(app, "finishedTime") else []),
            ("used", in_short(amounts(app, "usedResource"))),
            ("most used", in_short(amounts(app, "maxUsedResource"))),
            ("pending", in_short(amounts(app, "pendingResource"))),
            ("priority", _priority(number(app, "maxRequestPriority"))),
            ("reservations", joined(app.get("reservations"))),
        ]
    )
    _states(records(app.get("designStateLog") or app.get("stateLog")), width)
    _placeholders(records(app.get("placeholderData")), width)
    _requests(records(app.get("requests")), now, width)
    _tasks(records(app.get("allocations")), "node", "nodeId", now, width)


def describe_queue(queue: Record, now: int, width: int | None) -> None:
    """Print a queue, with its resources by type, its properties, and the queues below."""
    managed = "configuration" if queue.get("isManaged") is True else "placement"
    print_pairs(
        [
            ("queue", shown(text(queue, "queuename"))),
            ("state", shown(text(queue, "status"))),
            ("kind", f"{'leaf' if queue.get('isLeaf') is True else 'parent'}, made by {managed}"),
            ("running apps", object_tables.running(queue, "maxRunningApps")),
            ("order", shown(text(queue, "sortingPolicy"))),
            ("priority", _priority(number(queue, "currentPriority"))),
            ("preemption", _preemption(queue)),
        ]
    )
    found = {title: amounts(queue, field) for title, field in QUEUE_AMOUNTS.items()}
    types = ordered(name for each in found.values() for name in each)
    if types:
        print_heading("Resources")
        columns = [TextColumn("type"), *(TextColumn(title, right=True) for title in found)]
        print_table(
            columns, [[name, *(_amount(each, name) for each in found.values())] for name in types], width
        )
    _texts("Properties", queue.get("properties"))
    below = [one for one in children(queue) if one is not queue]
    if below:
        print_heading("Queues below")
        print_table(*object_tables.queues(below, now), width)


def describe_node(node: Record, now: int, width: int | None) -> None:
    """Print a node, with its attributes and its tasks."""
    used, size = amounts(node, "allocated"), amounts(node, "capacity")
    types = ordered((*used, *size))
    print_pairs(
        [
            ("node", shown(text(node, "nodeID"))),
            ("host", shown(text(node, "hostName"))),
            ("rack", shown(text(node, "rackName"))),
            ("state", object_tables.node_state(node)),
            *((f"{name} used/size", share(used, size, name)) for name in types),
            ("occupied", in_short(amounts(node, "occupied"))),
            ("available", in_short(amounts(node, "available"))),
            ("reserved for", joined(node.get("reservations"))),
        ]
    )
    _texts("Attributes", node.get("attributes"))
    _tasks(records(node.get("allocations")), "application", "applicationId", now, width)
    foreign = records(node.get("foreignAllocations"))
    _part("Tasks of others", foreign, width, named("key", "allocationKey"), sized("size", "resource"))


# -- parts -----------------------------------------------------------------------------------------------


def _part(title: str, found: Sequence[Record], width: int | None, *fields: Field) -> None:
    """Print a table below its title; nothing without objects."""
    if found:
        print_heading(title)
        print_table(*table(found, *fields), width)


def _states(log: Sequence[Record], width: int | None) -> None:
    since = TextColumn("since"), lambda one: time_text(number(one, "time"))
    _part("States", log, width, since, named("state", "applicationState"))


def _placeholders(found: Sequence[Record], width: int | None) -> None:
    _part(
        "Placeholders",
        found,
        width,
        named("task group", "taskGroupName"),
        counted("requested", lambda one: number(one, "count")),
        counted("replaced", lambda one: number(one, "replaced")),
        counted("unused", lambda one: number(one, "timedout")),
        sized("size", "minResource"),
    )


def _requests(asks: Sequence[Record], now: int, width: int | None) -> None:
    _part(
        "Waiting requests",
        asks,
        width,
        named("key", "allocationKey"),
        counted("wanted", lambda ask: number(ask, "pendingCount") or 1),
        aged("requestTime", now),
        counted("priority", lambda ask: text(ask, "priority") or "0", optional=True),
        sized("size", "resource"),
        (TextColumn("stopped by"), lambda ask: _reason(records(ask.get("allocationLog")))),
    )


def _reason(log: list[dict[str, Any]]) -> str:
    """Return the latest reason, and the number of the others."""
    if not log:
        return NONE
    more = f" (and {len(log) - 1} more)" if len(log) > 1 else ""
    return f"{number(log[-1], 'count')}x {shown(text(log[-1], 'message'))}{more}"


def _tasks(found: Sequence[Record], title: str, field: str, now: int, width: int | None) -> None:
    _part(
        "Tasks",
        found,
        width,
        named("key", "allocationKey"),
        named(title, field),
        aged("allocationTime", now),
        sized("size", "resource"),
        (TextColumn("remarks", optional=True), _remarks),
    )


def _remarks(allocation: Record) -> str:
    words = [
        word
        for field, word in (
            ("originator", "originator"),
            ("placeholder", "placeholder"),
            ("preempted", "being preempted"),
        )
        if allocation.get(field) is True
    ]
    group = text(allocation, "taskGroupName")
    return ", ".join([*words, *([f"task group {group}"] if group else [])]) or NONE


def _preemption(queue: Record) -> str:
    if queue.get("preemptionEnabled") is not True:
        return "disabled"
    fence = ", a fence" if queue.get("isPreemptionFence") is True else ""
    return f"after {shown(text(queue, 'preemptionDelay'))}{fence}"


def _texts(title: str, found: object) -> None:
    if isinstance(found, dict) and found:
        print_heading(title)
        print_pairs([(shown(str(name)), str(value)) for name, value in sorted(found.items())])


def _amount(found: dict[str, int], name: str) -> str:
    return amount_text(name, found[name]) if name in found else NONE


def _priority(value: int) -> str:
    return NONE if value == INT32_MIN else str(value)


def _when(moment: int, now: int) -> str:
    return f"{time_text(moment)} ({age(moment, now)} ago)" if moment > 0 else NONE


def _complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return names_beginning(context, context.params.get("kind") or "", incomplete)


@click.command()
@click.argument("kind", type=click.Choice(("app", "queue", "node")))
@click.argument("name", shell_complete=_complete)
@WIDE
@partition_option
@reading_options
def command(kind: str, name: str, wide: bool, partition: str, as_json: bool, **connection: Any) -> None:
    """Describe one app, queue or node of a running scheduler.

    An application that has ended is found as long as the scheduler remembers it. Exit status: 0 when the
    object was described, 1 when there is none of that name, 2 for any other error.
    """
    width = None if wide else terminal_width()
    with connect(connection) as server:
        found = find_object(kind, server, partition, name)
    if as_json:
        echo(json.dumps(found))
        return
    DESCRIPTIONS[kind](found, server.now(), width)


def find_object(kind: str, server: RestConnection, partition: str, name: str) -> Record:
    """Return an app, queue or node; raises `NotFound` with a suggestion."""
    return FINDERS[kind](server, partition, name)


def applications(server: RestConnection, partition: str, *kinds: str) -> Iterator[Record]:
    """Yield the applications of some lists, one list after the other."""
    return chain.from_iterable(
        server.listed(below_partition(partition, f"applications/{kind}")) for kind in kinds
    )


def _app(server: RestConnection, partition: str, name: str) -> Record:
    lists = applications(server, partition, "active", "completed", "rejected")
    path = below_partition(partition, f"application/{quoted(name)}")
    return server.find("application", name, path, lists, LISTS["app"][1])


def _queue(server: RestConnection, partition: str, name: str) -> Record:
    def tree() -> Iterator[Record]:
        yield from children(server.record(below_partition(partition, "queues")))

    lower = name.lower()
    # Names of queues are decoded twice by the server.
    path = below_partition(partition, f"queue/{quoted(quoted(lower))}")
    return server.find("queue", lower, f"{path}?subtree", tree(), LISTS["queue"][1])


def _node(server: RestConnection, partition: str, name: str) -> Record:
    path = below_partition(partition, f"node/{quoted(name)}")
    return server.find(
        "node", name, path, server.listed(below_partition(partition, "nodes")), LISTS["node"][1]
    )


FINDERS: dict[str, Callable[[RestConnection, str, str], Record]] = {
    "app": _app,
    "queue": _queue,
    "node": _node,
}
DESCRIPTIONS: dict[str, Callable[[Record, int, int | None], None]] = {
    "app": describe_app,
    "queue": describe_queue,
    "node": describe_node,
}
