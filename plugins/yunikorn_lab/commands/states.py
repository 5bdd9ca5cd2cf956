"""`yunikorn states`: print the state machines as Mermaid diagrams."""

from __future__ import annotations

from typing import Any

import click

from yunikorn.cli.output import echo
from yunikorn.framework.defaults import import_default
from yunikorn.states import LIFECYCLES, Lifecycle

SHIM = "yunikorn_kubernetes.shim.shim_states"
"""Module with the state machines of the shim for Kubernetes, imported by name like all that is not core."""


def lifecycles() -> tuple[Lifecycle[Any], ...]:
    """Return all state machines: those of the core, then those of the shim for Kubernetes."""
    of_shim: tuple[Lifecycle[Any], ...] = import_default(SHIM).LIFECYCLES
    return LIFECYCLES + of_shim


def names() -> list[str]:
    """Return the names of the state machines on the command line."""
    return [lifecycle.name.replace(" ", "-") for lifecycle in lifecycles()]


def diagram(lifecycle: Lifecycle[Any]) -> str:
    """Return a state machine as a Markdown section with a Mermaid diagram."""
    return f"## {lifecycle.name.capitalize()}\n\n```mermaid\n{lifecycle.mermaid().strip()}\n```\n"


@click.command("states", short_help="Print the state machines as Mermaid diagrams.")
@click.argument("machine", required=False, type=click.Choice(names()))
def command(machine: str | None) -> None:
    """Print the state machines as Mermaid diagrams: all of them, or one MACHINE."""
    for name, lifecycle in zip(names(), lifecycles(), strict=True):
        if machine is None:
            echo(diagram(lifecycle))
        elif machine == name:
            echo(lifecycle.mermaid().strip())
