"""Options of commands that write results: `--out` and `--force`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


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
