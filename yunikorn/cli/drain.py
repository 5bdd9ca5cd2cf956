"""`yunikorn drain`: drain nodes of a running scheduler."""

from __future__ import annotations

from typing import Any

import click

from yunikorn.cli.changes import NODE, change_each, not_repeated
from yunikorn.cli.server_options import complete, connect, partition_option, server_options


@click.command()
@click.argument(
    "nodes", nargs=-1, required=True, metavar="NODE...", shell_complete=not_repeated(complete("node"))
)
@partition_option
@server_options
def command(nodes: tuple[str, ...], partition: str, as_json: bool, **connection: Any) -> int:
    """Drain nodes of a running scheduler: they get no new tasks, and running tasks stay.

    It lasts until `yunikorn undrain` or a restart of the service, also when the resource manager registers
    the node again.

    Exit status: 0 when all is as requested, 1 when something was refused, 2 when the server did not answer.
    """
    with connect(connection) as server:
        status = change_each(server, NODE, nodes, partition, "drain", as_json=as_json)
    return status
