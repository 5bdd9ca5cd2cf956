"""`yunikorn validate`: check queues.yaml files, and list all of their problems."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from yunikorn.cli.input_checks import folder_of
from yunikorn.cli.installed import load_registry
from yunikorn.cli.output import echo
from yunikorn.config.load import Outcome, check_config
from yunikorn.errors import Problem

INVALID = 1
UNUSABLE = 2
STANDARD_INPUT = "-"


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file, each on one line.")
@click.option(
    "--strict-yunikorn",
    "strict",
    is_flag=True,
    help="Also refuse what YuniKorn 1.9 would refuse or ignore, such as keys and plugins it does not have.",
)
@click.pass_context
def command(context: click.Context, files: tuple[str, ...], as_json: bool, strict: bool) -> None:
    """Check queues.yaml files; - reads standard input.

    Every problem is listed with its place in the file. Exit status: 0 when all files are valid, 1 when
    something is invalid, 2 when a file cannot be read or the options are invalid.
    """
    registry = load_registry()
    status = 0
    for file in files:
        try:
            data = _read(file)
        except OSError as error:
            echo(f"Error: {file}: {error.strerror or error}", err=True)
            status = UNUSABLE
            continue
        outcome = check_config(data, registry.trusting(folder_of(file)))
        if strict:
            outcome = outcome.strictly()
        echo(_as_json(file, outcome) if as_json else _as_text(file, outcome))
        status = max(status, 0 if outcome.valid else INVALID)
    context.exit(status)


def _read(file: str) -> bytes:
    with click.open_file(file, "rb") as stream:
        data: bytes = stream.read()
    return data


def _as_json(file: str, outcome: Outcome) -> str:
    return json.dumps(
        {
            "file": file,
            "valid": outcome.valid,
            "problems": [_entry(problem) for problem in outcome.problems],
            "warnings": [_entry(problem) for problem in (*outcome.warnings, *outcome.notes)],
        },
        ensure_ascii=False,
    )


def _entry(problem: Problem) -> dict[str, Any]:
    return {
        "path": problem.path,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
    }


def _as_text(file: str, outcome: Outcome) -> str:
    name = "standard input" if file == STANDARD_INPUT else file
    if outcome.valid:
        head = f"{name}: valid"
    else:
        head = f"{name}: invalid, {_counted(len(outcome.problems), 'problem')}"
    if outcome.warnings:
        head += f", {_counted(len(outcome.warnings), 'warning')}"
    lines = [head, *_listed("", outcome.problems), *_listed("warning: ", outcome.warnings)]
    return "\n".join([*lines, *_listed("note: ", outcome.notes)])


def _listed(prefix: str, problems: Iterable[Problem]) -> list[str]:
    return [f"  {prefix}{problem}" for problem in problems]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
