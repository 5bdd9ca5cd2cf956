"""`yunikorn validate`: check configurations, and list all of their problems.

Output of `yunikorn validate`: text, JSON, SARIF 2.1.0, or workflow commands of GitHub.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import attrs
import click

from yunikorn import __version__
from yunikorn.config.load import Outcome
from yunikorn.errors import Problem, UsageError
from yunikorn.text import number_of
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import ConfigInput
from yunikorn_commands.input_files import UnreadableInput, hold
from yunikorn_commands.load_plugins import code_of_data, load_plugins_option
from yunikorn_commands.output import echo
from yunikorn_commands.path_types import INPUT
from yunikorn_lab.cluster_check import check_cluster
from yunikorn_lab.config_effects import check_effects

if TYPE_CHECKING:
    from yunikorn.config.load import ConfigCheck
    from yunikorn.resources import Tally


TEXT, JSON, SARIF, GITHUB = "text", "json", "sarif", "github"
FORMATS = (TEXT, JSON, SARIF, GITHUB)
RULES = {
    "problem": ("error", "The configuration is invalid."),
    "warning": ("warning", "The configuration is valid, but this is probably a mistake."),
    "note": ("note", "YuniKorn 1.9 refuses this, or treats it in another way."),
    "hint": ("note", "This has no effect in the cluster of --nodes."),
}
"""Level and meaning of the kinds of findings."""
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@attrs.frozen
class Checked:
    """A checked file."""

    file: Path
    name: str
    """Name in texts; standard input has none in the other formats, but `-`."""
    outcome: Outcome

    def findings(self) -> Iterator[tuple[str, Problem]]:
        """Yield all findings, with their kinds."""
        outcome = self.outcome
        lists = (outcome.problems, outcome.warnings, outcome.notes, outcome.hints)
        for kind, found in zip(RULES, lists, strict=True):
            for one in found:
                yield kind, one


def print_checked(checked: Sequence[Checked], form: str) -> None:
    """Print the results of all files."""
    if form == SARIF:
        echo(json.dumps(as_sarif(checked), indent=2, ensure_ascii=False))
        return
    for each in checked:
        if form == JSON:
            echo(json.dumps(_as_json(each), ensure_ascii=False))
        elif form == TEXT:
            echo(_as_text(each))
        else:
            for line in as_github(each):
                echo(line)


# -- text and JSON ----------------------------------------------------------------------------------------


def _as_json(checked: Checked) -> dict[str, Any]:
    outcome = checked.outcome
    return {
        "file": str(checked.file),
        "valid": outcome.valid,
        "problems": [_entry(problem) for problem in outcome.problems],
        "warnings": [_entry(found) for found in (*outcome.warnings, *outcome.notes, *outcome.hints)],
    }


def _entry(problem: Problem) -> dict[str, Any]:
    return {
        "path": problem.path,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
    }


def _as_text(checked: Checked) -> str:
    outcome = checked.outcome
    if outcome.valid:
        head = f"{checked.name}: valid"
    else:
        head = f"{checked.name}: invalid, {number_of(len(outcome.problems), 'problem')}"
    if outcome.warnings:
        head += f", {number_of(len(outcome.warnings), 'warning')}"
    lines = [head, *_listed("", outcome.problems), *_listed("warning: ", outcome.warnings)]
    return "\n".join([*lines, *_listed("note: ", outcome.notes), *_listed("hint: ", outcome.hints)])


def _listed(prefix: str, problems: Iterable[Problem]) -> list[str]:
    return [f"  {prefix}{problem}" for problem in problems]


# -- code scanning ----------------------------------------------------------------------------------------


def as_sarif(checked: Sequence[Checked]) -> dict[str, Any]:
    """Return the findings of all files as one run of SARIF 2.1.0."""
    rules = [
        {"id": kind, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
        for kind, (level, text) in RULES.items()
    ]
    tool = {"name": "yunikorn validate", "version": __version__, "rules": rules}
    results = [_result(each, kind, problem) for each in checked for kind, problem in each.findings()]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": tool}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _result(checked: Checked, kind: str, problem: Problem) -> dict[str, Any]:
    # A relative reference begins with no scheme, so that a colon in a name is written as %3A.
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(checked.file.as_posix())}}
    if problem.line:
        place["region"] = {"startLine": problem.line, "startColumn": max(problem.column, 1)}
    text = f"{problem.path}: {problem.message}" if problem.path else problem.message
    location: dict[str, Any] = {"physicalLocation": place}
    if problem.path:
        location["logicalLocations"] = [{"fullyQualifiedName": problem.path}]
    return {
        "ruleId": kind,
        "ruleIndex": list(RULES).index(kind),
        "level": RULES[kind][0],
        "message": {"text": text},
        "locations": [location],
    }


def as_github(checked: Checked) -> Iterator[str]:
    """Yield the findings of a file as workflow commands, and a last line for the log."""
    for kind, problem in checked.findings():
        level = RULES[kind][0].replace("note", "notice")
        values = {"file": checked.file.as_posix(), "title": "yunikorn validate"}
        if problem.line:
            values |= {"line": str(problem.line), "col": str(max(problem.column, 1))}
        text = f"{problem.path}: {problem.message}" if problem.path else problem.message
        given = ",".join(f"{name}={_property(value)}" for name, value in values.items())
        yield f"::{level} {given}::{_data(text)}"
    yield f"{_data(checked.name)}: {'valid' if checked.outcome.valid else 'invalid'}"


def _data(text: str) -> str:
    """Escape the text of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a value in the head of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


