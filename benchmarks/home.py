"""Which scheduler is measured: the checkout's, or the one that is installed for the Python that runs this."""

from __future__ import annotations

from pathlib import Path

import yunikorn

BENCHMARKS = Path(__file__).parent
HOME = Path(yunikorn.__file__).parent.parent
"""Where it was found; a process that is started there finds the same."""


def program() -> list[str]:
    """How a Python that is started in `HOME` is told to run the benchmarks."""
    return ["-m", "benchmarks"] if BENCHMARKS.parent == HOME else [str(BENCHMARKS)]
