"""A thousand plugins of all kinds that a configuration names: loaded, used, reloaded and closed."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, ClassVar

import attrs
import pytest

from tests.core.kit import RM, plugin_with
from yunikorn import api
from yunikorn.errors import ConfigError
from yunikorn.framework.registry import Registry
from yunikorn.text import listed

PLUGINS = 1_000
CALLS: Counter[str] = Counter()
"""Calls by method."""


class Counted(api.Plugin):
    """Counts the objects that are open."""

    open: ClassVar[int] = 0

    def opened(self, context: api.Context) -> None:
        Counted.open += 1

    def closed(self) -> None:
        Counted.open -= 1


def method(name: str, arguments: int, answer: object) -> Any:
    """Return a method that counts its calls."""

    def one(self: object, first: object) -> object:
        CALLS[name] += 1
        return answer

    def two(self: object, first: object, second: object) -> object:
        CALLS[name] += 1
        return answer

    return one if arguments == 1 else two


HOOKS: tuple[tuple[str, type[Any], dict[str, Any]], ...] = (
    ("app_sort_policies", api.AppSortPolicy, {"key": method("key", 1, 0)}),
    ("queue_sort_policies", api.QueueSortPolicy, {"key": method("key", 1, 0)}),
    ("node_sort_policies", api.NodeSortPolicy, {"score": method("score", 1, 0)}),
    ("placement_rules", api.PlacementRule, {"place": method("place", 1, None)}),
    ("predicates", api.Predicate, {"check": method("check", 2, None)}),
    ("event_sinks", api.EventSink, {"send": method("send", 1, None)}),
    ("user_group_resolvers", api.UserGroupResolver, {"groups": method("groups", 1, ())}),
    ("preemption_policies", api.PreemptionPolicy, {"rank": method("rank", 2, 0)}),
    ("submit_policies", api.SubmitPolicy, {"submit": method("submit", 1, None)}),
    ("admission_policies", api.AdmissionPolicy, {"admit": method("admit", 1, None)}),
)


@pytest.fixture(scope="module")
def registry() -> Registry:
    """A registry with a thousand plugins, one class each: the kind of number N is the last digit of N."""
    found = Registry.load(third_party=False)
    for number in range(PLUGINS):
        hook, base, methods = HOOKS[number % len(HOOKS)]
        namespace = {"name": f"p{number}", "__annotations__": {"size": "int"}, "size": 1, **methods}
        made = attrs.frozen(type(f"P{number}", (Counted, base), namespace))
        plugin = plugin_with(**{hook: [made]})
        assert found.register(plugin, f"m{number}", f"dist-{number}", "1.0"), found.broken[-1]
    return found


def of_kind(digit: int, count: int) -> list[str]:
    """Return names of plugins of one kind."""
    return [f"p{number}" for number in range(digit, 10 * count + digit, 10)]


def config(size: int = 2) -> str:
    """Return a configuration that uses a hundred of the plugins, with options."""

    def named(digit: int, count: int) -> list[dict[str, Any]]:
        return [{"name": name, "size": size} for name in of_kind(digit, count)]

    leaves = [
        {
            "name": f"q{number}",
            "properties": {"application.sort.policy": name, "application.sort.policy.size": str(size)},
        }
        for number, name in enumerate(of_kind(0, 15))
    ]
    partition = {
        "name": "default",
        "predicates": named(4, 30),
        "placementrules": [*named(3, 15), {"name": "provided"}],
        "submitpolicies": named(8, 10),
        "admission": named(9, 7),
        "nodesortpolicy": {"type": "p2", "size": size},
        "preemption": {"policy": {"name": "p7", "size": size}},
        "usergroupresolver": {"type": "p6", "size": size},
        "queues": [{"name": "root", "submitacl": "*", "queues": leaves}],
    }
    return json.dumps({"partitions": [partition], "events": {"sinks": named(5, 20)}})


IN_USE = 15 + 30 + 15 + 10 + 7 + 1 + 1 + 1 + 20


@pytest.mark.slow
def test_hundred_of_a_thousand_plugins_are_used(registry: Registry) -> None:
    assert len(list(registry.offers())) >= PLUGINS
    CALLS.clear()
    rm = RM(config(), registry)
    assert Counted.open == IN_USE == 100
    for number in range(4):
        rm.node(f"n{number}", vcore=8)
    for number in range(15):
        rm.app(f"app-{number}", f"root.q{number}", groups=())
        rm.ask(f"app-{number}", count=2, vcore=1)
    assert len(rm.schedule()) == 30
    used = ("key", "score", "place", "check", "send", "groups", "submit", "admit")
    assert [name for name in used if not CALLS[name]] == []
    assert rm.reload(config(size=3))
    assert Counted.open == IN_USE
    assert not rm.reload(config(size=3))
    rm.ask("app-1", "more", vcore=100)
    assert rm.schedule() == []
    assert rm.scheduler.explain(rm.rm_id, "default", "app-1")
    rm.scheduler.stop(rm.rm_id)
    assert Counted.open == 0
    assert rm.failures() == []


@pytest.mark.slow
def test_messages_about_many_plugins_stay_short(registry: Registry) -> None:
    wrong = config()
    for name in ("p0", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"):
        wrong = wrong.replace(f'"{name}"', f'"{name}x"')
    with pytest.raises(ConfigError) as caught:
        RM(wrong, registry)
    lines = str(caught.value).splitlines()
    assert len(lines) == 9
    for line in lines:
        assert len(line) < 450
        assert "did you mean 'p" in line
        assert " more" in line


def test_long_lists_are_cut_off() -> None:
    assert listed([]) == "none"
    assert listed(["a", "b"]) == "a, b"
    assert listed(map(str, range(5)), most=3) == "0, 1, 2 and 2 more"
    assert listed(map(str, range(3)), most=3) == "0, 1, 2"
