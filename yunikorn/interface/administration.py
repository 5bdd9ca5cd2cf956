"""Objects that an operator names, and actions of an operator that outlast a session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from yunikorn.errors import UsageError
from yunikorn.scheduling import queue_admin
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
    if app is None and app_id in at.submitted:
        raise UsageError(at.submitted.why(app_id))
    if app is None:
        raise UsageError(
            f"there is no application '{app_id}' in partition {at.name}, or it has ended"
            f"{suggest(app_id, applications)}"
        )
    return app


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
