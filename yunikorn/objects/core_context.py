"""Context shared by the objects of a scheduler: clock, timers, timeouts and allocation numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import attrs

from yunikorn.clock import Clock, Timers
from yunikorn.objects.timeouts import Timeouts


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
