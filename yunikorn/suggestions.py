"""What somebody may have meant by a name that nobody knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggest(name: str, known: Iterable[str]) -> str:
    """`, did you mean 'x'?` when something known is close (ignoring case), else nothing."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return f", did you mean '{by_lower[close[0]]}'?" if close else ""