INVALID = 1
UNUSABLE = 2


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=INPUT)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help=(
        "Text; one line of JSON for each file; SARIF for code scanning; or workflow commands, which GitHub"
        " shows beside the lines of a change.  [default: text]"
    ),
)
@click.option("--fail-on-warning", is_flag=True, help="Exit with status 1 also if there are only warnings.")
@click.option(
    "--strict-yunikorn",
    "strict",
    is_flag=True,
    help="Also refuse what YuniKorn 1.9 would refuse or ignore, such as keys and plugins it does not have.",
)
@click.option(
    "--nodes",
    type=INPUT,
    help="Also compare guarantees, maxima and limits with these nodes: any file of `simulate --nodes`.",
)
@load_plugins_option
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    as_json: bool,
    form: str | None,
    fail_on_warning: bool,
    strict: bool,
    nodes: Path | None,
    load_plugins: tuple[Path | str, ...],
) -> None:
    """Check configurations: queues.yaml files, or ConfigMaps of Apache YuniKorn; - reads standard input.

    Every problem is listed with its place in the file. Warnings are about what is valid, but probably a
    mistake. Plugins that a configuration loads from files are not loaded here, because that runs their code,
    and names that they may offer are only warned of; see --load-plugins.

    Exit status: 0 when all files are valid, 1 when something is invalid (with --fail-on-warning: or has
    warnings), 2 when a file cannot be read or the options are invalid.
    """
    if as_json and form not in (None, JSON):
        raise UsageError(f"--json and --format {form} contradict each other: give one of them")
    registry = load_registry()
    checks: list[ConfigCheck] = [check_effects]
    if nodes is not None:
        checks.append(partial(check_cluster, _capacities(nodes)))
    checked: list[Checked] = []
    status = 0
    for file in files:
        try:
            given = ConfigInput.read(file)
        except UnreadableInput as error:
            echo(f"Error: {error}", err=True)
            status = UNUSABLE
            continue
        outcome = given.check(registry.permitting(code_of_data(file, load_plugins)), checks)
        if strict:
            outcome = outcome.strictly()
        checked.append(Checked(given.file, given.name, outcome))
        is_fine = outcome.valid and not (fail_on_warning and outcome.warnings)
        status = max(status, 0 if is_fine else INVALID)
    print_checked(checked, JSON if as_json else form or TEXT)
    context.exit(status)


def _capacities(nodes: Path) -> dict[str, Tally]:
    """Return for each partition and resource type the most that the nodes of a file have at any time."""
    # The reader of simulations, which only this option needs, takes a third of the start of the command.
    from yunikorn_lab.simulation.adjustments import largest_capacities
    from yunikorn_lab.simulation.reader import read_node_file

    cluster = read_node_file(hold(nodes))
    return largest_capacities(cluster.nodes, cluster.events)
