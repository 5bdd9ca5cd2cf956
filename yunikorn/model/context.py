"""Context shared by the objects of a scheduler: clock, timers, timeouts and allocation numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import attrs

from yunikorn.clock import SECOND, Clock, Timers
from yunikorn.config.timeouts import PartitionTimeouts
from yunikorn.framework.policy_calls import PolicyCalls, Workers
from yunikorn.framework.wake_requests import WakeRequests
from yunikorn.model.core_meter import CoreMeter
from yunikorn.model.owner_usage import KeptUsage


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
    owner_usage: KeptUsage
    serial: Iterator[int]
    """Source of allocation numbers, which make the uuids of one scheduler unique."""
    measurements: CoreMeter | None = None
    """Counts and durations for metrics; None to measure nothing."""
    policy_calls: PolicyCalls | None = None
    """Calls of policies by workers; None without workers, where the core's thread makes them."""
    activate: Callable[[], object] = lambda: None
    """Called before a timer or an answer of a worker changes something."""
    wake_requests: WakeRequests = attrs.field(factory=WakeRequests)
    """Wake-ups by plugins that were not applied yet."""

    @classmethod
    def on(
        cls,
        clock: Clock,
        timeouts: Timeouts | None = None,
        measurements: CoreMeter | None = None,
        workers: Workers | None = None,
        wake_requests: WakeRequests | None = None,
    ) -> CoreContext:
        """Return a new context on this clock."""
        calls = None if workers is None else PolicyCalls(workers)
        usage, serial = KeptUsage(clock.now), itertools.count(1)
        made = cls(clock, Timers(clock), timeouts or Timeouts(), usage, serial, measurements, calls)
        return made if wake_requests is None else attrs.evolve(made, wake_requests=wake_requests)

    def branch(self, fires: Callable[[], object] | None = None) -> CoreContext:
        """Return a context whose timers end with their owner (`Timers.close`); see `Timers.branch`."""
        made = attrs.evolve(self, timers=self.timers.branch(fires))
        return made if fires is None else attrs.evolve(made, activate=fires)
