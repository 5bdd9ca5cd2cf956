"""Commands: sub-commands that a package adds to the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from yunikorn.api.base import Plugin

if TYPE_CHECKING:
    import click


class Command(Plugin):
    """Sub-command of the command line, called as `yunikorn NAME`.

    The class is imported to list the commands, and its `command` is made when the command is called. Import
    there what takes long.
    """

    line: ClassVar[str]
    """Help line of the command, as a sentence."""
    section: ClassVar[str] = "Commands of plugins"
    """Section of `yunikorn --help`."""

    def command(self) -> click.Command:
        """Return the command. Its exit status is the number that its function returns, or 0 for None."""
        raise TypeError(f"{type(self).__name__} has no command()")
