"""Lookup of queues and quotas in the core during a simulation."""

from __future__ import annotations

from typing import Protocol

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import NOTHING, Resource
from yunikorn.simulation.simulated_rm import RM_ID


@attrs.frozen
class QueueQuota:
    """Guarantee of a queue and its own maximum; types missing from the maximum are unlimited."""

    guaranteed: Resource = NOTHING
    max: Resource = NOTHING


class QuotaSource(Protocol):
    """The part of the core's state that observers need in addition to recorder calls."""

    def queue_of(self, partition: str, application: str) -> str:
        """Return the queue of an application; empty if the core has no such application (any more)."""
        ...

    def quota(self, partition: str, queue: str) -> QueueQuota:
        """Return the quota of a queue; empty if the core has no such queue (any more)."""
        ...


class CoreQuotaSource:
    """Read-only access to a core that becomes known later."""

    def __init__(self) -> None:
        self._core: Scheduler | None = None

    def meet(self, core: Scheduler) -> None:
        """Set the core."""
        self._core = core

    def queue_of(self, partition: str, application: str) -> str:
        """Return the queue of an application; empty if the core has no such application (any more)."""
        at = self._core.partition(RM_ID, partition) if self._core is not None else None
        found = at.partition.applications.get(application) if at is not None else None
        return found.chain[0].path if found is not None and found.chain else ""

    def quota(self, partition: str, queue: str) -> QueueQuota:
        """Return the quota of a queue; empty if the core has no such queue (any more)."""
        at = self._core.partition(RM_ID, partition) if self._core is not None else None
        found = at.partition.queues.queue(queue) if at is not None else None
        if found is None or found.parent is None:
            return QueueQuota()
        return QueueQuota(found.guaranteed, found.max or NOTHING)
