"""Contracts detect violations: each plugin here breaks one rule, and the contract names it."""

from __future__ import annotations

import dataclasses
import datetime
import logging
import random
import time
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import date as Day
from time import time_ns as read_clock
from typing import Any

import attrs
import pytest

from yunikorn.api import (
    AdmissionPolicy,
    Application,
    AppSortPolicy,
    Ask,
    Context,
    Event,
    EventSink,
    GangPlacementPolicy,
    Node,
    NodeSortPolicy,
    PermitPolicy,
    PlacementRule,
    Plugin,
    Predicate,
    PreemptionPolicy,
    Queue,
    QueueSortPolicy,
    Quota,
    QuotaPolicy,
    ReservationPolicy,
    RunTime,
    RunTimeEstimator,
    SubmitPolicy,
    TopologySource,
    UserGroupResolver,
)
from yunikorn_testing import (
    AdmissionPolicyContract,
    AppSortPolicyContract,
    EventSinkContract,
    GangPlacementPolicyContract,
    NodeSortPolicyContract,
    PermitPolicyContract,
    PlacementRuleContract,
    PluginContract,
    PredicateContract,
    PreemptionPolicyContract,
    QueueSortPolicyContract,
    QuotaPolicyContract,
    ReservationPolicyContract,
    RunTimeEstimatorContract,
    SubmitPolicyContract,
    TopologySourceContract,
    UserGroupResolverContract,
)

CONTRACTS: dict[type[Plugin], type[PluginContract]] = {
    AppSortPolicy: AppSortPolicyContract,
    QueueSortPolicy: QueueSortPolicyContract,
    NodeSortPolicy: NodeSortPolicyContract,
    PlacementRule: PlacementRuleContract,
    Predicate: PredicateContract,
    EventSink: EventSinkContract,
    UserGroupResolver: UserGroupResolverContract,
    PreemptionPolicy: PreemptionPolicyContract,
    SubmitPolicy: SubmitPolicyContract,
    AdmissionPolicy: AdmissionPolicyContract,
    QuotaPolicy: QuotaPolicyContract,
    ReservationPolicy: ReservationPolicyContract,
    PermitPolicy: PermitPolicyContract,
    TopologySource: TopologySourceContract,
    GangPlacementPolicy: GangPlacementPolicyContract,
    RunTimeEstimator: RunTimeEstimatorContract,
}


def broken_promises(plugin: Plugin, *only: str) -> dict[str, str]:
    """Return the failing tests of a contract with their messages, of `only` these, or of one process."""
    (base,) = (base for base in CONTRACTS if isinstance(plugin, base))
    contract = CONTRACTS[base]
    case = type("TestIt", (contract,), {contract.subject: plugin})()
    found = {}
    for name in dir(case):
        if name in only or (not only and name.startswith("test_") and "hash_seed" not in name):
            try:
                getattr(case, name)()
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"
    return found


def violation(plugin: Plugin, test: str) -> str:
    """Return the message with which a test of the contract fails; other tests of the contract do not run."""
    return broken_promises(plugin, test)[test]


def app_policy(key: Callable[[Application], Any]) -> AppSortPolicy:
    class Odd(AppSortPolicy):
        """Is odd."""

        name = "odd"

        def key(self, app: Application) -> Any:
            return key(app)

    return Odd()


CALLS: list[str] = []


def count_again(app_id: str) -> int:
    CALLS.append(app_id)
    return CALLS.count(app_id) + sum(0 for _ in CALLS)


