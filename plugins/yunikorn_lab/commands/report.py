"""`yunikorn report`: usage, waits, fairness, preemption and waste from a history database."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import click

from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError
from yunikorn_commands.complete_files import replace_file
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.output import echo, results
from yunikorn_commands.path_types import INPUT, OUT_FILE

KINDS = ("usage", "waits", "fairness", "preemption", "waste")
FORMATS = ("text", "csv", "json", "html")


@click.command("report")
@click.argument("kind", type=click.Choice(KINDS))
@click.option(
    "--history",
    required=True,
    metavar="FILE-OR-URL",
    help="History database, as of --history of serve: a file, or postgresql://...",
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
def command(
    kind: str,
    history: str,
    since: str | None,
    until: str | None,
    by: str | None,
    queue: str,
    user: str,
    prices: Path | None,
    form: str,
    table: str,
    out: Path | None,
) -> None:
    """Report usage, waits, fairness, preemption or waste from a history database.

    `yunikorn serve --history FILE` writes such a database. Times are hours in UTC, days in long reports.
    Exit status: 0 when the report was made, 2 when the call, the history or the prices cannot be used.
    """
    with importing_extra("history", "for reports of a history"):
        from yunikorn_history.database import open_reader
        from yunikorn_lab.history_reports.price_list import read_prices
        from yunikorn_lab.history_reports.report_forms import print_text, written
        from yunikorn_lab.history_reports.report_kinds import REPORT_KINDS
        from yunikorn_lab.history_reports.report_source import ReportSource, open_window
        from yunikorn_lab.history_reports.report_window import Grouping, ReportFilter

    found = REPORT_KINDS[kind]
    unused = ["--prices"] if prices is not None and not found.has_prices else []
    if not found.has_filters:
        unused += [name for name, value in (("--queue", queue), ("--user", user)) if value]
    for name in unused:
        raise UsageError(f"{name} does not apply to the report of {kind}")
    grouping = Grouping.parse(
        by or found.by, found.subjects, needs_subject=found.needs_subject, why_none=found.why_none
    )
    paid = None if prices is None else read_prices(prices)
    begin, end = _moment("--since", since), _moment("--until", until)
    reader = open_reader(history)
    try:
        with reader.reading() as connection:
            window, wanted = open_window(connection, begin, end), ReportFilter(queue, user)
            source = ReportSource(connection, window, wanted, paid, has_pictures=form == "html")
            source.check(grouping)
            report = found.make(source, grouping)
    finally:
        reader.close()
    if out is not None:
        replace_file(out, [written(report, form, table).encode()])
    elif form == "text" and results().isatty():
        print_text(report, results())
    else:
        echo(written(report, form, table), nl=False)


def _moment(option: str, text: str | None) -> int | None:
    """Return the time (ms since 1970) of an option, in UTC as the days of reports are."""
    from yunikorn_history.time_words import parse_time

    try:
        return None if text is None else parse_time(text, SystemClock().now(), UTC)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
