"""Regular expressions in the syntax of RE2, which are matched in time linear in the text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from yunikorn.config.filters import compile_expression

compiled = lru_cache(maxsize=1024)(compile_expression)
"""Return a compiled expression. Raises `ValueError` with the reason."""


def matches(patterns: Iterable[str], name: str) -> bool:
    """Return True if an expression matches anywhere in a name."""
    return any(compiled(pattern).search(name) is not None for pattern in patterns)
