"""Texts for people: suggestions for misspelled names, lists, numbers, and Markdown as plain text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggest(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'x'?` if a known name is similar (ignoring case), else an empty text.

    A known path that is the only one with this last part is similar as well: `root.web` to `web`.
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    if not close:
        close = [candidate for candidate in by_lower if candidate.endswith(f".{name.lower()}")]
        close = close if len(close) == 1 and name else []
    return f", did you mean '{by_lower[close[0]]}'?" if close else ""


MOST_LISTED = 30
"""Largest number of names in a message."""


def listed(names: Iterable[str], most: int = MOST_LISTED) -> str:
    """Return names with commas, at most `most` of them and the number of the others; `none` for no names."""
    known = list(names)
    shown = ", ".join(known[:most]) or "none"
    return f"{shown} and {len(known) - most} more" if len(known) > most else shown


def number_of(count: int, noun: str) -> str:
    """Return a number with its noun: `1 task` or `3 tasks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
