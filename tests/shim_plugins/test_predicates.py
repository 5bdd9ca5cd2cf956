"""The RM as a predicate: called for placements and for reservations (docs/decisions/0040 and 0046)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.gangs import GangRM
from tests.core.kit import RM, Decision, configuration, document, partition, queue
from tests.shim_plugins.shim import Asked, AskedAtOnce, Rule
from yunikorn.errors import ConfigError
from yunikorn.interface.messages import PredicatesArgs, TerminationType
from yunikorn.model.context import Timeouts

PERIODS = Timeouts(reservation=0)


def ready(rm: RM, nodes: int = 2) -> None:
    """Register some nodes and submit an application."""
    for number in range(1, nodes + 1):
        rm.node(f"n{number}", vcore=2)
    rm.app()


def not_on(*nodes: str) -> Rule:
    """Return a rule that refuses these nodes."""
    return lambda args: f"{args.node_id} is out of order" if args.node_id in nodes else None


def test_rm_predicates_are_called_without_configuration() -> None:
    rm = Asked(configuration())
    rm.rule = not_on("n1")
    ready(rm)
    rm.ask(key="k", vcore=1)
    assert rm.schedule() == [("app", "k", "n2")]
    assert rm.asked == [("k", "n1"), ("k", "n2")]
    assert rm.__dict__["questions"][0] == PredicatesArgs("k", "n1", True, "app")


def test_rm_predicates_are_called_for_nodes_with_room_only() -> None:
    rm = Asked(configuration())
    ready(rm)
    rm.ask(key="large", vcore=3)
    assert rm.schedule() == []
    assert rm.asked == []


def test_rm_without_predicates_costs_nothing() -> None:
    rm = RM(configuration(predicates=["rm"]))
    assert not rm.at_work().policies.predicates


def test_inherited_and_none_methods_are_not_implemented() -> None:
    class Mute(Asked):
        predicates = None  # type: ignore[assignment]

    rm = Mute(configuration())
    ready(rm)
    rm.ask(key="k", vcore=1)
    assert rm.schedule() == [("app", "k", "n1")]


def test_rm_predicates_can_be_ordered_or_disabled() -> None:
    for named in (["rm", "node-selector"], ["node-selector"]):
        rm = Asked(configuration(predicates=named))
        ready(rm)
        rm.ask(key="k", vcore=1, tags={"yunikorn.apache.org/node-selector": "zone=a"})
        assert rm.schedule() == []
        # Predicates that declare their inputs are called first, wherever they are in the list.
        assert rm.asked == []
    for name in ("rm", "predicate:rm"):
        rm = Asked(document(partition(queue("a")), plugins={"disable": [name]}))
        rm.rule = not_on("n1", "n2")
        ready(rm)
        rm.ask(key="k", vcore=1)
        assert len(rm.schedule()) == 1
        assert rm.asked == []


def test_a_name_that_is_disabled_cannot_be_named() -> None:
    text = document(partition(queue("a"), predicates=["rm"]), plugins={"disable": ["rm"]})
    with pytest.raises(ConfigError, match=r"predicate 'rm' is disabled by plugins\.disable"):
        Asked(text)


def test_refusal_applies_to_one_ask_and_is_retried_after_a_change() -> None:
    rm = Asked(configuration())
    closed = {"n1"}
    rm.rule = lambda args: "closed" if args.node_id in closed and args.allocation_key == "k" else None
    ready(rm, 1)
    rm.ask(key="k", vcore=1)
    rm.ask(key="other", vcore=1)
    assert rm.schedule() == [("app", "other", "n1")]
    before = len(rm.asked)
    assert rm.schedule() == []
    assert len(rm.asked) == before, "without a change the RM is not called again"
    closed.clear()
    rm.change_node("n1", vcore=4)
    assert rm.schedule() == [("app", "k", "n1")]


def test_refusal_is_retried_after_a_while_without_a_change() -> None:
    """An RM's answers may change without the core, and an idle cluster has no changes of its own."""
    rm = Asked(configuration())
    closed = {"n1"}
    rm.rule = lambda args: "closed" if args.node_id in closed else None
    ready(rm, 1)
    rm.ask(key="k", vcore=1)
    assert rm.schedule() == []
    before = len(rm.asked)
    rm.pass_time(4)
    assert rm.schedule() == []
    assert len(rm.asked) == before
    rm.pass_time(1)
    assert rm.schedule() == []
    assert len(rm.asked) == before + 1, "once, and not all the time"
    closed.clear()
    rm.pass_time(5)
    assert rm.schedule() == [("app", "k", "n1")]
    assert rm.scheduler.next_timer() is None or not rm.at_work().cycle.unschedulable_queue.has_refresh_timer


