"""Readings of a core that a test carries out at once."""

from __future__ import annotations

from typing import TypeVar

from yunikorn.errors import UsageError
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.runtime.sliced_reads import STALLED, Reading

T = TypeVar("T")


def read_at_once(scheduler: Scheduler, reading: Reading[T]) -> T:
    """Carry out a whole reading now, for a caller that owns the scheduler.

    Raises `UsageError` if the reading waits for a receiver.
    """
    slices = reading(scheduler)
    while True:
        try:
            if next(slices) is STALLED:
                raise UsageError("the reading waits for a receiver of its parts, which it does not get here")
        except StopIteration as end:
            result: T = end.value
            return result
