"""Questions of the core to gang placement policies, and the choices of the default policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.topology.racks import domains, fill, gang, placed, racks, reason
from yunikorn.api import GangPart, GangPlacementPolicy, Node, PlacedGang, TopologyDomain


class ByTag(GangPlacementPolicy):
    """Domains as a tag of the application says; the last plan of two; no preferred level for long."""

    name = "by-tag"
    per_application = True
    compares = 2

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> float:
        """Return 0 for the block of the tag, by the path of the domain."""
        return 0.0 if domain.name.startswith(gang.app.tags.get("block", "b2")) else 1.0

    def refuses(self, gang: PlacedGang, domain: TopologyDomain) -> str | None:
        """Refuse the rack of the tag."""
        return "not this one" if domain.name == gang.app.tags.get("never", "b1/r2") else None

    def split(
        self, gang: PlacedGang, part: GangPart, count: int, room: Mapping[Any, int]
    ) -> Mapping[Any, int]:
        """Fill the domains in the opposite order of their names."""
        found: dict[Any, int] = {}
        for domain in sorted(room, key=lambda one: str(one.name), reverse=True):
            found[domain] = min(count, room[domain])
            count -= found[domain]
        return found

    def score(self, gang: PlacedGang, nodes: Sequence[Node]) -> float:
        """Return a higher number for the first block, whatever the rank."""
        return float(nodes[0].id.startswith("b1"))

    def gives_up_after(self, gang: PlacedGang, level: str, wait: float) -> float:
        """Return a tenth of the time."""
        return wait / 10


def by_tag(**keys: Any) -> Any:
    """Return an RM with the policy."""
    plugins = {"gang_placement_policies": [ByTag]}
    return racks(gangplacement="by-tag", plugins=plugins, **keys)


def test_best_of_several_plans_is_taken() -> None:
    rm = by_tag()
    gang(rm, "app", 4, "rack")
    # Both plans of the first two ranks are in the second block; of blocks, each has one plan.
    assert domains(placed(rm, "app"), 1) == ["b2"]
    gang(rm, "next", 4, "block")
    assert domains(placed(rm, "next"), 1) == ["b2"]


def test_members_are_divided_as_the_policy_says() -> None:
    rm = by_tag()
    gang(rm, "app", 18, "block")
    nodes = placed(rm, "app")
    assert [sum(node.startswith(rack) for node in nodes) for rack in ("b2-r1", "b2-r2")] == [2, 16]


def test_refused_domain_is_named_with_the_reason() -> None:
    rm = by_tag(blocks=1)
    fill(rm, "b1-r1-n1", 8)
    gang(rm, "app", 16, "rack")
    assert placed(rm, "app") == []
    assert "rack b1/r2: not this one" in reason(rm, "app")


def test_policy_gives_up_a_preferred_level_earlier() -> None:
    rm = by_tag()
    gang(rm, "app", 20, {"required": "block", "preferred": [{"level": "rack", "for": "10m"}]})
    assert placed(rm, "app") == []
    rm.pass_time(59)
    assert placed(rm, "app") == []
    rm.pass_time(1)
    assert len(placed(rm, "app")) == 20


@pytest.mark.parametrize(
    ("policy", "shares"), [("best-fit", [16, 8]), ("least-free", [16, 8]), ("balanced", [12, 12])]
)
def test_default_policies_divide_a_gang(policy: str, shares: list[int]) -> None:
    rm = racks(blocks=1, per_block=3, gangplacement=policy)
    gang(rm, "app", 24, "block")
    nodes = placed(rm, "app")
    found = [sum(node.startswith(f"b1-r{rack}") for node in nodes) for rack in (1, 2, 3)]
    assert sorted(found, reverse=True) == [*shares, 0]


@pytest.mark.parametrize(("policy", "block"), [("best-fit", "b1"), ("least-free", "b2"), ("balanced", "b1")])
def test_default_policies_choose_a_block(policy: str, block: str) -> None:
    rm = racks(gangplacement=policy)
    # The first block has a rack with room for all members; the second one has less room.
    for node, gpu in (("b1-r2-n1", 8), ("b2-r1-n1", 6), ("b2-r2-n1", 6)):
        fill(rm, node, gpu)
    gang(rm, "app", 12, "block")
    assert domains(placed(rm, "app"), 1) == [block]


def test_best_fit_gathers_gangs_where_the_most_applications_run() -> None:
    rm = racks(blocks=2, per_block=3)
    # One gang leaves less room in its block than two tasks, but ends at one time.
    gang(rm, "large", 32, {"required": "block"})
    assert domains(placed(rm, "large")) == ["b1-r1", "b1-r2"]
    for node in ("b2-r1-n1", "b2-r2-n1"):
        fill(rm, node, 1)
    gang(rm, "app", 16, "rack")
    assert domains(placed(rm, "app")) == ["b2-r3"]
    gang(rm, "small", 2, "rack")
    assert domains(placed(rm, "small")) == ["b2-r1"]
    fill(rm, "b2-r2-n2", 1)
    gang(rm, "next", 2, "rack")
    assert domains(placed(rm, "next")) == ["b2-r1"], (
        "two applications run in each, and this one has less room"
    )


class Applications(GangPlacementPolicy):
    """The domain with the fewest applications in it and beside it."""

    name = "applications"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> tuple[float, ...]:
        """Return the numbers of applications in the domain and in that above."""
        return domain.applications, 0 if domain.parent is None else domain.parent.applications


def test_applications_of_a_domain_are_counted_once_and_follow_starts_and_ends() -> None:
    plugins = {"gang_placement_policies": [Applications]}
    rm = racks(blocks=1, per_block=3, gangplacement="applications", plugins=plugins)
    gang(rm, "many", 4, "rack")
    assert domains(placed(rm, "many")) == ["b1-r1"]
    for node in ("b1-r2-n1", "b1-r2-n2", "b1-r3-n1", "b1-r3-n2"):
        fill(rm, node, 1)
    gang(rm, "app", 2, "rack")
    assert domains(placed(rm, "app")) == ["b1-r1"], "the members of one gang are one application"
    for node in ("b1-r3-n1", "b1-r3-n2"):
        rm.release(f"filler-{node}", key=f"filler-{node}-t")
    gang(rm, "next", 2, "rack")
    assert domains(placed(rm, "next")) == ["b1-r3"]
