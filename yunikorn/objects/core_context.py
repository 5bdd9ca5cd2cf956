"""What a scheduler's objects share: its clock, its timers, its delays, and the numbers of allocations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import attrs

from yunikorn.clock import Clock, Timers
from yunikorn.objects.timeouts import Timeouts


@attrs.frozen
class CoreContext:
    """Passed to everything that lives in one scheduler."""

    clock: Clock
    timers: Timers
    timeouts: Timeouts
    serial: Iterator[int]
    """Numbers allocations, so that no two of one scheduler have the same uuid."""

    @classmethod
    def on(cls, clock: Clock, timeouts: Timeouts | None = None) -> CoreContext:
        """A new one on this clock."""
        return cls(clock, Timers(clock), timeouts or Timeouts(), itertools.count(1))

    def branch(self, fires: Callable[[], object] | None = None) -> CoreContext:
        """The same with timers that go when their owner goes (`Timers.close`); see `Timers.branch`."""
        return attrs.evolve(self, timers=self.timers.branch(fires))
