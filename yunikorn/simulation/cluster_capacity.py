"""Largest capacity that the nodes of a cluster have together, by partition."""

from __future__ import annotations

from collections.abc import Iterable

from yunikorn.resources import Resource, Tally, grow
from yunikorn.simulation.rm_state import partition_name
from yunikorn.simulation.workload import NodeEvent, NodeEventKind, WorkloadNode


def largest_capacities(nodes: Iterable[WorkloadNode], events: Iterable[NodeEvent]) -> dict[str, Tally]:
    """Return for each partition and resource type the most that all nodes have at any time.

    A drained node counts: it still has its capacity, and may be resumed.
    """
    largest: dict[str, Tally] = {}
    current: dict[str, Tally] = {}
    present: dict[str, tuple[str, Resource]] = {}

    def replace(node: WorkloadNode, resources: Resource | None) -> None:
        if (before := present.pop(node.name, None)) is not None:
            grow(current[before[0]], before[1], -1)
        if resources is None:
            return
        partition = partition_name(node.partition)
        present[node.name] = partition, resources
        now, most = current.setdefault(partition, {}), largest.setdefault(partition, {})
        grow(now, resources, 1)
        for name in resources:
            most[name] = max(most.get(name, 0), now.get(name, 0))

    for node in nodes:
        replace(node, node.resources)
    for event in events:
        if event.change is NodeEventKind.ADD:
            replace(event.node, event.node.resources)
        elif event.change is NodeEventKind.REMOVE:
            replace(event.node, None)
        elif event.change is NodeEventKind.CAPACITY and event.node.name in present:
            replace(event.node, event.resources)
    return largest
