"""Clusters of another size with the same kinds of nodes, and the capacity of nodes over time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction

import attrs

from yunikorn.errors import UsageError
from yunikorn.resources import Resource, Tally, grow
from yunikorn_lab.simulation.machines import MAX_NODES
from yunikorn_lab.simulation.rm_state import partition_name
from yunikorn_lab.simulation.workload import NodeEvent, NodeEventKind, WorkloadNode

Kind = tuple[str, Resource, frozenset[tuple[str, str]], float, frozenset[tuple[str, int]]]
"""Partition, resources, attributes, speed and devices of equal nodes."""


def thin_out(nodes: Sequence[WorkloadNode], fraction: Fraction) -> list[WorkloadNode]:
    """Return the first `fraction` of the nodes of each kind, in order; at least one node in total."""
    kinds = _by_kind(nodes)
    kept = _shares(kinds, max(round(len(nodes) * fraction), min(len(nodes), 1)), fraction)
    chosen = {node.name for kind, alike in kinds.items() for node in alike[: kept[kind]]}
    return [node for node in nodes if node.name in chosen]


def with_copies(
    nodes: Sequence[WorkloadNode], fraction: Fraction, taken: Collection[str] = ()
) -> list[WorkloadNode]:
    """Return the nodes, followed by copies, so that there are `fraction` (at least 1) times as many.

    Nodes of a kind are copied in turn. A copy is called `NAME-copy-2` and so on, or gets a higher number if
    the name occurs among the nodes or is `taken`. An attribute whose value is the name of the node has the
    name of the copy. Raises `UsageError` for too many nodes.
    """
    wanted = round(len(nodes) * fraction)
    if wanted > MAX_NODES:
        raise UsageError(f"{wanted} nodes are too many; the maximum is {MAX_NODES}")
    kinds = _by_kind(nodes)
    names = {node.name for node in nodes} | set(taken)
    copies: list[WorkloadNode] = []
    for kind, count in _shares(kinds, wanted, fraction).items():
        alike = kinds[kind]
        copies += (
            _copy(alike[index % len(alike)], index // len(alike) + 1, names)
            for index in range(len(alike), count)
        )
    return [*nodes, *copies]


def _copy(node: WorkloadNode, number: int, names: set[str]) -> WorkloadNode:
    while (name := f"{node.name}-copy-{number}") in names:
        number += 1
    names.add(name)
    attributes = {key: name if value == node.name else value for key, value in node.attributes.items()}
    return attrs.evolve(node, name=name, attributes=attributes)


def _by_kind(nodes: Sequence[WorkloadNode]) -> dict[Kind, list[WorkloadNode]]:
    kinds: dict[Kind, list[WorkloadNode]] = {}
    for node in nodes:
        attributes = frozenset((key, value) for key, value in node.attributes.items() if value != node.name)
        devices = frozenset(node.devices.items())
        kinds.setdefault((node.partition, node.resources, attributes, node.speed, devices), []).append(node)
    return kinds


def _shares(kinds: dict[Kind, list[WorkloadNode]], wanted: int, fraction: Fraction) -> dict[Kind, int]:
    """Return the number of nodes of each kind, `wanted` in total.

    Each kind has the whole part of its share. The kinds with the largest remainders have one more node each
    until there are enough; of equal remainders the kind that occurs first is served first.
    """
    shares = {kind: divmod(len(alike) * fraction, 1) for kind, alike in kinds.items()}
    found = {kind: int(whole) for kind, (whole, _) in shares.items()}
    rest = sorted(kinds, key=lambda kind: -shares[kind][1])
    for kind in rest[: max(wanted - sum(found.values()), 0)]:
        found[kind] += 1
    return found


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
