"""Actions of an operator on applications, queues, partitions and nodes of one resource manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from yunikorn.errors import UsageError
from yunikorn.scheduling import queue_admin
from yunikorn.text import listed, suggest

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.interface.rm_partitions import RMPartitions
    from yunikorn.interface.session import Session
    from yunikorn.model.application import Application
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler


def partition_named(
    rm_id: str, name: str, found: PartitionScheduler | None, known: Iterable[PartitionScheduler]
) -> PartitionScheduler:
    """Return the partition that was found; raise `UsageError` with the known names if there is none."""
    if found is None:
        names = listed(one.name for one in known)
        raise UsageError(f"resource manager {rm_id} has no partition '{name}'; known: {names}")
    return found


def application_named(at: PartitionScheduler, app_id: str) -> Application:
    """Return an application of a partition; raise `UsageError` if there is none, or it has ended."""
    applications = at.partition.applications
    app = applications.get(app_id)
    if app is None and app_id in at.waiting:
        raise UsageError(at.waiting.why(app_id))
    if app is None:
        raise UsageError(
            f"there is no application '{app_id}' in partition {at.name}, or it has ended"
            f"{suggest(app_id, applications)}"
        )
    return app


def fail_application(at: PartitionScheduler, app_id: str, reason: str) -> None:
    """Fail an application, also one that waits for the answer of a policy; raise `UsageError`."""
    why = reason or f"application {app_id} was failed by its RM"
    if app_id in at.waiting:
        at.intake.reject(app_id, why)
    else:
        at.partition.fail_application(application_named(at, app_id), why)


class OperatorCalls:
    """Calls of `Scheduler` for operators; each sends the messages that follow from its action."""

    def _session_for(self, call: str, rm_id: str) -> Session:
        """Return the session that a call is about to change."""
        raise NotImplementedError

    def _at_work(self, rm_id: str, name: str) -> PartitionScheduler:
        """Return a partition; raise `UsageError` with the known names if there is none."""
        raise NotImplementedError

    def fail_application(self, rm_id: str, partition: str, app_id: str, reason: str) -> None:
        """Fail an application: its asks are removed, its allocations released (`docs/decisions/0038`).

        The application is `Failing`, then `Failed`. Raises `UsageError` if there is no such application, or
        it has ended.
        """
        session = self._session_for("fail_application", rm_id)
        fail_application(self._at_work(rm_id, partition), app_id, reason)
        session.flush()

    def stop_queue(self, rm_id: str, partition: str, path: str, *, lasting: bool = False) -> bool:
        """Stop new allocations in a queue and its children until `start_queue`.

        The queue keeps its allocations and accepts applications. A `lasting` stop also holds when the RM has
        registered again. Returns True if the queue was running. Raises `UsageError` if there is none.
        """
        return self._switch(
            "stop_queue", rm_id, partition, lambda at: queue_admin.stop_queue(at, path, lasting=lasting)
        )

    def start_queue(self, rm_id: str, partition: str, path: str) -> bool:
        """Start a queue that `stop_queue` stopped; return True if the queue was stopped.

        Raises `UsageError` if there is no such queue, or its own configuration stops the queue.
        """
        return self._switch("start_queue", rm_id, partition, lambda at: queue_admin.start_queue(at, path))

    def stop_partition(self, rm_id: str, partition: str) -> bool:
        """Stop new applications and allocations in a partition until `start_partition`.

        Existing allocations continue. Returns True if the partition was running. Raises `UsageError` if there
        is no such partition.
        """
        return self._switch("stop_partition", rm_id, partition, queue_admin.stop_partition)

    def start_partition(self, rm_id: str, partition: str) -> bool:
        """Start a stopped partition; return True if it was stopped. Raises `UsageError` if there is none."""
        return self._switch("start_partition", rm_id, partition, queue_admin.start_partition)

    def drain_node(self, rm_id: str, partition: str, node_id: str) -> bool:
        """Keep new allocations off a node until `undrain_node`, whatever the RM reports about the node.

        Running allocations continue. The node stays drained when it is removed and added again, and when the
        RM registers again. Returns True if the operator did not drain the node before. Raises `UsageError` if
        there is no such node.
        """
        return self._switch("drain_node", rm_id, partition, lambda at: queue_admin.drain_node(at, node_id))

    def undrain_node(self, rm_id: str, partition: str, node_id: str) -> bool:
        """Undo `drain_node`; a node that its RM drains stays drained.

        Returns True if the operator drained the node. Raises `UsageError` if there is no such node.
        """
        return self._switch(
            "undrain_node", rm_id, partition, lambda at: queue_admin.undrain_node(at, node_id)
        )

    def _switch(self, call: str, rm_id: str, name: str, switch: Callable[[Partition], bool]) -> bool:
        session = self._session_for(call, rm_id)
        changed = switch(self._at_work(rm_id, name).partition)
        session.flush()
        return changed


Kept = dict[str, dict[str, tuple[str, ...]]]
"""Names of objects by partition, by RM."""


class OperatorActions:
    """Drains and lasting stops of sessions that have ended, for the next registration of the same RM.

    An RM registers again after every loss of its connection, which must not undo what an operator did. A
    stopped partition accepts no nodes, so its stop cannot last: the RM could not report its state.
    """

    def __init__(self) -> None:
        self._drained: Kept = {}
        """Ids of nodes."""
        self._stopped: Kept = {}
        """Paths of queues."""

    def note(self, rm_id: str, partitions: RMPartitions) -> None:
        """Keep the actions on the partitions of a session that ends."""
        at_work = partitions.by_name.items()
        _keep(self._drained, rm_id, {name: tuple(at.partition.drained_by_operator) for name, at in at_work})
        _keep(self._stopped, rm_id, {name: tuple(at.partition.queues.lasting_stops) for name, at in at_work})

    def repeat(self, rm_id: str, partitions: RMPartitions) -> None:
        """Repeat the actions in a new session, which has neither nodes nor dynamic queues yet."""
        for name, nodes in self._drained.pop(rm_id, {}).items():
            if name in partitions.by_name:
                for node_id in nodes:
                    partitions.by_name[name].partition.drain_node(node_id)
        for name, paths in self._stopped.pop(rm_id, {}).items():
            if name in partitions.by_name:
                partition = partitions.by_name[name].partition
                partition.queues.lasting_stops.update(dict.fromkeys(paths))
                for path in paths:
                    if partition.queue(path) is not None:
                        queue_admin.stop_queue(partition, path, lasting=True)


def _keep(kept: Kept, rm_id: str, found: dict[str, tuple[str, ...]]) -> None:
    present = {name: names for name, names in found.items() if names}
    kept.pop(rm_id, None)
    if present:
        kept[rm_id] = present
