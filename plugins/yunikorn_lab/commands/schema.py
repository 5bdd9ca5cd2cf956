"""`yunikorn schema`: print the format of queues.yaml, for editors and for people."""

from __future__ import annotations

import json

import click

from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.output import echo
from yunikorn_lab.schema.json_schema import json_schema, markdown


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    default="json",
    show_default=True,
    help="A JSON Schema for editors, or the reference of all keys as a page.",
)
@click.option("--builtin", is_flag=True, help="Include only the plugins that come with yunikorn.")
def command(form: str, builtin: bool) -> None:
    """Print the schema of queues.yaml.

    The JSON Schema (draft 7) lets an editor complete keys, explain them, and mark most mistakes while you
    type; it includes the installed plugins and their options. `yunikorn validate` finds all mistakes.
    """
    registry = load_registry(third_party=not builtin)
    if form == "json":
        echo(json.dumps(json_schema(registry), indent=2, ensure_ascii=False))
    else:
        echo(markdown(registry), nl=False)
