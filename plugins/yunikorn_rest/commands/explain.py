"""`yunikorn explain`: why the requests of an application of a running scheduler wait."""

from __future__ import annotations

import json
from typing import Any

import click

from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError, printable
from yunikorn_commands.output import echo
from yunikorn_commands.text_columns import WIDE, terminal_width
from yunikorn_rest.commands.answer_fields import text
from yunikorn_rest.commands.describe import applications
from yunikorn_rest.commands.explanation_text import explanation_lines, state_lines
from yunikorn_rest.commands.get import ENDED
from yunikorn_rest.commands.rest_client import NotFound, Record, RestConnection, quoted
from yunikorn_rest.commands.server_options import (
    LISTS,
    below_partition,
    complete,
    connect,
    partition_option,
    server_options,
)

KEPT = ("applicationID", "partition", "queueName", "applicationState", "rejectedMessage", "finishedTime")
"""Fields of an ended application, of which nothing waits."""
MOST = 1000
"""Largest number of explanations in an answer."""


@click.command()
@click.argument("application", shell_complete=complete("app"))
@click.option("--queue", default="", shell_complete=complete("queue"), help="Only if it is in this queue.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    metavar="N",
    help=f"Explain at most N kinds of requests.  [default: 100; at most {MOST}]",
)
@WIDE
@partition_option
@server_options
def command(
    application: str,
    queue: str,
    limit: int | None,
    wide: bool,
    partition: str,
    as_json: bool,
    **connection: Any,
) -> None:
    """Explain why the requests of an application wait, and what would help.

    Equal requests are one entry. An application that has ended is found as long as the scheduler remembers
    it. Exit status: 0 when the application was found, also if nothing of it waits; 1 when there is none of
    that name; 2 for any other error.
    """
    width = None if wide else terminal_width()
    with connect(connection) as server:
        found = _explanation(server, partition, application, queue.lower(), limit)
    if as_json:
        echo(json.dumps(found))
        return
    lines = explanation_lines(found, width) if "reasons" in found else state_lines(found, SystemClock().now())
    for line in lines:
        echo(line)


def _explanation(server: RestConnection, partition: str, name: str, queue: str, limit: int | None) -> Record:
    """Return the explanation; of an ended application its state; raises `NotFound`."""
    # Names of queues are decoded twice by the server.
    of = f"queue/{quoted(quoted(queue))}/" if queue else ""
    path = below_partition(partition, f"{of}application/{quoted(name)}/explain")
    lists = applications(server, partition, "completed", "rejected", "active")
    asked = path if limit is None else f"{path}?limit={limit}"
    found = server.find("application", name, asked, lists, LISTS["app"][1])
    if "reasons" in found:
        return found
    actual = text(found, "queueName")
    if queue and actual != queue:
        raise NotFound(printable(f"application '{name}' is in {actual}, not in {queue}"))
    if text(found, "applicationState") not in ENDED:
        raise UsageError("the server has no explanations: YuniKorn 1.9 and older cannot explain")
    return {field: found[field] for field in KEPT if found.get(field)}
