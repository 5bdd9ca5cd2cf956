"""Hook markers of plugins, and the accepted forms of their results."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pytest

from tests.test_registry import Plain, blame, registered
from yunikorn.api import Predicate, hookimpl
from yunikorn.framework.kinds import PREDICATE


@pytest.mark.parametrize("option", ["tryfirst", "trylast", "optionalhook"])
def test_unsupported_marker_option_is_reported(option: str) -> None:
    marks: Any = {option: True}
    implementation = hookimpl(**marks)(lambda: [Plain])
    assert blame(types.SimpleNamespace(yunikorn_predicates=implementation)) == (
        f"yunikorn_predicates is marked with {option}, which is not supported: each hook is called"
        " separately, in the order of registration; write @hookimpl alone"
    )


@pytest.mark.parametrize("option", ["wrapper", "hookwrapper"])
def test_hook_wrapper_is_reported(option: str) -> None:
    def around() -> Iterator[Any]:
        yield

    marks: Any = {option: True}
    plugin = types.SimpleNamespace(yunikorn_predicates=hookimpl(**marks)(around))
    assert f"yunikorn_predicates is marked with {option}, which is not supported" in blame(plugin)


def test_all_unsupported_marker_options_are_reported() -> None:
    implementation = hookimpl(tryfirst=True, optionalhook=True)(lambda: [Plain])
    plugin = types.SimpleNamespace(yunikorn_predicates=implementation)
    assert "is marked with tryfirst and optionalhook, which are not supported" in blame(plugin)


def test_a_hook_may_be_implemented_by_a_function_of_another_name() -> None:
    implementation = hookimpl(specname="yunikorn_predicates")(lambda: [Plain])
    assert [offer.name for offer in registered(types.SimpleNamespace(mine=implementation)).offers()] == [
        "plain"
    ]


@pytest.mark.parametrize("kind", [set, frozenset])
def test_classes_of_a_set_are_registered_in_order_of_name(kind: Any) -> None:
    def check(self: Predicate, ask: object, node: object) -> None:
        return None

    names = [f"predicate-{number:02}" for number in range(20)]
    classes = [type(f"Made{name[-2:]}", (Predicate,), {"name": name, "check": check}) for name in names]
    plugin = types.SimpleNamespace(yunikorn_predicates=hookimpl(lambda: kind(classes)))
    assert [offer.name for offer in registered(plugin).offers(PREDICATE)] == names
