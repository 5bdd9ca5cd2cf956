"""Warnings about rules, queues and limits that have no effect."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from yunikorn.config.load import check_config
from yunikorn.framework.registry import Registry
from yunikorn_lab.config_effects import check_effects

OPEN = {"name": "root", "submitacl": "*"}
FIXED = {"name": "fixed", "value": "root.a.b"}
QUEUES = [{"name": "a", "queues": [{"name": "b"}]}, {"name": "people", "parent": True}]


def warnings(
    registry: Registry, rules: list[Any], queues: list[Any], root: dict[str, Any] | None = None
) -> list[tuple[str, str]]:
    """Return the paths and texts of the warnings, each of which has a place."""
    top = {**(root or OPEN), "queues": queues}
    text = yaml.safe_dump({"partitions": [{"name": "default", "placementrules": rules, "queues": [top]}]})
    outcome = check_config(text, registry, [check_effects])
    assert outcome.valid, outcome.problems
    assert all(one.line and one.column for one in outcome.warnings)
    return [(one.path, one.message) for one in outcome.warnings]


def test_rules_after_one_that_always_matches_are_never_used(registry: Registry) -> None:
    found = warnings(registry, [{"name": "user"}, FIXED, {"name": "provided"}, {"name": "user"}], QUEUES)
    assert [path for path, _ in found] == [f"partitions[0].placementrules[{index}]" for index in (2, 3)]
    assert found[0][1] == (
        "this rule is never used, because rule 2 (fixed) places every application: put rule 2 last, or"
        " give it a filter"
    )


@pytest.mark.parametrize(
    "rule",
    [
        {**FIXED, "filter": {"users": ["ann"]}},
        {"name": "user", "parent": {"name": "fixed", "value": "root.people"}},
        {"name": "fixed", "value": "b", "parent": {**FIXED, "value": "root.a", "filter": {"users": ["x"]}}},
    ],
)
def test_rules_that_may_not_match_hide_nothing(registry: Registry, rule: dict[str, Any]) -> None:
    assert warnings(registry, [rule, {"name": "provided"}], QUEUES) == []


def test_a_queue_that_is_not_open_to_all_hides_nothing(registry: Registry) -> None:
    closed = {"name": "root", "submitacl": "ann"}
    assert warnings(registry, [FIXED, {"name": "provided"}], QUEUES, closed) == []
    opened = [{"name": "a", "queues": [{"name": "b", "submitacl": "*"}]}]
    assert len(warnings(registry, [FIXED, {"name": "provided"}], opened, closed)) == 1


def test_queues_that_no_rule_leads_to_are_named(registry: Registry) -> None:
    people = {"name": "user", "create": True, "parent": {"name": "fixed", "value": "root.people"}}
    queues = [*QUEUES, {"name": "c"}, {"name": "default"}, {"name": "e", "queues": [{"name": "f"}]}]
    found = warnings(registry, [people, FIXED], queues)
    assert [path.rpartition(".")[0] for path, _ in found] == [
        "partitions[0].queues[0].queues[2]",
        "partitions[0].queues[0].queues[4].queues[0]",
    ]
    assert found[0][1].startswith("no placement rule leads to this queue: add a rule")


@pytest.mark.parametrize("rule", [{"name": "provided"}, {"name": "tag", "value": "q"}, {"name": "user"}])
def test_rules_that_may_name_a_queue_lead_to_it(registry: Registry, rule: dict[str, Any]) -> None:
    assert warnings(registry, [rule, FIXED], [{"name": "a", "queues": [{"name": "b"}]}, {"name": "c"}]) == []
    assert warnings(registry, [], [{"name": "c"}]) == []


def test_limits_above_the_max_of_a_queue_above_are_never_reached(registry: Registry) -> None:
    limit = {"users": ["ann"], "maxresources": {"memory": "8Gi", "vcore": 2}}
    inner = {"name": "b", "limits": [limit]}
    queues = [{"name": "a", "resources": {"max": {"memory": "4Gi"}}, "queues": [inner]}]
    ((path, text),) = warnings(registry, [], queues)
    assert path.endswith("queues[0].queues[0].limits[0].maxresources.memory")
    assert text == (
        "memory 8Gi is never reached, because a queue above root.a.b has at most memory 4Gi: lower the limit,"
        " or leave it out"
    )


def test_queues_of_rules_that_are_never_used_are_named(registry: Registry) -> None:
    queues = [*QUEUES, {"name": "c"}, {"name": "d"}]
    found = warnings(registry, [FIXED, {"name": "fixed", "value": "root.c"}], queues)
    texts = {path.partition(".")[2]: text for path, text in found}
    assert texts["queues[0].queues[2].name"].startswith("only rules that are never used lead to this queue")
    assert texts["queues[0].queues[3].name"].startswith("no placement rule leads to this queue")
    found = warnings(registry, [FIXED, {"name": "provided"}], queues)
    assert [text[:10] for path, text in found if "queues" in path] == ["only rules"] * 2


def test_limits_equal_to_the_max_of_the_queue_limit_nothing(registry: Registry) -> None:
    limit = {"users": ["ann"], "maxresources": {"memory": "4Gi", "vcore": 2}, "maxapplications": 5}
    queue = {"name": "a", "maxapplications": 5, "resources": {"max": {"memory": "4Gi"}}, "limits": [limit]}
    found = warnings(registry, [], [queue])
    assert [(path.rpartition("limits[0].")[2], text.partition(":")[0]) for path, text in found] == [
        (
            "maxapplications",
            "5 limits nothing, because the queue as a whole runs at most as many applications",
        ),
        (
            "maxresources.memory",
            "memory 4Gi limits nothing, because the queue as a whole has at most as much",
        ),
    ]


def test_limits_equal_to_the_max_of_a_queue_above_limit_nothing(registry: Registry) -> None:
    inner = {"name": "b", "limits": [{"users": ["*"], "maxresources": {"memory": "4Gi"}}]}
    queues = [{"name": "a", "resources": {"max": {"memory": "4Gi"}}, "queues": [inner]}]
    ((path, _),) = warnings(registry, [], queues)
    assert path.endswith("queues[0].queues[0].limits[0].maxresources.memory")


def test_limits_equal_to_the_max_exempt_from_smaller_ones(registry: Registry) -> None:
    equal = {"users": ["ann"], "maxresources": {"memory": "4Gi"}, "maxapplications": 5}
    smaller = {"users": ["*"], "maxresources": {"memory": "1Gi"}, "maxapplications": 1}
    limits = {"resources": {"max": {"memory": "4Gi"}}, "maxapplications": 5, "limits": [equal, smaller]}
    assert warnings(registry, [], [{"name": "a", **limits}]) == []


def test_backfilling_without_estimators_is_warned_of(registry: Registry) -> None:
    def found(**keys: Any) -> list[tuple[str, str]]:
        named = {"name": "default", "queues": [{"name": "root"}], "reservations": {"policy": "easy"}, **keys}
        outcome = check_config(yaml.safe_dump({"partitions": [named]}), registry, [check_effects])
        return [(one.path, one.message) for one in outcome.warnings]

    text = (
        "easy assumes that each task runs as long, because the partition names no estimators of run times:"
        " add estimators: [request, learned]"
    )
    assert found() == [("partitions[0].reservations", text)]
    assert found(estimators=["request"]) == []
