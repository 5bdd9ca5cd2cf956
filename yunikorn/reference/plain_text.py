"""Conversion of the reference's Markdown to plain text, for descriptions in editors."""

from __future__ import annotations

import re

_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


def plain_text(markdown: str) -> str:
    """Return the text without links and without the escapes of tables."""
    return _LINK.sub(r"\1", markdown).replace("``", "`").replace("\\|", "|")
