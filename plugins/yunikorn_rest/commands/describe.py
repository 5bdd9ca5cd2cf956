"""`yunikorn describe`: one application, queue or node of a running scheduler."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import click

from yunikorn.clock import SystemClock
from yunikorn_commands.output import echo
from yunikorn_commands.text_columns import WIDE, terminal_width
from yunikorn_rest.commands.answer_fields import children
from yunikorn_rest.commands.object_descriptions import describe_app, describe_node, describe_queue
from yunikorn_rest.commands.rest_client import Record, RestConnection, quoted
from yunikorn_rest.commands.server_options import (
    LISTS,
    below_partition,
    connect,
    names_beginning,
    partition_option,
    server_options,
)


def _complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return names_beginning(context, context.params.get("kind") or "", incomplete)


@click.command()
@click.argument("kind", type=click.Choice(("app", "queue", "node")))
@click.argument("name", shell_complete=_complete)
@WIDE
@partition_option
@server_options
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
    DESCRIPTIONS[kind](found, SystemClock().now(), width)


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
