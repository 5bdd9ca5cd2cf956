"""`yunikorn stop`, `start`, `drain`, `undrain` and `fail`: changes of a running scheduler.

A call may have several names, and prints a line for each result. Exit status: 0 when all is as requested, 1
when something was refused, 2 when the server did not answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

import attrs
import click

from yunikorn.errors import UsageError, printable
from yunikorn.text import suggest
from yunikorn_commands.output import echo
from yunikorn_rest.commands.answer_fields import children, records, text
from yunikorn_rest.commands.rest_client import (
    LONGEST_MESSAGE,
    NO_PARTITION,
    NO_ROUTE,
    PAGE,
    Record,
    RestConnection,
    quoted,
)
from yunikorn_rest.commands.server_options import (
    LISTS,
    below_partition,
    complete,
    connect,
    partition_option,
    server_options,
)

FAILED, UNANSWERED = 1, 2
"""Exit statuses: a change was refused; the server did not answer."""
JSON_BODY = {"Content-Type": "application/json"}


@attrs.frozen
class Target:
    """Kind of the objects that a command changes."""

    kind: str
    """Key of `LISTS`; `partition` for partitions."""
    what: str
    """Noun for messages."""


QUEUE, NODE, APP = Target("queue", "queue"), Target("node", "node"), Target("app", "application")


def path_of(target: Target, partition: str, name: str, verb: str) -> str:
    """Return the path of a change of an object."""
    if target is QUEUE:  # names of queues are decoded twice by the server
        return below_partition(partition, f"queue/{quoted(quoted(name.lower()))}/{verb}")
    return below_partition(partition, f"{target.what}/{quoted(name)}/{verb}")


def change_each(
    server: RestConnection,
    target: Target,
    names: Sequence[str],
    partition: str,
    verb: str,
    *,
    as_json: bool,
    body: Mapping[str, Any] | None = None,
) -> int:
    """Change objects, print a line for each, and return the exit status.

    A name that is refused does not stop the others; a server that does not answer does.
    """
    status = 0
    for at, name in enumerate(dict.fromkeys(names)):
        content = b"" if body is None else json.dumps(body).encode()
        headers = None if body is None else JSON_BODY
        try:
            code, found = server.change("POST", path_of(target, partition, name, verb), content, headers)
        except UsageError as error:
            _report(name, {"error": str(error)}, as_json=as_json)
            left = list(dict.fromkeys(names))[at + 1 :]
            if left:
                echo(printable(f"not tried: {', '.join(left)}"), err=True)
            return UNANSWERED
        if code != 200:
            message = refusal(server, target, partition, name, code, found)
            _report(name, {"error": message}, as_json=as_json)
            status = FAILED
            continue
        _report(name, found, as_json=as_json)
    return status


def change_partition(server: RestConnection, partition: str, verb: str, *, as_json: bool) -> int:
    """Change a partition, print the result, and return the exit status."""
    try:
        code, found = server.change("POST", below_partition(partition, verb))
    except UsageError as error:
        _report(partition, {"error": str(error)}, as_json=as_json)
        return UNANSWERED
    if code == 404 and reason(found) != NO_ROUTE:
        found = {"message": server.no_partition()}
    _report(partition, found if code == 200 else {"error": reason(found)}, as_json=as_json)
    return 0 if code == 200 else FAILED


def _report(name: str, result: Record, *, as_json: bool) -> None:
    """Print a result: on standard error if it is one, unless JSON is wanted."""
    if as_json:
        echo(json.dumps({"name": name, **result}))
    elif "error" in result:
        echo(printable(f"{name}: {text(result, 'error')}"), err=True)
    else:
        echo(printable(f"{name}: {effect(result)}"))


def effect(result: Record) -> str:
    """Return the effect of a change in words."""
    before, after = _value(result.get("before")), _value(result.get("after"))
    if result.get("changed") is False:
        return f"nothing changed, it is {after or before or 'as requested'}"
    return f"{before or '?'} -> {after or '?'}"


def _value(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def reason(found: Record) -> str:
    """Return the message of a refusal."""
    return text(found, "message")[:LONGEST_MESSAGE] or "refused without a reason"


def refusal(
    server: RestConnection, target: Target, partition: str, name: str, code: int, found: Record
) -> str:
    """Return the reason why a change was refused, with a suggestion for an unknown name."""
    message = reason(found)
    if code != 404:
        return message
    if message == NO_PARTITION:
        return server.no_partition()
    path, field = LISTS[target.kind]
    try:
        answer = server.value(below_partition(partition, path), limit=PAGE)
    except (UsageError, click.ClickException):  # the refusal itself matters more
        return message
    known = [text(one, field) for one in (children(answer) if target is QUEUE else records(answer))]
    if message == NO_ROUTE and name in known:
        return message
    return f"there is no such {target.what}{suggest(name, known)}"


def confirmed(question: str, *, yes: bool, needed: str) -> bool:
    """Return True if the user agrees, or has agreed by `--yes`.

    There is a question on a terminal only. Elsewhere raises `UsageError` with the reason why `--yes` is
    `needed`, so that a script decides on purpose.
    """
    if yes:
        return True
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
        raise UsageError(f"{needed}: --yes does it anyway")
    return click.confirm(question, err=True)


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def not_repeated(completion: Completion) -> Completion:
    """Return a completion for several names, which does not offer a name twice."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        given = context.params.get(parameter.name or "") or ()
        return [name for name in completion(context, parameter, incomplete) if name not in given]

    return complete


