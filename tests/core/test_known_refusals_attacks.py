"""Predicates whose answers change although their code looks as if they could not (docs/decisions/0072)."""

from __future__ import annotations

import builtins
import dis
import types
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from tests.core.kit import RM, configuration, with_plugins
from yunikorn import api
from yunikorn.api import Predicate
from yunikorn.framework.purity import Impure, inputs_of, plain_steps
from yunikorn.scheduling import predicate_calls

SHUT = True


def is_shut(mark: str) -> bool:
    return mark == "x"


def is_never_shut(mark: str) -> bool:
    return False


def plugin(check: Callable[..., Any], **members: Any) -> Any:
    """Return a new predicate class."""
    return type("Attack", (Predicate,), {"name": "attack", "check": check, **members})


def cluster(kind: Any, nodes: int = 3, **attributes: Any) -> tuple[RM, Any]:
    """Return a cluster with a predicate of this class, and the predicate."""
    rm = RM(configuration(predicates=["attack"]), with_plugins(predicates=[kind]))
    for number in range(nodes):
        rm.node(f"n{number}", {"mark": "x", **attributes}, vcore=40)
    rm.app()
    chain = rm.at_work().policies.predicates
    return rm, chain._made[0][0]


def is_accepted(rm: RM, key: str, tags: Any = None) -> bool:
    rm.ask(key=key, vcore=1, tags={} if tags is None else tags)
    return key in {one for _, one, _ in rm.schedule()}


def by_option(self: Any, ask: Any, node: Any) -> str | None:
    return "shut" if self.shut else None


def by_global(self: Any, ask: Any, node: Any) -> str | None:
    return "shut" if SHUT else None


def by_helper(self: Any, ask: Any, node: Any) -> str | None:
    return "shut" if is_shut(node.attributes.get("mark", "")) else None


def by_builtin(self: Any, ask: Any, node: Any) -> str | None:
    return "shut" if len(node.id) == 2 else None


ANSWERS = [True]


def shut_once(self: Any) -> bool:
    return bool(ANSWERS) and ANSWERS.pop()


def replace_builtin(one: Any, patch: pytest.MonkeyPatch) -> None:
    def length(value: Any) -> int:
        return 0 if value in ("n0", "n1", "n2") else value.__len__()

    patch.setattr(builtins, "len", length)


