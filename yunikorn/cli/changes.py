"""Changes of a running scheduler by commands: several names in one call, and a line for each result."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

import attrs
import click

from yunikorn.cli.answer_fields import children, records, text
from yunikorn.cli.output import echo
from yunikorn.cli.rest_client import LONGEST_MESSAGE, NO_ROUTE, PAGE, Record, Server, quoted
from yunikorn.cli.server_options import LISTS, below_partition
from yunikorn.errors import UsageError, printable
from yunikorn.text import suggest

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
    server: Server,
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


def change_partition(server: Server, partition: str, verb: str, *, as_json: bool) -> int:
    """Change a partition, print the result, and return the exit status."""
    try:
        code, found = server.change("POST", below_partition(partition, verb))
    except UsageError as error:
        _report(partition, {"error": str(error)}, as_json=as_json)
        return UNANSWERED
    if code == 404 and reason(found) != NO_ROUTE:
        found = {"message": _no_partition(server)}
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


def refusal(server: Server, target: Target, partition: str, name: str, code: int, found: Record) -> str:
    """Return the reason why a change was refused, with a suggestion for an unknown name."""
    message = reason(found)
    if code != 404:
        return message
    if message == "Partition not found":
        return _no_partition(server)
    path, field = LISTS[target.kind]
    try:
        answer = server.value(below_partition(partition, path), limit=PAGE)
    except (UsageError, click.ClickException):  # the refusal itself matters more
        return message
    known = [text(one, field) for one in (children(answer) if target is QUEUE else records(answer))]
    if message == NO_ROUTE and name in known:
        return message
    return f"there is no such {target.what}{suggest(name, known)}"


def _no_partition(server: Server) -> str:
    known = ", ".join(text(one, "name") for one in records(server.value("partitions")))
    return f"there is no such partition; known: {known} (--partition)"


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
