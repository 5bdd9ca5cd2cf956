"""Time as a value that is passed: clocks and the one heap of timers.

All times are integer nanoseconds since the epoch of the clock. Nothing in the core reads the wall
clock; a service passes `SystemClock`, tests and the simulation pass `ManualClock`.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol

SECOND = 1_000_000_000
"""Nanoseconds in a second."""
MILLISECOND = 1_000_000
"""Nanoseconds in a millisecond."""
MICROSECOND = 1_000
"""Nanoseconds in a microsecond."""

ROOMY = 64
"""Entries of a heap that are kept before those that do not hold any more are looked for."""


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

    Each partition has a `branch` of its own, so that its timers end with it. Setting and firing a timer takes
    no longer when there are more branches.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._numbers = itertools.count(1)
        self._heap: list[tuple[int, int, Timer]] = []
        self._roomy = ROOMY
        """So many entries are kept before cancelled ones are looked for."""
        self._earliest = _Earliest()
        self._listed = 0
        """The number of the timer by which `_earliest` lists this branch; 0 if it does not."""
        self._fires: Callable[[], object] | None = None
        self._closed = False

    def branch(self, fires: Callable[[], object] | None = None) -> Timers:
        """Timers that fire among all others, until they are closed; `fires` is called before each of them."""
        made = Timers(self._clock)
        made._numbers, made._earliest, made._fires = self._numbers, self._earliest, fires
        return made

    def close(self) -> None:
        """Forget every timer of this branch; one that is set from now on never fires."""
        self._closed = True
        self._heap.clear()
        self._listed, self._fires = 0, None

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
            self._roomy = max(ROOMY, 2 * len(self._heap))
        number = next(self._numbers)
        heapq.heappush(self._heap, (due, number, timer))
        if self._heap[0][1] == number:
            self._listed = number
            self._earliest.put(due, number, self)
        return timer

    def __len__(self) -> int:
        return len(self._heap)

    def next_due(self) -> int | None:
        """When the earliest live timer of the scheduler is due, or None."""
        first = self._earliest.branch()
        return first._heap[0][0] if first is not None else None

    def fire_due(self) -> int:
        """Fire all timers of the scheduler that are due by now, in order; returns their number."""
        fired = 0
        now = self._clock.now()
        while (first := self._earliest.branch()) is not None and first._heap[0][0] <= now:
            timer = heapq.heappop(first._heap)[2]
            call, timer.call = timer.call, None
            if call is not None:
                if first._fires is not None:
                    first._fires()
                call()
                fired += 1
        return fired


class _Earliest:
    """The branches that have timers, as a heap by the earliest timer of each.

    Entries that do not hold any more are dropped when they come first, or when too many have come together.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timers]] = []
        self._roomy = ROOMY

    def put(self, due: int, number: int, branch: Timers) -> None:
        """List a branch by a timer of it that is due before all others of it."""
        if len(self._heap) >= self._roomy:
            listed = {entry[1]: entry for entry in self._heap if entry[2]._listed == entry[1]}
            self._heap = [entry for entry in listed.values() if not entry[2]._closed]
            heapq.heapify(self._heap)
            self._roomy = max(ROOMY, 2 * len(self._heap))
        heapq.heappush(self._heap, (due, number, branch))

    def branch(self) -> Timers | None:
        """The branch with the earliest live timer, which is the first of its heap."""
        heap = self._heap
        while heap:
            _, number, branch = heap[0]
            timers = branch._heap
            while timers and timers[0][2].call is None:
                heapq.heappop(timers)
            if branch._listed != number:
                heapq.heappop(heap)
            elif not timers:
                branch._listed = 0
                heapq.heappop(heap)
            elif timers[0][1] == number:
                return branch
            else:
                due, branch._listed, _ = timers[0]
                heapq.heapreplace(heap, (due, branch._listed, branch))
        return None
