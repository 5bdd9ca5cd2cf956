"""Options of all commands that ask a running scheduler, and completion of names by that scheduler."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from yunikorn.errors import UsageError
from yunikorn_commands.load_plugins import load_plugins_option
from yunikorn_commands.option_groups import option_group
from yunikorn_rest.commands.answer_fields import children, records, text
from yunikorn_rest.commands.rest_client import PAGE, RestConnection, ServerAddress, open_server, quoted

DEFAULT_SERVER = "http://127.0.0.1:9080"
VARIABLE = "YUNIKORN_SERVER"
TOKEN_VARIABLE = "YUNIKORN_TOKEN"
PARTITION = "default"
PATIENCE = 1.0
"""Seconds that a completion waits for an answer."""
SAFE_NAME = re.compile(r"[\w.:@/+=-]+", re.ASCII)
"""Names that a shell takes literally; others are not completed."""
_TOKEN = re.compile(r"[!-~]{1,4096}")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

LISTS = {
    "queue": ("queues", "queuename"),
    "app": ("applications/active", "applicationID"),
    "node": ("nodes", "nodeID"),
    "user": ("usage/users", "userName"),
}
"""Path below a partition, and the field with the name, by kind of object."""

connection_options = option_group(
    click.option(
        "--server",
        metavar="URL",
        envvar=VARIABLE,
        default=DEFAULT_SERVER,
        show_default=True,
        show_envvar=True,
        help="REST interface of the scheduler.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True, max=86400),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="Wait this long for the server.",
    ),
    click.option("--tls-ca", type=FILE, help="Trust this authority (PEM) instead of those of the system."),
    click.option("--tls-cert", type=FILE, help="Certificate of the client (PEM)."),
    click.option("--tls-key", type=FILE, help="Its private key (PEM)."),
    click.option(
        "--token-file",
        type=FILE,
        help="File with the token to send; by default that in the variable YUNIKORN_TOKEN, if it is set.",
    ),
    click.option("--insecure", is_flag=True, help="Send the token to another machine without TLS, too."),
)
"""Options of the server, which a command takes as keywords for `connect`."""
server_options = option_group(
    click.option(
        "--json", "as_json", is_flag=True, help="Print JSON, one object a line, with exact numbers."
    ),
    connection_options,
)
"""The same with `--json`."""
reading_options = option_group(
    click.option(
        "--snapshot",
        type=FILE,
        metavar="FILE",
        help="Ask the scheduler of a snapshot, restored here, instead of a running one.",
    ),
    load_plugins_option,
    server_options,
)
"""The same for commands that may also read a snapshot."""
partition_option = click.option(
    "--partition", default=PARTITION, show_default=True, help="Partition to look at."
)


def connect(options: Mapping[str, Any]) -> AbstractContextManager[RestConnection]:
    """Open a connection with the values of the options; raises `UsageError` if they are unusable."""
    if options.get("snapshot") is not None:
        check_alone()
        from yunikorn_rest.commands.snapshot_connection import open_snapshot

        return open_snapshot(options["snapshot"], options["load_plugins"])
    return open_server(address_of(options, options["timeout"]))


def check_alone() -> None:
    """Raise `UsageError` if the current command has `--server` beside `--snapshot`."""
    if click.get_current_context().get_parameter_source("server") is ParameterSource.COMMANDLINE:
        raise UsageError("--server and --snapshot exclude each other")


def address_of(options: Mapping[str, Any], timeout: float) -> ServerAddress:
    """Return the address of the server with the values of the options; raises `UsageError`."""
    url = options.get("server")
    return ServerAddress(
        url if url is not None else os.environ.get(VARIABLE) or DEFAULT_SERVER,
        timeout,
        options.get("tls_ca"),
        options.get("tls_cert"),
        options.get("tls_key"),
        _token(options.get("token_file")),
        bool(options.get("insecure")),
    )


def _token(file: Path | None) -> str | None:
    """Return the token to send; raises `UsageError`, whose message does not contain the text of the token."""
    if file is None:
        found, source = os.environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
        if not found:
            return None
    else:
        source = f"--token-file {file}"
        try:
            found = file.read_text("ascii", "replace").strip()
        except OSError as error:
            raise UsageError(f"{source}: {error.strerror or error}") from error
    if not _TOKEN.fullmatch(found):
        raise UsageError(f"{source}: expected one line with a token")
    return found


def below_partition(partition: str, path: str) -> str:
    """Return the path of a route of a partition."""
    return f"partition/{quoted(partition)}/{path}"


# -- completion ------------------------------------------------------------------------------------------


def complete(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a completion of the names of one kind of object."""

    def completion(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        return names_beginning(context, kind, incomplete)

    return completion


def names_beginning(context: click.Context, kind: str, incomplete: str) -> list[str]:
    """Return the names of objects that begin with a text; empty if the server does not answer in time.

    Of a long list, only the first page is considered.
    """
    try:
        return _names(context.params, kind, incomplete)
    except Exception:  # a completion has no place for a message
        return []


def _names(given: Mapping[str, Any], kind: str, incomplete: str) -> list[str]:
    address = address_of(given, PATIENCE)
    path, field = LISTS[kind]
    with open_server(address) as server:
        found = server.value(below_partition(given.get("partition") or PARTITION, path), limit=PAGE)
    known = (text(one, field) for one in (children(found) if kind == "queue" else records(found)))
    return sorted(name for name in known if name.startswith(incomplete) and SAFE_NAME.fullmatch(name))
