"""Resource use of an application over its life: its peak, service of ended allocations, and ended tasks.

Updated when an allocation ends, so that a decision costs nothing. The peak since the latest end is part of
the present use, because use only grows in between. Amounts times nanoseconds are exact; readers round them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from yunikorn.model.allocation import TerminationType
from yunikorn.model.usage_history import UsageHistory
from yunikorn.resources import NOTHING, grow, shrink

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.resources import Resource

INSTANCE_TYPE = "si/instance-type"
"""Attribute of a node with its instance type."""
UNKNOWN = "UNKNOWN"
"""Instance type of a node without this attribute."""


def record_end(allocation: Allocation, now: int, termination: TerminationType) -> None:
    """Record an allocation that is about to end in the use of its application."""
    # Called for every release, so that amounts are added in place.
    app = allocation.app
    lifetime = app.ensure_lifetime()
    peak = lifetime.peak
    placed: Mapping[str, int] = NOTHING if app.gang is None else app.gang.placed
    for name, amount in app.allocated.items():
        if placed:
            amount -= placed.get(name, 0)
        if amount > peak.get(name, 0):
            peak[name] = amount
    duration, releasing = now - allocation.placed, allocation.releasing
    if allocation.placeholder:
        target = lifetime.placeholders
    else:
        target = lifetime.used
        if termination != TerminationType.SCHEDULING_FAILED_ON_RM:
            lifetime.ended += 1
        if releasing is None and termination == TerminationType.STOPPED_BY_RM:
            lifetime.completed += 1
            lifetime.completed_time += duration
    if releasing == TerminationType.PREEMPTED_BY_SCHEDULER:
        target = lifetime.preempted
    instance_type = allocation.node.attributes.get(INSTANCE_TYPE, UNKNOWN)
    tally = target.get(instance_type)
    if tally is None:
        tally = target[instance_type] = {}
    for name, amount in allocation.resource.items():
        if amount:
            tally[name] = tally.get(name, 0) + amount * duration


def record_change(allocation: Allocation, now: int, resource: Resource, placed: int) -> None:
    """Record that an allocation is about to get this size and time of placement."""
    app, before = allocation.app, allocation.placed
    lifetime = app.ensure_lifetime()
    grow(lifetime.unlisted, allocation.resource, now - before)
    shrink(lifetime.unlisted, resource, now - placed)
    if lifetime.service is not None:
        lifetime.service.change(allocation, resource, placed)


def record_withdrawal(allocation: Allocation, now: int) -> None:
    """Record an allocation that is about to be taken back, of which the RM was not informed."""
    grow(allocation.app.ensure_lifetime().unlisted, allocation.resource, now - allocation.placed)


class ApplicationUsage:
    """Observer of a leaf queue that keeps usage of its applications, which decays with a half-life."""

    def __init__(self, half_life: float, now: Callable[[], int]) -> None:
        """Create an observer; `half_life` is in seconds."""
        self._half_life = half_life
        self._now = now

    def note(self, app: Application) -> None:
        """Record the usage so far of an application whose allocated amount is about to change."""
        history = None if app.lifetime is None else app.lifetime.history
        if history is None:
            self.begin(app)
        else:
            history.note()

    def begin(self, app: Application) -> None:
        """Record usage from now on, and that of the running allocations; keep what has this half-life."""
        lifetime = app.ensure_lifetime()
        if lifetime.history is None or lifetime.history.half_life != self._half_life:
            lifetime.history = UsageHistory(self._half_life, self._now, app.allocated)
            for allocation in app.allocations.values():
                lifetime.history.credit(allocation.resource, allocation.placed)


def credit_recovered(allocation: Allocation) -> None:
    """Add the usage before the recovery of an allocation, from its creation, to that of its application."""
    lifetime, usage = allocation.app.lifetime, allocation.app.chain[0].cluster.owner_usage
    if usage is not None:
        usage.recovered(allocation)
    if lifetime is not None and lifetime.history is not None:
        lifetime.history.credit(allocation.resource, allocation.placed)