CHANGES: dict[str, tuple[Any, Callable[[Any, pytest.MonkeyPatch], Any]]] = {
    "option": (plugin(by_option, shut=True), lambda one, patch: setattr(one, "shut", False)),
    "attribute of the class": (
        plugin(by_option, shut=True),
        lambda one, patch: setattr(type(one), "shut", False),
    ),
    "property": (
        plugin(by_option, shut=True),
        lambda one, patch: setattr(type(one), "shut", property(shut_once)),
    ),
    "attribute of a base": (
        type("Derived", (plugin(by_option, shut=True),), {}),
        lambda one, patch: setattr(type(one).__mro__[1], "shut", False),
    ),
    "class of the object": (
        plugin(by_option, shut=True),
        lambda one, patch: setattr(one, "__class__", plugin(by_option, shut=False)),
    ),
    "reads of attributes": (
        plugin(by_option, shut=True),
        lambda one, patch: setattr(
            type(one),
            "__getattribute__",
            lambda self, name: name != "shut" and object.__getattribute__(self, name),
        ),
    ),
    "global": (plugin(by_global), lambda one, patch: patch.setitem(globals(), "SHUT", False)),
    "global of another type": (plugin(by_global), lambda one, patch: patch.setitem(globals(), "SHUT", 0)),
    "function": (
        plugin(by_helper),
        lambda one, patch: patch.setitem(globals(), "is_shut", is_never_shut),
    ),
    "code of a function": (
        plugin(by_helper),
        lambda one, patch: patch.setattr(is_shut, "__code__", is_never_shut.__code__),
    ),
    "function of the language": (plugin(by_builtin), replace_builtin),
    "function of the language, shadowed": (
        plugin(by_builtin),
        lambda one, patch: patch.setitem(globals(), "len", lambda value: 0),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_are_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, change = CHANGES[what]
    rm, made = cluster(kind)
    assert rm.at_work().policies.predicates.known is not None
    assert not is_accepted(rm, "before")
    change(made, monkeypatch)
    accepted = is_accepted(rm, "after")
    monkeypatch.undo()
    assert accepted


def test_code_of_the_check_itself() -> None:
    def check(self: Any, ask: Any, node: Any) -> str | None:
        return "shut"

    rm, _ = cluster(plugin(check))
    assert not is_accepted(rm, "before")
    check.__code__ = (lambda self, ask, node: None).__code__
    assert is_accepted(rm, "after")


def test_a_check_of_the_object_itself() -> None:
    class Attack(Predicate):
        name = "attack"

        def __init__(self) -> None:
            self.shut = [True]
            self.check = lambda ask, node: "shut" if self.shut else None  # type: ignore[method-assign]

        def check(self, ask: api.Ask, node: api.Node) -> str | None:
            return "never asked"

    rm, made = cluster(Attack)
    assert not is_accepted(rm, "before")
    made.shut.clear()
    assert is_accepted(rm, "after")


def test_a_predicate_that_is_asked_again_with_time_is_always_asked() -> None:
    rm, _ = cluster(plugin(by_global, refresh_every=5.0))
    assert rm.at_work().policies.predicates.known is None


def test_equal_functions_of_two_modules() -> None:
    source = "def is_shut(mark):\n    return SHUT\n"
    modules = [{"SHUT": shut} for shut in (True, False)]
    for module in modules:
        exec(compile(source, "same", "exec"), module)
    scope: dict[str, Any] = {"one": modules[0]["is_shut"], "other": modules[1]["is_shut"]}
    exec('def check(self, ask, node):\n    return "shut" if one("") and not other("") else None\n', scope)
    rm, _ = cluster(plugin(scope["check"]))
    assert not is_accepted(rm, "before")
    modules[1]["SHUT"] = True
    assert is_accepted(rm, "after")


def test_constants_that_are_no_constants() -> None:
    def check(self: Any, ask: Any, node: Any) -> str | None:
        return "no" if node.id in ("n0", "n1") else None

    assert inputs_of(plugin(check)().check) is not None
    consts = tuple(["n0"] if type(one) is tuple else one for one in check.__code__.co_consts)
    check.__code__ = check.__code__.replace(co_consts=consts)
    assert inputs_of(plugin(check)().check) is None


def test_other_builtins_and_globals() -> None:
    class Scope(dict[str, Any]):
        pass

    own: dict[str, Any] = {"__builtins__": {"len": lambda value: 2}}
    exec(compile('def check(self, ask, node):\n    return "no" if len(node.id) else None\n', "", "exec"), own)
    assert inputs_of(plugin(own["check"])().check) is None
    derived = types.FunctionType(by_global.__code__, Scope(SHUT=True))
    assert inputs_of(plugin(derived)().check) is None


def test_pairs_of_later_pythons_are_two_instructions() -> None:
    (first, *_) = dis.get_instructions(by_option)
    pair = first._replace(opname="STORE_FAST_LOAD_FAST", argval=("one", "two"))
    steps = [(step.opname, step.argval) for step in plain_steps([first, pair])]
    assert steps == [("STORE_FAST", "one"), ("LOAD_FAST", "two")]
    with pytest.raises(Impure):
        list(plain_steps([pair._replace(argval="one, two")]))


def test_many_functions_are_not_read() -> None:
    scope: dict[str, Any] = {}
    for number in range(3_000):
        exec(f"def f{number}(x):\n    return f{number + 1}(x)\n", scope)
    exec("def check(self, ask, node):\n    return f0(node.id)\n", scope)
    assert inputs_of(plugin(scope["check"])().check) is None


class Moody(str):
    """Text of the resource manager that compares as it likes."""

    equal = False
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return self.equal

    def __ne__(self, other: object) -> bool:
        return not self == other


def test_texts_of_other_types() -> None:
    def check(self: Any, ask: Any, node: Any) -> str | None:
        return None if node.attributes.get("mark") == "y" else "no"

    mark = Moody("x")
    rm, _ = cluster(plugin(check), mark=mark)
    assert not is_accepted(rm, "before")
    mark.equal = True
    assert is_accepted(rm, "after")

    def by_tag(self: Any, ask: Any, node: Any) -> str | None:
        return None if ask.tags.get("mark") == "y" else "no"

    rm, _ = cluster(plugin(by_tag))
    assert not is_accepted(rm, "before", {"mark": "x"})
    mark = Moody("x")
    mark.equal = True
    assert is_accepted(rm, "after", {"mark": mark})


def test_tags_with_a_default() -> None:
    def check(self: Any, ask: Any, node: Any) -> str | None:
        return None if ask.tags["mark"] == "y" else "no"

    rm, _ = cluster(plugin(check))
    assert not is_accepted(rm, "before", defaultdict(lambda: "x", other=""))
    # A missing tag is missing, whatever mapping the resource manager uses.
    rm, _ = cluster(plugin(check))
    assert not is_accepted(rm, "after", defaultdict(lambda: "y", other=""))


def test_attributes_of_a_changed_node_are_read_only() -> None:
    rm, _ = cluster(plugin(by_global))
    rm.change_node("n0", attributes={"mark": "y"})
    with pytest.raises(TypeError):
        rm.find_node("n0").attributes["mark"] = "z"  # type: ignore[index]


def test_a_change_during_a_search_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by another thread: the name has its old value again when the next search begins."""

    class Flips(Predicate):
        name = "flips"

        def ask_class(self, ask: api.Ask) -> str:
            return ask.key

        def node_class(self, node: api.Node) -> str:
            return node.id

        def check(self, ask: api.Ask, node: api.Node) -> str | None:
            monkeypatch.setitem(globals(), "SHUT", ask.key == "before")
            return None

    monkeypatch.setitem(globals(), "SHUT", False)
    kinds = [Flips, plugin(by_global)]
    rm = RM(configuration(predicates=["flips", "attack"]), with_plugins(predicates=kinds))
    rm.node("n0", {}, vcore=4)
    rm.app()
    assert not is_accepted(rm, "before")
    monkeypatch.setitem(globals(), "SHUT", False)
    rm.change_node("n0", vcore=5)
    assert {key for _, key, _ in rm.schedule()} == {"before"}


def by_mark(self: Any, ask: Any, node: Any) -> str | None:
    return "shut" if SHUT and node.attributes.get("mark") == "x" else None


class Opens(Predicate):
    """Changes what another predicate reads, at one node."""

    name = "opens"
    at = "n00"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        if ask.key == "after" and node.id == self.at:
            globals()["SHUT"] = False
        return "no" if node.attributes.get("mark") == "y" else None


@pytest.mark.parametrize("nodes", [3, 100])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("at", [0, 50, 99])
@pytest.mark.parametrize("policy", ["fair", "binpacking"])
def test_a_change_by_another_predicate_counts_at_once(
    monkeypatch: pytest.MonkeyPatch, nodes: int, known: bool, at: int, policy: str
) -> None:
    at = min(at, nodes - 1)
    if not known:
        monkeypatch.setattr(predicate_calls, "inputs_of", lambda check: None)
    monkeypatch.setattr(Opens, "at", f"n{at:02}")
    monkeypatch.setitem(globals(), "SHUT", True)
    kinds = [plugin(by_mark), Opens]
    config = configuration(predicates=["attack", "opens"], nodesortpolicy={"type": policy})
    rm = RM(config, with_plugins(predicates=kinds))
    for number in range(nodes):
        rm.node(f"n{number:02}", {"mark": "y" if number % 7 == at % 7 else "x"}, vcore=4)
    rm.app()
    assert (rm.at_work().policies.predicates.known is not None) == known
    assert not is_accepted(rm, "before")
    rm.ask(key="after", vcore=1)
    placed = [(key, node) for _, key, node in rm.schedule(1)]
    assert placed == ([("after", f"n{at + 1:02}")] if at < nodes - 1 else [])
    found = {ask.key: dict(ask.refusals) for ask in rm.at_work().partition.applications["app"].asks.values()}
    marked = len([number for number in range(nodes) if number % 7 == at % 7])
    assert found["before"] == {"shut": nodes - marked, "no": marked}
    if not placed:
        assert found["after"] == found["before"]


def test_a_change_that_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SHUT", True)
    rm = RM(configuration(predicates=["attack", "opens"]), with_plugins(predicates=[plugin(by_mark), Opens]))
    rm.node("n00", {"mark": "y"}, vcore=4)
    rm.node("n01", {"mark": "x"}, vcore=4)
    rm.app()
    assert is_accepted(rm, "after")
    monkeypatch.setitem(globals(), "SHUT", True)
    rm.change_node("n00", attributes={"mark": "x"})
    for number in range(3):
        assert not is_accepted(rm, f"k{number}")
    (ask,) = [ask for ask in rm.at_work().partition.applications["app"].asks.values() if ask.key == "k2"]
    assert dict(ask.refusals) == {"shut": 2}
