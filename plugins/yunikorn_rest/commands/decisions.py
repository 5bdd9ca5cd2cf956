"""`yunikorn decisions`: the latest decisions about an application, a queue or a node."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import click

from yunikorn_commands.output import echo
from yunikorn_commands.text_columns import WIDE, TextColumn, print_table, terminal_width
from yunikorn_rest.commands.answer_fields import number, records, shown, text, time_text
from yunikorn_rest.commands.describe import find_object
from yunikorn_rest.commands.object_tables import named, sized, table
from yunikorn_rest.commands.rest_client import QueueNotFound, RestConnection
from yunikorn_rest.commands.server_options import (
    below_partition,
    complete,
    connect,
    partition_option,
    server_options,
)

MOST = 10_000
FIELDS = {"app": "application", "queue": "queue", "node": "node"}
"""Parameter of the route for each kind of object."""


@click.command()
@click.option("--application", default="", shell_complete=complete("app"), help="Only about this app.")
@click.option("--queue", default="", shell_complete=complete("queue"), help="Only in this queue and below.")
@click.option("--node", default="", shell_complete=complete("node"), help="Only about this node.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    default=100,
    show_default=True,
    metavar="N",
    help="Show the latest N decisions.",
)
@WIDE
@partition_option
@server_options
def command(
    application: str,
    queue: str,
    node: str,
    limit: int,
    wide: bool,
    partition: str,
    as_json: bool,
    **connection: Any,
) -> None:
    """Show the latest decisions of a running scheduler, newest last.

    The scheduler remembers a bounded number of decisions. Exit status: 0 when the list was printed, also an
    empty one; 1 when the partition does not exist, or an app, queue or node is unknown and has no decisions;
    2 for any other error.
    """
    width = None if wide else terminal_width()
    given: dict[str, str | int] = {"application": application, "queue": queue.lower(), "node": node}
    query = {name: value for name, value in given.items() if value}
    with connect(connection) as server:
        found: list[dict[str, Any]] = []
        with contextlib.suppress(QueueNotFound):
            found = records(server.value(below_partition(partition, "decisions"), limit=limit, **query))
        if not found:
            for kind, name in (("app", application), ("queue", queue), ("node", node)):
                if name and not _has_decisions(server, partition, kind, name):
                    find_object(kind, server, partition, name)
    found.reverse()
    if as_json:
        for one in found:
            echo(json.dumps(one))
        return
    fields = (
        (TextColumn("time", whole=True), lambda one: time_text(number(one, "time"))),
        (TextColumn("decision", whole=True), lambda one: shown(text(one, "decision"))),
        named("application", "applicationID"),
        named("request", "allocationKey"),
        named("node", "nodeID"),
        sized("size", "resource", optional=True),
        (TextColumn("queue", optional=True), lambda one: shown(text(one, "queueName"))),
        named("reason", "message"),
    )
    print_table(*table(found, *fields), width)


def _has_decisions(server: RestConnection, partition: str, kind: str, name: str) -> bool:
    """Return True if the scheduler remembers a decision about an object, which may no longer exist."""
    try:
        path = below_partition(partition, "decisions")
        return bool(records(server.value(path, limit=1, **{FIELDS[kind]: name})))
    except QueueNotFound:
        return False