# -- commands --------------------------------------------------------------------------------------------


def _names(metavar: str, kind: str, *, required: bool = True) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator that adds the names of objects to a command."""
    known = not_repeated(complete(kind))
    return click.argument("names", nargs=-1, required=required, metavar=metavar, shell_complete=known)


def _change(
    target: Target,
    verb: str,
    names: tuple[str, ...],
    partition: str,
    as_json: bool,
    body: Mapping[str, Any] | None = None,
    **connection: Any,
) -> int:
    """Change objects with the values of a command's options, and return the exit status."""
    with connect(connection) as server:
        return change_each(server, target, names, partition, verb, as_json=as_json, body=body)


def _switch(verb: str, whole_partition: bool, **options: Any) -> int:
    """Stop or start queues or the whole partition, and return the exit status."""
    if bool(options["names"]) == whole_partition:
        raise UsageError("expected the names of queues, or --whole-partition")
    if not whole_partition:
        return _change(QUEUE, verb, **options)
    with connect(options) as server:
        return change_partition(server, options["partition"], verb, as_json=options["as_json"])


@click.command()
@_names("QUEUE...", "queue", required=False)
@click.option("--whole-partition", is_flag=True, help="Stop the whole partition.")
@partition_option
@server_options
def stop(**options: Any) -> int:
    """Stop queues of a running scheduler, or with --whole-partition all of a partition.

    A stopped queue gets no new tasks, nor do the queues below; running tasks stay. It lasts until
    `yunikorn start` or a restart of the service; that of a partition also until its resource manager
    registers again.

    Exit status: 0 when all is as requested, 1 when something was refused, 2 when the server did not answer.
    """
    return _switch("stop", **options)


@click.command()
@_names("QUEUE...", "queue", required=False)
@click.option("--whole-partition", is_flag=True, help="Start the whole partition.")
@partition_option
@server_options
def start(**options: Any) -> int:
    """Start queues of a running scheduler that were stopped, or with --whole-partition the partition.

    Exit status: 0 when all is as requested, 1 when something was refused, 2 when the server did not answer.
    """
    return _switch("start", **options)


@click.command()
@_names("NODE...", "node")
@partition_option
@server_options
def drain(**options: Any) -> int:
    """Drain nodes of a running scheduler: they get no new tasks, and running tasks stay.

    It lasts until `yunikorn undrain` or a restart of the service, also when the resource manager registers
    the node again.

    Exit status: 0 when all is as requested, 1 when something was refused, 2 when the server did not answer.
    """
    return _change(NODE, "drain", **options)


@click.command()
@_names("NODE...", "node")
@partition_option
@server_options
def undrain(**options: Any) -> int:
    """Let nodes of a running scheduler get tasks again that `yunikorn drain` has drained.

    A node that its resource manager drains as well stays drained.

    Exit status: 0 when all is as requested, 1 when something was refused, 2 when the server did not answer.
    """
    return _change(NODE, "undrain", **options)


@click.command()
@_names("APP...", "app")
@click.option("--reason", required=True, metavar="TEXT", help="Reason, for users and for the audit log.")
@partition_option
@server_options
def fail(reason: str, **options: Any) -> int:
    """Fail applications of a running scheduler: their tasks end, and their requests are removed.

    Exit status: 0 when all have failed, 1 when something was refused, 2 when the server did not answer.
    """
    return _change(APP, "fail", body={"reason": reason}, **options)
