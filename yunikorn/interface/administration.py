"""Actions of an operator on applications, queues, partitions and nodes of one resource manager.

`Scheduler` has the public methods, which name the resource manager and send the messages that follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from yunikorn.errors import UsageError
from yunikorn.text import listed, suggest

if TYPE_CHECKING:
    from yunikorn.interface.rm_partitions import RMPartitions
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


class DrainedNodes:
    """Nodes that an operator drained in sessions that have ended, for the next registration of the same RM.

    An RM registers again after every loss of its connection, which must not undo what an operator did.
    """

    def __init__(self) -> None:
        self._drained: dict[str, dict[str, tuple[str, ...]]] = {}
        """Ids of nodes by partition, by RM."""

    def note(self, rm_id: str, partitions: RMPartitions) -> None:
        """Keep the drained nodes of a session that ends."""
        found = {name: tuple(at.partition.drained_by_operator) for name, at in partitions.by_name.items()}
        found = {name: nodes for name, nodes in found.items() if nodes}
        self._drained.pop(rm_id, None)
        if found:
            self._drained[rm_id] = found

    def repeat(self, rm_id: str, partitions: RMPartitions) -> None:
        """Drain the nodes in a new session, which has none of them yet."""
        for name, nodes in self._drained.pop(rm_id, {}).items():
            if name in partitions.by_name:
                for node_id in nodes:
                    partitions.by_name[name].partition.drain_node(node_id)
