"""Readers of the topology: domains of a partition, with their use and the gangs in them."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING

import attrs

from yunikorn_rest.application_reader import present
from yunikorn_rest.topology_shapes import DomainGang, DomainReservation, DomainUse
from yunikorn_service.fields import NONE

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.node import Node
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler
    from yunikorn.scheduling.topology.topology_tree import Topology, TopologyTree, TreeDomain

STEP = 500
"""Number of domains that are looked at without a pause."""
WEIGHT = 300
"""Number of nodes and allocations that are counted without a pause."""


@attrs.frozen(eq=False)
class KnownDomain:
    """A domain with a name, and its tree."""

    tree: TopologyTree
    domain: TreeDomain

    @property
    def level(self) -> str:
        """Name of the level."""
        return self.tree.levels[self.domain.level]

    @property
    def name(self) -> str:
        """Names of the domain and of those above."""
        return self.domain.path

    @property
    def above(self) -> TreeDomain | None:
        """Next domain above that has a name."""
        return next((one for one in self.domain.chain if one is not self.domain and one.name), None)

    @property
    def names(self) -> list[str]:
        """Names from the outermost level to that of the domain."""
        return [one.name for one in self.domain.chain][-2::-1]

    def is_in(self, name: str) -> bool:
        """Return True for the domain of this name, and for those below."""
        return any(one.path == name for one in self.domain.chain if one.name)


def read_domains(topology: Topology, level: str = "") -> Generator[None, None, list[KnownDomain]]:
    """Return the domains with a name, each before those below; only those of a level if it is given."""
    found: list[KnownDomain] = []
    looked = 0
    for tree in topology.trees:
        if level and level not in tree.numbers:
            continue
        deepest = tree.numbers[level] if level else len(tree.levels) - 1
        left = list(tree.root.children.values())[::-1]
        while left:
            domain = left.pop()
            if domain.name and (not level or domain.level == deepest):
                found.append(KnownDomain(tree, domain))
            if domain.level < deepest:
                left += list(domain.children.values())[::-1]
            looked += 1
            if looked % STEP == 0:
                yield
    return found


def domains_of(at: PartitionScheduler, app_id: str) -> set[TreeDomain]:
    """Return the domains where an application has allocations, or where nodes are reserved for it."""
    partition = at.partition
    app = partition.applications.get(app_id)
    if app is None:
        return set()
    nodes = {one.node for one in app.allocations.values()}
    reserved = partition.accounting.node_reservations.nodes
    nodes.update(node for node in reserved if any(ask.app is app for ask in node.reservations))
    found: set[TreeDomain] = set()
    for tree in at.policies.topology.trees:
        for innermost in {tree.domain_of[node] for node in nodes if node in tree.domain_of}:
            found.update(innermost.chain)
    return found


def reserved_for(at: PartitionScheduler, known: KnownDomain) -> str:
    """Return the application for whose gang a domain is kept while work there ends; empty for none."""
    label = f"{known.level} {known.name}"
    kept = at.cycle.atomic.domains.by_gang
    return next((gang.app.id for gang, one in kept.items() if one.label == label), "")


def domains_with(topology: Topology, node: Node) -> dict[str, str]:
    """Return the names of the domains that have a node by level, the outermost first."""
    found: dict[str, str] = {}
    for tree in topology.trees:
        for one in list(tree.domain_of[node].chain)[-2::-1]:
            if one.name:
                found[tree.levels[one.level]] = one.path
    return found


class _GangPart:
    """Members of a gang in a domain."""

    __slots__ = ("members", "resource")

    def __init__(self) -> None:
        self.members = 0
        self.resource: dict[str, int] = {}


class _DomainSums:
    """Sums over the nodes of a domain."""

    def __init__(self) -> None:
        self.total = self.idle = self.draining = self.reserved = 0
        self.capacity: dict[str, int] = {}
        self.available: dict[str, int] = {}
        self.occupied: dict[str, int] = {}
        self.free: dict[str, int] = {}
        self.gangs: dict[Application, _GangPart] = {}
        self.reservations: dict[Application, int] = {}

    def add(self, node: Node) -> None:
        """Add a node."""
        self.total += 1
        _grow(self.capacity, node.capacity)
        _grow(self.available, node.available)
        _grow(self.occupied, node.occupied)
        if node.is_free:
            self.idle += not node.allocations
            for name, amount in node.available.items():
                if amount > 0:
                    self.free[name] = self.free.get(name, 0) + amount
        self.draining += not node.schedulable
        if node.reservations:
            self.reserved += 1
            for app in {ask.app: None for ask in node.reservations}:
                self.reservations[app] = self.reservations.get(app, 0) + 1
        for one in node.allocations.values():
            if is_member(one):
                part = self.gangs.get(one.app)
                if part is None:
                    part = self.gangs[one.app] = _GangPart()
                part.members += 1
                _grow(part.resource, one.resource)

    @property
    def allocated(self) -> dict[str, int]:
        """Sum of the allocations: what is neither occupied nor available."""
        found = dict(self.capacity)
        for others in (self.occupied, self.available):
            for name, amount in others.items():
                found[name] = found.get(name, 0) - amount
        return present(found)

    @property
    def reserved_as_a_whole(self) -> str:
        """Application that all schedulable nodes are reserved for; empty if there is none."""
        wanted = self.total - self.draining
        return next((app.id for app, nodes in self.reservations.items() if nodes == wanted), "")


def _grow(sums: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        sums[name] = sums.get(name, 0) + amount


def is_member(allocation: Allocation) -> bool:
    """Return True for a member of a gang, or of an application without one that must be in a domain."""
    app = allocation.app
    if allocation.task_group:
        return True
    return app.topology is not None and app.gang is None and app.atomic is None


def read_domain(
    at: PartitionScheduler, known: KnownDomain, *, with_nodes: bool = False
) -> Generator[None, None, DomainUse]:
    """Read a domain; sums over many nodes and allocations are counted with pauses.

    The result has no nodes if all of them have left meanwhile.
    """
    inside, sums, weight = known.domain.nodes, _DomainSums(), 0
    ids: list[str] = []
    for node in list(inside):
        if node not in inside:
            continue
        sums.add(node)
        if with_nodes:
            ids.append(node.id)
        weight += 1 + len(node.allocations)
        if weight >= WEIGHT:
            weight = 0
            yield
    above = known.above
    return DomainUse(
        level=known.level,
        name=known.name,
        parent="" if above is None else above.path,
        total_nodes=sums.total,
        idle_nodes=sums.idle,
        draining_nodes=sums.draining,
        reserved_nodes=sums.reserved,
        capacity=sums.capacity,
        allocated=sums.allocated,
        occupied=sums.occupied or NONE,
        free=sums.free,
        gangs=tuple(
            DomainGang(application_id=app.id, members=part.members, resource=part.resource)
            for app, part in sums.gangs.items()
        ),
        reservations=tuple(
            DomainReservation(application_id=app.id, nodes=nodes) for app, nodes in sums.reservations.items()
        ),
        reserved_for=reserved_for(at, known) or sums.reserved_as_a_whole,
        nodes=tuple(ids),
    )
