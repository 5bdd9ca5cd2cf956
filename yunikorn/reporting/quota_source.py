"""Where applications and queues stand in the core, looked up while a simulation runs."""

from __future__ import annotations

from typing import Protocol

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import NOTHING, Resource
from yunikorn.simulation.simulated_rm import RM_ID


@attrs.frozen
class QueueQuota:
    """What is guaranteed to a queue, and its own maximum; of that a missing type is unlimited."""

    guaranteed: Resource = NOTHING
    max: Resource = NOTHING


class QuotaSource(Protocol):
    """What of the core records need besides what it tells."""

    def queue_of(self, partition: str, application: str) -> str:
        """The queue that an application is in; empty if the core does not have it (any more)."""
        ...

    def quota(self, partition: str, queue: str) -> QueueQuota:
        """The quota of a queue; an empty one if there is no such queue (any more)."""
        ...


class CoreQuotaSource:
    """Asks a core, once it is there; asking changes nothing."""

    def __init__(self) -> None:
        self._core: Scheduler | None = None

    def meet(self, core: Scheduler) -> None:
        """This is the core."""
        self._core = core

    def queue_of(self, partition: str, application: str) -> str:
        """The queue that an application is in; empty if the core does not have it (any more)."""
        at = self._core.partition(RM_ID, partition) if self._core is not None else None
        found = at.partition.applications.get(application) if at is not None else None
        return found.chain[0].path if found is not None and found.chain else ""

    def quota(self, partition: str, queue: str) -> QueueQuota:
        """The quota of a queue; an empty one if there is no such queue (any more)."""
        at = self._core.partition(RM_ID, partition) if self._core is not None else None
        found = at.partition.queues.queue(queue) if at is not None else None
        if found is None or found.parent is None:
            return QueueQuota()
        return QueueQuota(found.guaranteed, found.max or NOTHING)
