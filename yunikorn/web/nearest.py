"""Names that are similar to an unknown one."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Iterable
from itertools import islice

COMPARED = 200
"""Largest number of names that are compared in detail."""
MOST = 20_000
"""Largest number of names that are looked at."""
LONGEST = 200
"""Number of characters of a name that are compared."""
SHOWN = 5
"""Largest number of names in an answer."""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that are most similar to a name, best first.

    A comparison in detail takes a tenth of a millisecond. Of many names, only those are compared that have
    most characters in common with the name at their begin and end.
    """
    wanted = name.lower()[:LONGEST]
    some = islice(known, MOST)
    candidates = heapq.nlargest(COMPARED, some, key=lambda one: _likeness(wanted, one.lower()))
    by_lower = {one.lower(): one for one in reversed(candidates)}
    close = difflib.get_close_matches(wanted, list(by_lower), n=SHOWN, cutoff=0.6)
    inside = [one for one in by_lower if wanted and wanted in one and one not in close]
    return [by_lower[one] for one in [*close, *inside[: SHOWN - len(close)]]]


def _likeness(wanted: str, one: str) -> tuple[int, int]:
    """Return the number of characters that two names share at their begin and end; more is nearer."""
    if wanted and wanted in one:
        return len(wanted), -len(one)
    same = 0
    for left, right in zip(wanted, one, strict=False):
        if left != right:
            break
        same += 1
    end = 0
    for left, right in zip(reversed(wanted[same:]), reversed(one[same:]), strict=False):
        if left != right:
            break
        end += 1
    return same + end, -abs(len(wanted) - len(one))
