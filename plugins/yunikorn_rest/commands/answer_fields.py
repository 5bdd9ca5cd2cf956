"""Fields of JSON objects in answers, and their texts for people.

Nothing is assumed about an answer but that it is JSON: a field of another type counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from yunikorn.clock import SECOND
from yunikorn.errors import printable
from yunikorn.quantities import MEMORY, VCORE, ordered
from yunikorn_rest.time_texts import in_milliseconds

NONE = "-"
"""Text of an absent value."""
UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
DEEPEST = 64
"""Largest depth of a tree of queues that is read."""


# -- access ----------------------------------------------------------------------------------------------


def text(record: Mapping[str, Any], field: str) -> str:
    """Return a text; empty if it is absent."""
    value = record.get(field)
    return value if isinstance(value, str) else ""


def number(record: Mapping[str, Any], field: str) -> int:
    """Return a whole number; 0 if it is absent."""
    value = record.get(field)
    return value if type(value) is int else 0


def app_state(app: Mapping[str, Any]) -> str:
    """Return the state of an application, or of its entry in a log of states.

    `applicationState` is as in YuniKorn 1.9; where ours differs, the server adds `designState`.
    """
    return text(app, "designState") or text(app, "applicationState")


def amounts(record: Mapping[str, Any], field: str) -> dict[str, int]:
    """Return amounts by resource type; empty if they are absent."""
    value = record.get(field)
    if not isinstance(value, dict):
        return {}
    return {name: amount for name, amount in value.items() if type(amount) is int}


def records(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list; empty if the value is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts(value: object) -> list[str]:
    """Return the texts of a list; empty if the value is no list."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def children(root: object, depth: int = DEEPEST) -> Iterator[dict[str, Any]]:
    """Yield an object and those below it (`children`), parents first."""
    if isinstance(root, dict) and depth:
        yield root
        for child in records(root.get("children")):
            yield from children(child, depth - 1)


# -- texts for people ------------------------------------------------------------------------------------


def amount_text(name: str, value: int) -> str:
    """Return an amount rounded for people: vcores, memory as `1.5Gi`, anything else as it is."""
    sign, size = ("-" if value < 0 else ""), abs(value)
    if name == VCORE:
        whole, thousandths = divmod(size, 1000)
        return f"{sign}{whole}" + (f".{thousandths:03}".rstrip("0") if thousandths else "")
    if name != MEMORY:
        return str(value)
    unit = 0
    while unit + 1 < len(UNITS) and tenths(size, unit) >= 10240:
        unit += 1
    whole, tenth = divmod(tenths(size, unit), 10)
    return f"{sign}{whole}" + (f".{tenth}" if tenth else "") + UNITS[unit]


def tenths(size: int, unit: int) -> int:
    """Return a size in tenths of a unit (1024 to its power), rounded; exact for bytes."""
    scale: int = 1024**unit
    return (20 * size + scale) // (2 * scale)


def in_short(found: Mapping[str, int]) -> str:
    """Return amounts as `vcore 2, memory 1.5Gi`, without those of 0."""
    words = [f"{name} {amount_text(name, found[name])}" for name in ordered(found) if found[name]]
    return ", ".join(words) or NONE


def share(used: Mapping[str, int], of: Mapping[str, int], name: str) -> str:
    """Return `USED/SIZE` of a resource type; the size is `-` without a value."""
    size = amount_text(name, of[name]) if name in of else NONE
    return f"{amount_text(name, used.get(name, 0))}/{size}"


def age(moment: int, now: int) -> str:
    """Return the time since a moment (ns) as `5s`, `12m`, `3h20m` or `4d`; `-` if it is absent."""
    if moment <= 0:
        return NONE
    seconds = max(0, now - moment) // SECOND
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 2 * 3600:
        return f"{seconds // 60}m"
    if seconds < 48 * 3600:
        return f"{seconds // 3600}h{seconds // 60 % 60}m"
    return f"{seconds // 86400}d"


def time_text(moment: int) -> str:
    """Return a time (ns since 1970) as `2026-01-31T12:00:00.000Z`; `-` if it is absent."""
    if moment <= 0:
        return NONE
    try:
        return in_milliseconds(moment)
    except (OverflowError, ValueError, OSError):
        return NONE


def shown(value: str) -> str:
    """Return a foreign text without characters that control a terminal; `-` if it is empty."""
    return printable(value) or NONE
