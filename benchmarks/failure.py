"""Failure of a benchmark."""

from __future__ import annotations


class BenchmarkFailure(Exception):
    """Wrong decision of the scheduler, or an error of the run; the figures of such a run are invalid."""
