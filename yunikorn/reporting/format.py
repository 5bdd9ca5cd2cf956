"""Figures as people read them, the same in tables and on pages."""

from __future__ import annotations

from yunikorn.config.quantities import in_words
from yunikorn.simulation.report_rows import duration

NONE = "-"


def spell_time(seconds: float | None) -> str:
    """`3h 4m`, or `-`."""
    return NONE if seconds is None else duration(seconds)


def percent(share: float | None) -> str:
    """`12 %`; below ten with a decimal, where it says something."""
    if share is None:
        return NONE
    value = share * 100
    return f"{value:.1f} %" if 0 < abs(value) < 9.95 else f"{value:.0f} %"


def ratio(number: float | None) -> str:
    """`1.53`, `27.5`, `1,234`."""
    if number is None:
        return NONE
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def index(number: float | None) -> str:
    """An index from 0 to 1, with two places; `-` if there is none."""
    return NONE if number is None else f"{number:.2f}"


def amount(name: str, value: int) -> str:
    """`vcore 4`, `memory 4Gi`."""
    return in_words({name: value})
