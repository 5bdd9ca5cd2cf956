"""`yunikorn start`: start queues, or a partition, of a running scheduler."""

from __future__ import annotations

from typing import Any

import click

from yunikorn.cli.changes import QUEUE, change_each, change_partition, not_repeated
from yunikorn.cli.server_options import complete, connect, partition_option, server_options
from yunikorn.errors import UsageError


@click.command()
@click.argument("queues", nargs=-1, metavar="QUEUE...", shell_complete=not_repeated(complete("queue")))
@click.option("--whole-partition", is_flag=True, help="Start the whole partition.")
@partition_option
@server_options
def command(
    queues: tuple[str, ...],
    whole_partition: bool,
    partition: str,
    as_json: bool,
    **connection: Any,
) -> int:
    """Start queues of a running scheduler that were stopped, or with --whole-partition the partition.

    Exit status: 0 when all is as requested, 1 when something was refused, 2 when the server did not answer.
    """
    if bool(queues) == whole_partition:
        raise UsageError("expected the names of queues, or --whole-partition")
    with connect(connection) as server:
        if whole_partition:
            status = change_partition(server, partition, "start", as_json=as_json)
        else:
            status = change_each(server, QUEUE, queues, partition, "start", as_json=as_json)
    return status
