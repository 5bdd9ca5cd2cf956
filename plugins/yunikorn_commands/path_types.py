"""Types of the options and arguments that name files: one input file may be `-`, standard input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from yunikorn_commands.input_files import DASH

_TAKEN = "yunikorn_commands.path_types.taken"
"""Key of the context for the parameter that has standard input."""


class InputPath(click.Path):
    """Path of an input file; `-` is standard input, which only one parameter can have."""

    def __init__(self, *, dir_okay: bool = False) -> None:
        super().__init__(dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; refuses an empty one, and a second `-`."""
        if not str(value):
            self.fail("expected a file, got an empty text", param, ctx)
        if Path(value) == DASH and ctx is not None and not ctx.resilient_parsing:
            here, before = _title(param), ctx.meta.get(_TAKEN)
            if before is not None:
                named = f"{here} names it twice" if before == here else f"{before} has it already"
                self.fail(f"standard input (-) can be read only once: {named}", param, ctx)
            ctx.meta[_TAKEN] = here
        return super().convert(value, param, ctx)


def _title(param: click.Parameter | None) -> str:
    if param is None:
        return "-"
    return param.opts[0] if isinstance(param, click.Option) else param.human_readable_name


INPUT = InputPath()
"""A file."""


class ServiceFilePath(click.Path):
    """Path of a file that a service opens now and again later, when a plugin may be in another folder."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the absolute path, with symbolic links, which may change; refuses an empty one."""
        if not str(value).strip():
            self.fail("expected a file, got an empty text", param, ctx)
        return Path(str(super().convert(value, param, ctx))).absolute()


SERVICE_FILE = ServiceFilePath()


class OutPath(click.Path):
    """A path to write to; an empty text, as of an unset variable of a shell, is refused."""

    def __init__(self, *, folder: bool) -> None:
        """Name a folder or a file."""
        super().__init__(file_okay=not folder, dir_okay=folder, path_type=Path)
        self._what = "folder" if folder else "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if not str(value).strip():
            self.fail(f"the name is empty: give a {self._what}", param, ctx)
        return super().convert(value, param, ctx)


OUT_FOLDER = OutPath(folder=True)
OUT_FILE = OutPath(folder=False)

force_folder = click.option(
    "--force", is_flag=True, help="Write to --out even if it has files that are not of an earlier run."
)
force_file = click.option(
    "--force", is_flag=True, help="Replace the file of --out even if this command has not written it."
)
