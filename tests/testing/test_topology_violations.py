"""Contracts of topology sources and gang placement policies find mistakes: each plugin here makes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from tests.testing.test_contract_violations import broken_promises
from yunikorn.api import (
    GangPart,
    GangPlacementPolicy,
    Node,
    PlacedGang,
    Plugin,
    TopologyDomain,
    TopologySource,
)
from yunikorn_policies.gang_placement import LeastFree


class Racks(TopologySource):
    """One level, by an attribute."""

    name = "racks"
    levels: Any = ("rack",)

    def path(self, node: Node) -> Any:
        """Return the rack."""
        return [node.attributes.get("rack", "")]


class WithoutLevels(Racks):
    """No level."""

    name = "without-levels"
    levels = ()

    def path(self, node: Node) -> Any:
        """Return nothing."""
        return []


class TwiceTheSameLevel(Racks):
    """One level twice."""

    name = "twice-the-same-level"
    levels = ("rack", "rack")

    def path(self, node: Node) -> Any:
        """Return two racks."""
        return [node.attributes.get("rack", "")] * 2


class TooShort(Racks):
    """A path without the levels that a node lacks."""

    name = "too-short"

    def path(self, node: Node) -> Any:
        """Return the rack, if there is one."""
        return [node.attributes["rack"]] if "rack" in node.attributes else []


class ATextAsPath(Racks):
    """A text instead of a list."""

    name = "a-text-as-path"

    def path(self, node: Node) -> Any:
        """Return the rack."""
        return node.attributes.get("rack", "")


class ByCapacity(Racks):
    """Domains by the size of nodes."""

    name = "by-capacity"

    def path(self, node: Node) -> Any:
        """Return the cores."""
        return [str(node.capacity.get("vcore", 0))]


class NumbersOfRacks(Racks):
    """Domains by a number that users write."""

    name = "numbers-of-racks"

    def path(self, node: Node) -> Any:
        """Return the number without zeros in front."""
        return [str(int(node.attributes.get("number", "0")))]


def test_correct_source_passes_the_contract() -> None:
    assert broken_promises(Racks()) == {}


@pytest.mark.parametrize(
    ("source", "test"),
    [
        (WithoutLevels(), "test_levels_have_names_of_their_own"),
        (TwiceTheSameLevel(), "test_levels_have_names_of_their_own"),
        (TooShort(), "test_answers_are_valid"),
        (ATextAsPath(), "test_answers_are_valid"),
        (ByCapacity(), "test_path_depends_on_id_and_attributes_only"),
        (NumbersOfRacks(), "test_odd_texts_in_tags_are_answered"),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_mistakes_of_sources_are_found(source: Plugin, test: str) -> None:
    assert test in broken_promises(source)


class RanksNothing(LeastFree):
    """NaN as rank."""

    name = "ranks-nothing"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> Any:
        """Return no number."""
        return float("nan")


class RanksByLength(LeastFree):
    """Tuples of different length."""

    name = "ranks-by-length"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> Any:
        """Return a longer tuple for racks."""
        return (1, 0) if domain.level == "rack" else (1,)


class RanksByTheWholeTree(LeastFree):
    """Ranks that change with any node."""

    name = "ranks-by-the-whole-tree"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> Any:
        """Return the number of idle nodes above."""
        return domain.parent.idle if domain.parent is not None else 0


class RanksByTheUser(LeastFree):
    """Ranks by an attribute of the application, which is not declared."""

    name = "ranks-by-the-user"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> Any:
        """Return the length of the user's name."""
        return len(gang.app.user)


class RefusesWithoutReason(LeastFree):
    """False and True instead of a reason."""

    name = "refuses-without-reason"

    def refuses(self, gang: PlacedGang, domain: TopologyDomain) -> Any:
        """Return a boolean."""
        return domain.size > 2


class GivesTooMany(LeastFree):
    """All units to each domain."""

    name = "gives-too-many"

    def split(self, gang: PlacedGang, part: GangPart, count: int, room: Mapping[Any, int]) -> Any:
        """Return all for each."""
        return dict.fromkeys(room, count)


class GivesToOthers(LeastFree):
    """Units to domains that were not asked about."""

    name = "gives-to-others"

    def split(self, gang: PlacedGang, part: GangPart, count: int, room: Mapping[Any, int]) -> Any:
        """Return the domain above."""
        return {domain.parent: most for domain, most in room.items()}


class GivesTooFew(LeastFree):
    """Units to the largest domain only."""

    name = "gives-too-few"

    def split(self, gang: PlacedGang, part: GangPart, count: int, room: Mapping[Any, int]) -> Any:
        """Return one domain."""
        largest = max(room, key=room.__getitem__)
        return {largest: min(count, room[largest])}


class ScoresInVain(LeastFree):
    """A score without plans to compare."""

    name = "scores-in-vain"

    def score(self, gang: PlacedGang, nodes: Sequence[Node]) -> float:
        """Return the number of nodes."""
        return float(len(nodes))


class ComparesNothing(LeastFree):
    """No plan to compare."""

    name = "compares-nothing"
    compares = 0


class GivesUpBefore(LeastFree):
    """A negative time."""

    name = "gives-up-before"

    def gives_up_after(self, gang: PlacedGang, level: str, wait: float) -> float:
        """Return a time before the first attempt."""
        return wait - 1


class ReadsTheTree(LeastFree):
    """Attributes of the scheduler's own domains."""

    name = "reads-the-tree"

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> Any:
        """Read the domain behind the view."""
        return sum(getattr(child, "domain", None) is not None for child in domain.children)


@attrs.define(eq=False)
class CountsPlans(LeastFree):
    """Every domain has a rank of its own, by the order of questions."""

    name = "counts-plans"
    _asked: list[str] = attrs.field(init=False, factory=list)

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> Any:
        """Return the number of questions so far."""
        self._asked.append(domain.name)
        return len(self._asked)


@pytest.mark.parametrize(
    ("policy", "test"),
    [
        (RanksNothing(), "test_answers_are_valid"),
        (RanksByLength(), "test_ranks_have_one_length"),
        (RanksByTheWholeTree(), "test_rank_depends_only_on_what_it_is_asked_again_for"),
        (RanksByTheUser(), "test_answers_that_depend_on_the_application_are_declared"),
        (RefusesWithoutReason(), "test_answers_are_valid"),
        (GivesTooMany(), "test_answers_are_valid"),
        (GivesToOthers(), "test_answers_are_valid"),
        (GivesTooFew(), "test_answers_are_valid"),
        (ScoresInVain(), "test_score_is_asked_for"),
        (ComparesNothing(), "test_score_is_asked_for"),
        (GivesUpBefore(), "test_answers_are_valid"),
        (ReadsTheTree(), "test_only_documented_attributes_are_read"),
        (CountsPlans(), "test_repeated_calls_return_equal_answers"),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_mistakes_of_policies_are_found(policy: GangPlacementPolicy, test: str) -> None:
    assert test in broken_promises(policy, test)
