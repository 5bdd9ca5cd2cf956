"""Commands of installed packages, found by their plugins.

Their plugins are imported only for a command that is not a default one, and for `--help`; in an installation
without such packages, nothing is imported for either.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

import click

from yunikorn.containment import contained, describe_error
from yunikorn.errors import UsageError

if TYPE_CHECKING:
    from yunikorn.framework.offers import Offer
    from yunikorn.framework.registry import Registry

GROUP = "yunikorn"
"""Group of entry points; `yunikorn.framework.installed`, which is imported when there are entries."""
_REGISTRY = "yunikorn.cli.offered_commands.registry"
"""Key of the registry in the context of a call."""


def _registry(ctx: click.Context) -> Registry | None:
    """Return the plugins of the call; None if no package is installed that has some."""
    if _REGISTRY not in ctx.meta:
        found = None
        if not ctx.params.get("no_plugins") and metadata.entry_points(group=GROUP):
            from yunikorn.cli.allowed_plugins import load_registry

            try:
                found = load_registry()
            except UsageError as error:
                raise click.UsageError(str(error), ctx) from error
        ctx.meta[_REGISTRY] = found
    registry: Registry | None = ctx.meta[_REGISTRY]
    return registry


def offered_commands(ctx: click.Context) -> list[Offer]:
    """Return the commands of installed packages."""
    registry = _registry(ctx)
    if registry is None:
        return []
    from yunikorn.framework.kinds import COMMAND

    return registry.offers(COMMAND)


def not_loaded(ctx: click.Context) -> str:
    """Return an addition to a message that names the plugins that could not be loaded; empty for none."""
    registry = _registry(ctx)
    broken = [] if registry is None else registry.broken
    return f"; not loaded: {'; '.join(map(str, broken))}" if broken else ""


def made_command(offer: Offer) -> click.Command:
    """Return the command of a package. Raises `click.ClickException`, which names the package."""
    try:
        made = offer.cls().command()
    except contained() as error:
        raise click.ClickException(
            f"command {offer.origin} cannot be made: {describe_error(error)}"
        ) from error
    if not isinstance(made, click.Command):
        raise click.ClickException(f"command {offer.origin}: command() returned no click command")
    return made
