"""Time as a value that is passed: clocks and the one heap of timers.

All times are integer nanoseconds since the epoch of the clock. Nothing in the core reads the wall
clock; a service passes `SystemClock`, tests and the simulation pass `ManualClock`.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Protocol

SECOND = 1_000_000_000
"""Nanoseconds in a second."""
MILLISECOND = 1_000_000
"""Nanoseconds in a millisecond."""
MICROSECOND = 1_000
"""Nanoseconds in a microsecond."""


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
    """All timers of one scheduler; equal due times fire in the order they were set.

    Each partition has a `branch` of its own, so that what goes takes its timers along. A branch is asked when
    its own timers are due, and can be closed; whoever owns the clock asks and fires the whole.
    """

    def __init__(self, clock: Clock, numbers: Iterator[int] | None = None) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Timer]] = []
        self._numbers = itertools.count(1) if numbers is None else numbers
        self._roomy = 64
        """So many entries are kept before cancelled ones are looked for."""
        self._branches: list[Timers] = []
        self._closed = False

    def branch(self) -> Timers:
        """Timers that fire among all others, until they are closed."""
        made = Timers(self._clock, self._numbers)
        self._branches.append(made)
        return made

    def close(self) -> None:
        """Forget every timer; what is set from now on never happens."""
        self._closed = True
        self._heap.clear()

    def after(self, delay: int, call: Callable[[], None]) -> Timer:
        """Have `call` happen `delay` nanoseconds from now."""
        return self.at(self._clock.now() + delay, call)

    def at(self, due: int, call: Callable[[], None]) -> Timer:
        """Have `call` happen at the moment `due` (nanoseconds)."""
        timer = Timer(due, call)
        if self._closed:
            timer.cancel()
            return timer
        if len(self._heap) >= self._roomy:
            # Limits that are cancelled long before they are due would pile up otherwise.
            self._heap = [entry for entry in self._heap if entry[2].call is not None]
            heapq.heapify(self._heap)
            self._roomy = max(64, 2 * len(self._heap))
        heapq.heappush(self._heap, (due, next(self._numbers), timer))
        return timer

    def __len__(self) -> int:
        return len(self._heap) + sum(len(branch) for branch in self._branches)

    def next_due(self) -> int | None:
        """When the earliest live timer is due, or None."""
        first = self._first()
        return first._heap[0][0] if first is not None else None

    def _first(self) -> Timers | None:
        """The heap with the earliest live timer."""
        first: Timers | None = None
        if any(branch._closed for branch in self._branches):
            self._branches = [branch for branch in self._branches if not branch._closed]
        for one in (self, *self._branches):
            heap = one._heap
            while heap and heap[0][2].call is None:
                heapq.heappop(heap)
            if heap and (first is None or heap[0][:2] < first._heap[0][:2]):
                first = one
        return first

    def fire_due(self) -> int:
        """Fire everything that is due by now, in order; returns how many fired."""
        fired = 0
        now = self._clock.now()
        while (first := self._first()) is not None and first._heap[0][0] <= now:
            timer = heapq.heappop(first._heap)[2]
            call, timer.call = timer.call, None
            if call is not None:
                call()
                fired += 1
        return fired
