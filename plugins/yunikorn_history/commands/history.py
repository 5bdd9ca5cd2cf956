"""`yunikorn history`: what ran, in the history of a scheduler."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import attrs
import click
from click.core import ParameterSource

from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError, printable
from yunikorn.text import listed
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.option_groups import Decorator, option_group
from yunikorn_commands.output import echo, remark, results
from yunikorn_commands.text_columns import laid_out, terminal_width
from yunikorn_history.commands.record_columns import (
    Record,
    RecordColumn,
    chosen_columns,
    columns_of,
    default_columns,
    table_of,
)
from yunikorn_history.commands.record_formats import replaced, write_csv, write_json, write_parquet
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.history_kinds import FILTERS, KINDS, PLACES, TIMES, HistoryKind, filter_of, usual_bucket
from yunikorn_history.past_records import USUAL_GROUPS
from yunikorn_rest.commands.rest_client import NotFound, RestConnection
from yunikorn_rest.commands.server_options import complete, connect, connection_options
from yunikorn_service.fields import json_object

if TYPE_CHECKING:
    from yunikorn_history.queries import HistoryQueries

FORMATS = ("table", "wide", "csv", "json", "jsonl", "parquet")
MOST = 1_000_000_000
"""Largest number of records to ask for."""
IN_TABLE = 100
"""Number of records in a table by default."""
PAGE = 1000
"""Number of records that are read from a database at a time."""
SHOWN_KINDS = [name for name in KINDS if name != "node-series"]
NAMED = {"user": "user", "queue": "queue", "node": "node", "application": "app"}
"""Kinds of the names that a running scheduler completes."""
LABELS = {"application": "app"}
"""Options that are not named like their filters."""


def _filter_options() -> Iterator[Decorator]:
    """Yield an option for each filter."""
    for name, text in FILTERS.items():
        settings: dict[str, Any] = {"is_flag": True, "default": None} if name == "preempted" else {}
        if name in NAMED:
            settings["shell_complete"] = complete(NAMED[name])
        help_line = f"{text[0].upper()}{text[1:]}.".replace("`", "")
        yield click.option(f"--{LABELS.get(name, name)}", name, help=help_line, **settings)


@click.command()
@click.argument("kind", type=click.Choice(SHOWN_KINDS))
@option_group(*_filter_options())
@click.option(
    "--limit",
    type=click.IntRange(0, MOST),
    metavar="N",
    help=f"Show the newest N; 0 for all.  [default: {IN_TABLE} in a table, else all]",
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--columns", metavar="NAME[,NAME]", help="Show these columns.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@click.option("--text", "number", type=int, metavar="ID", help="Print the text of this configuration.")
@click.option(
    "--diff",
    type=(int, int),
    metavar="ID ID",
    help="Show what differs between two configurations.",
)
@click.option("--history", metavar="FILE-OR-URL", help="Read this database instead of asking a scheduler.")
@connection_options
def command(
    kind: str,
    limit: int | None,
    form: str,
    columns: str | None,
    output: Path | None,
    number: int | None,
    diff: tuple[int, int] | None,
    history: str | None,
    **options: Any,
) -> None:
    """Show what a scheduler keeps in its history, newest first.

    Apps, tasks, series of queues, users and the partition, exact usage by hours or days, nodes,
    configurations, actions of operators (audit), failures of plugins (faults), runs of the scheduler, and
    gaps in the history. Times without an offset are those of this machine. Exit status: 0 when the records
    were printed, 1 when a configuration does not exist, 2 for any other error.
    """
    source_of = click.get_current_context().get_parameter_source
    if history is not None and source_of("server") is ParameterSource.COMMANDLINE:
        raise UsageError("--history and --server exclude each other")
    given = {name: _text(options.pop(name)) for name in FILTERS}
    given = {name: text for name, text in given.items() if text}
    if kind == "nodes" and "bucket" in given:
        kind = "node-series"
    wanted = _checked(kind, given, columns, form, output, number, diff)
    with contextlib.ExitStack() as opened:
        source: _Database | _Server
        if history is None:
            source = _Server(opened.enter_context(connect(options)))
        else:
            source = opened.enter_context(_opened(history))
        if number is not None or diff is not None:
            _print_texts(source, *((number,) if number is not None else diff or ()))
            return
        most = limit if limit is not None else IN_TABLE if form in ("table", "wide") else 0
        found = source.records(KINDS[kind], wanted.filter, wanted.given, most)
        first = next(found, None)
        if first is None:
            source.check_names(wanted.filter)
        else:
            found = chain([first], found)
        _print(kind, wanted, found, most, form, output)


def _text(value: str | bool | None) -> str:
    return "true" if value is True else value or ""


@attrs.frozen
class _Wanted:
    """Filters and columns of a call, checked."""

    filter: HistoryFilter
    given: Mapping[str, str]
    """Values of the filters for a server, which has another time zone."""
    columns: Sequence[RecordColumn] | None
    """Columns that were chosen; None for those of the format."""


def _checked(
    kind: str,
    given: dict[str, str],
    columns: str | None,
    form: str,
    output: Path | None,
    number: int | None,
    diff: tuple[int, int] | None,
) -> _Wanted:
    """Return filters and columns; raises `UsageError` with all problems."""
    now = SystemClock().now()
    labels = {name: f"--{LABELS.get(name, name)}" for name in FILTERS}
    found, problems = filter_of(KINDS[kind], given, now, labels=labels)
    if found.since is not None and found.until is not None and found.since >= found.until:
        problems.append("--until is not after --since")
    chosen = None
    if columns is not None:
        chosen, unknown = chosen_columns(kind, KINDS[kind], columns)
        problems += unknown or ([] if chosen else ["--columns: names no column"])
    elif kind == "runtimes":
        by = found.by or USUAL_GROUPS
        chosen = [one for one in default_columns(kind, KINDS[kind]) if not one.optional or one.name in by]
    if form == "parquet" and output is None:
        problems.append("--format parquet needs --output FILE")
    if (number is not None or diff is not None) and kind != "configs":
        problems.append("--text and --diff are for configs")
    if problems:
        raise UsageError("\n".join(map(printable, problems)))
    if KINDS[kind].buckets and "bucket" not in given:
        bucket = usual_bucket(found.since, found.until, now, KINDS[kind].buckets)
        found, given = attrs.evolve(found, bucket=bucket), {**given, "bucket": bucket}
    given |= {name: str(getattr(found, name)) for name in TIMES if name in given}
    return _Wanted(found, given, chosen)


# -- sources ---------------------------------------------------------------------------------------------


class _Database:
    """History in a database."""

    def __init__(self, queries: HistoryQueries) -> None:
        self._queries = queries

    def records(
        self, kind: HistoryKind, wanted: HistoryFilter, given: Mapping[str, str], most: int
    ) -> Iterator[Record]:
        """Yield records, newest first, at least `most` if there are as many; 0 for all."""
        from yunikorn_history.queries import every

        page = attrs.evolve(wanted, limit=min(most, PAGE) or PAGE)
        return map(json_object, every(getattr(self._queries, kind.query), page))

    def check_names(self, wanted: HistoryFilter) -> None:
        """Raise `UsageError` for names of a filter that the history has at no time."""
        unknown = self._queries.unknown_names(wanted)
        if unknown:
            lines = [f"--{LABELS.get(name, name)}: {why}" for name, why in unknown]
            raise UsageError("\n".join(map(printable, lines)))

    def config(self, number: int) -> Record:
        """Return a configuration with its text; raises `NotFound`."""
        found = self._queries.config(number)
        if found is None:
            raise NotFound(f"there is no configuration {number}")
        return json_object(found)


class _Server:
    """History of a running scheduler."""

    def __init__(self, server: RestConnection) -> None:
        self._server = server

    def records(
        self, kind: HistoryKind, wanted: HistoryFilter, given: Mapping[str, str], most: int
    ) -> Iterator[Record]:
        """Yield records, newest first; see `_Database`."""
        return self._server.listed(f"history/{kind.path}", **given)

    def check_names(self, wanted: HistoryFilter) -> None:
        """Print names of a filter, one of which the history may not have."""
        names = (*NAMED, *PLACES)
        given = [f"--{LABELS.get(name, name)} {text}" for name in names if (text := getattr(wanted, name))]
        if given:
            remark(printable(f"no such records: check the spelling of {listed(given)}, and the time"))

    def config(self, number: int) -> Record:
        """Return a configuration with its text; raises `NotFound`."""
        path = f"history/configs/{number}"
        return self._server.find("configuration", str(number), path, iter(()), "id")


@contextlib.contextmanager
def _opened(location: str) -> Iterator[_Database]:
    """Open a database; raises `HistoryError`."""
    with importing_extra("postgresql" if "://" in location else "history", "for --history"):
        from yunikorn_history.queries import HistoryQueries
    queries = HistoryQueries.open(location)
    try:
        yield _Database(queries)
    finally:
        queries.close()


# -- output ----------------------------------------------------------------------------------------------


def _print_texts(source: _Database | _Server, *numbers: int) -> None:
    """Print the text of a configuration, or what differs between those of two."""
    texts = [str(source.config(number).get("text", "")).splitlines() for number in numbers]
    lines = iter(texts[0])
    if len(texts) == 2:
        before, after = (f"configuration {number}" for number in numbers)
        lines = difflib.unified_diff(texts[0], texts[1], before, after, lineterm="")
    for line in lines:
        echo(printable(line.replace("\t", "    ")))


def _print(
    kind: str, wanted: _Wanted, found: Iterator[Record], most: int, form: str, output: Path | None
) -> None:
    """Print records, `most` at most, and say if there are more; 0 for all."""
    shown = islice(found, most) if most else found
    if output is None:
        _write(kind, wanted, shown, form, results())
    elif form == "parquet":
        with replaced(output) as path:
            write_parquet(wanted.columns or list(columns_of(kind, KINDS[kind]).values()), shown, path)
    else:
        with replaced(output) as path, path.open("w", encoding="utf-8", errors="replace") as stream:
            _write(kind, wanted, shown, form, stream)
    if most and next(found, None) is not None:
        remark(f"these are the newest {most}: --limit N shows more, --since and --until another time")


def _write(kind: str, wanted: _Wanted, found: Iterator[Record], form: str, stream: TextIO) -> None:
    if form == "csv":
        write_csv(wanted.columns or list(columns_of(kind, KINDS[kind]).values()), found, stream)
    elif form in ("json", "jsonl"):
        write_json(wanted.columns, found, stream, lines=form == "jsonl")
    else:
        width = terminal_width() if form == "table" and stream is results() else None
        columns = wanted.columns or default_columns(kind, KINDS[kind])
        lines, left_out = laid_out(*table_of(columns, list(found)), width)
        stream.writelines(f"{line}\n" for line in lines)
        if left_out:
            remark(f"columns left out in this width: {', '.join(left_out)} (--format wide shows them)")
