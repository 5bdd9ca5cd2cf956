"""Commands of an operator: applications, queues, partitions and nodes of one resource manager.

The object comes first, and all else by name, because the methods of `Scheduler` have another order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from yunikorn.interface.administration import application_named, partition_named
from yunikorn.interface.commands import SessionCommand
from yunikorn.scheduling import queue_admin

if TYPE_CHECKING:
    from yunikorn.interface.session import Session
    from yunikorn.interface.sessions import Sessions
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler


@attrs.frozen
class FailApplication(SessionCommand[None]):
    """Failure of an application, also of one that waits for the answer of a policy."""

    application: str
    partition: str = attrs.field(default="", kw_only=True)
    reason: str = attrs.field(default="", kw_only=True)

    def _change(self, session: Session, sessions: Sessions) -> None:
        at = _partition(session, self.partition)
        reason = self.reason or f"application {self.application} was failed by its RM"
        if self.application in at.submitted:
            at.submitted.reject(self.application, reason)
        else:
            at.partition.fail_application(application_named(at, self.application), reason)


@attrs.frozen
class StopQueue(SessionCommand[bool]):
    """Stop of a queue and its children."""

    queue: str
    """Path of the queue."""
    partition: str = attrs.field(default="", kw_only=True)
    lasting: bool = attrs.field(default=False, kw_only=True)
    """True for a stop that holds when the resource manager registers again."""

    def _change(self, session: Session, sessions: Sessions) -> bool:
        partition = _partition(session, self.partition).partition
        return queue_admin.stop_queue(partition, self.queue, lasting=self.lasting)


@attrs.frozen
class StartQueue(SessionCommand[bool]):
    """Start of a stopped queue."""

    queue: str
    """Path of the queue."""
    partition: str = attrs.field(default="", kw_only=True)

    def _change(self, session: Session, sessions: Sessions) -> bool:
        return queue_admin.start_queue(_partition(session, self.partition).partition, self.queue)


@attrs.frozen
class StopPartition(SessionCommand[bool]):
    """Stop of a partition."""

    partition: str = attrs.field(default="", kw_only=True)

    def _change(self, session: Session, sessions: Sessions) -> bool:
        return queue_admin.stop_partition(_partition(session, self.partition).partition)


@attrs.frozen
class StartPartition(SessionCommand[bool]):
    """Start of a stopped partition."""

    partition: str = attrs.field(default="", kw_only=True)

    def _change(self, session: Session, sessions: Sessions) -> bool:
        return queue_admin.start_partition(_partition(session, self.partition).partition)


@attrs.frozen
class DrainNode(SessionCommand[bool]):
    """Drain of a node."""

    node: str
    """Id of the node."""
    partition: str = attrs.field(default="", kw_only=True)

    def _change(self, session: Session, sessions: Sessions) -> bool:
        return queue_admin.drain_node(_partition(session, self.partition).partition, self.node)


@attrs.frozen
class UndrainNode(SessionCommand[bool]):
    """End of the drain of a node."""

    node: str
    """Id of the node."""
    partition: str = attrs.field(default="", kw_only=True)

    def _change(self, session: Session, sessions: Sessions) -> bool:
        return queue_admin.undrain_node(_partition(session, self.partition).partition, self.node)


def _partition(session: Session, name: str) -> PartitionScheduler:
    return partition_named(session.rm_id, name, session.partitions.find(name), session.partitions)
