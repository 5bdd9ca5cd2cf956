"""Time as a value that is passed: clocks and the one heap of timers.

All times are integer nanoseconds since the epoch of the clock. Nothing in the core reads the wall
clock; a service passes `SystemClock`, tests and the simulation pass `ManualClock`.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import Protocol

SECOND = 1_000_000_000
"""Nanoseconds in a second."""
MILLISECOND = 1_000_000
"""Nanoseconds in a millisecond."""


class Clock(Protocol):
    """Where the core takes the time from."""

    def now(self) -> int:
        """The present, in nanoseconds."""
        ...


class SystemClock:
    """The machine's own clock, for a running service."""

    def now(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()


class ManualClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, start: int = 0) -> None:
        self._now = start

    def now(self) -> int:
        """The time it was last set to, in nanoseconds."""
        return self._now

    def set(self, moment: int) -> None:
        """Move to `moment`; the past stays where it is (raises `ValueError`)."""
        if moment < self._now:
            raise ValueError(f"the clock stands at {self._now} ns and cannot go back to {moment} ns")
        self._now = moment

    def advance(self, seconds: float) -> None:
        """Move `seconds` forward."""
        self.set(self._now + round(seconds * SECOND))


class Timer:
    """A call that is due at a time; `cancel()` makes it never happen."""

    __slots__ = ("call", "due")

    def __init__(self, due: int, call: Callable[[], None]) -> None:
        self.due = due
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Forget the call; harmless when it has already happened."""
        self.call = None


class Timers:
    """All timers of one scheduler, in one heap; equal due times fire in the order they were set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Timer]] = []
        self._count = 0
        self._roomy = 64
        """So many entries are kept before cancelled ones are looked for."""

    def after(self, delay: int, call: Callable[[], None]) -> Timer:
        """Have `call` happen `delay` nanoseconds from now."""
        return self.at(self._clock.now() + delay, call)

    def at(self, due: int, call: Callable[[], None]) -> Timer:
        """Have `call` happen at the moment `due` (nanoseconds)."""
        timer = Timer(due, call)
        self._count += 1
        if len(self._heap) >= self._roomy:
            # Limits that are cancelled long before they are due would pile up otherwise.
            self._heap = [entry for entry in self._heap if entry[2].call is not None]
            heapq.heapify(self._heap)
            self._roomy = max(64, 2 * len(self._heap))
        heapq.heappush(self._heap, (due, self._count, timer))
        return timer

    def __len__(self) -> int:
        return len(self._heap)

    def next_due(self) -> int | None:
        """When the earliest live timer is due, or None."""
        heap = self._heap
        while heap and heap[0][2].call is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def fire_due(self) -> int:
        """Fire everything that is due by now, in order; returns how many fired."""
        fired = 0
        now = self._clock.now()
        while (due := self.next_due()) is not None and due <= now:
            timer = heapq.heappop(self._heap)[2]
            call, timer.call = timer.call, None
            if call is not None:
                call()
                fired += 1
        return fired
