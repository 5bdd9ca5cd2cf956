"""Formats of numbers in reports."""

from __future__ import annotations

from collections.abc import Callable

Format = Callable[[float | None], str]
NONE = "-"


class Number(str):
    """Text of a number in a table, with the number by which a page sorts it; None sorts last."""

    value: float | None

    def __new__(cls, format: Format, value: float | None) -> Number:
        """Format a number."""
        made = super().__new__(cls, format(value))
        made.value = value
        return made


def duration(seconds: float | None) -> str:
    """Format seconds as `2d 3h 4m`, `3h 4m`, `4m 5s` or `5.2s`, depending on the magnitude."""
    if seconds is None:
        return NONE
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds % 1 else f"{seconds:.0f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60}s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60}h {minutes % 60}m"
    return f"{minutes // 1440}d {minutes // 60 % 24}h {minutes % 60}m"


def whole_percent(share: float | None) -> str:
    """Return a percentage such as `46%`."""
    return NONE if share is None else f"{share:.0%}"


def percent(share: float | None) -> str:
    """Return a percentage such as `12 %`, with a decimal for values below ten."""
    if share is None:
        return NONE
    value = share * 100
    return f"{value:.1f} %" if 0 < abs(value) < 9.95 else f"{value:.0f} %"


def ratio(number: float | None) -> str:
    """Return a number such as `1.53`, `27.5` or `1,234`."""
    if number is None:
        return NONE
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def index(number: float | None) -> str:
    """Return an index from 0 to 1 with two decimals."""
    return NONE if number is None else f"{number:.2f}"


def count(number: float | None) -> str:
    """Return a count of one run as it is, and a mean of counts such as `1,234` or `1,234.5`."""
    if number is None or isinstance(number, int):
        return NONE if number is None else str(number)
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"
