"""`yunikorn place`: show the queue and placement rule of an application, or why it is rejected.

The applications come from options or from a file of JSON lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from yunikorn.config.document import decode
from yunikorn.errors import ConfigError, Problem, UsageError, printable
from yunikorn.framework.options import UNKNOWN_KEY, faults, make_converter, show
from yunikorn.text import suggest
from yunikorn_commands.config_input import ConfigInput, folder_of
from yunikorn_commands.input_files import name_of, read_input
from yunikorn_commands.input_source import InputError
from yunikorn_commands.output import echo
from yunikorn_commands.path_types import INPUT
from yunikorn_commands.plugin_files import trusting

if TYPE_CHECKING:
    from yunikorn_lab.placement_dry_run import PlacementAnswer, PlacementDryRun


@attrs.frozen
class PlacementQuery:
    """Application as submitted by a user."""

    id: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    queue: str = ""
    tags: dict[str, str] = attrs.field(factory=dict)
    partition: str = ""


def read_submissions(text: str) -> list[PlacementQuery]:
    """Parse one application per line, skipping blank lines; the default id is `line-N`.

    Raises `ConfigError` with all invalid lines and their numbers.
    """
    submissions: list[PlacementQuery] = []
    problems: list[Problem] = []
    converter = make_converter()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            written = _object(line)
            submission = converter.structure(written, PlacementQuery)
        except ValueError as error:
            problems.append(Problem("", str(error), number))
        except Exception as error:
            problems += [
                Problem(path.lstrip("."), _explain(path, message), number) for path, message in faults(error)
            ]
        else:
            submissions.append(attrs.evolve(submission, id=submission.id or f"line-{number}"))
    if problems:
        raise ConfigError(problems)
    return submissions


def _object(line: str) -> dict[str, Any]:
    try:
        written = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise ValueError("not an application: nested too deep") from None
    if not isinstance(written, dict):
        raise ValueError(f"expected an object, got {show(written)}")
    return {key: value for key, value in written.items() if value is not None}


def _explain(path: str, message: str) -> str:
    if message != UNKNOWN_KEY:
        return message
    known = [field.name for field in attrs.fields(PlacementQuery)]
    return f"{message}{suggest(path.lstrip('.'), known)}; known: {', '.join(known)}"


REJECTED = 1


@click.command(name="place")
@click.option(
    "--config",
    "config_file",
    required=True,
    type=INPUT,
    metavar="FILE",
    help="The queues.yaml; - is standard input.",
)
@click.option("--user", help="The user who submits the application.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="A group of the user; may repeat.")
@click.option("--queue", help="The requested queue.")
@click.option(
    "--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A tag of the application; may repeat."
)
@click.option("--partition", help="The partition; `default` if not given.")
@click.option(
    "--apps",
    "apps_file",
    type=INPUT,
    metavar="FILE",
    help="Applications to place, one JSON object per line; - is standard input.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per application and line.")
@click.pass_context
def command(
    ctx: click.Context,
    config_file: Path,
    user: str | None,
    groups: tuple[str, ...],
    queue: str | None,
    tags: tuple[str, ...],
    partition: str | None,
    apps_file: Path | None,
    as_json: bool,
) -> None:
    """Show the queue an application would be placed in, by which rule, or why it is rejected.

    With --apps many applications are placed in order on one scheduler, so that a queue created for one exists
    for the next. Exit status: 0 accepted, and with --apps all answered; 1 rejected; 2 the call, the
    configuration or the file of applications cannot be used.
    """
    single = (user, queue, partition) != (None, None, None) or groups or tags
    if apps_file is not None and single:
        raise click.UsageError(
            "--apps has its own users, groups, queues, tags and partitions: remove the other options."
        )
    if apps_file is None and user is None:
        raise click.UsageError("Give the user with --user, or a file of applications with --apps.")
    submissions = (
        _read_apps(apps_file)
        if apps_file is not None
        else [
            PlacementQuery("application", user or "", groups, queue or "", _read_tags(tags), partition or "")
        ]
    )
    dry_run = _open_dry_run(config_file)
    answers = (
        dry_run.ask(each.id, each.user, each.groups, each.queue, each.tags, each.partition)
        for each in submissions
    )
    accepted = _print_all(answers, as_json=as_json, in_full=apps_file is None)
    ctx.exit(0 if accepted or apps_file is not None else REJECTED)


# -- input --------------------------------------------------------------------------------------------


def _read_apps(file: Path) -> list[PlacementQuery]:
    try:
        text = decode(read_input(file))
    except ConfigError as error:
        raise InputError(name_of(file), error.problems) from None
    if not text.strip():
        echo(f"note: {name_of(file)} contains no applications", err=True)
    try:
        return read_submissions(text)
    except ConfigError as error:
        lines = "\n".join(f"  {problem}" for problem in error.problems)
        raise UsageError(
            f"{name_of(file)}: not all lines are applications, nothing was placed\n{lines}"
        ) from None


def _read_tags(tags: Iterable[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for tag in tags:
        key, equals, value = tag.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"'{tag}' is not KEY=VALUE.", param_hint="--tag")
        pairs[key] = value
    return pairs


def _open_dry_run(file: Path) -> PlacementDryRun:
    # Imported here, so that an invalid call is reported without loading the scheduler.
    from yunikorn_commands.allowed_plugins import load_registry
    from yunikorn_lab.placement_dry_run import PlacementDryRun

    found, source = ConfigInput.read(file), None
    try:
        source = found.source()
        return PlacementDryRun(source.text, trusting(load_registry(), folder_of(file)))
    except ConfigError as error:
        problems = error.problems if source is None else source.located(error.problems)
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise UsageError(f"{name_of(file)}: not a valid configuration\n{lines}") from None


# -- output -------------------------------------------------------------------------------------------


def _print_all(answers: Iterator[PlacementAnswer], *, as_json: bool, in_full: bool) -> bool:
    """Print each answer; returns True if the last application was accepted."""
    accepted = False
    for answer in answers:
        accepted = answer.accepted
        if as_json:
            echo(json.dumps(as_data(answer), ensure_ascii=False))
        else:
            echo("\n".join(map(printable, as_lines(answer, in_full=in_full))))
    return accepted


def as_data(answer: PlacementAnswer) -> dict[str, Any]:
    """Return the answer as JSON data."""
    whole = {name: getattr(answer, name) for name in ("id", "accepted", "queue", "rule", "reason")}
    fields = ("number", "rule", "outcome", "queue", "reason")
    return {**whole, "steps": [{name: getattr(step, name) for name in fields} for step in answer.steps]}


def _in_short(answer: PlacementAnswer) -> str:
    """Return the reason without the parts that its line contains already."""
    reason = answer.reason.removeprefix(f"failed to place application {answer.id}: ")
    return reason.removeprefix("application rejected: ")


def as_lines(answer: PlacementAnswer, *, in_full: bool) -> list[str]:
    """Return the answer as lines of text; `in_full` adds the outcome of each rule."""
    if answer.accepted:
        lines = [f"{answer.id}: {answer.queue}, by rule {answer.steps[-1].number} ({answer.rule})"]
    else:
        lines = [f"{answer.id}: rejected: {_in_short(answer)}"]
    if in_full and answer.steps:
        rows = [
            (f"{step.number} {step.title}", step.outcome, step.queue or step.reason) for step in answer.steps
        ]
        rows.insert(0, ("rule", "outcome", "queue or reason"))
        first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
        lines.append("")
        lines += [f"  {rule:<{first}}  {outcome:<{second}}  {text}" for rule, outcome, text in rows]
    return lines
