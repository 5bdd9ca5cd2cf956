"""Gang placement policies to compare with: simple ones, and the choices of other schedulers.

Each is the documented choice of a domain only, as far as `rank` and `split` express it; the rest is the core.
Several choices are equal where all members of a gang are alike, and have one entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar
from zlib import crc32

import attrs

from yunikorn.api import GangPart, GangPlacementPolicy, PlacedGang, TopologyDomain, hookimpl

Domain = TypeVar("Domain", bound=TopologyDomain)


def room_left(gang: PlacedGang, domain: TopologyDomain) -> int:
    """Return the room that a gang would leave."""
    return sum(domain.room(part) - part.count for part in gang.parts)


@attrs.frozen
class FirstByName(GangPlacementPolicy):
    """The first domain by name."""

    name = "first-by-name"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> float:
        """Return an equal rank for all domains."""
        return 0.0


@attrs.frozen
class Random(GangPlacementPolicy):
    """Any domain that fits, by a seed."""

    name = "random"
    seed: int = 0
    per_application = True

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> float:
        """Return a number that depends on the gang and the name of the domain."""
        return crc32(f"{self.seed} {gang.app.id} {domain.name}".encode())


@attrs.frozen
class MostFree(GangPlacementPolicy):
    """The domain with the most room, which spreads the load."""

    name = "most-free"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> float:
        """Return the negative room."""
        return -room_left(gang, domain)


@attrs.frozen
class KaiRatio(GangPlacementPolicy):
    """The fullest domain (request by room), and in it the largest domains first, as KAI-Scheduler."""

    name = "kai-ratio"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> float:
        """Return the negative ratio of members and room."""
        return -max(part.count / domain.room(part) for part in gang.parts)

    def split(
        self, gang: PlacedGang, part: GangPart, count: int, room: Mapping[Domain, int]
    ) -> Mapping[Domain, int]:
        """Fill the domains with the most room first."""
        return fill(sorted(room, key=room.__getitem__, reverse=True), count, room)


@attrs.frozen
class LeastFreeCapacity(GangPlacementPolicy):
    """The domain with the least room, and in it the smallest domains first, as Kueue's LeastFreeCapacity."""

    name = "kueue-least-free-capacity"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> float:
        """Return the room left."""
        return room_left(gang, domain)

    def split(
        self, gang: PlacedGang, part: GangPart, count: int, room: Mapping[Domain, int]
    ) -> Mapping[Domain, int]:
        """Fill the domains with the least room first."""
        return fill(sorted(room, key=room.__getitem__), count, room)


@attrs.frozen
class KubeScore(Random):
    """The domain whose processors and memory are used most, ties by a seed, as kube-scheduler 1.36."""

    name = "kube-scheduler"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> tuple[float, ...]:  # type: ignore[override]
        """Return the negative use of processors and memory with the gang, as hundredths, and a number."""
        use = 0
        for kind in ("vcore", "memory"):
            capacity = sum(node.capacity.get(kind, 0) for node in domain.nodes)
            free = sum(node.available.get(kind, 0) for node in domain.nodes)
            asked = sum(part.resource.get(kind, 0) * part.count for part in gang.parts)
            use += 100 * (capacity - free + asked) // capacity if capacity else 0
        return -(use // 2), super().rank(gang, domain)


def fill(domains: list[Domain], count: int, room: Mapping[Domain, int]) -> dict[Domain, int]:
    """Return as many units as fit for each domain in order."""
    found: dict[Domain, int] = {}
    for domain in domains:
        if count > 0:
            found[domain] = min(count, room[domain])
            count -= found[domain]
    return found


@hookimpl
def yunikorn_gang_placement_policies() -> list[type[GangPlacementPolicy]]:
    """Return the policies."""
    return [FirstByName, Random, MostFree, KaiRatio, LeastFreeCapacity, KubeScore]


OURS = ("best-fit", "least-free", "balanced")
EXAMPLE = "slurm-blocks"
"""Policy of the example package yunikorn-slurm-blocks."""
NAMES = (
    *OURS,
    "first-by-name",
    "random",
    "most-free",
    "kai-ratio",
    "kueue-least-free-capacity",
    "kube-scheduler",
    EXAMPLE,
)