ODD_KEYS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "NaN": (lambda app: float("nan"), "test_keys_have_a_total_order"),
    "None for some": (lambda app: app.priority if app.priority > 0 else None, "test_keys_have_a_total_order"),
    "a set": (lambda app: {app.id}, "test_keys_have_a_total_order"),
    "divides by zero": (lambda app: 1 / sum(app.pending.values()), "test_keys_have_a_total_order"),
    "counts calls": (
        lambda app: CALLS.append("") or len(CALLS),  # type: ignore[func-returns-value]
        "test_repeated_calls_return_equal_answers",
    ),
    "the clock": (lambda app: time.time(), "test_answers_depend_on_neither_clock_nor_randomness"),
    "the clock by name": (lambda app: read_clock(), "test_answers_depend_on_neither_clock_nor_randomness"),
    "the day": (
        lambda app: datetime.datetime.now().day,
        "test_answers_depend_on_neither_clock_nor_randomness",
    ),
    "the day by name": (lambda app: Day.today().month, "test_answers_depend_on_neither_clock_nor_randomness"),
    "the hour": (lambda app: time.localtime().tm_hour, "test_answers_depend_on_neither_clock_nor_randomness"),
    "other dice": (lambda app: uuid.uuid4().hex[:0], "test_answers_depend_on_neither_clock_nor_randomness"),
    "dice": (lambda app: random.random(), "test_answers_depend_on_neither_clock_nor_randomness"),
    "modifies its argument": (
        lambda app: app.pending.update(vcore=1),
        "test_repeated_calls_return_equal_answers",
    ),
    "compares all types with all": (
        lambda app: sum(1 for left in app.pending for right in app.pending if left < right),
        "test_cost_of_a_key_is_at_most_linear_in_resource_types",
    ),
    "cost grows with calls": (
        lambda app: count_again(app.id) * 0,
        "test_cost_of_an_answer_is_independent_of_earlier_calls",
    ),
}


@pytest.mark.parametrize("odd", ODD_KEYS)
def test_invalid_keys_are_found(odd: str) -> None:
    key, test = ODD_KEYS[odd]
    CALLS.clear()
    assert violation(app_policy(key), test)


def test_correct_policy_passes_the_contract() -> None:
    assert broken_promises(app_policy(lambda app: (-app.priority, app.id))) == {}


def test_contract_without_a_plugin_reports_what_to_write() -> None:
    class TestForgotten(NodeSortPolicyContract):
        pass

    with pytest.raises(AssertionError, match=r"TestForgotten: there is no policy; set `policy = YourPlugin"):
        TestForgotten().test_class_can_be_registered_for_its_kind()


def test_options_that_cannot_be_configured_are_found() -> None:
    @attrs.frozen
    class Weighted(QueueSortPolicy):
        """An order by weight."""

        name = "weighted"
        weights: dict[str, float] = attrs.field(factory=dict)

        def key(self, queue: Queue) -> float:
            return self.weights.get(queue.path, 0.0)

    assert broken_promises(Weighted({"root.a": 1.0})) == {}
    found = violation(Weighted({"root,a": 1.0}), "test_options_survive_the_configuration")
    assert "option 'weights': " in found
    assert "has no syntax in a queue property" in found


def test_undeclared_time_dependent_key_is_found() -> None:
    @attrs.define(eq=False)
    class Secret(AppSortPolicy):
        """Changes its order after a second."""

        name = "secret"
        _context: Context | None = attrs.field(init=False, default=None)

        def opened(self, context: Context) -> None:
            self._context = context

        def key(self, app: Application) -> int:
            assert self._context is not None
            return -app.submitted if self._context.now() > 1_000_000_000 else app.submitted

    (reported,) = broken_promises(Secret()).items()
    assert reported[0] == "test_time_dependent_key_declares_its_refresh_interval"
    assert "set refresh_every" in reported[1]


def test_admission_limits_that_admit_no_application_are_found() -> None:
    class Closed(AppSortPolicy):
        """Admits no application."""

        name = "closed"

        def key(self, app: Application) -> int:
            return app.submitted

        def admission_class(self, app: Application) -> Hashable:
            return app.state

        def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int | None]:
            return dict.fromkeys(counts, 0)

    assert "admits no application" in violation(Closed(), "test_admission_limits_admit_an_application")


@pytest.mark.parametrize("score", [lambda node: node.id, lambda node: None, lambda node: float("nan")])
def test_invalid_scores_are_found(score: Callable[[Node], Any]) -> None:
    class Odd(NodeSortPolicy):
        """Is odd."""

        name = "odd"

        def score(self, node: Node) -> Any:
            return score(node)

    assert violation(Odd(), "test_answers_are_valid")
    assert violation(Odd(), "test_cluster_runs_without_plugin_failures")


