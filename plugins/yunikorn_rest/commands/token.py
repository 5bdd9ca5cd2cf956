"""`yunikorn token`: make a token for an operator."""

from __future__ import annotations

import secrets

import click

from yunikorn.errors import ConfigError, UsageError
from yunikorn_commands.output import echo
from yunikorn_rest.operator_credentials import MARK, Role, hash_of, parse_credentials

BITS = 256


@click.command("token")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    required=True,
    help="view: read; operate: stop, start and drain; admin: configuration and log levels as well.",
)
@click.option("--group", "groups", multiple=True, help="A group for adminacl of queues. May be repeated.")
def command(name: str, role: str, groups: tuple[str, ...]) -> None:
    """Make a token for NAME, and print the entry for the file of --rest-credentials.

    The token is printed first; it is stored nowhere. The entry has only its hash.
    """
    token = MARK + secrets.token_urlsafe(BITS // 8)
    lines = [f"- name: {_quoted(name)}", f"  role: {role}"]
    if groups:
        lines.append(f"  groups: [{', '.join(map(_quoted, groups))}]")
    lines.append(f"  token: {hash_of(token)}")
    entry = "\n".join(lines)
    try:
        parse_credentials(entry)
    except ConfigError as error:
        raise UsageError("; ".join(problem.message for problem in error.problems)) from error
    echo("# Give this token to its owner; it is stored nowhere:", err=True)
    echo(token)
    echo("# Add this entry to the file of `yunikorn serve --rest-credentials FILE`:", err=True)
    echo(entry)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
