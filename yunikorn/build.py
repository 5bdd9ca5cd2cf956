"""Which build of the scheduler this is: pure Python, or with the modules that decide compiled (setup.py)."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec

PURE, COMPILED = "pure Python", "compiled"
DECIDES = "yunikorn.scheduling.cycle"
"""A module that is compiled if any is."""


def kind_of_build() -> str:
    """`PURE` or `COMPILED`."""
    spec = find_spec(DECIDES)
    file = (spec.origin if spec is not None else None) or ""
    return COMPILED if file.endswith(tuple(EXTENSION_SUFFIXES)) else PURE
