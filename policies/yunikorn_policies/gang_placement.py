"""Default gang placement policies: `best-fit`, `least-free` and `balanced`.

A partition selects one of them:

    partitions:
      - name: default
        topology: [block, rack]
        gangplacement: balanced

To write a policy, copy one of these classes into a module with the hook at the end of this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import attrs

from yunikorn.api import GangPart, GangPlacementPolicy, PlacedGang, TopologyDomain, hookimpl

_Domain = TypeVar("_Domain", bound=TopologyDomain)


def left_over(gang: PlacedGang, domain: TopologyDomain) -> int:
    """Return the number of further members of each part that a domain would have room for, as a sum."""
    return sum([domain.room(part) - part.count for part in gang.parts])


def domains_needed(part: GangPart, domain: TopologyDomain) -> int:
    """Return the smallest number of domains one level below that have room for a part."""
    children = domain.children
    if not children:
        return 1
    left = part.count
    for needed, room in enumerate(sorted([child.room(part) for child in children], reverse=True), 1):
        left -= room
        if left <= 0:
            return needed
    return 1


@attrs.frozen
class BestFit(GangPlacementPolicy):
    """The domain that keeps the gang closest together, then is busy longest anyway, then fits best."""

    name = "best-fit"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> tuple[float, ...]:
        """Return the domains needed one level below, the applications above and here, and the room left.

        The more applications run in a domain, the later the last of them ends. Gangs gather where that is
        late in any case, and so leave the other domains to become idle for large gangs.
        """
        above = domain.parent
        if above is None:
            # The whole tree has no others beside it.
            return 0.0, 0.0, 0.0, 0.0
        needed = sum([domains_needed(part, domain) for part in gang.parts])
        # The whole tree, which has no level, may change without a new question about its domains.
        beside = above.applications if above.level else 0
        return needed, -beside, -domain.applications, left_over(gang, domain)


@attrs.frozen
class LeastFree(GangPlacementPolicy):
    """The domain with the least room that is enough."""

    name = "least-free"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> tuple[float, ...]:
        """Return the room that would be left."""
        return (left_over(gang, domain),)


@attrs.frozen
class Balanced(BestFit):
    """As best-fit, with equal numbers of members in each of the fewest domains below.

    For work in which all members exchange data with all others, where the largest share is the slowest.
    """

    name = "balanced"

    def split(
        self, gang: PlacedGang, part: GangPart, count: int, room: Mapping[_Domain, int]
    ) -> Mapping[_Domain, int]:
        """Return equal shares of the fewest domains, as far as their room permits."""
        largest = sorted(room, key=room.__getitem__, reverse=True)
        found: dict[_Domain, int] = {}
        left, chosen = min(count, sum(room.values())), []
        for domain in largest:
            chosen.append(domain)
            left -= room[domain]
            if left <= 0:
                break
        left = min(count, sum(room.values()))
        for number, domain in enumerate(reversed(chosen)):
            found[domain] = min(room[domain], -(-left // (len(chosen) - number)))
            left -= found[domain]
        return found


@hookimpl
def yunikorn_gang_placement_policies() -> list[type[GangPlacementPolicy]]:
    """Return the default policies."""
    return [BestFit, LeastFree, Balanced]
