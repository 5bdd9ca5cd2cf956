"""Context shared by the objects of a scheduler: clock, timers, timeouts and allocation numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import attrs

from yunikorn.clock import SECOND, Clock, Timers
from yunikorn.config.queues_yaml import PartitionTimeouts
from yunikorn.model.measurements import Measurements


@attrs.frozen
class Timeouts(PartitionTimeouts):
    """Delays of a partition, and of the whole scheduler."""

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
    measurements: Measurements | None = None
    """Counts and durations for metrics; None to measure nothing."""

    @classmethod
    def on(
        cls, clock: Clock, timeouts: Timeouts | None = None, measurements: Measurements | None = None
    ) -> CoreContext:
        """Return a new context on this clock."""
        return cls(clock, Timers(clock), timeouts or Timeouts(), itertools.count(1), measurements)

    def branch(self, fires: Callable[[], object] | None = None) -> CoreContext:
        """Return a context whose timers end with their owner (`Timers.close`); see `Timers.branch`."""
        return attrs.evolve(self, timers=self.timers.branch(fires))
