"""`yunikorn explain`: why the requests of an application of a running scheduler wait.

Texts for operators from the JSON object that explains why requests wait.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

import click

from yunikorn.errors import UsageError, printable
from yunikorn.text import number_of
from yunikorn_commands.output import echo
from yunikorn_commands.text_columns import WIDE, terminal_width
from yunikorn_rest.commands.answer_fields import (
    NONE,
    age,
    amounts,
    app_state,
    in_short,
    number,
    records,
    shown,
    text,
    texts,
)
from yunikorn_rest.commands.describe import applications
from yunikorn_rest.commands.get import ENDED
from yunikorn_rest.commands.rest_client import NotFound, Record, RestConnection, quoted
from yunikorn_rest.commands.server_options import (
    LISTS,
    below_partition,
    complete,
    connect,
    partition_option,
    reading_options,
)

NAMED = 3
"""Number of keys of equal requests that are named."""
NARROWEST = 30
"""Smallest width to which lines are wrapped."""


def explanation_lines(found: Record, width: int | None) -> Iterator[str]:
    """Yield the lines of an explanation, wrapped to `width`; None for no limit."""
    for line, indent in _lines(found):
        shown_line = printable(line)
        if width is None or len(shown_line) <= width:
            yield shown_line
        else:
            room = max(width, NARROWEST)
            yield from textwrap.wrap(
                shown_line,
                room,
                subsequent_indent=" " * indent,
                break_on_hyphens=False,
                break_long_words=False,
            )


def _lines(found: Record) -> Iterator[tuple[str, int]]:
    """Yield the lines, with the indent of their continuation."""
    yield f"application:  {shown(text(found, 'applicationID'))}", 14
    queue, state, waiting = (
        text(found, "queueName"),
        app_state(found),
        number(found, "pendingCount"),
    )
    awaited, general = text(found, "awaited"), records(found.get("reasons"))
    groups = records(found.get("requests"))
    if state:
        yield f"state:        {state}", 14
    if queue:
        yield f"queue:        {queue}", 14
    if workload := text(found, "workload"):
        yield f"workload:     {shown(workload)}", 14
    for rank in records(found.get("queueRanks")):
        of, parent = number(rank, "of"), shown(text(rank, "parent"))
        place = f"is {ordinal(number(rank, 'rank'))} of {of} queues" if of > 1 else "is the only queue"
        yield f"order:        {shown(text(rank, 'queueName'))} {place} in {parent} with waiting requests", 14
    if policy := text(found, "requestOrder"):
        yield f"order:        {shown(policy)} orders the requests of an application", 14
    yield f"waiting:      {_waiting(found, waiting)}", 14
    if awaited:
        unchecked = number(found, "uncheckedCount")
        subject = f"{number_of(unchecked, 'request')} " if unchecked else ""
        yield f"{subject}not accepted yet: the answer of {awaited} is awaited", 2
    if general:
        yield "", 0
        yield "Nothing of the application is scheduled:", 2
        yield from _listed(general, 2)
    for group in groups:
        yield "", 0
        yield from _group(group)
    omitted = number(found, "omittedCount")
    if omitted:
        yield "", 0
        yield f"{omitted} more waiting tasks are not explained here (--limit)", 2


def _waiting(found: Record, waiting: int) -> str:
    if not waiting:
        return "nothing"
    return f"{number_of(waiting, 'task')} of {number(found, 'pendingInQueue')} in the queue"


def _group(group: Record) -> Iterator[tuple[str, int]]:
    count, names = number(group, "pendingCount"), texts(group.get("allocationKeys"))
    more = number(group, "requestCount") - min(len(names), NAMED)
    keys = ", ".join([*map(shown, names[:NAMED]), *([f"{more} more"] if more > 0 else [])])
    held = group.get("placed") is True
    title = f"{number_of(count, 'task')} with {in_short(amounts(group, 'resource'))}"
    yield f"{title} ({keys}){':' if not held else ', placed and held:'}", 4
    details = []
    first, last = number(group, "firstRank"), number(group, "lastRank")
    if first:
        place = ordinal(first) if first == last else f"{ordinal(first)} to {ordinal(last)}"
        details.append(f"{place} in the order of the queue")
    details.append(f"priority {number(group, 'priority')}")
    if text(group, "taskGroupName"):
        details.append(f"task group {text(group, 'taskGroupName')}")
    if text(group, "reservedNodeID") or text(group, "reservedNodeId"):
        node = text(group, "reservedNodeID") or text(group, "reservedNodeId")
        details.append(f"node {node} is reserved for it")
    yield f"  {', '.join(details)}", 2
    reasons = records(group.get("reasons"))
    if reasons:
        yield "  Waits because:", 2
        yield from _listed(reasons, 4)
    else:
        yield "  Nothing stops it: it is placed when it is its turn.", 2
    fixes = texts(group.get("suggestedFixes"))
    if fixes:
        yield f"  Would help{', all together' if len(fixes) > 1 else ''}:", 2
        for fix in fixes:
            yield f"    - {fix}", 6


def _listed(reasons: list[Record] | list[dict[str, object]], indent: int) -> Iterator[tuple[str, int]]:
    for reason in reasons:
        policy = text(reason, "policy")
        said = text(reason, "message") or text(reason, "summary") or text(reason, "check") or NONE
        yield f"{' ' * indent}- {said}{f' [policy {policy}]' if policy else ''}", indent + 2


def state_lines(app: Record, now: int) -> Iterator[str]:
    """Yield the lines about an application that has ended, of which nothing waits."""
    name, state = shown(text(app, "applicationID")), shown(app_state(app))
    ended = age(number(app, "finishedTime"), now)
    yield f"application:  {name}"
    yield f"state:        {state}{f', for {ended}' if ended != NONE else ''}"
    yield f"queue:        {shown(text(app, 'queueName'))}"
    rejected = text(app, "rejectedMessage")
    if rejected:
        yield f"rejected:     {shown(rejected)}"
    yield "waiting:      nothing, because the application has ended"


def ordinal(count: int) -> str:
    """Return `1st`, `2nd`, `3rd`, `4th`."""
    last = count % 10 if count % 100 not in (11, 12, 13) else 0
    return f"{count}{('th', 'st', 'nd', 'rd')[last] if last < 4 else 'th'}"


KEPT = ("applicationID", "partition", "queueName", "applicationState", "rejectedMessage", "finishedTime")
"""Fields of an ended application, of which nothing waits."""
MOST = 1000
"""Largest number of explanations in an answer."""


@click.command()
@click.argument("application", shell_complete=complete("app"))
@click.option("--queue", default="", shell_complete=complete("queue"), help="Only if it is in this queue.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    metavar="N",
    help=f"Explain at most N kinds of requests.  [default: 100; at most {MOST}]",
)
@WIDE
@partition_option
@reading_options
def command(
    application: str,
    queue: str,
    limit: int | None,
    wide: bool,
    partition: str,
    as_json: bool,
    **connection: Any,
) -> None:
    """Explain why the requests of an application wait, and what would help.

    Equal requests are one entry. An application that has ended is found as long as the scheduler remembers
    it. Exit status: 0 when the application was found, also if nothing of it waits; 1 when there is none of
    that name; 2 for any other error.
    """
    width = None if wide else terminal_width()
    with connect(connection) as server:
        found = _explanation(server, partition, application, queue.lower(), limit)
    if as_json:
        echo(json.dumps(found))
        return
    lines = explanation_lines(found, width) if "reasons" in found else state_lines(found, server.now())
    for line in lines:
        echo(line)


def _explanation(server: RestConnection, partition: str, name: str, queue: str, limit: int | None) -> Record:
    """Return the explanation; of an ended application its state; raises `NotFound`."""
    # Names of queues are decoded twice by the server.
    of = f"queue/{quoted(quoted(queue))}/" if queue else ""
    path = below_partition(partition, f"{of}application/{quoted(name)}/explain")
    lists = applications(server, partition, "completed", "rejected", "active")
    asked = path if limit is None else f"{path}?limit={limit}"
    found = server.find("application", name, asked, lists, LISTS["app"][1])
    if "reasons" in found:
        return found
    actual = text(found, "queueName")
    if queue and actual != queue:
        raise NotFound(printable(f"application '{name}' is in {actual}, not in {queue}"))
    if text(found, "applicationState") not in ENDED:
        raise UsageError("the server has no explanations: YuniKorn 1.9 and older cannot explain")
    return {field: found[field] for field in KEPT if found.get(field)}
