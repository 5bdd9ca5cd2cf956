"""The default predicates, called directly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.framework.kinds import PREDICATE
from yunikorn.framework.registry import Registry

SELECTOR = "yunikorn.apache.org/node-selector"
TOLERATIONS = "yunikorn.apache.org/tolerations"


@pytest.mark.parametrize(
    ("selector", "met"),
    [
        ("", True),
        ("zone=a", True),
        ("zone == a", True),
        ("zone=b", False),
        ("zone!=b", True),
        ("zone!=a", False),
        ("rack=r7", False),
        ("rack!=r7", True),
        ("disk in (ssd, nvme)", True),
        ("disk in (hdd)", False),
        ("disk notin (ssd,nvme)", False),
        ("rack notin (r1, r2)", True),
        ("gpu", True),
        ("!gpu", False),
        ("!rack", True),
        ("rack", False),
        ("zone=a, disk in (ssd, nvme),gpu,!rack , kubernetes.io/arch=arm64", True),
        ("zone=a, disk in (hdd, tape), gpu", False),
    ],
)
def test_selectors_match_node_attributes(
    registry: Registry, make_ask: Any, make_node: Any, selector: str, met: bool
) -> None:
    node = make_node({"zone": "a", "disk": "ssd", "gpu": "", "kubernetes.io/arch": "arm64"})
    predicate = registry.make(PREDICATE, "node-selector", {})
    for ask in (make_ask({SELECTOR: selector}), make_ask({}, {SELECTOR: selector})):
        assert (predicate.check(ask, node) is None) is met


def test_selectors_of_application_and_ask_both_apply(
    registry: Registry, make_ask: Any, make_node: Any
) -> None:
    predicate = registry.make(PREDICATE, "node-selector", {})
    ask = make_ask({SELECTOR: "disk=ssd"}, {SELECTOR: "zone=a"})
    assert predicate.check(ask, make_node({"zone": "a", "disk": "ssd"})) is None
    assert predicate.check(ask, make_node({"zone": "a"})) == (
        "the node selector requires disk=ssd, the node has no disk"
    )
    assert predicate.check(ask, make_node({"zone": "b", "disk": "ssd"})) == (
        "the node selector requires zone=a, the node has zone=b"
    )


@pytest.mark.parametrize(
    "selector",
    ["=a", "zone=", "zone=a,", "a b", "disk in ssd", "disk in ()", "disk in (a", "!zone=a", "a=(b)"],
)
def test_invalid_selector_is_a_reason(
    registry: Registry, make_ask: Any, make_node: Any, selector: str
) -> None:
    reason = registry.make(PREDICATE, "node-selector", {}).check(make_ask({SELECTOR: selector}), make_node())
    assert reason.startswith("the node selector cannot be read: ")
    assert "key in (a, b)" in reason
    assert SELECTOR in reason


def test_selectors_can_be_restricted_to_keys(registry: Registry, make_ask: Any, make_node: Any) -> None:
    predicate = registry.make(PREDICATE, "node-selector", {"keys": ["zone"], "tag": "where"})
    one, two = make_node({"zone": "a", "si/hostname": "h1"}), make_node({"zone": "a", "si/hostname": "h2"})
    assert predicate.node_class(one) == predicate.node_class(two)
    assert predicate.check(make_ask({"where": "zone=a"}), one) is None
    assert "may not use 'disk', only zone" in predicate.check(make_ask({"where": "disk=ssd"}), one)


@pytest.mark.parametrize(
    ("taints", "tolerations", "allowed"),
    [
        ("", "", True),
        ("team=red:NoSchedule", "", False),
        ("team=red:NoSchedule", "team=red:NoSchedule", True),
        ("team=red:NoSchedule", "team=red", True),
        ("team=red:NoSchedule", "team", True),
        ("team=red:NoSchedule", "team:NoSchedule", True),
        ("team=red:NoSchedule", "*", True),
        ("team=red:NoSchedule", "team=blue", False),
        ("team=red:NoSchedule", "team=red:NoExecute", False),
        ("team=red:NoExecute", "team=red", True),
        ("old", "", False),
        ("old", "old:NoSchedule", True),
        ("old", "old=", True),
        ("old:PreferNoSchedule", "", True),
        ("team=red:NoSchedule, old:NoExecute", "team=red", False),
        ("team=red:NoSchedule, old:NoExecute", "old, team=red", True),
        ("team=red:NoSchedule,", "*:NoSchedule", True),
    ],
)
def test_taints_need_tolerations(
    registry: Registry, make_ask: Any, make_node: Any, taints: str, tolerations: str, allowed: bool
) -> None:
    predicate = registry.make(PREDICATE, "taints", {})
    node = make_node({"taints": taints})
    for ask in (make_ask({TOLERATIONS: tolerations}), make_ask({}, {TOLERATIONS: tolerations})):
        assert (predicate.check(ask, node) is None) is allowed


def test_invalid_taints_are_a_reason(registry: Registry, make_ask: Any, make_node: Any) -> None:
    predicate = registry.make(PREDICATE, "taints", {})
    assert predicate.check(make_ask(), make_node({"taints": "a b"})) == (
        "the node's taints cannot be read: 'a b' is not KEY, KEY=VALUE or KEY=VALUE:EFFECT (attribute taints)"
    )
    reason = predicate.check(make_ask({TOLERATIONS: "a:Never"}), make_node({"taints": "a:NoSchedule"}))
    assert reason.startswith("the tolerations cannot be read: 'Never' is not an effect")


VALUES = st.sampled_from(
    ["", "a", "b", "a=b", "zone=a", "zone!=a", "a:NoSchedule", "a=b:NoExecute", "zone in (a"]
)
ATTRIBUTES = st.dictionaries(st.sampled_from(["zone", "taints", "a"]), VALUES)
TAGS = st.dictionaries(st.sampled_from([SELECTOR, TOLERATIONS]), VALUES | st.text(max_size=8))
REGISTRY = Registry.load(third_party=False)


@pytest.mark.parametrize("name", ["node-selector", "taints"])
@given(asks=st.lists(st.tuples(TAGS, TAGS), min_size=2, max_size=4), nodes=st.lists(ATTRIBUTES, min_size=2))
def test_equal_classes_get_equal_answers_and_nothing_raises(
    name: str, asks: list[Any], nodes: list[dict[str, str]]
) -> None:
    predicate = REGISTRY.make(PREDICATE, name, {})
    answers: dict[Any, str | None] = {}
    for tags, app_tags in asks:
        ask = _Thing(tags=tags, app=_Thing(tags=app_tags))
        for attributes in nodes:
            node = _Thing(attributes=attributes)
            answer = predicate.check(ask, node)
            known = answers.setdefault((predicate.ask_class(ask), predicate.node_class(node)), answer)
            assert known == answer


class _Thing:
    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)
