"""`yunikorn stop`: stop queues, or a partition, of a running scheduler."""

from __future__ import annotations

from typing import Any

import click

from yunikorn.cli.changes import QUEUE, change_each, change_partition, not_repeated
from yunikorn.cli.server_options import complete, connect, partition_option, server_options
from yunikorn.errors import UsageError


@click.command()
@click.argument("queues", nargs=-1, metavar="QUEUE...", shell_complete=not_repeated(complete("queue")))
@click.option("--whole-partition", is_flag=True, help="Stop the whole partition.")
@partition_option
@server_options
def command(
    queues: tuple[str, ...],
    whole_partition: bool,
    partition: str,
    as_json: bool,
    **connection: Any,
) -> int:
    """Stop queues of a running scheduler, or with --whole-partition all of a partition.

    A stopped queue gets no new tasks, nor do the queues below; running tasks stay. It lasts until
    `yunikorn start` or a restart of the service; that of a partition also until its resource manager
    registers again.

    Exit status: 0 when all is as requested, 1 when something was refused, 2 when the server did not answer.
    """
    if bool(queues) == whole_partition:
        raise UsageError("expected the names of queues, or --whole-partition")
    with connect(connection) as server:
        if whole_partition:
            status = change_partition(server, partition, "stop", as_json=as_json)
        else:
            status = change_each(server, QUEUE, queues, partition, "stop", as_json=as_json)
    return status
