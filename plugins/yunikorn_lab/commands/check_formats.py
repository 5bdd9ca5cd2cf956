"""Output of `yunikorn validate`: text, JSON, SARIF 2.1.0, or workflow commands of GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs

from yunikorn import __version__
from yunikorn.config.load import Outcome
from yunikorn.errors import Problem
from yunikorn.text import number_of
from yunikorn_commands.output import echo

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
