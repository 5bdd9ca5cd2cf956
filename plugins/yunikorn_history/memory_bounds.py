"""Loss of rows when the memory of a recorder is full, because the database is away for long.

Only what began and ended meanwhile is lost, and as a whole: whatever has a row in the database also gets its
end. What runs is kept, as the core keeps it in memory anyway.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from yunikorn_history.open_rows import OpenAllocation, OpenApplication

MOST_REMEMBERED = 10_000
"""Number of events that are remembered until another one of the same key."""


def remember(known: dict[Any, Any], key: Any, value: Any) -> None:
    """Note a value until the next event of its key, which may never come."""
    known[key] = value
    if len(known) > MOST_REMEMBERED:
        del known[next(iter(known))]


def lose_oldest(
    allocations: dict[OpenAllocation, None],
    applications: dict[OpenApplication, None],
    most_allocations: int,
    most_applications: int,
) -> int:
    """Remove the oldest changed rows beyond the bounds, and a tenth more; return how many were removed."""
    lost = 0
    excess = _excess(len(applications), most_applications)
    if excess:
        ended = (app for app in applications if app.ended is not None and not app.is_written)
        gone = dict.fromkeys(islice(ended, excess))
        lost += _remove(applications, [*gone])
        # No row of an application that is lost was written, so that none of its allocations was.
        lost += _remove(allocations, [one for one in allocations if one.app in gone])
    excess = _excess(len(allocations), most_allocations)
    if excess:
        found = (one for one in allocations if one.ended is not None and not one.is_written)
        lost += _remove(allocations, [*islice(found, excess)])
    return lost


def _excess(size: int, most: int) -> int:
    return size - most + most // 10 if size > most else 0


def _remove(changed: dict[Any, None], found: list[Any]) -> int:
    for one in found:
        del changed[one]
    return len(found)
