"""Effects of another configuration on the present state of a scheduler, before anything else happens."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.quantities import spell_quantity
from yunikorn.states import DRAINING

APPLICATIONS = "applications"
"""Name of what a limit on running applications counts."""
Place = tuple[str, str, str]
"""Partition, queue or user or group in words, and resource type or `APPLICATIONS`."""


@attrs.frozen
class Excess:
    """A queue, user or group that uses more than it may."""

    partition: str
    subject: str
    """Queue, or user or group at a queue, in words."""
    what: str
    """Resource type, or `APPLICATIONS`."""
    used: int
    limit: int

    @property
    def text(self) -> str:
        """Sentence about it."""
        used, limit = (
            f"{amount}" if self.what == APPLICATIONS else spell_quantity(self.what, amount)
            for amount in (self.used, self.limit)
        )
        return f"{self.subject}: uses {used} {self.what}, and may use {limit}"


@attrs.frozen
class LeavingQueue:
    """A queue that is drained, because the configuration has it no longer."""

    partition: str
    queue: str
    applications: int
    """Number of applications in it, which stay until they end."""

    @property
    def text(self) -> str:
        """Sentence about it."""
        return f"queue {self.queue}: removed once its {self.applications} applications have ended"


def new_excesses(before: Scheduler, after: Scheduler) -> list[Excess]:
    """Return what uses more than it may under `after`, and did not under `before`, or not as much."""
    known = dict(_excesses(before))
    found = []
    for place, (used, limit) in _excesses(after):
        was = known.get(place)
        if was is None or used - limit > was[0] - was[1]:
            found.append(Excess(*place, used, limit))
    return found


def _excesses(scheduler: Scheduler) -> Iterator[tuple[Place, tuple[int, int]]]:
    for _, at in scheduler.all_partitions():
        partition = at.partition
        for queue in partition.queues.root.walk():
            if queue.parent is None:
                continue  # limited by the size of the cluster
            for name, limit in (queue.max or {}).items():
                used = queue.allocated.get(name, 0)
                if used > limit:
                    yield (partition.config_name, queue.label, name), (used, limit)
            if queue.max_applications and queue.running > queue.max_applications:
                yield (
                    (partition.config_name, queue.label, APPLICATIONS),
                    (queue.running, queue.max_applications),
                )
        for tracker in partition.usage:
            for name, limit in (tracker.max_resources or {}).items():
                used = tracker.usage.get(name, 0)
                if used > limit:
                    yield (partition.config_name, tracker.label, name), (used, limit)
            running = len(tracker.applications)
            if tracker.max_applications and running > tracker.max_applications:
                yield (
                    (partition.config_name, tracker.label, APPLICATIONS),
                    (running, tracker.max_applications),
                )


def leaving_queues(before: Scheduler, after: Scheduler) -> list[LeavingQueue]:
    """Return the queues with applications that are drained under `after`, and were not under `before`."""
    known = {(name, queue) for name, queue, _ in _draining(before)}
    return [LeavingQueue(*one) for one in _draining(after) if one[:2] not in known]


def _draining(scheduler: Scheduler) -> Iterator[tuple[str, str, int]]:
    for _, at in scheduler.all_partitions():
        for queue in at.partition.queues.root.walk():
            if queue.state == DRAINING and queue.applications:
                yield at.partition.config_name, queue.path, len(queue.applications)
