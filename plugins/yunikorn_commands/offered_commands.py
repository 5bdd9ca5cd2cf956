"""Commands of installed packages, found by their plugins.

Their plugins are imported only for a command that is not a default one, for `--help` and for completions; in
an installation without such packages, nothing is imported for these either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yunikorn.containment import contained, describe_error, safe_repr
from yunikorn.errors import UsageError, YunikornError, printable
from yunikorn_commands.output import results_only

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from yunikorn.framework.offers import Offer
    from yunikorn.framework.registry import Registry

GROUP = "yunikorn"
"""Group of entry points; `yunikorn.framework.installed`, which is imported when there are entries."""
_REGISTRY = "yunikorn_commands.offered_commands.registry"
"""Key of the registry in the context of a call."""
CALLED = "yunikorn_commands.offered_commands.called"
"""Key of the origin of the called command in the context of a call, if a package offers the command."""


class UnusableCommand(click.ClickException):
    """Error for a command of a package that cannot be called; the message names the package."""

    exit_code = 2


def _entries() -> EntryPoints:
    """Return the entry points of plugins; importing the module takes as long as half of the command line."""
    from importlib import metadata

    return metadata.entry_points(group=GROUP)


def _registry(ctx: click.Context) -> Registry | None:
    """Return the plugins of the call; None if no package is installed that has some."""
    if _REGISTRY not in ctx.meta:
        found = None
        if not ctx.params.get("no_plugins") and _entries():
            from yunikorn.framework.kinds import COMMAND
            from yunikorn_commands.allowed_plugins import load_registry

            try:
                with results_only():
                    found = load_registry()
                    found.offers(COMMAND)
            except UsageError as error:
                raise click.UsageError(str(error), ctx) from error
        ctx.meta[_REGISTRY] = found
    registry: Registry | None = ctx.meta[_REGISTRY]
    return registry


def offered_commands(ctx: click.Context) -> list[tuple[str, Offer]]:
    """Return the commands of installed packages with the names to call them by.

    Where two packages offer a name, it is `NAME@DISTRIBUTION`.
    """
    registry = _registry(ctx)
    if registry is None:
        return []
    from yunikorn.framework.kinds import COMMAND

    return [(registry.reference(offer), offer) for offer in registry.offers(COMMAND)]


def help_line(offer: Offer) -> str:
    """Return the line about a command in a list of commands."""
    return printable(offer.summary or f"Command of {offer.distribution or offer.plugin}.")


def unusable_plugins(ctx: click.Context) -> list[str]:
    """Return remarks on plugins that could not be loaded, or that the call leaves out."""
    registry = _registry(ctx)
    if registry is None:
        names = sorted({entry.name for entry in _entries()})
        return [left_out(names)] if names else []
    remarks = [f"not loaded: {broken}" for broken in registry.broken]
    return [*remarks, left_out(registry.installed.left_out)] if registry.installed.left_out else remarks


def left_out(names: list[str]) -> str:
    """Return a remark on installed plugins that a call leaves out."""
    return f"left out, by --no-plugins or YUNIKORN_PLUGINS: {printable(', '.join(names))}"


def offered_command(ctx: click.Context, name: str) -> click.Command:
    """Make the command that a package offers under this name. Raises `click.ClickException`."""
    registry = _registry(ctx)
    assert registry is not None
    from yunikorn.framework.kinds import COMMAND

    try:
        offer = registry.find(COMMAND, name)
    except YunikornError as error:
        raise UnusableCommand(str(error)) from error
    try:
        made = offer.cls().command()
    except contained() as error:
        raise UnusableCommand(f"command {offer.origin} cannot be made: {describe_error(error)}") from error
    if not isinstance(made, click.Command):
        raise UnusableCommand(
            f"command {offer.origin} cannot be made: command() returned {safe_repr(made)} instead of a click"
            " command"
        )
    ctx.meta[CALLED] = offer.origin
    return made
