"""Rows of applications in lists."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable

import attrs

from yunikorn.model.application import Application
from yunikorn_rest import shapes
from yunikorn_rest.application_reader import read_summary

STEP = 500
"""Number of requests that are counted without a pause."""
ROWS = 10
"""Number of applications that are read without a pause."""


@attrs.frozen(kw_only=True)
class AppRow:
    """An application in a list."""

    application: shapes.Application
    running: int
    """Number of allocations."""
    waiting: int
    """Number of allocations that it waits for."""


def count_waiting(app: Application) -> Generator[None, None, int]:
    """Count the pending allocations of an application."""
    total = 0
    for index, ask in enumerate(list(app.asks.values())):
        total += ask.pending
        if index % STEP == STEP - 1:
            yield
    return total


def read_rows(
    chosen: Iterable[Application], is_known: Callable[[Application], bool], partition: str
) -> Generator[None, None, list[AppRow]]:
    """Read rows of applications; those that are no longer known are left out."""
    found: list[AppRow] = []
    for app in chosen:
        if not is_known(app):
            continue
        running, shape = len(app.allocations), read_summary(app, partition)
        waiting = yield from count_waiting(app)
        found.append(AppRow(application=shape, running=running, waiting=waiting))
        if len(found) % ROWS == 0:
            yield
    return found
