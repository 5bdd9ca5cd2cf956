"""Markdown of the reference as plain text, as editors show descriptions."""

from __future__ import annotations

import re

_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


def plain_text(markdown: str) -> str:
    """Without links and marks; escapes of tables undone."""
    return _LINK.sub(r"\1", markdown).replace("``", "`").replace("\\|", "|")
