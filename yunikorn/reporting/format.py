"""Formatting of figures, shared by tables and pages."""

from __future__ import annotations

from yunikorn.config.quantities import in_words
from yunikorn.simulation.report import duration

NONE = "-"


def spell_time(seconds: float | None) -> str:
    """Return a duration such as `3h 4m`, or `-`."""
    return NONE if seconds is None else duration(seconds)


def percent(share: float | None) -> str:
    """Return a percentage such as `12 %`, with a decimal for values below ten, or `-`."""
    if share is None:
        return NONE
    value = share * 100
    return f"{value:.1f} %" if 0 < abs(value) < 9.95 else f"{value:.0f} %"


def ratio(number: float | None) -> str:
    """Return a number such as `1.53`, `27.5` or `1,234`, or `-`."""
    if number is None:
        return NONE
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def index(number: float | None) -> str:
    """Return an index from 0 to 1 with two decimals, or `-`."""
    return NONE if number is None else f"{number:.2f}"


def amount(name: str, value: int) -> str:
    """Return an amount such as `vcore 4` or `memory 4Gi`."""
    return in_words({name: value})