class Forgetful(NodeSortPolicy):
    """Loses its state on every reload."""

    name = "forgetful"

    def __init__(self) -> None:
        self._sign = 1

    def opened(self, context: Context) -> None:
        self._sign = -1 if context.now() else 1

    def reloaded(self, context: Context) -> None:
        self._sign = -1

    def score(self, node: Node) -> float:
        return self._sign * sum(node.available.values())


def test_answers_changed_by_a_reload_are_found() -> None:
    assert violation(Forgetful(), "test_reload_changes_no_answer")
    assert violation(Forgetful(), "test_reload_without_changes_changes_no_decision")


@pytest.mark.parametrize("answer", ["", "root..a", 7, ["root.a"]])
def test_invalid_queue_names_are_found(answer: Any) -> None:
    class Odd(PlacementRule):
        """Is odd."""

        name = "odd"

        def place(self, app: Application) -> Any:
            return answer

    has_empty_level = answer == "root..a"
    test = "test_names_contain_only_allowed_characters" if has_empty_level else "test_answers_are_valid"
    assert violation(Odd(), test)


def predicate(
    check: Callable[[Ask, Node], Any],
    ask_class: Callable[[Ask], Hashable] = lambda ask: "",
    node_class: Callable[[Node], Hashable] = lambda node: "",
) -> Predicate:
    class Odd(Predicate):
        """Is odd."""

        name = "odd"

        def check(self, ask: Ask, node: Node) -> Any:
            return check(ask, node)

        def ask_class(self, ask: Ask) -> Hashable:
            return ask_class(ask)

        def node_class(self, node: Node) -> Hashable:
            return node_class(node)

    return Odd()


def test_invalid_answers_are_found() -> None:
    found = violation(predicate(lambda ask, node: False), "test_answers_are_valid")
    assert "return None, or the reason as text" in found


def test_wrong_ask_classes_are_found() -> None:
    plugin = predicate(lambda ask, node: "no zone" if "zone" in ask.tags else None)
    found = violation(plugin, "test_equal_classes_have_equal_answers")
    assert "although the classes are equal" in found


def test_node_classes_beyond_attributes_are_found() -> None:
    found = broken_promises(predicate(lambda ask, node: None, node_class=lambda node: len(node.allocated)))
    assert set(found) == {"test_node_class_depends_on_attributes_only"}


