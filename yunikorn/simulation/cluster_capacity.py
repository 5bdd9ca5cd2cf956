"""Capacity of the nodes of a cluster over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from yunikorn.resources import Tally, grow
from yunikorn.simulation.rm_state import partition_name
from yunikorn.simulation.workload import NodeEvent, NodeEventKind, WorkloadNode


def node_changes(
    nodes: Iterable[WorkloadNode], events: Iterable[NodeEvent]
) -> Iterator[tuple[int, WorkloadNode, int]]:
    """Yield the changes of the capacity in order: time (ns), node, and 1 if it comes or -1 if it goes.

    A node with another capacity goes, and comes again. A drained node stays: it still has its capacity.
    """
    present: dict[str, WorkloadNode] = {}
    for node in nodes:
        present[node.name] = node
        yield 0, node, 1
    for event in events:
        before = present.get(event.node.name)
        after = before
        if event.change is NodeEventKind.ADD:
            after = event.node
        elif event.change is NodeEventKind.REMOVE:
            after = None
        elif event.change is NodeEventKind.CAPACITY and before is not None:
            after = attrs.evolve(before, resources=event.resources)
        if before is not None and after is not before:
            yield event.at, present.pop(event.node.name), -1
        if after is not None and after is not before:
            present[event.node.name] = after
            yield event.at, after, 1


def largest_capacities(nodes: Iterable[WorkloadNode], events: Iterable[NodeEvent]) -> dict[str, Tally]:
    """Return for each partition and resource type the most that all nodes have at any time."""
    largest: dict[str, Tally] = {}
    current: dict[str, Tally] = {}
    for _, node, sign in node_changes(nodes, events):
        partition = partition_name(node.partition)
        now, most = current.setdefault(partition, {}), largest.setdefault(partition, {})
        grow(now, node.resources, sign)
        for name in node.resources:
            most[name] = max(most.get(name, 0), now.get(name, 0))
    return largest
