"""Sample gangs and domains of a topology, to call a gang placement policy directly."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from yunikorn.api import GangPart
from yunikorn.resources import NOTHING, Resource
from yunikorn_testing.samples import Amount, Amounts, ApplicationSample, NodeSample, amounts, application


@attrs.frozen(eq=False)
class GangPartSample:
    """Sample that implements `yunikorn.api.GangPart`."""

    task_group: str = ""
    resource: Resource = NOTHING
    count: int = 1


@attrs.frozen(eq=False)
class GangSample:
    """Sample that implements `yunikorn.api.PlacedGang`."""

    app: ApplicationSample
    parts: Sequence[GangPartSample]

    @property
    def size(self) -> int:
        """Number of members."""
        return sum(part.count for part in self.parts)


@attrs.frozen(eq=False)
class DomainSample:
    """Sample that implements `yunikorn.api.TopologyDomain`."""

    level: str = ""
    name: str = ""
    parent: DomainSample | None = attrs.field(default=None, repr=False)
    nodes: Sequence[NodeSample] = attrs.field(default=(), repr=False)
    _below: list[DomainSample] = attrs.field(factory=list, repr=False)

    @property
    def children(self) -> Sequence[DomainSample]:
        """Domains below."""
        return tuple(self._below)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def idle(self) -> int:
        """Number of nodes without allocated resources."""
        return sum(not any(node.allocated.values()) for node in self.nodes)

    @property
    def applications(self) -> int:
        """Number of applications with allocations on the nodes."""
        return len({one.app.id for node in self.nodes for one in node.allocations.values()})

    def room(self, part: GangPart) -> int:
        """Return how many members of a part fit, each on one node."""
        wanted = [(name, amount) for name, amount in part.resource.items() if amount > 0]
        return sum(
            min((max(0, node.available.get(name, 0)) // amount for name, amount in wanted), default=0)
            for node in self.nodes
        )

    def inside(self, level: str) -> list[DomainSample]:
        """Return the domains of a level in this one."""
        if self.level == level:
            return [self]
        return [found for child in self._below for found in child.inside(level)]


def gang_part(
    count: int = 1, task_group: str = "", *, resource: Amounts = NOTHING, **more: Amount
) -> GangPartSample:
    """Return equal members of a gang: `gang_part(8, "workers", vcore=4)`."""
    return GangPartSample(task_group, amounts({**resource, **more}), count)


def gang(*parts: GangPartSample, app: ApplicationSample | None = None) -> GangSample:
    """Return a gang: `gang(gang_part(8, vcore=4), gang_part(1, "driver", vcore=1))`."""
    return GangSample(app or application(), parts)


def topology(nodes: Sequence[NodeSample], levels: Sequence[str]) -> DomainSample:
    """Return the whole tree of domains of nodes, by the values of these attributes, the outermost first."""
    return _with_children(DomainSample("", "", None, tuple(nodes)), levels)


def _with_children(domain: DomainSample, levels: Sequence[str]) -> DomainSample:
    by_value: dict[str, list[NodeSample]] = {}
    for node in domain.nodes if levels else ():
        by_value.setdefault(node.attributes.get(levels[0], ""), []).append(node)
    for value, nodes in by_value.items():
        name = f"{domain.name}/{value}" if domain.name else value
        child = DomainSample(levels[0], name, domain, tuple(nodes))
        domain._below.append(_with_children(child, levels[1:]))
    return domain
