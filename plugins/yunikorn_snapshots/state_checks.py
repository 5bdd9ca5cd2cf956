"""Checks of a restored scheduler: what it counts is what it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.resources import without_zeros
from yunikorn_snapshots.process_parts import partitions_of
from yunikorn_snapshots.snapshot_errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from yunikorn.accounting.partition import Partition
    from yunikorn.interface.scheduler import Scheduler


def check_state(scheduler: Scheduler) -> None:
    """Compute the sums of nodes, applications and queues again; raise `SnapshotError` if one is another."""
    for session, name, at in partitions_of(scheduler):
        wrong = next(_wrong_sums(at.partition), "")
        if wrong:
            raise SnapshotError(f"the accounting of partition {name} of {session.label} is wrong: {wrong}")


def _wrong_sums(partition: Partition) -> Iterator[str]:
    for node_id, node in partition.nodes.items():
        if not _is_sum(node.allocated, (one.resource for one in node.allocations.values())):
            yield f"node {node_id} has other allocations than it counts"
        if node.id != node_id or any(one.node is not node for one in node.allocations.values()):
            yield f"node {node_id} has allocations of other nodes"
    for app_id, app in partition.applications.items():
        if app.id != app_id or not _is_sum(app.allocated, (one.resource for one in app.allocations.values())):
            yield f"application {app_id} has other allocations than it counts"
        if any(one.uuid != uuid or one.app is not app for uuid, one in app.allocations.items()):
            yield f"application {app_id} has allocations of others"
    for queue in partition.queues:
        members = queue.applications.values() if queue.is_leaf else queue.children.values()
        if not _is_sum(queue.allocated, (one.allocated for one in members)):
            yield f"queue {queue.path} counts other allocations than its members"


def _is_sum(total: Mapping[str, int], amounts: Iterable[Mapping[str, int]]) -> bool:
    found: dict[str, int] = {}
    for amount in amounts:
        for name, value in amount.items():
            found[name] = found.get(name, 0) + value
    return without_zeros(total) == without_zeros(found)
