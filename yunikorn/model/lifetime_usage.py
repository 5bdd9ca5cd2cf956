"""Resource use of an application over its life: its peak, and amounts times seconds of ended allocations.

Updated when an allocation ends, so that a decision costs nothing. The peak since the latest end is part of
the present use, because use only grows in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND
from yunikorn.model.allocation import TerminationType
from yunikorn.resources import NOTHING, Tally, shrink

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application

INSTANCE_TYPE = "si/instance-type"
"""Attribute of a node with its instance type."""
UNKNOWN = "UNKNOWN"
"""Instance type of a node without this attribute."""


class LifetimeUsage:
    """Resource use of one application until the latest end of an allocation."""

    __slots__ = ("peak", "placeholders", "preempted", "used")

    def __init__(self) -> None:
        self.peak: Tally = {}
        """Highest use per type, without placeholders."""
        self.used: dict[str, Tally] = {}
        """Amounts times seconds by instance type, of allocations that were not preempted."""
        self.preempted: dict[str, Tally] = {}
        """Likewise of preempted allocations."""
        self.placeholders: dict[str, Tally] = {}
        """Likewise of placeholders that were not preempted."""

    def ending(self, allocation: Allocation, now: int) -> None:
        """Record an allocation that is about to end."""
        # Called for every release, so that nothing is called or copied here.
        app, peak = allocation.app, self.peak
        placed: Mapping[str, int] = NOTHING if app.gang is None else app.gang.placed
        for name, amount in app.allocated.items():
            if placed:
                amount -= placed.get(name, 0)
            if amount > peak.get(name, 0):
                peak[name] = amount
        seconds = (now - allocation.placed) // SECOND
        if seconds <= 0:
            return
        if allocation.releasing == TerminationType.PREEMPTED_BY_SCHEDULER:
            target = self.preempted
        elif allocation.placeholder:
            target = self.placeholders
        else:
            target = self.used
        instance_type = allocation.node.attributes.get(INSTANCE_TYPE, UNKNOWN)
        tally = target.get(instance_type)
        if tally is None:
            tally = target[instance_type] = {}
        for name, amount in allocation.resource.items():
            if amount:
                tally[name] = tally.get(name, 0) + amount * seconds


def raise_to(peak: Tally, amounts: Mapping[str, int]) -> None:
    """Raise every entry of `peak` to at least that of `amounts`."""
    for name, amount in amounts.items():
        if amount > peak.get(name, 0):
            peak[name] = amount


def used_by(app: Application) -> Mapping[str, int]:
    """Return the resources of the allocations of an application that are no placeholders.

    The result must not be changed, and changes with the application if that has no gang.
    """
    if app.gang is None or not app.gang.placed:
        return app.allocated
    used = dict(app.allocated)
    shrink(used, app.gang.placed)
    return used


def peak_of(app: Application) -> Tally:
    """Return the highest use of an application so far, per type, without placeholders."""
    lifetime = app.lifetime
    peak = {} if lifetime is None else dict(lifetime.peak)
    raise_to(peak, used_by(app))
    return peak
