"""A gang placement policy for YuniKorn: blocks as Slurm's plugin topology/block chooses them.

partitions:
  - name: default
    topology: [aggregate, block]
    gangplacement: slurm-blocks

The innermost level has the base blocks, each level above an enforced larger size. A gang that prefers the
levels from the closest on is placed in a domain of the smallest level that fits. Among lower blocks, those
that the job uses already come first, then the one that fits with the fewest free nodes, and if none fits,
those with the most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import attrs

from yunikorn.api import GangPart, GangPlacementPolicy, PlacedGang, TopologyDomain, hookimpl

Domain = TypeVar("Domain", bound=TopologyDomain)


def in_use(gang: PlacedGang, domain: TopologyDomain) -> bool:
    """Return True if the job of the gang runs in the domain."""
    used = gang.app.allocations_by_node
    return bool(used) and any(node.id in used for node in domain.nodes)


@attrs.frozen
class SlurmBlocks(GangPlacementPolicy):
    """Blocks as Slurm's topology/block chooses them."""

    name = "slurm-blocks"
    per_application = True

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> tuple[float, ...]:
        """Prefer blocks in use by the job, then the fewest free nodes, then the best fit."""
        left = sum(domain.room(part) - part.count for part in gang.parts)
        return not in_use(gang, domain), domain.idle, left

    def split(
        self, gang: PlacedGang, part: GangPart, count: int, room: Mapping[Domain, int]
    ) -> Mapping[Domain, int]:
        """Take lower blocks one by one until all units have a place."""
        found: dict[Domain, int] = {}
        while count > 0 and len(found) < len(room):
            left = count
            chosen = min(
                (domain for domain in room if domain not in found),
                key=lambda domain: self._order(gang, domain, room[domain], left),
            )
            found[chosen] = min(count, room[chosen])
            count -= found[chosen]
        return found

    @staticmethod
    def _order(gang: PlacedGang, domain: TopologyDomain, room: int, count: int) -> tuple[float, ...]:
        if room >= count:
            return not in_use(gang, domain), 0, domain.idle, room
        return not in_use(gang, domain), 1, -domain.idle, -room


@hookimpl
def yunikorn_gang_placement_policies() -> list[type[GangPlacementPolicy]]:
    """Return the policy."""
    return [SlurmBlocks]
