"""Turns of tasks that compute in the event loop.

A task that suspends itself after each slice continues in the next cycle of the loop. Twenty of them would
make each cycle twenty slices long, and a probe waits for some cycles. So one task continues in each cycle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from yunikorn.clock import MILLISECOND

SLICE = 1 * MILLISECOND
"""Time after which a task lets others run (ns)."""


class LoopTurns:
    """Turns of the tasks of one event loop."""

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        """Measure time with `stopwatch` (ns)."""
        self._stopwatch = stopwatch
        self._lock = asyncio.Lock()

    def begin(self) -> int:
        """Return the time until which a task may compute that begins now."""
        return self._stopwatch() + SLICE

    def is_over(self, until: int) -> bool:
        """Return True if a task has to wait for its next turn."""
        return self._stopwatch() >= until

    async def next(self) -> int:
        """Let others run; returns the time until which the task may compute then."""
        async with self._lock:
            await asyncio.sleep(0)
        return self.begin()
