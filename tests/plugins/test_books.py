"""Plugins that keep books: what is passed to them and when, domains, failures, and invalid classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from tests.core.book_keepers import Alone, Even, Few, Ledger, check_books
from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource

ZONES = {"n1": "x", "n2": "x", "n3": "y"}


class Counting(Few):
    """Counts its checks."""

    name = "counting"
    checks: ClassVar[Counter[str]] = Counter()

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        Counting.checks[node.attributes.get("zone", "")] += 1
        return super().check(ask, node)


class Faulty(Ledger):
    """Raises an exception for a task named odd."""

    name = "faulty"

    def placed(self, task: api.Task, node: api.Node) -> None:
        if task.key == "odd":
            raise ValueError("odd task")
        super().placed(task, node)


def registry(*more: type[api.Predicate]) -> Registry:
    return with_plugins(predicates=[Ledger, Few, Even, Alone, *more])


def ready(*predicates: str, kind: type[RM] = RM, more: Sequence[type[api.Predicate]] = ()) -> Any:
    rm = kind(configuration(predicates=list(predicates)), registry(*more))
    for name, zone in ZONES.items():
        rm.node(name, {"zone": zone}, vcore=8)
    return rm


def plugin(rm: RM, name: str = "") -> Any:
    """Return the plugin of this name, or the first."""
    books = rm.at_work().orders.books
    assert books is not None
    return next(one.plugin for one in books.keepers if name in ("", one.plugin.name))


def test_nothing_is_kept_where_no_plugin_keeps_books() -> None:
    rm = RM(configuration(predicates=["taints"]))
    assert rm.at_work().partition.accounting.books is None
    assert rm.at_work().orders.books is None


def test_a_limit_per_domain_holds_and_a_release_opens_the_domain() -> None:
    rm = ready("few")
    rm.app()
    rm.ask(count=7, vcore=1)
    made = rm.schedule()
    assert Counter(ZONES[node] for _, _, node in made) == {"x": 2, "y": 2}
    assert rm.find_app().asks["ask"].ask_class.refusals == {
        "2 tasks in zone x": 2,
        "2 tasks in zone y": 1,
    }
    one = next(uuid for uuid, one in rm.running.items() if one.node_id == "n3")
    rm.release(uuid=one)
    assert rm.schedule() == [("app", "ask", "n3")]
    assert rm.schedule() == []
    check_books(rm.at_work())


def test_a_closed_domain_is_checked_again_only_after_a_release_of_its_subject() -> None:
    rm = ready("counting", more=[Counting])
    rm.app()
    rm.app("other")
    rm.ask("other", "other", vcore=1)
    rm.ask(count=7, vcore=1)
    rm.schedule()
    Counting.checks.clear()
    other = next(uuid for uuid, one in rm.running.items() if one.application_id == "other")
    rm.release("other", other)
    assert rm.schedule() == []
    assert not Counting.checks
    own = next(uuid for uuid, one in rm.running.items() if ZONES[one.node_id] == "y")
    rm.release(uuid=own)
    assert len(rm.schedule()) == 1
    # Once for the review, once by the search, and once more when the next task is refused.
    assert Counting.checks == {"y": 3}


def test_a_placement_may_open_other_domains() -> None:
    rm = ready("even")
    rm.app()
    rm.ask(count=6, vcore=1, tags={"shy": "yes"})
    made = rm.schedule()
    assert Counter(ZONES[node] for _, _, node in made) == {"x": 3, "y": 3}
    assert all(ZONES[a[2]] != ZONES[b[2]] for a, b in zip(made[::2], made[1::2], strict=True))


def test_relabelled_node_moves_its_tasks_between_domains() -> None:
    rm = ready("few")
    rm.app()
    rm.ask(count=5, vcore=1)
    assert len(rm.schedule()) == 4
    rm.change_node("n3", attributes={"zone": "z"})
    check_books(rm.at_work())
    assert rm.schedule() == []
    rm.node("n4", {"zone": "y"}, vcore=8)
    assert rm.schedule() == [("app", "ask", "n4")]


def test_prepare_is_called_once_per_search() -> None:
    calls: list[str] = []

    class Preparing(Alone):
        name = "preparing"

        def prepare(self, ask: api.Ask) -> frozenset[str]:
            calls.append(ask.key)
            return frozenset(one[1] for one in self.books)

        def check(self, ask: api.Ask, node: api.Node, state: frozenset[str]) -> str | None:
            return "not alone" if node.id in state else None

    rm = ready("preparing", more=[Preparing])
    rm.app()
    for number in range(4):
        rm.ask(key=f"k{number}", vcore=1)
    assert len(rm.schedule()) == 3
    assert calls[:3] == ["k0", "k1", "k2"]
    assert set(calls[3:]) == {"k3"}


def test_gang_is_tried_within_the_books_and_undone() -> None:
    rm = ready("few", kind=GangRM)
    rm.gang("gang", "Atomic", vcore=5)
    rm.task("gang", "m", "t", 5, vcore=1)
    assert rm.schedule() == []
    check_books(rm.at_work())
    rm.node("n4", {"zone": "z"}, vcore=8)
    assert len(rm.schedule()) == 5
    check_books(rm.at_work())


@pytest.mark.parametrize("confirmed", [True, False])
def test_real_task_takes_the_place_of_its_placeholder_in_the_books(confirmed: bool) -> None:
    rm = ready("alone", kind=GangRM)
    shy = {"shy": "yes"}
    rm.gang("gang", vcore=3)
    rm.task("gang", "p", "t", 3, placeholder=True, tags=shy, vcore=1)
    assert len(rm.schedule()) == 3
    rm.task("gang", "r", "t", 3, tags=shy, vcore=1)
    rm.schedule()
    check_books(rm.at_work())
    assert sorted(one[1] for one in plugin(rm).books) == ["n1", "n2", "n3"]
    assert all(one[3] == "r" for one in plugin(rm).books)
    if confirmed:
        rm.confirm()
        rm.schedule()
        assert sorted(one.node_id for one in rm.running.values()) == ["n1", "n2", "n3"]
    else:
        rm.release_ask("gang", "r")
        assert not plugin(rm).books
    check_books(rm.at_work())


def test_preemption_asks_as_if_the_victims_had_ended() -> None:
    guaranteed = {"guaranteed": {"vcore": "8"}}
    queues = [queue("a"), queue("b", resources=guaranteed, properties={"preemption.delay": "1s"})]
    config = configuration(*queues, predicates=["alone"], preemption={"enabled": True})
    rm = RM(config, registry(), timeouts=Timeouts(reservation=None))
    rm.node(vcore=8)
    rm.app()
    rm.ask(vcore=8, tags={"shy": "yes"})
    assert len(rm.schedule()) == 1
    rm.app("b", "root.b")
    rm.ask("b", "wanted", vcore=8, tags={"shy": "yes"})
    rm.schedule()
    rm.pass_time(40)
    rm.schedule()
    assert len(rm.evicted) == 1
    check_books(rm.at_work())
    rm.confirm()
    assert rm.schedule() == [("b", "wanted", "n1")]
    check_books(rm.at_work())


def test_recovered_and_resized_allocations_enter_the_books() -> None:
    rm = ready("ledger")
    rm.app()
    found = Allocation("k", "app", "u1", "n9", Resource(vcore=2))
    rm.node("n9", {"zone": "x"}, vcore=8, existing=[found])
    check_books(rm.at_work())
    assert len(plugin(rm).books) == 1
    rm.update(allocations=[Allocation("k", "app", "u1", "n9", Resource(vcore=3))])
    check_books(rm.at_work())
    rm.remove_app("app")
    assert not plugin(rm).books


def test_reload_fills_the_books_of_new_plugins_only() -> None:
    rm = ready("ledger")
    rm.app()
    rm.ask(count=3, vcore=1)
    rm.schedule()
    kept = plugin(rm)
    rm.reload(configuration(predicates=["ledger", "few"]))
    check_books(rm.at_work())
    assert plugin(rm, "ledger") is kept
    rm.reload(configuration())
    assert rm.at_work().partition.accounting.books is None


def test_domains_stay_in_use_after_a_reload() -> None:
    rm = ready("few")
    rm.app()
    rm.reload(configuration(queue("a"), queue("b"), predicates=["few"]))
    rm.node("n4", {"zone": "x"}, vcore=8)
    rm.ask(count=5, vcore=1)
    assert len(rm.schedule()) == 4


def test_predicate_whose_books_fail_refuses_until_a_reload() -> None:
    rm = ready("faulty", more=[Faulty])
    rm.app()
    rm.ask(key="odd", vcore=1)
    rm.schedule(1)
    assert rm.failures() == [
        "plugin faulty of test-plugin (yunikorn-test 1.0): adding to its books task odd of application app "
        "on node n1: ValueError: odd task"
    ]
    rm.ask(key="later", vcore=1)
    assert rm.schedule() == []
    (reason,) = rm.find_app().asks["later"].refusals
    assert reason.startswith("the books of faulty are unknown: ")
    rm.release(key="odd")
    assert rm.schedule() == []
    rm.reload(configuration(predicates=["faulty", "ledger"]))
    assert len(rm.schedule()) == 1
    check_books(rm.at_work())


# -- invalid classes ------------------------------------------------------------------------------------


def _refusal(**methods: Any) -> str:
    made = type("Odd", (api.Predicate,), {"name": "odd", "check": lambda self, ask, node: None, **methods})
    found = Registry.load(third_party=False)

    class Offering:
        @staticmethod
        @api.hookimpl
        def yunikorn_predicates() -> list[Any]:
            return [made]

    found.register(Offering, "test-plugin", "yunikorn-test", "1.0")
    return found.broken[-1].reason if found.broken else ""


def _two(self: Any, task: Any, node: Any) -> None:
    """Do nothing."""


def _one(self: Any, argument: Any) -> Any:
    """Return None."""


@pytest.mark.parametrize(
    ("methods", "reason"),
    [
        ({"placed": _two}, "Odd has placed without released: the books would only grow"),
        ({"released": _two}, "Odd has released without placed: the books would only shrink"),
        ({"domain": _one}, "Odd has domain without placed: an answer that no running task changes is"),
        ({"placed": _two, "released": _two, "domain": _one}, "Odd has domain without ask_class: "),
        ({"placed": _two, "released": _two, "subjects": _one}, "Odd has subjects without domain: "),
        (
            {"placed": _two, "released": _two, "ask_class": _one, "domain": _one, "node_class": _one},
            "Odd has both domain and node_class",
        ),
        ({"prepare": _one}, "Odd.check(self, ask, node) does not match: expected check(ask, node, state)"),
        (
            {"prepare": _one, "check": lambda self, ask, node, state: None, "check_nodes": _one},
            "Odd has both prepare and check_nodes",
        ),
        (
            {"placed": _two, "released": _two, "ask_class": _one, "scope": _two},
            "scope without domain_in",
        ),
        (
            {"placed": _two, "released": _two, "ask_class": _one, "domain_in": _two},
            "domain_in without scope",
        ),
        (
            {"placed": _two, "released": _two, "scope": _two, "domain_in": _two},
            "domain_in without ask_class",
        ),
        (
            {
                **{"placed": _two, "released": _two, "ask_class": _one},
                **{"scope": _two, "domain_in": _two, "domain": _one},
            },
            "both domain and domain_in",
        ),
        ({"classes_version": 1}, "classes_version without ask_class"),
        (
            {
                **{"placed": _two, "released": _two, "ask_class": _one},
                **{"scope": _two, "domain_in": _two, "subjects": _one},
            },
            "",
        ),
        ({"check": lambda self, ask, node, state: None}, "expected check(ask, node)"),
        ({"placed": _two, "released": _two, "ask_class": _one, "domain": _one}, ""),
    ],
)
def test_incomplete_classes_are_refused(methods: dict[str, Any], reason: str) -> None:
    assert reason in _refusal(**methods)
    assert bool(reason) == bool(_refusal(**methods))
