"""Context shared by the objects of a scheduler: clock, timers, timeouts and allocation numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import attrs

from yunikorn.clock import SECOND, Clock, Timers


@attrs.frozen
class Timeouts:
    """Delays of state changes and of other actions of the scheduler (docs/states.md)."""

    starting: int = 300 * SECOND
    """Time in Starting before an application becomes Running."""
    completing: int = 30 * SECOND
    """Time in Completing before an application becomes Completed."""
    retention: int = 3 * 24 * 3600 * SECOND
    """Time for which an ended application is kept."""
    reservation: int | None = 2 * SECOND
    """Age at which a request that fits no node reserves one; None disables reservations."""
    gang_patience: int = 600 * SECOND
    """Time for which a whole atomic gang waits for room before it holds back later requests."""
    cleanup: int = 10 * SECOND
    """Time after which an empty dynamic or draining queue is removed."""
    session: int | None = 300 * SECOND
    """Time for which a paused session is kept before it is stopped; None means no limit.

    The value applies to the whole scheduler: a partition's configuration cannot set it
    (docs/decisions/0031)."""


@attrs.frozen
class CoreContext:
    """Shared context of one scheduler."""

    clock: Clock
    timers: Timers
    timeouts: Timeouts
    serial: Iterator[int]
    """Source of allocation numbers, which make the uuids of one scheduler unique."""

    @classmethod
    def on(cls, clock: Clock, timeouts: Timeouts | None = None) -> CoreContext:
        """Return a new context on this clock."""
        return cls(clock, Timers(clock), timeouts or Timeouts(), itertools.count(1))

    def branch(self, fires: Callable[[], object] | None = None) -> CoreContext:
        """Return a context whose timers end with their owner (`Timers.close`); see `Timers.branch`."""
        return attrs.evolve(self, timers=self.timers.branch(fires))
