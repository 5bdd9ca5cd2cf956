"""Applications to be placed by `yunikorn place`, from options or from a file of JSON lines."""

from __future__ import annotations

import json
from typing import Any

import attrs

from yunikorn.errors import ConfigError, Problem
from yunikorn.framework.options import UNKNOWN_KEY, faults, make_converter, show
from yunikorn.text import suggest


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