def test_nothing_is_retried_if_the_rm_is_not_called() -> None:
    rm = RM(configuration(predicates=["taints"]))
    rm.node("n1", vcore=2, attributes={"taints": "old"})
    rm.app()
    rm.ask(key="k", vcore=1)
    assert rm.schedule() == []
    assert not rm.at_work().cycle.unschedulable_queue.has_refresh_timer


@pytest.mark.parametrize("waiting", [1, 200])
def test_all_refused_asks_are_retried(waiting: int) -> None:
    rm = Asked(configuration())
    closed = {"n1"}
    rm.rule = lambda args: "closed" if args.node_id in closed else None
    rm.node("n1", vcore=waiting)
    rm.app()
    for number in range(waiting):
        rm.ask(key=f"k{number}", vcore=1)
    assert rm.schedule() == []
    rm.pass_time(60)
    closed.clear()
    rm.pass_time(5)
    assert len(rm.schedule()) == waiting


def test_predicate_that_raises_refuses_the_node_and_is_reported_with_its_rm() -> None:
    rm = Asked(configuration())

    def rule(args: PredicatesArgs) -> str | None:
        if args.node_id == "n1":
            raise LookupError("who is n1?")
        return None

    rm.rule = rule
    ready(rm)
    rm.ask(key="k", vcore=1)
    assert rm.schedule() == [("app", "k", "n2")]
    assert rm.failures() == [
        "callback of resource manager rm: answering predicates ask k of application app on node n1: "
        "LookupError: who is n1?"
    ]


@pytest.mark.parametrize("answer", [True, "", 0])
def test_invalid_answer_refuses_the_node(answer: object) -> None:
    rm = Asked(configuration())
    rm.rule = lambda args: answer  # type: ignore[assignment, return-value]
    ready(rm)
    rm.ask(key="k", vcore=1)
    assert rm.schedule() == []
    assert bool(rm.failures()) == (answer != "")


# -- reservations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Asked, AskedAtOnce])
def test_node_is_reserved_only_if_the_rm_allows_it(kind: type[Asked] | type[AskedAtOnce]) -> None:
    rm = kind(configuration(), timeouts=PERIODS)
    rm.rule = lambda args: "not to be kept" if not args.allocate and args.node_id == "n1" else None
    ready(rm)
    rm.ask(key="first", vcore=1)
    rm.ask(key="second", vcore=1)
    assert len(rm.schedule()) == 2
    rm.ask(key="large", vcore=2)
    assert rm.schedule() == []
    assert [node.id for node in rm.at_work().partition.nodes.values() if node.reservations] == ["n2"]
    kept = [args for args in rm.__dict__["questions"] if not args.allocate]
    assert {args.allocation_key for args in kept} == {"large"}


class AskedGang(GangRM, Asked):
    """Gangs of an RM with predicates."""


def test_replacement_of_a_placeholder_needs_no_extra_room() -> None:
    rm = AskedGang(configuration())
    rm.node("n1", vcore=1)
    rm.gang("app", vcore=1)
    rm.task("app", "ph", "workers", placeholder=True, vcore=1)
    rm.schedule()
    rm.task("app", "real", "workers", vcore=1)
    rm.schedule()
    assert [(args.allocation_key, args.allocate) for args in rm.__dict__["questions"]] == [
        ("ph", True),
        ("real", False),
    ]
    assert [release.termination_type for release in rm.evicted.values()] == [
        TerminationType.PLACEHOLDER_REPLACED
    ]


