"""Options of commands that run simulations: their end, preempted tasks, and the folder of results."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError
from yunikorn.text import number_of
from yunikorn_commands.option_groups import Decorator
from yunikorn_history.time_words import parse_time as parse_past_time
from yunikorn_history.time_words import time_in_zone
from yunikorn_lab.simulation.scenario_values import parse_time
from yunikorn_lab.simulation.workload import PREEMPTED, RESTART

if TYPE_CHECKING:
    from yunikorn_lab.simulation.out_folder import OutFolder

Claim = Callable[..., AbstractContextManager["OutFolder"]]
"""Function that claims a folder of results; its context has the folder."""


class PastTime(int):
    """Time of the past (ms since 1970)."""

    def __str__(self) -> str:
        return time_in_zone(self, UTC)


def parse_moment(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Parse a time such as `36h` as the callback of an option; returns nanoseconds."""
    try:
        return None if value is None else parse_time(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def parse_date(_: click.Context, __: click.Parameter, value: str | None) -> PastTime | None:
    """Parse a time of the past such as `2026-03-01` as the callback of an option."""
    try:
        return None if value is None else PastTime(parse_past_time(value, SystemClock().now()))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _parse_end(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Parse a simulated time, or one of the past, which has a dash, a colon or begins with a letter."""
    is_past = value is not None and re.match(r"[a-z]|\d+[-:]\d", value.strip(), re.IGNORECASE)
    return (parse_date if is_past else parse_moment)(ctx, parameter, value)


def until_option(text: str) -> Decorator:
    """Return the option `--until`, with its help; it may be a `PastTime`, the end of a history."""
    text = f"{text}, or at this date of a history, such as 2026-11-01."
    return click.option("--until", metavar="TIME", callback=_parse_end, help=text)


preempted_option = click.option(
    "--preempted",
    type=click.Choice(PREEMPTED),
    default=RESTART,
    show_default=True,
    help="Default for applications that do not say what happens to their preempted tasks.",
)


def check_out(out: Path | None, what: str = "files", **given: bool) -> None:
    """Raise `UsageError` for the first option that is given although it applies to `--out` only."""
    for name in (name for name, is_given in given.items() if is_given and out is None):
        raise UsageError(f"--{name.replace('_', '-')} applies to the {what} of --out: give --out")


def taken_over(count: int) -> str:
    """Return the note about finished runs that were not repeated."""
    was = "was" if count == 1 else "were"
    return f"{number_of(count, 'finished run')} with the same input {was} taken over"


@contextlib.contextmanager
def claimed(claim: Claim, out: Path | None, *, force: bool) -> Iterator[OutFolder | None]:
    """Yield the claimed and prepared folder of the results; None without one."""
    if out is None:
        yield None
        return
    with claim(out, force=force) as folder:
        folder.prepare()
        yield folder
