"""The policy as a configuration gets it: found by its entry point, made by its name."""

from __future__ import annotations

from types import SimpleNamespace

from yunikorn.registry import APP_SORT, Registry

SMALL = SimpleNamespace(id="small", pending={"memory": 10, "vcore": 8_000})
LARGE = SimpleNamespace(id="large", pending={"memory": 90, "vcore": 1_000})


def order(options: dict[str, str]) -> list[str]:
    """The ids of both applications as the policy with these options orders them."""
    policy = Registry.load().make(APP_SORT, "shortest-first", options)
    return [app.id for app in sorted([SMALL, LARGE], key=policy.key)]


def test_least_memory_goes_first() -> None:
    assert order({}) == ["small", "large"]


def test_the_resource_is_an_option() -> None:
    assert order({"resource": "vcore"}) == ["large", "small"]
