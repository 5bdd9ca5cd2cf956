"""The option `--load-plugins`: code that configurations may load which a command reaches through data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from yunikorn.framework.plugin_code import is_module
from yunikorn_commands.config_input import folder_of
from yunikorn_commands.plugin_files import CodePermission


def _read(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[Path | str, ...]:
    return tuple(map(_folder_or_module, values))


def _folder_or_module(value: str) -> Path | str:
    if value.strip() and Path(value).is_dir():
        return Path(value).absolute()
    if not is_module(value):
        raise click.BadParameter(f"'{value}' is neither a folder nor the name of a module.")
    return value


LOAD_PLUGINS: dict[str, Any] = {
    "multiple": True,
    "type": str,
    "callback": _read,
    "metavar": "FOLDER|MODULE",
    "help": (
        "Let configurations that are not given as --config load plugins, which runs their code: files below"
        " FOLDER, or MODULE. May be given several times."
    ),
}
"""Settings of the option."""
LOAD_PLUGINS_OPTION = "--load-plugins"
load_plugins_option = click.option(LOAD_PLUGINS_OPTION, **LOAD_PLUGINS)


def code_of_data(file: Path, named: tuple[Path | str, ...]) -> CodePermission:
    """Return what a configuration that is only read may load; it is read without the rest."""
    return CodePermission.of_data(folder_of(file), named, may_skip=True)
