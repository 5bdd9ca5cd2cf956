"""Gang placement policies and topology sources that misbehave: contained, reported once, as documented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.topology.racks import domains, gang, placed, racks, reason
from yunikorn import api
from yunikorn.errors import ConfigError


def policy(**members: Any) -> type[api.GangPlacementPolicy]:
    """Return a policy called `bad`, with these methods and attributes and an ordinary rank."""
    rank = members.pop("rank", lambda self, gang, domain: 0)
    return type("Bad", (api.GangPlacementPolicy,), {"name": "bad", "rank": rank, **members})


def bad_racks(cls: type[api.GangPlacementPolicy]) -> GangRM:
    """Return an RM with two blocks of two racks of two nodes, where a policy places gangs."""
    return racks(gangplacement="bad", plugins={"gang_placement_policies": [cls]})


def raising(*given: Any, **named: Any) -> Any:
    raise RuntimeError("broken")


def to_others(self: Any, gang: Any, part: Any, count: int, room: Any) -> Any:
    return {next(iter(room)).parent: count}


def emptied(self: Any, gang: Any, part: Any, count: int, room: Any) -> Any:
    room.clear()
    return {}


SPLITS: dict[str, Callable[..., Any]] = {
    "raises": raising,
    "too many": lambda self, gang, part, count, room: dict.fromkeys(room, count + 1),
    "too few": lambda self, gang, part, count, room: {},
    "negative": lambda self, gang, part, count, room: {one: -1 for one in room},
    "fractions": lambda self, gang, part, count, room: {one: count / len(room) for one in room},
    "true": lambda self, gang, part, count, room: dict.fromkeys(room, True),
    "texts": lambda self, gang, part, count, room: {one.name: most for one, most in room.items()},
    "unhashable": lambda self, gang, part, count, room: [([], 1)],
    "nothing": lambda self, gang, part, count, room: None,
    "a number": lambda self, gang, part, count, room: count,
    "to others": to_others,
    "changes its argument": emptied,
}
FAILING: dict[str, type[api.GangPlacementPolicy]] = {
    **{f"split: {what}": policy(split=answer) for what, answer in SPLITS.items()},
    "rank: NaN": policy(rank=lambda self, gang, domain: float("nan")),
    "rank: no number in a tuple": policy(rank=lambda self, gang, domain: (0, None)),
    "rank: a list": policy(rank=lambda self, gang, domain: [0]),
    "rank: raises": policy(rank=raising),
    "rank: a long tuple": policy(rank=lambda self, gang, domain: (0,) * 1_000),
    "score: raises": policy(score=raising, compares=2),
    "score: no number": policy(score=lambda self, gang, nodes: "1", compares=2),
    "compares: 0": policy(compares=0),
    "compares: a text": policy(compares="2"),
    "compares: raises": policy(compares=property(raising)),
}


@pytest.mark.parametrize("case", FAILING)
def test_gang_is_placed_in_one_block_though_the_policy_fails(case: str) -> None:
    rm = bad_racks(FAILING[case])
    gang(rm, "app", 20, "block")
    nodes = placed(rm, "app")
    assert (len(nodes), len(domains(nodes, 1))) == (20, 1)
    failures = list(rm.scheduler.failures)
    assert len({failure.message for failure in failures}) == len(failures), "each is reported once"
    assert {failure.plugin for failure in failures} == {"bad of test-plugin (yunikorn-test 1.0)"}


HARMLESS: dict[str, type[api.GangPlacementPolicy]] = {
    "ranks of different length": policy(
        rank=lambda self, gang, domain: (0,) * (1 + len(domain.name) % 2) if domain.name < "b2" else 7
    ),
    "an empty tuple": policy(rank=lambda self, gang, domain: ()),
    "an infinite rank": policy(rank=lambda self, gang, domain: float("inf")),
    "a million plans": policy(compares=10**6, score=lambda self, gang, nodes: -1.0),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_odd_answers_that_can_be_ordered_are_no_failures(case: str) -> None:
    rm = bad_racks(HARMLESS[case])
    gang(rm, "app", 20, "block")
    nodes = placed(rm, "app")
    assert (len(nodes), len(domains(nodes, 1))) == (20, 1)
    assert [*rm.scheduler.failures] == []


@pytest.mark.parametrize("answer", [lambda *given: True, lambda *given: 7, raising])
def test_policy_that_fails_to_check_a_domain_refuses_it(answer: Any) -> None:
    rm = bad_racks(
        policy(refuses=lambda self, gang, domain: answer() if domain.name.startswith("b1") else None)
    )
    gang(rm, "app", 4, "rack")
    assert domains(placed(rm, "app"), 1) == ["b2"]
    gang(rm, "large", 16, "rack", queue_name="root.b")
    gang(rm, "next", 16, "rack", queue_name="root.b")
    placed(rm, "next")
    assert "gang placement policy bad failed" in reason(rm, "next")
    assert {failure.plugin for failure in rm.scheduler.failures} == {"bad of test-plugin (yunikorn-test 1.0)"}


@pytest.mark.parametrize("answer", [-1.0, float("nan"), float("inf"), 1e12, "10m", None])
def test_time_of_the_request_counts_where_the_policy_gives_none(answer: Any) -> None:
    rm = bad_racks(policy(gives_up_after=lambda self, gang, level, wait: answer))
    gang(rm, "app", 20, {"required": "block", "preferred": [{"level": "rack", "for": "10m"}]})
    assert placed(rm, "app") == []
    rm.pass_time(599)
    assert placed(rm, "app") == []
    rm.pass_time(1)
    assert len(placed(rm, "app")) == 20
    assert len({failure.message for failure in rm.scheduler.failures}) == len([*rm.scheduler.failures]) > 0


def test_gang_parts_cannot_be_changed() -> None:
    rm = bad_racks(policy(rank=lambda self, gang, domain: gang.parts.clear()))
    gang(rm, "app", 20, "block")
    assert len(placed(rm, "app")) == 20
    assert [*rm.scheduler.failures]


# -- topology sources -----------------------------------------------------------------------------------


def source(path: Any, levels: Any = ("block", "rack")) -> type[api.TopologySource]:
    """Return a source called `bad`."""
    return type("Bad", (api.TopologySource,), {"name": "bad", "levels": levels, "path": path})


def right(self: Any, node: api.Node) -> list[str]:
    return [node.attributes["block"], node.attributes["rack"]]


PATHS: dict[str, Any] = {
    "too short": lambda self, node: ["b1"],
    "too long": lambda self, node: ["b1", "r1", "n1"],
    "a text": lambda self, node: "b1",
    "a set": lambda self, node: {"b1", "r1"},
    "numbers": lambda self, node: [1, 2],
    "nothing": lambda self, node: None,
    "raises": raising,
}


@pytest.mark.parametrize("case", PATHS)
def test_node_whose_source_fails_lacks_all_levels(case: str) -> None:
    bad = PATHS[case]
    cls = source(lambda self, node: bad(self, node) if node.id.endswith("n1") else right(self, node))
    rm = racks(topology=[{"name": "bad"}], plugins={"topology_sources": [cls]})
    gang(rm, "app", 8, "rack")
    gang(rm, "large", 9, "rack", queue_name="root.b")
    assert set(placed(rm, "app")) == {"b1-r1-n2"}
    assert placed(rm, "large") == []
    assert {failure.plugin for failure in rm.scheduler.failures} == {"bad of test-plugin (yunikorn-test 1.0)"}
    assert len({failure.message for failure in rm.scheduler.failures}) == len([*rm.scheduler.failures]) > 0


@pytest.mark.parametrize(
    "levels",
    [(), ("rack", "rack"), ("",), (1,), "rack", None, pytest.param(property(raising), id="raising")],
    ids=str,
)
def test_source_without_sound_levels_cannot_be_used(levels: Any) -> None:
    with pytest.raises(ConfigError, match="reading its levels"):
        racks(topology=[{"name": "bad"}], plugins={"topology_sources": [source(right, levels)]})
