"""Detection of the build of the scheduler: pure Python, or with its core modules compiled (see setup.py)."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec

PURE, COMPILED = "pure Python", "compiled"
DECIDES = "yunikorn.scheduling.cycle"
"""Module that is compiled in every compiled build."""


def kind_of_build() -> str:
    """Return `PURE` or `COMPILED`."""
    spec = find_spec(DECIDES)
    file = (spec.origin if spec is not None else None) or ""
    return COMPILED if file.endswith(tuple(EXTENSION_SUFFIXES)) else PURE
