"""`yunikorn events`: the latest events of a running scheduler, and new ones as they occur."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import click

from yunikorn.errors import UsageError, printable
from yunikorn_commands.output import echo
from yunikorn_commands.text_columns import WIDE, TextColumn, print_table, shortened, terminal_width
from yunikorn_rest.commands.answer_fields import in_short, number, records, shown, text, time_text
from yunikorn_rest.commands.rest_client import Record, RestConnection
from yunikorn_rest.commands.server_options import connect, server_options
from yunikorn_rest.event_json import CHANGES, DETAILS, TYPES

DEFAULT_LAST = 100
"""Number of events that are shown by default."""
MOST = 100_000
BATCH = 10_000
"""Largest number of events in an answer."""

_TYPES = {value: name.lower() for name, value in TYPES.items()}
_CHANGES = {value: name.lower() for name, value in CHANGES.items() if value}
_DETAILS = {value: name.lower() for name, value in DETAILS.items() if value}
COLUMNS = tuple(TextColumn(title) for title in ("time", "type", "object", "change", "of", "message"))
WIDTHS = (24, 9, 24, 30, 20, 0)
"""Widths of the columns while events are followed, when later rows are not known; 0 for the last column."""


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Show new events as they occur, until Ctrl-C.")
@click.option(
    "--last",
    type=click.IntRange(0, MOST),
    default=DEFAULT_LAST,
    show_default=True,
    metavar="N",
    help="Begin with the latest N events, before the filters.",
)
@click.option("--type", "kind", type=click.Choice(sorted(_TYPES.values())), help="Only of this type.")
@click.option("--object", "name", default="", help="Only about this app, node, queue, user or request.")
@WIDE
@server_options
def command(
    follow: bool, last: int, kind: str | None, name: str, wide: bool, as_json: bool, **connection: Any
) -> None:
    """Print the latest events of a running scheduler, of all partitions.

    Exit status: 0 when the events were printed, 2 when the server does not answer or ends the stream.
    """
    width = None if wide else terminal_width()
    with connect(connection) as server:
        if not follow:
            print_events(filtered(latest(server, last), kind, name), as_json=as_json, width=width)
            return
        for event in filtered(followed(server, last), kind, name):
            echo(json.dumps(event) if as_json else followed_line(event, width))
    raise UsageError("the server has ended the stream of events")


def latest(server: RestConnection, count: int) -> Iterator[Record]:
    """Yield the latest events, oldest first; raises `UsageError`."""
    bounds = server.record("events/batch", count=1)
    end = number(bounds, "HighestID")
    following = max(number(bounds, "LowestID"), end - count + 1)
    while count and following <= end:
        batch = server.record("events/batch", start=following, count=min(BATCH, end - following + 1))
        found = records(batch.get("EventRecords"))
        if not found:
            lowest = number(batch, "LowestID")
            if lowest <= following:
                return
            following = lowest  # the events were forgotten meanwhile
            continue
        yield from found
        following += len(found)


def followed(server: RestConnection, count: int) -> Iterator[Record]:
    """Yield past events and then new ones, until the server ends the stream; raises `UsageError`."""
    for line in server.lines("events/stream", count=count):
        if "InstanceUUID" in line:
            continue
        if "status_code" in line:
            raise UsageError(printable(f"the server has ended the stream: {text(line, 'message')}"))
        yield line


def filtered(events: Iterable[Record], kind: str | None, name: str) -> Iterator[Record]:
    """Yield the events of a type, and about an object; all without a type and a name."""
    for event in events:
        if kind is not None and type_of(event) != kind:
            continue
        if not name or name in (text(event, "objectID"), text(event, "referenceID")):
            yield event


def print_events(events: Iterable[Record], *, as_json: bool, width: int | None) -> None:
    """Print events as a table, or as JSON."""
    if as_json:
        for event in events:
            echo(json.dumps(event))
    else:
        print_table(COLUMNS, [cells(event) for event in events], width)


def type_of(event: Record) -> str:
    """Return the type of an event as text."""
    code = number(event, "type")
    return _TYPES.get(code, str(code))


def cells(event: Record) -> list[str]:
    """Return the cells of an event."""
    change, detail = number(event, "eventChangeType"), number(event, "eventChangeDetail")
    of = "app_starting" if text(event, "designState") else _DETAILS.get(detail, str(detail) if detail else "")
    words = [_CHANGES.get(change, ""), of]
    resources = event.get("resource")
    found = resources.get("resources") if isinstance(resources, dict) else None
    sizes = (
        {name: number(value, "value") for name, value in found.items() if isinstance(value, dict)}
        if isinstance(found, dict)
        else {}
    )
    message = [text(event, "message"), in_short(sizes) if any(sizes.values()) else ""]
    return [
        time_text(number(event, "timestampNano")),
        type_of(event),
        shown(text(event, "objectID")),
        shown(" ".join(filter(None, words))),
        shown(text(event, "referenceID")),
        shown("; ".join(filter(None, message))),
    ]


def followed_line(event: Record, width: int | None) -> str:
    """Return the line of an event whose successors are not known, cut to the terminal."""
    line = "  ".join(f"{cell:{wanted}}" for cell, wanted in zip(cells(event), WIDTHS, strict=True)).rstrip()
    return line if width is None else shortened(line, width)
