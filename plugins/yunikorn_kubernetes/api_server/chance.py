"""Random numbers that spread the retries of many clients over time; no decision depends on them."""

from __future__ import annotations

import os
from random import Random
from typing import Protocol


class RandomSource(Protocol):
    """Source of random numbers."""

    def uniform(self, a: float, b: float) -> float:
        """Return a number between `a` and `b`."""
        ...


def seeded(seed: int) -> RandomSource:
    """Return a source with a fixed sequence, for tests."""
    return Random(seed)


def from_system() -> RandomSource:
    """Return a source whose seed comes from the operating system, for a running service."""
    return Random(int.from_bytes(os.urandom(16), "big"))
