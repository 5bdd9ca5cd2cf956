"""Times of the simulation on the command line."""

from __future__ import annotations

import click

from yunikorn.simulation.scenario_values import parse_time


def parse_moment(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Parse a time such as `36h` as the callback of an option; returns nanoseconds."""
    try:
        return None if value is None else parse_time(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
