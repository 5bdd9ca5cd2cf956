"""`yunikorn report`: usage, waits, fairness, preemption and waste of a history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError, YunikornError
from yunikorn_commands.complete_files import replace_file
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.output import echo, remark, results
from yunikorn_commands.path_types import INPUT, OUT_FILE
from yunikorn_rest.commands.rest_client import RestConnection, UnknownCredentials
from yunikorn_rest.commands.server_options import connect, connection_options

T = TypeVar("T")

KINDS = ("usage", "waits", "fairness", "preemption", "waste")
FORMATS = ("text", "csv", "json", "html")
PARTIAL = "this is what you may see: your applications, and those of the queues that you administer"


@click.command("report")
@click.argument("kind", type=click.Choice(KINDS))
@click.option(
    "--history",
    metavar="FILE-OR-URL",
    help="Read this database instead of asking a scheduler: a file, or postgresql://...",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Begin, such as 2026-03-01, 7d or 'last month'. [default: that of the history]",
)
@click.option("--until", metavar="TIME", help="End. [default: that of the history]")
@click.option(
    "--by",
    metavar="GROUPS",
    help="Rows: queue, user, group, template or tag:NAME, a period (day, week, month), or two such as"
    " user,month. [default: queue, of waste day]",
)
@click.option("--queue", default="", metavar="PATH", help="Only of this queue and those below it.")
@click.option("--user", default="", metavar="NAME", help="Only of this user.")
@click.option("--prices", type=INPUT, metavar="FILE", help="YAML file with prices of resource-hours.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--table", default="", metavar="NAME", help="Table of --format csv. [default: the first]")
@click.option(
    "--output",
    "-o",
    "out",
    metavar="FILE",
    type=OUT_FILE,
    help="File to write. [default: standard output]",
)
@connection_options
def command(
    kind: str,
    history: str | None,
    since: str | None,
    until: str | None,
    by: str | None,
    queue: str,
    user: str,
    prices: Path | None,
    form: str,
    table: str,
    out: Path | None,
    **connection: Any,
) -> None:
    """Report usage, waits, fairness, preemption or waste from a history.

    The scheduler at --server shows what its reader may see; --history FILE reads a database of `yunikorn
    serve --history FILE`. Times are hours in UTC, days in long reports. Exit status: 0 when the report was
    made, 2 when the call, the history or the prices cannot be used.
    """
    with importing_extra("history", "for reports of a history"):
        from yunikorn_lab.history_reports.opened_history import ReportRequest, opened_copy, opened_database
        from yunikorn_lab.history_reports.price_list import read_prices
        from yunikorn_lab.history_reports.report_forms import print_text, written
        from yunikorn_lab.history_reports.report_kinds import REPORT_KINDS, parse_grouping
        from yunikorn_lab.history_reports.report_window import Grouping, ReportFilter

    found, problems = REPORT_KINDS[kind], list[str]()
    is_server_named = (
        click.get_current_context().get_parameter_source("server") is ParameterSource.COMMANDLINE
    )
    if history is not None and is_server_named:
        problems.append("--history and --server exclude each other")
    unused = ["--prices"] if prices is not None and not found.has_prices else []
    if not found.has_filters:
        unused += [name for name, value in (("--queue", queue), ("--user", user)) if value]
    problems += [f"{name} does not apply to the report of {kind}" for name in unused]
    if table and form != "csv":
        problems.append("--table is for --format csv")
    grouping = _usable(problems, lambda: parse_grouping(found, by)) or Grouping(())
    begin = _usable(problems, lambda: _moment("--since", since))
    end = _usable(problems, lambda: _moment("--until", until))
    if begin is not None and end is not None and begin >= end:
        problems.append("--since has to be earlier than --until")
    paid = None if prices is None else _usable(problems, lambda: read_prices(prices))
    if problems:
        raise UsageError("\n".join(problems))
    request = ReportRequest(kind, grouping, ReportFilter(queue, user), begin, end, paid, form == "html")
    with ExitStack() as stack:
        if history is not None:
            source = stack.enter_context(opened_database(history, request))
        else:
            server = stack.enter_context(connect(connection))
            is_partial = _is_partial(server, connection)
            source = stack.enter_context(opened_copy(server.listed, request, is_partial=is_partial))
        source.check(grouping)
        report = found.make(source, grouping)
    if out is not None:
        replace_file(out, [written(report, form, table).encode()])
    elif form == "text" and results().isatty():
        print_text(report, results())
    else:
        echo(written(report, form, table), nl=False)
    if source.is_partial:
        remark(PARTIAL)


def _is_partial(server: RestConnection, connection: Mapping[str, Any]) -> bool:
    """Return True if a server shows only a part to its reader."""
    if not server.has_token and connection["tls_cert"] is None:
        return False
    try:
        return server.record("whoami").get("role") != "admin"
    except UnknownCredentials:
        return False  # the server is open, or refuses the next request as well


def _usable(problems: list[str], read: Callable[[], T]) -> T | None:
    """Return what a function reads; add a problem, and return None, if it cannot."""
    try:
        return read()
    except YunikornError as error:
        problems.append(str(error))
        return None


def _moment(option: str, text: str | None) -> int | None:
    """Return the time (ms since 1970) of an option, in UTC as the days of reports are."""
    from yunikorn_history.time_words import parse_time

    try:
        return None if text is None else parse_time(text, SystemClock().now(), UTC)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
