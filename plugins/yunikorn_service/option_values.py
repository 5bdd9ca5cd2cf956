"""Values of options of commands that run a service: times and sizes."""

from __future__ import annotations

import click

from yunikorn.clock import SECOND
from yunikorn.config.durations import parse_duration
from yunikorn.errors import QuantityError
from yunikorn.quantities import parse_quantity

OFF = "off"
NEVER = "never"
SMALLEST_PART = "64Ki"
"""Minimum size at which a recording may continue in another file."""


def parse_seconds(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """Return a time such as `5m` in seconds; None for `never` or no value."""
    if value is None or value == NEVER:
        return None
    try:
        return seconds_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def seconds_of(text: str) -> float:
    """Return a time such as `5m` in seconds; raises `ValueError`."""
    nanoseconds = parse_duration(text)
    if nanoseconds <= 0:
        raise ValueError(f"has to be longer than 0s, not {text}")
    return nanoseconds / SECOND


def parse_bytes(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Return a size such as `1Gi` in bytes; None for no value."""
    try:
        return None if value is None else bytes_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def bytes_of(text: str, least: str = SMALLEST_PART) -> int:
    """Return a size such as `1Gi` in bytes; raises `ValueError` for one below the `least`, too."""
    try:
        size = parse_quantity("bytes", text)
    except QuantityError as error:
        raise ValueError(str(error)) from error
    if size < parse_quantity("bytes", least):
        raise ValueError(f"has to be at least {least}, not {text}")
    return size
