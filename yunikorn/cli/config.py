"""`yunikorn config`: print the configuration that a running scheduler uses."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import click

from yunikorn.cli.output import results
from yunikorn.cli.server_options import connect, connection_options
from yunikorn.errors import UsageError

PATH = "/ws/v1/config/text"


@click.command()
@click.option("--policy-group", default="", metavar="NAME", help="Policy group of the configuration.")
@click.option("--rm", default="", metavar="ID", help="A resource manager with its own configuration.")
@connection_options
def command(policy_group: str, rm: str, **connection: Any) -> None:
    """Print the configuration of a running scheduler, as it was given.

    The text can be edited and given to `yunikorn apply`. It may contain passwords of plugins, so the role
    admin is needed. Exit status: 0 when the text was printed, 1 when there is no such policy group or RM, 2
    for any other error.
    """
    if policy_group and rm:
        raise UsageError("expected --policy-group or --rm, not both")
    query = {name: value for name, value in (("policyGroup", policy_group), ("rm", rm)) if value}
    path = f"{PATH}?{urlencode(query)}" if query else PATH
    with connect(connection) as server:
        stream = results().buffer
        for piece in server.pieces(path):
            stream.write(piece)
        stream.flush()
