"""Clocks, and the timers of a scheduler.

All times are integer nanoseconds since the epoch of the clock. Nothing in the core reads the wall clock: a
service passes a `SystemClock`, tests and simulations pass a `ManualClock`.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
MICROSECOND = 1_000

ROOMY = 64
"""Minimum number of heap entries before cancelled entries are removed."""


class Clock(Protocol):
    """Time source of the core."""

    def now(self) -> int:
        """Return the current time in nanoseconds."""
        ...


class SystemClock:
    """Clock of the operating system, for a running service."""

    def now(self) -> int:
        """Return the current time in nanoseconds since 1970."""
        return time.time_ns()


def stopwatch() -> int:
    """Return a time in nanoseconds that never goes back, to measure how long something takes."""
    return time.perf_counter_ns()


class ManualClock:
    """Clock that changes only when it is set, for tests and simulations."""

    def __init__(self, start: int = 0) -> None:
        self._now = start

    def now(self) -> int:
        """Return the time last set, in nanoseconds."""
        return self._now

    def set(self, moment: int) -> None:
        """Set the time to `moment` (ns). Raises `ValueError` if that is in the past."""
        if moment < self._now:
            raise ValueError(f"the clock stands at {self._now} ns and cannot go back to {moment} ns")
        self._now = moment

    def advance(self, seconds: float) -> None:
        """Advance the time by `seconds`."""
        self.set(self._now + round(seconds * SECOND))


class SteadyClock:
    """Clock that never goes back, whatever happens to the clock that it follows.

    After that was set back, time passes at half its speed until both agree. Use is then never negative and
    never counted twice, and timers are late by twice their delay at most.
    """

    def __init__(self, source: Clock, stopwatch: Callable[[], int] = stopwatch) -> None:
        """Follow a clock; `stopwatch` returns a time (ns) that never goes back."""
        self._source = source
        self._stopwatch = stopwatch
        self._latest = source.now(), stopwatch()
        """Latest time, and that of the stopwatch."""

    def now(self) -> int:
        """Return the current time in nanoseconds."""
        (latest, begin), found, elapsed = self._latest, self._source.now(), self._stopwatch()
        if found < latest:
            found = latest + (elapsed - begin) // 2
        self._latest = found, elapsed
        return found


def steady(clock: Clock) -> Clock:
    """Return a clock that never goes back: `clock` itself if that is known of it, else one that follows."""
    return clock if isinstance(clock, (ManualClock, SteadyClock)) else SteadyClock(clock)


class Timer:
    """Scheduled call; `call` is None after the call or after `cancel()`."""

    __slots__ = ("call", "due")

    def __init__(self, due: int, call: Callable[[], None]) -> None:
        self.due = due
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Cancel the call; no effect after it was made."""
        self.call = None


class Timers:
    """Timers of a scheduler; timers with equal due times fire in the order in which they were set.

    Each partition has a `branch`, so that closing the branch cancels the timers of the partition. The cost of
    setting and firing a timer does not depend on the number of branches.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._numbers = itertools.count(1)
        self._heap: list[tuple[int, int, Timer]] = []
        self._roomy = ROOMY
        """Size of `_heap` at which cancelled entries are removed."""
        self._earliest = _Earliest()
        self._listed = 0
        """Number of the timer under which `_earliest` lists this branch; 0 if it is not listed."""
        self._fires: Callable[[], object] | None = None
        self._closed = False

    def branch(self, fires: Callable[[], object] | None = None) -> Timers:
        """Return timers that fire in common order with all others; `fires` is called before each of them."""
        made = Timers(self._clock)
        made._numbers, made._earliest, made._fires = self._numbers, self._earliest, fires
        return made

    def close(self) -> None:
        """Cancel all timers of this branch; timers set later never fire."""
        self._closed = True
        self._heap.clear()
        self._listed, self._fires = 0, None

    def after(self, delay: int, call: Callable[[], None]) -> Timer:
        """Schedule `call` in `delay` nanoseconds."""
        return self.at(self._clock.now() + delay, call)

    def at(self, due: int, call: Callable[[], None]) -> Timer:
        """Schedule `call` at the time `due` (ns)."""
        timer = Timer(due, call)
        if self._closed:
            timer.cancel()
            return timer
        if len(self._heap) >= self._roomy:
            # Timers that are cancelled long before they are due would accumulate otherwise.
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
        """Return the due time of the scheduler's earliest active timer (ns), or None."""
        first = self._earliest.branch()
        return first._heap[0][0] if first is not None else None

    def fire_due(self) -> int:
        """Fire all due timers of the scheduler, in order, and return their number."""
        fired = 0
        now, earliest = self._clock.now(), self._earliest
        while earliest.may_be_due(now):
            first = earliest.branch()
            if first is None or first._heap[0][0] > now:
                break
            timer = heapq.heappop(first._heap)[2]
            call, timer.call = timer.call, None
            if call is not None:
                if first._fires is not None:
                    first._fires()
                call()
                fired += 1
        return fired


class _Earliest:
    """Heap of the branches that have timers, by the earliest timer of each.

    Outdated entries are removed when they reach the top, or when there are too many of them.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timers]] = []
        self._roomy = ROOMY

    def put(self, due: int, number: int, branch: Timers) -> None:
        """Add `branch` under a timer that is due before all others of the branch."""
        if len(self._heap) >= self._roomy:
            listed = {entry[1]: entry for entry in self._heap if entry[2]._listed == entry[1]}
            self._heap = [entry for entry in listed.values() if not entry[2]._closed]
            heapq.heapify(self._heap)
            self._roomy = max(ROOMY, 2 * len(self._heap))
        heapq.heappush(self._heap, (due, number, branch))

    def may_be_due(self, now: int) -> bool:
        """Return False if no timer is due at the time `now` (ns)."""
        # An outdated entry is never later than the timers of its branch that are left.
        return bool(self._heap) and self._heap[0][0] <= now

    def branch(self) -> Timers | None:
        """Return the branch with the earliest active timer; that timer is on top of the branch's heap."""
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
