"""Resource use of an application over its life: its peak, and amounts times seconds of ended allocations.

Updated when an allocation ends, so that a decision costs nothing. The peak since the latest end is part of
the present use, because use only grows in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND
from yunikorn.model.allocation import TerminationType
from yunikorn.model.application import LifetimeUsage
from yunikorn.resources import NOTHING, Tally, shrink

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application

INSTANCE_TYPE = "si/instance-type"
"""Attribute of a node with its instance type."""
UNKNOWN = "UNKNOWN"
"""Instance type of a node without this attribute."""


def record_end(allocation: Allocation, now: int) -> None:
    """Record an allocation that is about to end in the use of its application."""
    # Called for every release, so that amounts are added in place.
    app = allocation.app
    lifetime = app.lifetime
    if lifetime is None:
        lifetime = app.lifetime = LifetimeUsage()
    peak = lifetime.peak
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
        target = lifetime.preempted
    elif allocation.placeholder:
        target = lifetime.placeholders
    else:
        target = lifetime.used
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
