"""Reading of the core's objects in short slices, so that a long answer delays no decision noticeably.

A reading is a generator function: it gets the scheduler, yields at every point at which the core may work on,
and returns its result. The core's thread advances readings between its batches of decisions, for at most
`SLICE` nanoseconds per step of the core.

Consistency. Nothing changes between two yields, so everything that a reading takes without a yield in between
belongs to one moment. A reading that lists objects takes their ids without a yield, and then each object by
itself. Therefore each object is consistent in itself, every object that existed throughout is included, and
objects that are gone when their turn comes are left out. Sums over several objects need not agree.

Readings must not change the core, and what they return must not change later: amounts are copied.

A reading that passes parts of its result on yields `STALLED` while the receiver has enough to do. The core
then continues the reading later.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

import attrs

from yunikorn.clock import MILLISECOND
from yunikorn.interface.scheduler import Scheduler

T = TypeVar("T")


class Stalled(enum.Enum):
    """Type of `STALLED`."""

    STALLED = "stalled"


STALLED = Stalled.STALLED
"""Value yielded by a reading that cannot continue yet."""

Slices = Generator[Stalled | None, None, T]
"""A reading in progress."""
Reading = Callable[[Scheduler], Slices[T]]
"""Generator function that reads the core, as described above."""

SLICE = 2 * MILLISECOND
"""Time for readings in each step of the core (ns)."""


class CoreReader(Protocol):
    """Access to a core for readings, such as an `AsyncScheduler`."""

    async def read(self, reading: Reading[T]) -> T:
        """Carry out a reading and return its result; raises the error of the reading."""
        ...


@attrs.define(eq=False)
class _Started:
    """A reading in progress."""

    slices: Slices[Any]
    done: Future[Any]


class _State(enum.Enum):
    """State of a reading after its turn."""

    READY = "ready"
    STALLED = "stalled"
    ENDED = "ended"


class SlicedReads:
    """Readings in progress; used in the core's thread only."""

    def __init__(self, stopwatch: Callable[[], int], slice_ns: int = SLICE) -> None:
        """Use `stopwatch`, which returns nanoseconds, to limit the time of each `advance`."""
        self._stopwatch = stopwatch
        self._slice = slice_ns
        self._started: deque[_Started] = deque()
        self.can_advance = False
        """True if a reading can continue at once; False if there is none, or if all are stalled."""

    def __bool__(self) -> bool:
        return bool(self._started)

    def start(self, scheduler: Scheduler, reading: Reading[Any], done: Future[Any]) -> None:
        """Add a reading, whose result or error is set in `done`."""
        self._started.append(_Started(reading(scheduler), done))
        self.can_advance = True

    def advance(self) -> None:
        """Continue the readings until the time of a slice is over; each gets a turn before any gets two.

        Every call makes at least one step of a reading. A canceled reading is dropped.
        """
        started, watch = self._started, self._stopwatch
        end = watch() + self._slice
        turn = max(1, self._slice // max(1, len(started)))
        stalled = 0
        while stalled < len(started):
            one = started.popleft()
            state = self._continue(one, min(end, watch() + turn))
            if state is not _State.ENDED:
                started.append(one)
            stalled = stalled + 1 if state is _State.STALLED else 0
            if watch() >= end:
                break
        self.can_advance = stalled < len(started)

    def _continue(self, one: _Started, until: int) -> _State:
        """Advance a reading until this time."""
        watch, slices = self._stopwatch, one.slices
        try:
            if one.done.cancelled():
                slices.close()
                return _State.ENDED
            while True:
                if next(slices) is STALLED:
                    return _State.STALLED
                if watch() >= until:
                    return _State.READY
        except StopIteration as end:
            _settle(one.done, end.value, None)
        except Exception as error:
            # A reading changes nothing, so its error concerns only the caller.
            _settle(one.done, None, error)
        return _State.ENDED

    def abandon(self, error: Callable[[], Exception]) -> None:
        """End all readings with an error: the core has stopped."""
        while self._started:
            one = self._started.popleft()
            one.slices.close()
            _settle(one.done, None, error())


def _settle(done: Future[Any], result: object, error: Exception | None) -> None:
    if done.set_running_or_notify_cancel():
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)
