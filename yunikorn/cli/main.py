"""The command `yunikorn`, which loads the command line by its name, like everything else outside the core."""

from __future__ import annotations

from collections.abc import Sequence

from yunikorn.framework.defaults import import_default


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with `arguments` (of the process if None); returns the exit status."""
    status: int = import_default("yunikorn_commands.command_group").main(arguments)
    return status
