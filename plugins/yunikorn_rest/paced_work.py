"""Work in other threads for clients without credentials, bounded in number and processor time.

A thread of Python delays all others, the core's included, for as long as it computes. So there is one piece
of such work at a time, which pauses when all of it has had its share of a processor, and ends when it takes
too long. Client addresses share the places for the rest, which waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import attrs

from yunikorn.clock import SECOND, stopwatch
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.guards import SharedPlaces

T = TypeVar("T")

Pace = Callable[[], None]
"""Function that the work calls all the time, and that pauses or ends the work."""
KNOWN = "with credentials there is no such limit"
SHORTEST = 1e-5
"""Length of the shortest pause (s)."""
EVERY = 64
"""Number of calls from one look at the processor time to the next."""


@attrs.frozen
class WorkClock:
    """Times and pauses of the thread that works; in seconds, unless they say otherwise."""

    processor: Callable[[], float] = time.thread_time
    """Processor time of the thread."""
    now: Callable[[], int] = stopwatch
    """Time (ns)."""
    pause: Callable[[float], object] = threading.Event().wait


class PacedWork:
    """Work for clients without credentials."""

    def __init__(
        self,
        places: int = 8,
        most: float = 4.0,
        share: float = 0.25,
        burst: float = 0.5,
        clock: WorkClock | None = None,
    ) -> None:
        """Create without work.

        There are `places` for work that is in progress or waits. Each may take `most` seconds of processor
        time. Together they have a `share` of a processor, after `burst` seconds without a pause.
        """
        self._places, self._turn = SharedPlaces(places), asyncio.Semaphore(1)
        self._most, self._share, self._burst = most, share, burst
        self._clock = clock or WorkClock()
        self._left, self._at = burst, self._clock.now()
        """Processor time until the next pause (s), and the time to which it belongs (ns)."""

    @contextlib.contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Take a place for an address; raises `RequestRefused` if it gets none."""
        with self._places.taken(address) as is_taken:
            if not is_taken:
                text = f"too many requests of this kind at the same time; {KNOWN}"
                raise RequestRefused(503, text, {"retry-after": "1"})
            yield

    async def run(self, work: Callable[[Pace], T]) -> T:
        """Return the result of some work that has a place; raises `RequestRefused` if it takes too long."""
        abandoned = threading.Event()
        async with self._turn:
            try:
                return await asyncio.to_thread(lambda: work(self._pace(abandoned)))
            except asyncio.CancelledError:
                abandoned.set()
                raise

    def _pace(self, abandoned: threading.Event) -> Pace:
        """Return the pace of the next work, in the thread of the work."""
        clock, calls = self._clock, 0
        before = start = clock.processor()

        def pace() -> None:
            nonlocal calls, before
            calls += 1
            if calls % EVERY:
                return
            processor, now = clock.processor(), clock.now()
            if processor - start > self._most:
                text = f"this takes more than {self._most:g} s of processor time; {KNOWN}"
                raise RequestRefused(413, text)
            earned = (now - self._at) / SECOND * self._share
            self._left = min(self._burst, self._left + earned) - (processor - before)
            self._at, before = now, processor
            # Even the shortest pause lets a thread continue that otherwise waits for some milliseconds.
            clock.pause(max(SHORTEST, -self._left / self._share))
            if abandoned.is_set():
                raise RequestRefused(503, "the client has gone")

        return pace
