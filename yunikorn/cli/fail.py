"""`yunikorn fail`: fail applications of a running scheduler."""

from __future__ import annotations

from typing import Any

import click

from yunikorn.cli.changes import APP, change_each, not_repeated
from yunikorn.cli.server_options import complete, connect, partition_option, server_options


@click.command()
@click.argument(
    "applications", nargs=-1, required=True, metavar="APP...", shell_complete=not_repeated(complete("app"))
)
@click.option("--reason", required=True, metavar="TEXT", help="Reason, for users and for the audit log.")
@partition_option
@server_options
def command(
    applications: tuple[str, ...],
    reason: str,
    partition: str,
    as_json: bool,
    **connection: Any,
) -> int:
    """Fail applications of a running scheduler: their tasks end, and their requests are removed.

    Exit status: 0 when all have failed, 1 when something was refused, 2 when the server did not answer.
    """
    with connect(connection) as server:
        status = change_each(
            server, APP, applications, partition, "fail", as_json=as_json, body={"reason": reason}
        )
    return status
