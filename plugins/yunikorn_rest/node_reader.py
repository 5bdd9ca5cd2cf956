"""Readers of nodes: from objects of the core to shapes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from yunikorn.interface.constants import HOST_NAME, RACK_NAME
from yunikorn_rest import shapes
from yunikorn_rest.application_reader import in_steps, present, read_allocation
from yunikorn_rest.queue_reader import percentages
from yunikorn_rest.topology_reader import domains_with

if TYPE_CHECKING:
    from yunikorn.model.foreign_allocation import ForeignAllocation
    from yunikorn.model.node import Node
    from yunikorn.scheduling.topology.topology_tree import Topology

STEP = 50
"""Number of nodes whose use is counted without a pause."""
BUCKETS = ("0-10%", *(f"{low}-{low + 10}%" for low in range(10, 100, 10)))
"""Names of the ranges of use."""


def read_node(node: Node, topology: Topology) -> Generator[None, None, shapes.Node]:
    """Read a node, with pauses if it has many allocations.

    The node itself, with its sums and the lists of its allocations, is of one moment.
    """
    allocations = list(node.allocations.values())
    foreign = [one for one in node.foreign.values() if not one.awaited]
    found = _scalars(node, topology)
    return shapes.Node(
        allocations=(yield from in_steps(allocations, read_allocation)),
        foreign_allocations=(yield from in_steps(foreign, read_foreign)),
        **found,
    )


def read_summary(node: Node, topology: Topology) -> shapes.Node:
    """Read a node without its allocations."""
    return shapes.Node(**_scalars(node, topology))


def _scalars(node: Node, topology: Topology) -> dict[str, Any]:
    allocated, attributes = node.allocated, node.attributes
    return {
        "node_id": node.id,
        "host_name": attributes.get(HOST_NAME, ""),
        "rack_name": attributes.get(RACK_NAME, ""),
        "attributes": attributes,
        "capacity": node.capacity,
        "allocated": allocated,
        "occupied": node.occupied,
        "available": dict(node.available),
        "utilized": percentages(node.capacity, allocated),
        "schedulable": node.schedulable,
        "drained_by": drained_by(node),
        "is_reserved": bool(node.reservations),
        "reservations": tuple(ask.key for ask in node.reservations),
        "domains": domains_with(topology, node),
    }


def drained_by(node: Node) -> tuple[str, ...]:
    """Return who drains a node."""
    causes = (("resourceManager", node.drained_by_rm), ("operator", node.drained_by_operator))
    return tuple(cause for cause, drains in causes if drains)


def read_foreign(foreign: ForeignAllocation) -> shapes.ForeignAllocation:
    """Read a foreign allocation."""
    return shapes.ForeignAllocation(
        allocation_key=foreign.key,
        allocation_tags=foreign.tags,
        allocation_time=foreign.placed,
        resource=foreign.resource,
        priority=str(foreign.priority),
        node_id=foreign.node.id,
        preemptable=not foreign.fixed,
    )


def read_utilization(
    nodes: Iterable[Node],
) -> Generator[None, None, tuple[shapes.TypeUtilization, ...]]:
    """Sort nodes into ranges of their use, per resource type that they have."""
    found: dict[str, list[list[str]]] = {}
    for index, node in enumerate(nodes):
        used = present(node.allocated)
        for name, bucket in buckets_of(node.capacity, used).items():
            ranges = found.get(name)
            if ranges is None:
                ranges = found[name] = [[] for _ in BUCKETS]
            ranges[bucket].append(node.id)
        if index % STEP == STEP - 1:
            yield
    return tuple(
        shapes.TypeUtilization(
            type=name,
            utilization=tuple(
                shapes.Bucket(bucket_name=bucket, num_of_nodes=len(ids), node_names=tuple(ids))
                for bucket, ids in zip(BUCKETS, found[name], strict=True)
            ),
        )
        for name in sorted(found)
    )


def buckets_of(capacity: Mapping[str, int], used: Mapping[str, int]) -> dict[str, int]:
    """Return the range of use per resource type; use above the capacity is in the last range."""
    found = {}
    for name, most in capacity.items():
        if most > 0:
            percent = used.get(name, 0) * 100 // most
            found[name] = min(max(0, -(-percent // 10) - 1), len(BUCKETS) - 1)
    return found
