"""What stops a benchmark: it decided something wrong, or it could not be run."""

from __future__ import annotations


class BenchmarkFailure(Exception):
    """The text says what was expected and what came out; the numbers of such a run are worth nothing."""
