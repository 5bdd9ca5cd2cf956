"""`yunikorn whoami`: name, role and groups of the token or certificate in use."""

from __future__ import annotations

import json
from typing import Any

import click

from yunikorn_commands.output import echo
from yunikorn_commands.text_columns import print_pairs
from yunikorn_rest.commands.answer_fields import NONE, shown, text, texts
from yunikorn_rest.commands.server_options import connect, server_options


@click.command()
@server_options
def command(as_json: bool, **connection: Any) -> None:
    """Show name, role and groups of the token or certificate in use.

    Exit status: 0 when the server knows the credentials, 2 otherwise.
    """
    with connect(connection) as server:
        found = server.record("whoami")
    if as_json:
        echo(json.dumps(found))
        return
    groups = ", ".join(map(shown, texts(found.get("groups")))) or NONE
    print_pairs(
        [("name", shown(text(found, "name"))), ("role", shown(text(found, "role"))), ("groups", groups)]
    )
