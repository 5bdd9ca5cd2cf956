"""Nodes of a snapshot, as those of a workload."""

from __future__ import annotations

from io import BytesIO

from yunikorn.clock import ManualClock
from yunikorn.errors import Problem
from yunikorn.framework.policy_calls import NoWorkers
from yunikorn.framework.registry import Registry
from yunikorn.resources import subtract
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.workload import WorkloadNode
from yunikorn_snapshots.snapshot_errors import SnapshotError


def read_snapshot_nodes(content: bytes, file: str, registry: Registry | None = None) -> list[WorkloadNode]:
    """Return the nodes of a snapshot, without what others than the scheduler occupy; raises `InputError`."""
    with importing_extra("foresight", "for snapshots"):
        from yunikorn_snapshots.restored_snapshot import read_header, restored_scheduler
    try:
        clock = ManualClock(read_header(BytesIO(content)).time)
        scheduler = restored_scheduler(
            BytesIO(content), registry or load_registry(), clock, workers=NoWorkers()
        )
    except SnapshotError as error:
        raise InputError(file, [Problem("", str(error))]) from error
    rm_ids = {rm_id for rm_id, at in scheduler.all_partitions() if at.partition.nodes}
    if len(rm_ids) > 1:
        raise InputError(
            file, [Problem("", f"nodes of {len(rm_ids)} resource managers cannot be those of one workload")]
        )
    return [
        WorkloadNode(node.id, subtract(node.capacity, node.occupied), dict(node.attributes), at.name)
        for _, at in scheduler.all_partitions()
        for node in at.partition.nodes.values()
    ]
