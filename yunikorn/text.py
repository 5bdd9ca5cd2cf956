"""Texts for people: suggestions for misspelled names, and Markdown as plain text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def suggest(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'x'?` if a known name is similar (ignoring case), else an empty text."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return f", did you mean '{by_lower[close[0]]}'?" if close else ""


_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


def plain_text(markdown: str) -> str:
    """Return the text without links and without the escapes of tables."""
    return _LINK.sub(r"\1", markdown).replace("``", "`").replace("\\|", "|")
