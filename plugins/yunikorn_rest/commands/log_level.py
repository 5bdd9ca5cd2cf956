"""`yunikorn log-level`: show or set the log levels of a running scheduler."""

from __future__ import annotations

import json
from typing import Any

import click

from yunikorn.errors import UsageError, printable
from yunikorn.text import suggest
from yunikorn_commands.output import echo
from yunikorn_commands.text_columns import TextColumn, print_table
from yunikorn_rest.commands.answer_fields import shown
from yunikorn_rest.commands.operator_calls import FAILED, JSON_BODY, reason
from yunikorn_rest.commands.rest_client import Record, open_server
from yunikorn_rest.commands.server_options import PATIENCE, SAFE_NAME, address_of, connect, server_options
from yunikorn_service.log_levels import INHERITED, LEVELS

PATH = "loglevel"


def _loggers(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    try:
        with open_server(address_of(context.params, PATIENCE)) as server:
            names = sorted(_levels(server.record(PATH)))
    except Exception:  # a completion has no place for a message
        return []
    return [name for name in names if name.startswith(incomplete) and SAFE_NAME.fullmatch(name)]


def _known_levels(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return [level for level in (*LEVELS, INHERITED) if level.startswith(incomplete)]


@click.command()
@click.argument("logger", default="", shell_complete=_loggers)
@click.argument("level", default="", shell_complete=_known_levels)
@server_options
def command(logger: str, level: str, as_json: bool, **connection: Any) -> int:
    """Show the log levels of a running scheduler, or set that of LOGGER to LEVEL.

    A level lasts until the end of the service; `inherited` is that of `yunikorn`. Exit status: 0 when the
    level was shown or is as requested, 1 when the change was refused, 2 for any other error.
    """
    with connect(connection) as server:
        if not level:
            levels = _levels(server.record(PATH))
            if logger and logger not in levels:
                raise UsageError(printable(f"no logger is called '{logger}'{suggest(logger, levels)}"))
            _show({name: value for name, value in levels.items() if logger in ("", name)}, as_json=as_json)
            return 0
        body = json.dumps({"levels": {logger: level}}).encode()
        code, found = server.change("PUT", PATH, body, JSON_BODY)
    if as_json:
        echo(json.dumps(found))
    elif code != 200:
        echo(printable(f"Error: {reason(found)}"), err=True)
    else:
        _report(found)
    return 0 if code == 200 else FAILED


def _levels(found: Record) -> dict[str, str]:
    levels = found.get("levels")
    return {name: str(value) for name, value in levels.items()} if isinstance(levels, dict) else {}


def _show(levels: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(levels))
    else:
        rows = [[shown(name), shown(level)] for name, level in levels.items()]
        print_table([TextColumn("logger"), TextColumn("level")], rows, None)


def _report(found: Record) -> None:
    before, after = _levels({"levels": found.get("before")}), _levels({"levels": found.get("after")})
    for name, level in after.items():
        was = before.get(name, "?")
        change = f"{was} -> {level}" if was != level else f"nothing changed, it is {level}"
        echo(printable(f"{name}: {change}"))
