"""The default placement rules, called directly: the queue names they return."""

from __future__ import annotations

from typing import Any

import pytest

from yunikorn.errors import OptionError
from yunikorn.framework.kinds import PLACEMENT
from yunikorn.framework.registry import Registry


def place(registry: Registry, rule: str, app: Any, **options: str) -> str | None:
    found: str | None = registry.make(PLACEMENT, rule, options).place(app)
    return found


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("my_special_queue", "my_special_queue"),
        ("root.dev_queue", "root.dev_queue"),
        ("root.a.b", "root.a.b"),
        ("a.b", "a_dot_b"),
        ("root", "root."),
        ("rootbeer", "rootbeer"),
        ("", None),
    ],
)
def test_provided_rule(registry: Registry, make_app: Any, asked: str, name: str | None) -> None:
    assert place(registry, "provided", make_app(queue_name=asked)) == name


@pytest.mark.parametrize(
    ("user", "name"), [("developer", "developer"), ("finance.test", "finance_dot_test"), ("root", "root")]
)
def test_user_rule(registry: Registry, make_app: Any, user: str, name: str) -> None:
    assert place(registry, "user", make_app(user=user)) == name


@pytest.mark.parametrize(
    ("value", "name"),
    [("last_resort", "last_resort"), ("root.A.b", "root.a.b"), ("a.b", "a.b"), ("root", "root.")],
)
def test_fixed_rule(registry: Registry, make_app: Any, value: str, name: str) -> None:
    assert place(registry, "fixed", make_app(), value=value) == name


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        ({"namespace": "testing"}, "testing"),
        ({"namespace": "team.a"}, "team_dot_a"),
        ({"namespace": "root.team.a"}, "root.team.a"),
        ({"NameSpace": "testing"}, "testing"),
        ({"NAMESPACE": "loud", "namespace": "exact"}, "exact"),
        ({"NAMESPACE": "first", "NameSpace": "second"}, "first"),
        ({"namespace": "", "Namespace": "set"}, "set"),
        ({"namespace": ""}, None),
        ({"other": "testing"}, None),
        ({}, None),
    ],
)
def test_tag_rule(registry: Registry, make_app: Any, tags: dict[str, str], name: str | None) -> None:
    assert place(registry, "tag", make_app(tags=tags), value="namespace") == name
    assert place(registry, "TAG", make_app(tags=tags), value="NameSpace") == name


@pytest.mark.parametrize("rule", ["fixed", "tag"])
@pytest.mark.parametrize("options", [{}, {"value": ""}, {"value": "  "}])
def test_missing_required_value_is_reported(registry: Registry, rule: str, options: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="value"):
        registry.make(PLACEMENT, rule, options)
