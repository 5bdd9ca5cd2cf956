"""Log entries about configurations that cannot be used.

The configuration of an RM is secret: the log gets the place and kind of each problem, but neither keys nor
values. The caller gets the complete problems in the `ConfigError`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from yunikorn.errors import ConfigError, printable

if TYPE_CHECKING:
    from yunikorn.errors import Problem

LOGGED = 20
"""Maximum number of logged problems per refused configuration; of the others only the number is logged."""
KINDS = {
    "this is not valid YAML": "not valid YAML",
    "unknown key": "an unknown key",
    "is given twice": "a key is given twice",
    "required, but missing": "a key is missing",
    "expected a ": "a value of another type",
}
"""Kinds of problems, by a text that their messages contain."""
OTHER = "a value that cannot be used"

_log = logging.getLogger("yunikorn.config")
_caller_logs = ContextVar("caller_logs", default=False)
"""True while the caller of the registration logs the reason of its failure."""


def log_refusal(label: str, error: ConfigError, *, secret: bool = True) -> None:
    """Log that the configuration of `label` stays in use, since the new one cannot be used."""
    problems = places_and_kinds(error) if secret else str(error)
    _log.error(
        "%s: the new configuration cannot be used, the current one stays in use: %s",
        printable(label),
        problems,
    )


@contextlib.contextmanager
def refused_registration_logged(rm_id: str, *, secret: bool) -> Iterator[None]:
    """Log a `ConfigError` raised within this context as the reason of a refused registration."""
    try:
        yield
    except ConfigError as error:
        if not _caller_logs.get():
            problems = places_and_kinds(error) if secret else str(error)
            text = "resource manager %s: the registration was refused, the configuration cannot be used: %s"
            _log.error(text, printable(rm_id), problems)
        raise


@contextlib.contextmanager
def refused_registration_logged_by_caller() -> Iterator[None]:
    """Leave the logging of refused registrations in this context to the caller, which has more details."""
    before = _caller_logs.set(True)
    try:
        yield
    finally:
        _caller_logs.reset(before)


def places_and_kinds(error: ConfigError) -> str:
    """Return the place and kind of each problem, without any text of the configuration."""
    shown = [_place_and_kind(problem) for problem in error.problems[:LOGGED]]
    if len(error.problems) > LOGGED:
        shown.append(f"and {len(error.problems) - LOGGED} more")
    return "; ".join(shown)


def _place_and_kind(problem: Problem) -> str:
    place = f"line {problem.line}, column {problem.column}: " if problem.line else ""
    kind = next((kind for mark, kind in KINDS.items() if mark in problem.message), OTHER)
    return place + kind
