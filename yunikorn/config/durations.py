"""Durations in Go syntax, such as `1h30m` or `500ms`, in nanoseconds."""

from __future__ import annotations

import re
from fractions import Fraction

from yunikorn.resources import INT64_MAX

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile("([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")


def parse_duration(text: str) -> int:
    """Return a duration in nanoseconds, negative with a leading `-`. Raises `ValueError`."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    total, position = 0, 0
    while part := _PART.match(body, position):
        total += _amount(part[1].rstrip("."), _UNITS[part[2]])
        position = part.end()
    if not body or position != len(body):
        raise ValueError(f"expected a duration such as 30s, 500ms or 1h30m, got {text!r}")
    if total > INT64_MAX:
        raise ValueError(f"the duration {text} is too long, at most about 292 years fit")
    return -total if text[0] == "-" else total


def describe_duration(nanoseconds: int) -> str:
    """Return a duration in seconds for messages, such as `90s` or `0.5s`."""
    return f"{nanoseconds / _UNITS['s']:.12g}s"


def spell_duration(nanoseconds: int) -> str:
    """Return a duration that `parse_duration` reads back exactly, such as `1h2m0.5s`, `10m` or `0s`."""
    minutes, rest = divmod(nanoseconds, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    whole, fraction = divmod(rest, _UNITS["s"])
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else ""]
    if rest or not nanoseconds:
        parts.append(f"{whole}.{fraction:09}".rstrip("0").rstrip(".") + "s")
    return "".join(parts)


def _amount(number: str, unit: int) -> int:
    whole, _, fraction = number.partition(".")
    # Further digits do not matter (fraction) or cannot fit (whole), and int() refuses very long texts.
    return int(Fraction(f"{whole.lstrip('0')[:20] or '0'}.{fraction[:30] or '0'}") * unit)
