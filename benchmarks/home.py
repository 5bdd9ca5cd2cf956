"""Location of the measured scheduler: the checkout, or the installed package."""

from __future__ import annotations

from pathlib import Path

import yunikorn

BENCHMARKS = Path(__file__).parent
HOME = Path(yunikorn.__file__).parent.parent
"""Folder of the measured package; a process started there imports the same package."""


def program() -> list[str]:
    """Return the Python arguments that run the benchmarks in `HOME`."""
    return ["-m", "benchmarks"] if BENCHMARKS.parent == HOME else [str(BENCHMARKS)]
