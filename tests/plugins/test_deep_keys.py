"""Classes, domains and keys that are nested more deeply than the stack of the process is."""

from __future__ import annotations

from collections.abc import Callable
from types import GenericAlias
from typing import Any, NamedTuple

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import AppSortPolicy, NodeSortPolicy, Predicate
from yunikorn.containment import kept_key

DEPTH = 100_000


class Record(tuple[Any, ...]):
    """A tuple of its own type, whose hash is that of tuples."""


class Alias(GenericAlias):
    """A generic type that lies about its arguments."""

    __args__ = ()


def nested(wrap: Callable[[Any], Any]) -> Any:
    """Return a value that is nested deeply."""
    value: Any = 1
    for _ in range(DEPTH):
        value = wrap(value)
    return value


NESTED: dict[str, Any] = {
    "tuple": nested(lambda value: (value,)),
    "type of its own": nested(lambda value: Record((value,))),
    "generic": nested(lambda value: GenericAlias(list, (value,))),
    "lying generic": nested(lambda value: Alias(list, (value,))),
}


class Classes(Predicate):
    """Declares deep classes of requests and nodes."""

    name = "bad"
    value: Any = None

    def check(self, ask: Any, node: Any) -> str | None:
        return None

    def ask_class(self, ask: Any) -> Any:
        return self.value

    def node_class(self, node: Any) -> Any:
        return self.value


class Books(Predicate):
    """Declares deep domains and subjects, and names them as changed."""

    name = "bad"
    value: Any = None

    def check(self, ask: Any, node: Any) -> str | None:
        return None

    def placed(self, task: Any, node: Any) -> Any:
        return [self.value]

    def released(self, task: Any, node: Any) -> Any:
        return [self.value]

    def ask_class(self, ask: Any) -> Any:
        return "same"

    def domain(self, node: Any) -> Any:
        return self.value

    def subjects(self, task: Any) -> Any:
        return [self.value]


class Keys(AppSortPolicy):
    """Has deep keys and admission classes."""

    name = "bad"
    value: Any = None

    def key(self, app: Any) -> Any:
        return self.value

    def admission_class(self, app: Any) -> Any:
        return self.value


class Scores(NodeSortPolicy):
    """Has deep scores and classes of requests."""

    name = "bad"
    value: Any = None

    def score(self, node: Any, ask_class: Any) -> Any:
        return self.value

    def ask_class(self, ask: Any) -> Any:
        return self.value


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("cls", [Classes, Books, Keys, Scores])
def test_deeply_nested_answers_are_contained(cls: type[Any], nested: str) -> None:
    deep = type(cls.__name__, (cls,), {"value": NESTED[nested]})
    lists: dict[str, Any] = {"predicates": [], "app_sort_policies": [], "node_sort_policies": []}
    keys: dict[str, Any] = {}
    properties: dict[str, str] = {}
    if issubclass(cls, Predicate):
        lists["predicates"], keys["predicates"] = [deep], ["bad"]
    elif issubclass(cls, AppSortPolicy):
        lists["app_sort_policies"], properties["application.sort.policy"] = [deep], "bad"
    else:
        lists["node_sort_policies"], keys["nodesortpolicy"] = [deep], {"type": "bad"}
    rm = RM(configuration(queue("a", properties=properties), **keys), with_plugins(**lists))
    for number in range(2):
        rm.node(f"n{number}", vcore=2)
        rm.app(f"app-{number}")
        rm.ask(f"app-{number}", vcore=1)
    rm.schedule()
    failures = list(rm.scheduler.failures)
    assert {failure.plugin for failure in failures} == {"bad of test-plugin (yunikorn-test 1.0)"}


@pytest.mark.parametrize(("levels", "failures"), [(100, 0), (101, 1)])
def test_keys_have_a_limited_number_of_levels(levels: int, failures: int) -> None:
    value: Any = 1
    for _ in range(levels):
        value = (value,)
    deep = type("Keys", (Keys,), {"value": value, "admission_class": AppSortPolicy.admission_class})
    registry = with_plugins(app_sort_policies=[deep])
    rm = RM(configuration(queue("a", properties={"application.sort.policy": "bad"})), registry)
    rm.node(vcore=1)
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule()
    found = list(rm.scheduler.failures)
    assert len(found) == failures
    assert all("more than 100 levels" in str(failure) for failure in found)


def failed(error: BaseException) -> None:
    """Fail, because no comparison in these tests raises."""
    raise AssertionError(error)


class Small(NamedTuple):
    """A key as an author may write it."""

    zone: str
    rack: tuple[int, ...]


def test_small_tuples_of_other_types_are_kept() -> None:
    one, other = (kept_key(Small("a", (1, 2)), failed) for _ in range(2))
    assert one == other
    assert {one: "found"}[other] == "found"
    with pytest.raises(RecursionError):
        kept_key(NESTED["type of its own"], failed)
