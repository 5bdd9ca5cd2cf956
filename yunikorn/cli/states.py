"""`yunikorn states`: print the state machines as Mermaid diagrams."""

from __future__ import annotations

import click

from yunikorn.cli.output import echo
from yunikorn.states import LIFECYCLES, Lifecycle


def names() -> list[str]:
    """Return the names of the state machines on the command line."""
    return [lifecycle.name.replace(" ", "-") for lifecycle in LIFECYCLES]


def diagram(lifecycle: Lifecycle) -> str:
    """Return a state machine as a Markdown section with a Mermaid diagram."""
    return f"## {lifecycle.name.capitalize()}\n\n```mermaid\n{lifecycle.mermaid().strip()}\n```\n"


@click.command("states", short_help="Print the state machines as Mermaid diagrams.")
@click.argument("machine", required=False, type=click.Choice(names()))
def command(machine: str | None) -> None:
    """Print the state machines as Mermaid diagrams: all of them, or one MACHINE."""
    for name, lifecycle in zip(names(), LIFECYCLES, strict=True):
        if machine is None:
            echo(diagram(lifecycle))
        elif machine == name:
            echo(lifecycle.mermaid().strip())
