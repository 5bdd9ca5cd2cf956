"""`yunikorn get`: list the queues, applications, nodes, users or events of a running scheduler."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import attrs
import click

from yunikorn.errors import UsageError
from yunikorn.states import (
    APPLICATION,
    COMPLETED,
    EXPIRED,
    FAILED,
    NODE_DRAINING,
    QUEUE,
    REJECTED,
    SCHEDULABLE,
)
from yunikorn.text import suggest
from yunikorn_commands.output import echo
from yunikorn_commands.text_columns import WIDE, print_table, terminal_width
from yunikorn_rest.commands import object_tables
from yunikorn_rest.commands.answer_fields import app_state, children, text
from yunikorn_rest.commands.describe import find_object
from yunikorn_rest.commands.events import DEFAULT_LAST, latest, print_events
from yunikorn_rest.commands.rest_client import QueueNotFound, Record, RestConnection
from yunikorn_rest.commands.server_options import (
    below_partition,
    complete,
    connect,
    partition_option,
    reading_options,
)

KINDS = ("queues", "apps", "nodes", "users", "events")
FILTERS = {
    "queues": {"queue", "state"},
    "apps": {"queue", "state", "user", "all"},
    "nodes": {"state"},
    "users": {"queue", "user"},
    "events": set[str](),
}
"""Filters that each kind has."""
ENDED = {COMPLETED: "completed", EXPIRED: "completed", FAILED: "completed", REJECTED: "rejected"}
"""List of the applications in a final state."""
STATES = {
    "queues": tuple(sorted(QUEUE.states)),
    "apps": (*(state for state in APPLICATION.states if state not in ENDED), *ENDED),
    "nodes": (SCHEDULABLE, NODE_DRAINING),
}


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--queue", default="", shell_complete=complete("queue"), help="Only in this queue and below.")
@click.option("--user", default="", shell_complete=complete("user"), help="Only of this user.")
@click.option("--state", default="", help="Only in this state, such as Running or Draining.")
@click.option("--all", "ended", is_flag=True, help="Applications that have ended, too.")
@WIDE
@partition_option
@reading_options
def command(
    kind: str,
    queue: str,
    user: str,
    state: str,
    ended: bool,
    wide: bool,
    partition: str,
    as_json: bool,
    **connection: Any,
) -> None:
    """List queues, apps, nodes, users or events of a running scheduler.

    Amounts are rounded for people; --json has the exact numbers, and the fields of the REST interface. Exit
    status: 0 when the list was printed, 1 when the partition or queue does not exist, 2 for any other error.
    """
    given = {"queue": queue, "user": user, "state": state, "all": ended}
    for name, value in given.items():
        if value and name not in FILTERS[kind]:
            of = ", ".join(each for each in KINDS if name in FILTERS[each])
            raise UsageError(f"--{name} is for {of}, not for {kind}")
    width = None if wide else terminal_width()
    with connect(connection) as server:
        if kind == "events":
            print_events(latest(server, DEFAULT_LAST), as_json=as_json, width=width)
            return
        wanted = WantedObjects(partition, queue.lower(), user, state_of(kind, state), ended)
        found = READERS[kind](server, wanted)
        first = next(found, None)
        if first is None and queue:
            find_object("queue", server, partition, queue)
        found = chain([] if first is None else [first], found)
        if as_json:
            for one in found:
                echo(json.dumps(one))
            return
        table = object_tables.TABLES[kind](list(found), server.now())
        print_table(*table, width)


def state_of(kind: str, text: str) -> str:
    """Return the state that is meant, in its usual spelling; raises `UsageError` for an unknown one."""
    known = STATES.get(kind, ())
    for state in known:
        if state.lower() == text.lower():
            return state
    if text:
        raise UsageError(f"--state {text}: unknown{suggest(text, known)}; known: {', '.join(known)}")
    return ""


# -- reading ---------------------------------------------------------------------------------------------
# The server applies the filters, too. YuniKorn 1.9 has none, and its answers are filtered here.


@attrs.frozen
class WantedObjects:
    """Partition and filters of a list; empty for no filter."""

    partition: str
    queue: str
    user: str
    state: str
    ended: bool

    def holds(self, path: str) -> bool:
        """Return True if a queue is the one of the filter, or below."""
        return not self.queue or f"{path}.".startswith(f"{self.queue}.")


def _queues(server: RestConnection, wanted: WantedObjects) -> Iterator[Record]:
    root = server.record(below_partition(wanted.partition, "queues"))
    for one in children(root):
        if wanted.holds(text(one, "queuename")) and wanted.state in ("", text(one, "status")):
            yield {name: value for name, value in one.items() if name != "children"}


def _apps(server: RestConnection, wanted: WantedObjects) -> Iterator[Record]:
    queue, user, state = wanted.queue, wanted.user, wanted.state
    lists = [ENDED.get(state, "active")] if state else ["active"]
    if wanted.ended and not state:
        lists = ["active", "completed", "rejected"]
    for name in lists:
        path = below_partition(wanted.partition, f"applications/{name}")
        for one in _existing(server.listed(path, queue=queue, user=user, state=state)):
            if (
                wanted.holds(text(one, "queueName"))
                and user in ("", text(one, "user"))
                and state in ("", app_state(one))
            ):
                yield one


def _existing(found: Iterator[Record]) -> Iterator[Record]:
    """Yield objects; none if the queue is unknown, which ended applications may still name."""
    with contextlib.suppress(QueueNotFound):
        yield from found


def _nodes(server: RestConnection, wanted: WantedObjects) -> Iterator[Record]:
    for one in server.listed(below_partition(wanted.partition, "nodes"), state=wanted.state):
        if wanted.state in ("", object_tables.node_state(one)):
            yield one


def _users(server: RestConnection, wanted: WantedObjects) -> Iterator[Record]:
    found = server.listed(below_partition(wanted.partition, "usage/users"))
    for one in object_tables.with_queues(found):
        if wanted.holds(text(one, "queuePath")) and wanted.user in ("", text(one, "userName")):
            yield one


READERS: dict[str, Callable[[RestConnection, WantedObjects], Iterator[Record]]] = {
    "queues": _queues,
    "apps": _apps,
    "nodes": _nodes,
    "users": _users,
}
