"""Commands: sub-commands that a package adds to the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from yunikorn.api.base import Plugin

if TYPE_CHECKING:
    import click


class Command(Plugin):
    """Sub-command of the command line, called as `yunikorn NAME`.

    `yunikorn --help` shows the first line of the docstring, and imports the module of the class. The click
    command is made when it is called, so import there what takes long.
    """

    section: ClassVar[str] = "Commands of plugins"
    """Section of `yunikorn --help`."""

    def command(self) -> click.Command:
        """Return the click command. Its function returns the exit status, or None for 0."""
        raise TypeError(f"{type(self).__name__} has no command()")
