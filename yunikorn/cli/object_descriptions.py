"""Descriptions of one application, queue or node, from the JSON object of the REST interface."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from yunikorn.cli import object_tables
from yunikorn.cli.answer_fields import (
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
    time_text,
)
from yunikorn.cli.rest_client import Record
from yunikorn.cli.text_columns import Column, print_heading, print_pairs, print_table

NO_PRIORITY = -(2**31)
"""Highest priority of a queue or application that has no pending request."""


def describe_app(app: Record, now: int, width: int | None) -> None:
    """Print an application, with its states, its tasks, and the requests that wait."""
    rejected = text(app, "rejectedMessage")
    print_pairs(
        [
            ("application", shown(text(app, "applicationID"))),
            ("queue", shown(text(app, "queueName"))),
            ("user", shown(text(app, "user"))),
            ("groups", _joined(app.get("groups"))),
            ("state", shown(text(app, "applicationState"))),
            *([("rejected", shown(rejected))] if rejected else []),
            ("submitted", _when(number(app, "submissionTime"), now)),
            *([("ended", _when(number(app, "finishedTime"), now))] if number(app, "finishedTime") else []),
            ("used", in_short(amounts(app, "usedResource"))),
            ("most used", in_short(amounts(app, "maxUsedResource"))),
            ("pending", in_short(amounts(app, "pendingResource"))),
            ("priority", _priority(number(app, "maxRequestPriority"))),
            ("reservations", _joined(app.get("reservations"))),
        ]
    )
    _states(records(app.get("stateLog")), width)
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
    fields = ("allocatedResource", "guaranteedResource", "maxResource", "headroom", "pendingResource")
    titles = ("allocated", "guaranteed", "quota", "headroom", "pending")
    found = [amounts(queue, field) for field in fields]
    types = ordered(name for each in found for name in each)
    if types:
        print_heading("Resources")
        columns = [Column("type"), *(Column(title, right=True) for title in titles)]
        rows = [[name, *(_amount(each, name) for each in found)] for name in types]
        print_table(columns, rows, width)
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
            ("reserved for", _joined(node.get("reservations"))),
        ]
    )
    _texts("Attributes", node.get("attributes"))
    _tasks(records(node.get("allocations")), "application", "applicationId", now, width)
    foreign = records(node.get("foreignAllocations"))
    if foreign:
        print_heading("Tasks of others")
        rows = [[shown(text(one, "allocationKey")), in_short(amounts(one, "resource"))] for one in foreign]
        print_table([Column("key"), Column("size", whole=True)], rows, width)


# -- parts -----------------------------------------------------------------------------------------------


def _states(log: Iterable[Record], width: int | None) -> None:
    rows = [[time_text(number(one, "time")), shown(text(one, "applicationState"))] for one in log]
    if rows:
        print_heading("States")
        print_table([Column("since"), Column("state")], rows, width)


def _placeholders(found: Iterable[Record], width: int | None) -> None:
    rows = [
        [
            shown(text(one, "taskGroupName")),
            *(str(number(one, field)) for field in ("count", "replaced", "timedout")),
            in_short(amounts(one, "minResource")),
        ]
        for one in found
    ]
    if rows:
        print_heading("Placeholders")
        numbers = (Column(title, right=True) for title in ("requested", "replaced", "unused"))
        print_table([Column("task group"), *numbers, Column("size", whole=True)], rows, width)


def _requests(asks: Iterable[Record], now: int, width: int | None) -> None:
    rows = [
        [
            shown(text(ask, "allocationKey")),
            str(number(ask, "pendingCount") or 1),
            age(number(ask, "requestTime"), now),
            text(ask, "priority") or "0",
            in_short(amounts(ask, "resource")),
            _reason(records(ask.get("allocationLog"))),
        ]
        for ask in asks
    ]
    if rows:
        print_heading("Waiting requests")
        columns = [
            Column("key"),
            Column("wanted", right=True),
            Column("age", right=True),
            Column("priority", right=True, optional=True),
            Column("size", whole=True),
            Column("refused by nodes"),
        ]
        print_table(columns, rows, width)


def _reason(log: list[dict[str, Any]]) -> str:
    """Return the most frequent reason of nodes, and the number of the others."""
    if not log:
        return NONE
    first = max(log, key=lambda entry: number(entry, "count"))
    more = f" (and {len(log) - 1} more)" if len(log) > 1 else ""
    return f"{number(first, 'count')}x {shown(text(first, 'message'))}{more}"


def _tasks(found: Iterable[Record], title: str, field: str, now: int, width: int | None) -> None:
    rows = [
        [
            shown(text(one, "allocationKey")),
            shown(text(one, field)),
            age(number(one, "allocationTime"), now),
            in_short(amounts(one, "resource")),
            _remarks(one),
        ]
        for one in found
    ]
    if rows:
        print_heading("Tasks")
        columns = [
            Column("key"),
            Column(title),
            Column("age", right=True),
            Column("size", whole=True),
            Column("remarks", optional=True),
        ]
        print_table(columns, rows, width)


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


def _joined(value: object) -> str:
    return ", ".join(texts(value)) or NONE


def _priority(value: int) -> str:
    return NONE if value == NO_PRIORITY else str(value)


def _when(moment: int, now: int) -> str:
    return f"{time_text(moment)} ({age(moment, now)} ago)" if moment > 0 else NONE