def test_differing_batch_answers_are_found() -> None:
    class Odd(Predicate):
        """Is odd."""

        name = "odd"

        def check(self, ask: Ask, node: Node) -> str | None:
            return None

        def check_nodes(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
            return ["no" for _ in nodes]

    assert set(broken_promises(Odd())) == {"test_answers_for_many_nodes_equal_answers_for_single_nodes"}


def test_sinks_that_reject_events_are_found() -> None:
    class Odd(EventSink):
        """Is odd."""

        name = "odd"

        def send(self, batch: Sequence[Event]) -> None:
            print(batch[0])

    class Greedy(EventSink):
        """Empties the batch that it receives."""

        name = "greedy"

        def send(self, batch: Sequence[Event]) -> None:
            if isinstance(batch, list):
                batch.clear()

    assert "IndexError" in violation(Odd(), "test_every_event_is_accepted")
    assert violation(Greedy(), "test_batches_of_events_are_not_changed")


@pytest.mark.parametrize("answer", ["staff", ["staff", "staff"], [""], 7])
def test_invalid_groups_are_found(answer: Any) -> None:
    class Odd(UserGroupResolver):
        """Is odd."""

        name = "odd"

        def groups(self, user: str) -> Any:
            return answer

    assert violation(Odd(), "test_answers_are_valid")


def test_missing_docstring_is_found() -> None:
    class Silent(UserGroupResolver):
        name = "silent"

        def groups(self, user: str) -> None:
            return None

    assert "has no docstring" in violation(Silent(), "test_class_has_a_docstring")


METHODS = {contract.kind.base: contract.kind.method for contract in CONTRACTS.values()}
SOUND: dict[str, Callable[..., Any]] = {
    "key": lambda self, asked: 0,
    "score": lambda self, node: 0.0,
    "place": lambda self, app: "a",
    "check": lambda self, ask, node: None,
    "send": lambda self, batch: None,
    "groups": lambda self, user: ["staff"],
    "rank": lambda self, victim, cause: 0,
    "submit": lambda self, app: None,
    "admit": lambda self, app: None,
    "quota": lambda self, queue: None,
    "reserves_after": lambda self, ask, delay: delay,
    "permit": lambda self, allocation: None,
    "path": lambda self, node: ["a"],
    "estimate": lambda self, task, age: None,
}
NEEDED: dict[type[Plugin], dict[str, Any]] = {TopologySource: {"levels": ["rack"]}}
"""Members beside the method, without which a plugin of a kind is not complete."""


def odd(base: type[Any], answer: Callable[..., Any] | None = None, **members: Any) -> type[Any]:
    """Return a class of a kind whose method gives this answer, or a correct one."""
    method = METHODS[base]
    sound = {"__doc__": "Is odd.", "name": "odd", method: answer or SOUND[method], **NEEDED.get(base, {})}
    return type("Odd", (base,), {**sound, **members})


def raising(*_: object) -> None:
    raise RuntimeError("no luck")


EVERY_KIND = pytest.mark.parametrize("base", CONTRACTS, ids=lambda base: base.__name__)


@EVERY_KIND
def test_correct_plugins_of_every_kind_pass_the_contract(base: type[Any]) -> None:
    assert broken_promises(odd(base)()) == {}


@EVERY_KIND
@pytest.mark.parametrize("call", ["opened", "reloaded", "closed"])
def test_failing_life_cycle_of_every_kind_is_found(base: type[Any], call: str) -> None:
    of_cluster = "test_cluster_runs_without_plugin_failures"
    found = broken_promises(odd(base, **{call: raising})(), "test_plugin_opens_and_closes", of_cluster)
    assert found["test_plugin_opens_and_closes"] == "RuntimeError: no luck"
    operation = {"opened": "opening", "reloaded": "reloading", "closed": "closing"}[call]
    assert operation in found[of_cluster]


@EVERY_KIND
def test_changed_options_of_every_kind_are_found(base: type[Any]) -> None:
    @attrs.define(eq=False)
    class Grows(odd(base)):  # type: ignore[misc]
        """Changes the options that it receives."""

        limit: int = 3

        def __attrs_post_init__(self) -> None:
            self.limit += 1

    found = violation(Grows(5), "test_options_survive_the_configuration")
    assert "option 'limit' is 6, but 7 when read from the configuration value" in found


@EVERY_KIND
def test_unconfigurable_options_of_every_kind_are_found(base: type[Any]) -> None:
    class Hidden(odd(base)):  # type: ignore[misc]
        """Accepts an option that it does not declare."""

        def __init__(self, limit: int = 3) -> None:
            self.limit = limit

    found = violation(Hidden(5), "test_options_survive_the_configuration")
    assert "takes limit, which a configuration cannot set" in found
    assert "@attrs.frozen" in found


DECIDING = [base for base in CONTRACTS if base is not EventSink]
TURNS: list[str] = []


def turns(one: Any, other: Any) -> Callable[..., Any]:
    """Return a method that alternates between two answers, and so depends on earlier questions."""

    def answer(*_: object) -> Any:
        TURNS.append("")
        return one if len(TURNS) % 2 else other

    return answer


ONE_OR_OTHER: dict[str, tuple[Any, Any]] = {
    "key": (1, 2),
    "score": (1.0, 2.0),
    "place": ("a", "b"),
    "check": (None, "no"),
    "groups": (["a"], ["b"]),
    "rank": (1, 2),
    "submit": (None, "no"),
    "admit": (None, "no"),
    "quota": (None, Quota({"vcore": 7})),
    "reserves_after": (1.0, 2.0),
    "permit": (None, "no"),
    "path": (["a"], ["b"]),
    "estimate": (None, RunTime(1.0, 2.0, 3.0)),
}


@pytest.mark.parametrize("base", DECIDING, ids=lambda base: base.__name__)
def test_state_dependent_answers_of_every_kind_are_found(base: type[Any]) -> None:
    TURNS.clear()
    one, other = ONE_OR_OTHER[METHODS[base]]
    # An odd number of answers would bring it into step again.
    found = broken_promises(odd(base, turns(one, other))())
    assert any("when asked again after other questions" in text for text in found.values()) or any(
        "after a reload that does not change the plugin's options" in text for text in found.values()
    )


@pytest.mark.parametrize("base", DECIDING, ids=lambda base: base.__name__)
def test_growing_cost_of_answers_of_every_kind_is_found(base: type[Any]) -> None:
    asked: list[int] = []
    answer = SOUND[METHODS[base]]

    def slow(self: Any, *question: object) -> Any:
        asked.append(0)
        for _ in asked:
            pass
        return answer(self, *question)

    found = broken_promises(odd(base, slow)())
    assert set(found) == {"test_cost_of_an_answer_is_independent_of_earlier_calls"}
    assert "the cost must not grow" in str(found)


@pytest.mark.parametrize("base", [PlacementRule, Predicate, NodeSortPolicy], ids=lambda base: base.__name__)
def test_clock_use_of_every_kind_is_found(base: type[Any]) -> None:
    answer = SOUND[METHODS[base]]

    def by_day(self: Any, *question: object) -> Any:
        return answer(self, *question) if Day.today().year > 2000 else None

    found = broken_promises(odd(base, by_day)())
    assert set(found) == {"test_answers_depend_on_neither_clock_nor_randomness"}
    assert "datetime.date.today() was called: call context.now()" in str(found)


def test_logging_is_no_clock_use() -> None:
    def reporting(self: Any, app: Application) -> str:
        logging.getLogger("talking").warning("%s goes to a", app.id)
        return "a"

    assert broken_promises(odd(PlacementRule, reporting)()) == {}


def test_fixed_dates_are_no_clock_use() -> None:
    def by_date(self: Any, app: Application) -> int:
        day = Day.fromtimestamp(app.submitted // 1_000_000_000)
        return day.toordinal() if isinstance(day, Day) and time.strftime("%Y", time.gmtime(0)) else 0

    assert broken_promises(odd(AppSortPolicy, by_date)()) == {}


def test_options_of_a_dataclass_are_preserved() -> None:
    @dataclasses.dataclass(frozen=True)
    class Limited(odd(AppSortPolicy)):  # type: ignore[misc]
        """With a limit."""

        limit: int = 3

    assert broken_promises(Limited(5)) == {}


def test_growing_cost_of_a_sink_is_found() -> None:
    def slow(self: Any, batch: Sequence[Event]) -> None:
        self.sent = [*getattr(self, "sent", []), *batch]
        for _ in self.sent:
            pass

    found = violation(odd(EventSink, slow)(), "test_cost_of_an_event_is_independent_of_earlier_events")
    assert "after 300 events" in found


def test_sink_that_changes_events_is_found() -> None:
    def change(self: Any, batch: Sequence[Event]) -> None:
        for event in batch:
            object.__setattr__(event, "message", "mine")

    found = violation(odd(EventSink, change)(), "test_batches_of_events_are_not_changed")
    assert "send() modified the batch or an event" in found


def test_message_about_an_invalid_order_is_short_and_names_two_keys() -> None:
    policy = app_policy(lambda app: app.priority if app.priority > 0 else None)
    text = violation(policy, "test_keys_have_a_total_order")
    assert "the keys of plain and used, None and None, do not compare" in text
    assert text.count("do not compare") == 5
    assert "more" in text.splitlines()[-1]


def test_rule_with_invalid_queue_names_is_found() -> None:
    policy = odd(PlacementRule, lambda self, app: f"users of {app.id}")()
    found = violation(policy, "test_names_contain_only_allowed_characters")
    assert "the rule added [' ', ' '], which are illegal in queue names" in found


def test_rule_that_passes_dots_of_user_names_is_found() -> None:
    def by_user(self: Any, app: Application) -> str:
        return f"users.{app.user}"

    def by_group(self: Any, app: Application) -> str | None:
        return app.groups[0] if app.groups else None

    for place in (by_user, by_group):
        found = violation(odd(PlacementRule, place)(), "test_dots_in_user_and_group_names_create_no_level")
        assert "use dotless(name)" in found
