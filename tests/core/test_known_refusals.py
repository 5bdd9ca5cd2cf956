"""Refusals of predicates that declare nothing, remembered where their code shows what they depend on."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.api import Predicate
from yunikorn.framework.plugin_statistics import PluginStatistics
from yunikorn.framework.purity import MISSING, inputs_of
from yunikorn.interface.messages import NodeAction
from yunikorn.scheduling import predicate_calls
from yunikorn.scheduling.known_refusals import MOST

LABEL = "zone"
MUTABLE: list[str] = []
FIXED: tuple[str, ...] = ()
CALLS: list[str] = []


def matches(wanted: str, attributes: Any) -> bool:
    return not wanted or wanted in attributes.get("zones", "").split(",")


def is_marked(attributes: Any) -> bool:
    return bool(attributes.get("zone", "").endswith(("a", "b")))


def loops(self: Any, ask: Any, node: Any) -> str | None:
    for zone in node.attributes.get("zones", "").split(","):
        if zone == "a":
            return None
    return "no"


def impure_helper(wanted: str) -> bool:
    return time.monotonic() > 0 or bool(wanted)


def catches_everything(self: Any, ask: Any, node: Any) -> str | None:
    try:
        return str(int(node.id))
    except:  # noqa: E722
        return None


def predicate_of(method: Callable[..., Any], **members: Any) -> Predicate:
    """Return an object of a predicate class with this method as its check."""
    made: Predicate = type("Made", (Predicate,), {"name": "made", "check": method, **members})()
    return made


@attrs.frozen
class WithOptions(Predicate):
    """Has options of its own."""

    name = "with-options"
    label: str = "zone"
    allowed: tuple[str, ...] = ("a", "b")

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        wanted = ask.tags.get(self.label) or ask.app.tags.get(self.label, "a")
        if wanted not in self.allowed:
            return f"{wanted} is not allowed"
        return None if node.attributes.get(self.label) == wanted else f"{node.id} is not in {wanted}"


PURE: dict[str, tuple[Callable[..., Any], set[Any]]] = {
    "attribute": (lambda self, ask, node: None if node.attributes.get("zone") == "a" else "no", set()),
    "id": (lambda self, ask, node: None if int(node.id[1:]) % 10 == 0 else "no", set()),
    "tag": (lambda self, ask, node: ask.tags.get("zone"), {("ask", "tags", "zone")}),
    "tag with default": (lambda self, ask, node: ask.tags.get("zone", ""), {("ask", "tags", "zone")}),
    "tag by index": (lambda self, ask, node: ask.tags["zone"], {("ask", "tags", "zone")}),
    "all tags": (lambda self, ask, node: str(sorted(ask.tags.items())), {("ask", "tags", MISSING)}),
    "is a tag there": (
        lambda self, ask, node: "x" if "zone" in ask.tags else None,
        {("ask", "tags", MISSING)},
    ),
    "computed tag": (
        lambda self, ask, node: ask.tags.get("zo" + node.id),
        {("ask", "tags", MISSING)},
    ),
    "tag of the application": (lambda self, ask, node: ask.app.tags.get("zone"), {("app", "tags", "zone")}),
    "user": (lambda self, ask, node: ask.app.user, {("app", "user", MISSING)}),
    "amount": (
        lambda self, ask, node: "no" if ask.resource.get("gpu") else None,
        {("ask", "resource", MISSING)},
    ),
    "priority": (lambda self, ask, node: "low" if ask.priority < 3 else None, {("ask", "priority", MISSING)}),
    "module constant": (lambda self, ask, node: node.attributes.get(LABEL), set()),
    "module tuple": (lambda self, ask, node: "no" if node.id in FIXED else None, set()),
    "is None": (
        lambda self, ask, node: "no" if ask.tags.get("zone") is None else None,
        {("ask", "tags", "zone")},
    ),
    "helper": (lambda self, ask, node: None if is_marked(node.attributes) else "no", set()),
    "loop": (loops, set()),
}
IMPURE: dict[str, Callable[..., Any]] = {
    "load": lambda self, ask, node: node.available.get("vcore"),
    "allocations": lambda self, ask, node: len(node.allocations),
    "key of the request": lambda self, ask, node: ask.key,
    "usage of the application": lambda self, ask, node: ask.app.allocated.get("vcore"),
    "queue": lambda self, ask, node: ask.app.queue.path,
    "time": lambda self, ask, node: str(time.time()),
    "chance": lambda self, ask, node: "no" if random.random() > 0.5 else None,
    "module state": lambda self, ask, node: CALLS.append(node.id),
    "impure helper": lambda self, ask, node: impure_helper(node.id),
    "state of its own": lambda self, ask, node: self.seen.append(node.id),
    "attribute that is missing": lambda self, ask, node: self.missing,
    "node passed on": lambda self, ask, node: matches("a", node),
    "node printed": lambda self, ask, node: f"{node}",
    "request compared": lambda self, ask, node: "no" if ask == node else None,
    "dynamic attribute": lambda self, ask, node: getattr(node, "available"),  # noqa: B009
    "format": lambda self, ask, node: "{.available}".format(node),  # noqa: UP032
    "import": lambda self, ask, node: __import__("time").time(),
    "hash": lambda self, ask, node: hash(node.id),
    "alias": lambda self, ask, node: next(one.available for one in (node,)),
    "call of an unknown": lambda self, ask, node: RM,
    # What follows depends on its inputs only, or nearly so; it is not worth telling the difference.
    "list of the module": lambda self, ask, node: "no" if node.id in MUTABLE else None,
    "options in a list": lambda self, ask, node: "no" if node.id in self.seen else None,
    "generator": lambda self, ask, node: "no" if any(key in node.attributes for key in ("a", "b")) else None,
    "address of a generator": lambda self, ask, node: f"{(key for key in ask.tags)}",
    "address of a function": lambda self, ask, node: str(lambda: 0),
    "address of an iterator": lambda self, ask, node: str(map(len, ())),
    "address of a method": lambda self, ask, node: f"{node.attributes.get}",
    "object of the plugin printed": lambda self, ask, node: f"{self.check}",
    "identity of texts": lambda self, ask, node: (
        "no" if ask.tags.get("a") is node.attributes.get("b") else None
    ),
    "identity of a text and None": lambda self, ask, node: (
        "no" if ask.tags.get("a") is (node.attributes.get("b") or None) else None
    ),
    "order of a set": lambda self, ask, node: str({float("nan"), 1.0, 2.0}),
    "locale": lambda self, ask, node: f"{1000000:n}",
    "every error": catches_everything,
    "more parameters": lambda self, ask, node, *rest: "no",
}


@pytest.mark.parametrize("what", PURE)
def test_inputs_are_found(what: str) -> None:
    check, paths = PURE[what]
    inputs = inputs_of(predicate_of(check).check)
    assert inputs is not None
    assert set(inputs.paths) == paths
    assert inputs.are_constant()


@pytest.mark.parametrize("what", IMPURE)
def test_answers_that_may_depend_on_anything_have_no_inputs(what: str) -> None:
    assert inputs_of(predicate_of(IMPURE[what], seen=[]).check) is None


def test_writing_checks_have_no_inputs() -> None:
    class Writing(Predicate):
        count = 0

        def check(self, ask: api.Ask, node: api.Node) -> str | None:
            self.count += 1
            return "no" if self.count % 2 else None

    def changes(self: Any, ask: api.Ask, node: api.Node) -> None:
        node.attributes["x"] = "y"  # type: ignore[index]

    def rebinds(self: Any, ask: Any, node: Any) -> Any:
        node = ask.tags
        return node.get("x")

    def counts(self: Any, ask: Any, node: Any) -> None:
        global LABEL
        LABEL = node.id

    total = 0

    def closes(self: Any, ask: Any, node: Any) -> str:
        return str(total)

    assert inputs_of(Writing().check) is None
    for check in (changes, rebinds, counts, closes):
        assert inputs_of(predicate_of(check).check) is None


def test_options_and_methods_are_constants() -> None:
    inputs = inputs_of(WithOptions(label="rack").check)
    assert inputs is not None
    assert set(inputs.paths) == {("ask", "tags", "rack"), ("app", "tags", "rack")}


@pytest.mark.parametrize(
    "members",
    [
        {"check_reservation": lambda self, ask, node: None},
        {"ask_class": lambda self, ask: None},
        {"prepare": lambda self, ask: None, "check": lambda self, ask, node, state: "no"},
        {"check_nodes": lambda self, ask, nodes, *, allocate: [None for _ in nodes]},
        {"placed": lambda self, task, node: None, "released": lambda self, task, node: None},
    ],
)
def test_predicates_with_further_methods_are_asked_every_time(members: dict[str, Any]) -> None:
    made = type(predicate_of(PURE["attribute"][0], **members))
    rm = RM(configuration(predicates=["made"]), with_plugins(predicates=[made]))
    assert rm.at_work().policies.predicates.known is None


def test_statistics_do_not_hide_the_code() -> None:
    statistics = PluginStatistics(iter(range(10**9)).__next__)
    registry = with_plugins(predicates=[WithOptions]).counting(statistics)
    rm = RM(configuration(predicates=["with-options"]), registry)
    assert rm.at_work().policies.predicates.known is not None
    for number in range(9):
        rm.node(f"n{number}", {"zone": "ab"[number == 5]}, vcore=9)
    rm.app()
    rm.ask(count=4, vcore=1, tags={"zone": "b"})
    assert [node for _, _, node in rm.schedule()] == ["n5"] * 4
    (use,) = [use for use in statistics if use.method == "check"]
    assert use.calls == 9 + 3


# -- calls that are saved ------------------------------------------------------------------------------------


@attrs.frozen
class InZone(Predicate):
    """Depends on the zone of node and request only."""

    name = "in-zone"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        wanted = ask.tags.get("zone", "a")
        if wanted == "none":
            return int("x")  # type: ignore[return-value]
        return None if node.attributes.get("zone") == wanted else f"{node.id} is not in {wanted}"


@attrs.frozen
class Limited(Predicate):
    """Depends on an option, and on what a module holds."""

    name = "limited"
    shut: tuple[str, ...] = ()

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "closed" if node.id in self.shut or node.id in FIXED else None


def cluster(nodes: int = 40, predicates: Any = ("in-zone",), **keys: Any) -> RM:
    config = configuration(predicates=list(predicates), **keys)
    rm = RM(config, with_plugins(predicates=[InZone, Limited]))
    for number in range(nodes):
        rm.node(f"n{number:02}", {"zone": "ab"[number % 10 == 0]}, vcore=4)
    rm.app()
    return rm


def classes_of(rm: RM) -> Any:
    known = rm.at_work().policies.predicates.known
    assert known is not None
    return known._classes


def test_refusals_are_asked_once_for_equal_requests() -> None:
    rm = cluster()
    rm.ask(count=12, vcore=1, tags={"zone": "b", "other": "x"})
    rm.ask(key="more", count=4, vcore=2, tags={"zone": "b", "other": "y"})
    assert {node for _, _, node in rm.schedule()} <= {"n00", "n10", "n20", "n30"}
    (known,) = classes_of(rm).values()
    assert len(known.reasons) == 36


def test_changed_attributes_end_a_refusal() -> None:
    rm = cluster(nodes=4)
    rm.ask(key="early", count=2, vcore=4, tags={"zone": "b"})
    assert [node for _, _, node in rm.schedule()] == ["n00"]
    rm.change_node("n02", attributes={"zone": "b"})
    assert [node for _, _, node in rm.schedule()] == ["n02"]
    rm.change_node("n02", attributes={"zone": "a"})
    rm.ask(key="late", vcore=0, memory=0, tags={"zone": "b"})
    assert rm.schedule() == []


def test_a_node_that_returns_is_asked_again() -> None:
    rm = cluster(nodes=3)
    rm.ask(key="early", count=2, vcore=4, tags={"zone": "b"})
    rm.schedule()
    rm.change_node("n01", NodeAction.DECOMMISSION)
    rm.node("n01", {"zone": "b"}, vcore=4)
    assert [node for _, _, node in rm.schedule()] == ["n01"]


def test_changed_constants_end_the_use_of_known_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "FIXED", ("n00", "n01"))
    rm = cluster(nodes=3, predicates=["limited"])
    rm.ask(count=2, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["n02", "n02"]
    monkeypatch.setitem(globals(), "FIXED", ())
    rm.ask(key="next", vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["n00"]
    assert not classes_of(rm)


def test_classes_are_bounded_and_their_bits_reused() -> None:
    rm = cluster(nodes=5)
    for number in range(3 * MOST):
        rm.ask(key=f"k{number}", vcore=1, tags={"zone": f"z{number}"})
    rm.schedule()
    assert len(classes_of(rm)) <= MOST
    assert rm.at_work().partition.ask_classes._used <= MOST + 2
    rm.reload(configuration(predicates=["limited"]))
    rm.schedule()
    assert rm.find_node("n01").unfit & ~(1 << MOST + 2) == rm.find_node("n01").unfit
    assert len(rm.running) == 5 * 4


# -- decisions are those without -----------------------------------------------------------------------------

operations = st.one_of(
    st.tuples(st.just("node"), st.tuples(st.integers(0, 40), st.sampled_from("abc"), st.integers(1, 8))),
    st.tuples(st.just("attributes"), st.tuples(st.integers(0, 40), st.sampled_from("abc"), st.just(0))),
    st.tuples(st.just("remove"), st.integers(0, 40)),
    st.tuples(
        st.just("ask"),
        st.tuples(st.integers(1, 5), st.sampled_from(["a", "b", "c", "none", "x"]), st.integers(1, 9)),
    ),
    st.tuples(st.just("gang"), st.tuples(st.integers(1, 3), st.sampled_from("ab"), st.integers(2, 4))),
    st.tuples(st.just("schedule"), st.integers(1, 9)),
    st.tuples(st.just("time"), st.integers(1, 5)),
    st.tuples(st.just("release"), st.integers(0, 9)),
)


class Uncrowded(Predicate):
    """Depends on the load of the node, and counts its calls."""

    name = "uncrowded"
    calls: ClassVar[list[str]] = []

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        self.calls.append(f"{ask.key} on {node.id}")
        return "crowded" if len(node.allocations) > 2 else None


class ByLoad(Predicate):
    """Depends on the load of the node, and declares so."""

    name = "by-load"

    def ask_class(self, ask: api.Ask) -> Hashable:
        return ""

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "busy" if len(node.allocations) > 1 else None


class Remote(Uncrowded):
    """Is asked about many nodes at once."""

    name = "remote"

    def check_nodes(self, ask: api.Ask, nodes: Sequence[api.Node], *, allocate: bool) -> Sequence[str | None]:
        self.calls.append(f"{ask.key} on {[node.id for node in nodes]}")
        return [None if len(node.allocations) < 2 or node.id < "n20" else "remote" for node in nodes]


VARIANTS: list[dict[str, Any]] = [
    {"predicates": ["in-zone"]},
    {"predicates": ["in-zone", "uncrowded"]},
    {"predicates": ["in-zone", "limited", "by-load"]},
    {"predicates": ["in-zone", "remote"]},
    {"predicates": ["in-zone", "limited"], "nodesortpolicy": {"type": "binpacking"}},
    {"predicates": ["node-selector", "in-zone"]},
]


class Side:
    """A scheduler with or without known refusals."""

    def __init__(self, known: bool, keys: dict[str, Any]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if not known:
                patch.setattr(predicate_calls, "inputs_of", lambda check: None)
            config = configuration(queue("a", resources={"guaranteed": {"vcore": "8"}}), queue("b"), **keys)
            self.rm = GangRM(config, with_plugins(predicates=[InZone, Limited, Uncrowded, ByLoad, Remote]))
        self.rm.app("app", "root.a")
        self.rm.app("other", "root.b", **{"yunikorn.apache.org/node-selector": "zone=a"})
        chain = self.rm.at_work().policies.predicates
        assert (chain.known is not None) == known
        self.count = 0

    def apply(self, operation: str, value: Any) -> Any:
        """Apply an operation; return everything that can be seen of it."""
        rm = self.rm
        self.count += 1
        Uncrowded.calls.clear()
        match operation:
            case "node":
                rm.node(f"n{value[0]:02}", {"zone": value[1]}, vcore=value[2])
            case "attributes":
                rm.change_node(f"n{value[0]:02}", attributes={"zone": value[1]})
            case "remove":
                rm.change_node(f"n{value:02}", NodeAction.DECOMMISSION)
            case "ask":
                size, zone, count = value
                app = "other" if count % 2 else "app"
                rm.ask(app, f"k{self.count}", count, vcore=size, tags={"zone": zone})
            case "gang":
                size, zone, count = value
                rm.gang(f"g{self.count}", "Atomic", vcore=size * count)
                for number in range(count):
                    rm.task(f"g{self.count}", f"m{number}", "t", tags={"zone": zone}, vcore=size)
            case "schedule":
                rm.schedule(value)
            case "time":
                rm.pass_time(value)
            case "release":
                for uuid in sorted(rm.running)[value : value + 1]:
                    one = rm.running.pop(uuid)
                    rm.release(one.application_id, uuid)
        partition = rm.at_work().partition
        asks = [ask for app in partition.applications.values() for ask in app.asks.values()]
        return (
            [repr(response) for response in rm.responses[-3:]],
            [(ask.app.id, ask.key, ask.pending, dict(ask.refusals), ask.unschedulable) for ask in asks],
            {node.id: [ask.key for ask in node.reservations] for node in partition.nodes.values()},
            list(Uncrowded.calls),
            [(failure.message, failure.count) for failure in rm.scheduler.failures],
        )


@settings(max_examples=50)
@given(st.sampled_from(range(6)), st.lists(operations, max_size=50))
def test_everything_is_as_without_known_refusals(variant: int, story: list[tuple[str, Any]]) -> None:
    sides = [Side(known, VARIANTS[variant]) for known in (True, False)]
    for number in range(35):
        for side in sides:
            side.apply("node", (number, "abcb"[number % 4], 4))
    for operation, value in [*story, ("schedule", 200), ("time", 3), ("schedule", 200)]:
        one, other = [side.apply(operation, value) for side in sides]
        assert one == other, operation
