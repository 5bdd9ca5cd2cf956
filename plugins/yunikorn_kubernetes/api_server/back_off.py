"""Exponential back-off with jitter, on the clock of the event loop.

Random numbers spread the retries of many clients over time; no decision depends on them.
"""

from __future__ import annotations

import asyncio
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


class BackOff:
    """Delays between attempts: one to two times `first` seconds, doubled up to `largest`.

    The delay begins at `first` again after `healthy` seconds without a failure. Defaults are those of
    reflectors in client-go, so that many clients do not return at the same moment after an outage.
    """

    def __init__(
        self, random: RandomSource, *, first: float = 0.8, largest: float = 30.0, healthy: float = 120.0
    ) -> None:
        self._random = random
        self._first = first
        self._largest = largest
        self._healthy = healthy
        self._next = first
        self._failed_at: float | None = None

    def next_delay(self) -> float:
        """Record a failure, and return the seconds to wait before the next attempt."""
        now = asyncio.get_running_loop().time()
        if self._failed_at is not None and now - self._failed_at > self._healthy:
            self._next = self._first
        delay = self._random.uniform(self._next, 2 * self._next)
        self._next = min(2 * self._next, self._largest / 2)
        self._failed_at = now + delay
        return delay

    def reset(self) -> None:
        """Begin with the first delay again."""
        self._next = self._first
        self._failed_at = None