# -- many at once -----------------------------------------------------------------------------------------


def test_remote_rm_is_called_for_many_nodes_in_the_order_of_trial() -> None:
    rm = AskedAtOnce(configuration())
    rm.rule = lambda args: "no" if args.node_id < "n150" else None
    for number in range(100, 200):
        rm.node(f"n{number}", vcore=2)
    rm.node("n000", vcore=1)
    rm.app()
    rm.ask(key="k", vcore=2)
    assert rm.schedule() == [("app", "k", "n150")]
    assert [len(question.node_ids) for question in rm.questions] == [16, 32, 52]
    assert [node for question in rm.questions for node in question.node_ids] == [
        f"n{number}" for number in range(100, 200)
    ]


def test_batched_answers_apply_to_one_search() -> None:
    rm = AskedAtOnce(configuration())
    ready(rm, 3)
    rm.ask(key="k", count=2, vcore=2)
    assert len(rm.schedule()) == 2
    assert [question.node_ids for question in rm.questions] == [["n1", "n2", "n3"], ["n2", "n3"]]


def test_failed_batch_call_refuses_all_nodes_of_the_search() -> None:
    rm = AskedAtOnce(configuration())
    fails = True

    def rule(args: PredicatesArgs) -> str | None:
        if fails:
            raise TimeoutError("no answer in time")
        return None

    rm.rule = rule
    ready(rm, 40)
    rm.ask(key="k", vcore=1)
    assert rm.schedule() == []
    assert len(rm.questions) == 1
    (failure,) = rm.scheduler.failures
    assert (failure.plugin, failure.count) == ("resource manager rm", 40)
    fails = False
    rm.change_node("n1", vcore=4)
    assert [where for _, _, where in rm.schedule()] == ["n1"]


@pytest.mark.parametrize("answer", [None, ["n1"], {"n1": True}])
def test_invalid_batch_answer_refuses_all_nodes(answer: object) -> None:
    class Odd(RM):
        def node_predicates(self, args: object) -> object:
            return answer

    rm = Odd(configuration())
    ready(rm)
    rm.ask(key="k", vcore=1)
    assert rm.schedule() == []
    assert "answering predicates for several nodes" in rm.failures()[0]
    assert "it returned" in rm.failures()[0]


def decisions(kind: type[Asked] | type[AskedAtOnce], seed: int, refusing: int) -> list[Decision]:
    """Return the decisions in a changing cluster where `refusing` of five pairs of key and node fail."""
    rm = kind(configuration(queue("a"), queue("b"), predicates=["node-selector"]), timeouts=PERIODS)
    rm.rule = lambda args: "no" if hash_of(args, seed) % 5 < refusing else None
    for number in range(60):
        rm.node(f"n{number:02}", {"zone": "ab"[number % 2]}, vcore=4, memory=8)
    taken: list[Decision] = []
    for turn in range(6):
        for name in ("a", "b"):
            app = f"{name}{turn}"
            rm.app(app, f"root.{name}")
            tags = {"yunikorn.apache.org/node-selector": f"zone={'ab'[turn % 2]}"} if turn % 3 else {}
            for key in range(8):
                rm.ask(app, f"{app}-{key}", 1 + key % 3, vcore=1 + key % 4, memory=1, tags=tags)
        taken += rm.schedule()
        rm.change_node(f"n{(seed * 7 + turn) % 60:02}", vcore=6 + turn)
        rm.pass_time(1)
        for uuid in list(rm.running)[:: 3 + turn]:
            one = rm.running[uuid]
            rm.release(one.application_id, uuid)
        taken += rm.schedule()
    return taken


def hash_of(args: PredicatesArgs, seed: int) -> int:
    """Return a number that looks random and is equal in every run."""
    return sum(ord(sign) * (place + seed) for place, sign in enumerate(args.allocation_key + args.node_id))


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(0, 5))
def test_batch_calls_decide_as_single_calls(seed: int, refusing: int) -> None:
    one_by_one = decisions(Asked, seed, refusing)
    assert len(one_by_one) > 60 or refusing > 3
    assert decisions(AskedAtOnce, seed, refusing) == one_by_one
