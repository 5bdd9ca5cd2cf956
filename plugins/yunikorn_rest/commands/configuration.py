"""`yunikorn config` and `apply`: print the configuration of a running scheduler, or use another one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import attrs
import click

from yunikorn.errors import ConfigError, Problem, UsageError, YunikornError, printable
from yunikorn.text import number_of
from yunikorn_commands.config_input import ConfigInput
from yunikorn_commands.config_source import LocatedText
from yunikorn_commands.input_files import DASH
from yunikorn_commands.input_source import InputError, describe
from yunikorn_commands.output import echo, has_colours, remark, results
from yunikorn_commands.path_types import INPUT
from yunikorn_rest.commands.answer_fields import number, records, text
from yunikorn_rest.commands.operator_calls import FAILED, confirmed, reason
from yunikorn_rest.commands.rest_client import Record, RestConnection
from yunikorn_rest.commands.server_options import connect, connection_options, server_options

YAML = {"Content-Type": "application/x-yaml"}
SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
PRECONDITION_FAILED = 412
LONGEST_VALUE = 200


@click.command()
@click.option("--policy-group", default="", metavar="NAME", help="Policy group of the configuration.")
@click.option("--rm", default="", metavar="ID", help="A resource manager with its own configuration.")
@connection_options
def config(policy_group: str, rm: str, **connection: Any) -> None:
    """Print the configuration of a running scheduler, as it was given.

    The text can be edited and given to `yunikorn apply`. It may contain passwords of plugins, so the role
    admin is needed. Exit status: 0 when the text was printed, 1 when there is no such policy group or RM, 2
    for any other error.
    """
    path = _path("/ws/v1/config/text", _owner(policy_group, rm))
    with connect(connection) as server:
        stream = results().buffer
        for piece in server.pieces(path):
            stream.write(piece)
        stream.flush()


def _owner(policy_group: str, rm: str) -> dict[str, str]:
    """Return the parameters that name a configuration; raises `UsageError`."""
    if policy_group and rm:
        raise UsageError("expected --policy-group or --rm, not both")
    return {"policyGroup": policy_group, "rm": rm}


def _path(path: str, query: dict[str, str]) -> str:
    given = urlencode({key: value for key, value in query.items() if value})
    return f"{path}?{given}" if given else path


@click.command()
@click.argument("file", type=INPUT)
@click.option("--dry-run", is_flag=True, help="Only show what would change, and all problems.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask, also if queues or partitions disappear.")
@click.option("--policy-group", default="", metavar="NAME", help="Policy group of the configuration.")
@click.option("--rm", default="", metavar="ID", help="Change the own configuration of a resource manager.")
@click.option("--no-persist", is_flag=True, help="Leave the file of the service as it is.")
@click.option("--no-plan", is_flag=True, help="Show only the differences, without their effects.")
@server_options
def apply(
    file: Path,
    dry_run: bool,
    yes: bool,
    policy_group: str,
    rm: str,
    no_persist: bool,
    no_plan: bool,
    as_json: bool,
    **connection: Any,
) -> int:
    """Use the queues.yaml FILE in a running scheduler, after showing what it changes, and for whom.

    The FILE - is standard input. If a queue or partition disappears, a terminal is asked, and scripts need
    --yes. A change that was made by another since the comparison is not overwritten.

    Exit status: 0 when the configuration is in use (or a dry run has no problems), 1 when it has problems or
    was refused, 2 when the server did not answer or the options are wrong.
    """
    owner = _owner(policy_group, rm)
    found = ConfigInput.read(file)
    try:
        source = found.source()
    except ConfigError as error:
        raise InputError(found.name, error.problems) from error
    query = {**owner, "persist": "false" if no_persist else ""}
    given = _Given(found.name, source.text.encode() if source.is_embedded else found.data, source)
    planned = as_json or no_plan or file == DASH
    with connect(connection) as server:
        return _apply(
            server,
            given,
            query,
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
            show_effects=None if planned else partial(_show_effects, file, rm, connection),
        )


def _show_effects(file: Path, rm: str, connection: dict[str, Any]) -> None:
    """Print what `yunikorn plan` says about a configuration, or why it says nothing."""
    context = click.get_current_context().parent
    assert context is not None
    try:
        assert isinstance(context.command, click.Group)
        plan = context.command.get_command(context, "plan")
        if plan is not None:
            arguments = [str(file.absolute()), "--effects", *(["--rm", rm] if rm else [])]
            with plan.make_context("plan", arguments, parent=context) as inner:
                inner.params.update(connection)
                plan.invoke(inner)
    except YunikornError as error:
        remark(f"the effects of the change are not known: {error}")


@attrs.frozen
class _Given:
    """Configuration to apply."""

    name: str
    content: bytes
    source: LocatedText

    def describe(self, one: Record) -> str:
        """Return a problem that the server reports, with its place in the file."""
        problem = Problem(text(one, "path"), text(one, "message"), number(one, "line"), number(one, "column"))
        return describe(self.name, *self.source.located([problem]))


def _apply(
    server: RestConnection,
    given: _Given,
    query: dict[str, str],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    show_effects: Callable[[], None] | None,
) -> int:
    code, found = server.change("PUT", _path("config", {**query, "dryRun": "true"}), given.content, YAML)
    problems = records(found.get("problems"))
    if code == 200 and not problems and not as_json:
        _print_changes(found)
        if show_effects is not None and found.get("changes"):
            show_effects()
    if code != 200 or problems or dry_run:
        return _shown(code, found, given, as_json=as_json)
    removed = [text(one, "path") for one in records(found.get("changes")) if _is_dangerous(one)]
    if removed:
        needed = printable(f"{given.name} removes {', '.join(removed)}")
        if not confirmed("Apply this change?", yes=yes, needed=needed):
            echo("nothing changed", err=True)
            return FAILED
    checksum = text(found, "checksum")
    match = {"If-Match": f'"{checksum}"'} if checksum else {}
    code, found = server.change("PUT", _path("config", query), given.content, {**YAML, **match})
    if code == 200 and not as_json:
        echo(printable(_outcome(found)))
        return 0
    return _shown(code, found, given, as_json=as_json)


def _is_dangerous(change: Record) -> bool:
    """Return True if a queue or partition disappears."""
    return text(change, "change") == "removed" and not text(change, "key")


def _shown(code: int, found: Record, given: _Given, *, as_json: bool) -> int:
    """Print the result of a dry run or of a refusal, and return the exit status."""
    problems = records(found.get("problems"))
    if as_json:
        echo(json.dumps(found))
    elif problems:
        for one in problems:
            echo(printable(given.describe(one)), err=True)
    elif code == PRECONDITION_FAILED:
        echo(
            "Error: the configuration was changed by another since the comparison; nothing was applied."
            " Run the command again to see the present difference.",
            err=True,
        )
    elif code != 200:
        echo(printable(f"Error: {reason(found)}"), err=True)
    return 0 if code == 200 and not problems else FAILED


def _print_changes(found: Record) -> None:
    colours = has_colours(results())
    changes = records(found.get("changes"))
    for one in changes:
        sign, colour = SIGNS.get(text(one, "change"), ("?", "white"))
        for line in _change(one, sign):
            echo(click.style(printable(line), fg=colour) if colours else printable(line))
    if not changes:
        echo("nothing changes")


def _change(one: Record, sign: str) -> Iterator[str]:
    before, after = _value(one.get("before")), _value(one.get("after"))
    values = {"+": after, "-": before}.get(sign, f"{before or '(none)'} -> {after or '(none)'}")
    path = text(one, "path")
    # A queue or partition that comes or goes has its own name as value.
    shown = f": {values}" if values and not path.endswith(values) else ""
    yield f"{sign} {path}{shown}"
    if text(one, "note"):
        yield f"    {text(one, 'note')}"


def _value(value: object) -> str:
    found = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    return found if len(found) <= LONGEST_VALUE else f"{found[:LONGEST_VALUE]}..."


def _outcome(found: Record) -> str:
    """Return the result of an applied configuration in words."""
    count = len(records(found.get("changes")))
    changed = f"applied, {number_of(count, 'change')}" if count else "nothing changed"
    words = [changed, "the file of the service was replaced" if found.get("persisted") is True else ""]
    return "; ".join(filter(None, [*words, text(found, "note")]))
