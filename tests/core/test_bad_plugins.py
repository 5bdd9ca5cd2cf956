"""Plugins that misbehave are contained, named and counted while scheduling goes on.

See docs/decisions/archive/0043.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.framework.plugin_failures import PluginFailure
from yunikorn.interface.scheduler import Scheduler

ORIGIN = "of test-plugin (yunikorn-test 1.0)"


class Stubborn:
    """A key that raises on every comparison."""

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("I do not compare")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("I do not equal")

    def __ne__(self, other: object) -> bool:
        raise RuntimeError("I do not differ")

    __hash__ = None  # type: ignore[assignment]


class Fickle:
    """A key that is smaller than everything including itself, and equal to nothing."""

    def __lt__(self, other: object) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return False


class Shifty:
    """A key whose hash and order change later."""

    def __init__(self) -> None:
        self.place = 0

    def __lt__(self, other: Any) -> bool:
        return bool(self.place < other.place)


def raising(_: object) -> Any:
    raise RuntimeError("broken")


BAD_KEYS: dict[str, Callable[[Any], Any]] = {
    "raises": raising,
    "NaN": lambda _: float("nan"),
    "NaN inside": lambda _: (1, float("nan")),
    "NaN deep inside": lambda _: (1, (float("nan"), 2)),
    "NaN in a list": lambda _: [float("nan")],
    "text": lambda _: "text",
    "None": lambda _: None,
    "complex": lambda _: 1j,
    "a set": lambda _: {1, 2},
    "a dict": lambda _: {},
    "stubborn": lambda _: Stubborn(),
    "stubborn inside": lambda _: (1, Stubborn()),
    "fickle": lambda _: Fickle(),
    "fickle inside": lambda _: (1, Fickle()),
    "huge": lambda _: 10**400,
}
HARMLESS = {"huge", "NaN in a list", "a set"}
"""Keys whose detection depends on the keys they are compared with; scheduling goes on either way."""


def policy_of_apps(bad: Callable[[Any], Any], *, admission_classes: bool = False) -> type[api.AppSortPolicy]:
    class Sometimes(api.AppSortPolicy):
        """Returns bad keys for applications tagged bad, good keys for all others."""

        name = "sometimes"

        def key(self, app: api.Application) -> Any:
            if "bad" in app.tags:
                return bad(app)
            return -app.submitted

    class InAdmissionClasses(Sometimes):
        name = "sometimes"

        def admission_class(self, app: api.Application) -> str:
            return "all"

        def admission_limits(self, counts: Any) -> Any:
            return {"all": 100}

    return InAdmissionClasses if admission_classes else Sometimes


def with_app_policy(cls: type[api.AppSortPolicy], properties: dict[str, str] | None = None) -> RM:
    wanted = {"application.sort.policy": cls.name, **(properties or {})}
    return RM(configuration(queue("a", properties=wanted)), with_plugins(app_sort_policies=[cls]))


@pytest.mark.parametrize("admission_classes", [False, True], ids=["plain", "admission classes"])
@pytest.mark.parametrize("priority", ["enabled", "disabled"])
@pytest.mark.parametrize("kind", BAD_KEYS)
def test_applications_with_bad_keys_sort_last_and_are_served(
    kind: str, priority: str, admission_classes: bool
) -> None:
    rm = with_app_policy(
        policy_of_apps(BAD_KEYS[kind], admission_classes=admission_classes),
        {"application.sort.priority": priority},
    )
    for number in range(60):
        if number % 20 == 7:
            rm.app(f"bad{number}", bad="yes")
            rm.ask(f"bad{number}", count=2, vcore=1)
        else:
            rm.app(f"good{number}")
            rm.ask(f"good{number}", vcore=1)
        rm.pass_time(1)
    rm.node(vcore=1000)
    served = [app_id for app_id, _, _ in rm.schedule()]
    good = [f"good{number}" for number in reversed(range(60)) if number % 20 != 7]
    assert sorted(served) == sorted([*good, *["bad7", "bad27", "bad47"] * 2])
    if kind not in HARMLESS:
        assert served == [*good, "bad7", "bad7", "bad27", "bad27", "bad47", "bad47"]
        (failure, *more) = rm.scheduler.failures
        assert more == []
        assert failure.plugin == f"sometimes {ORIGIN}"
        assert failure.count > 1
        assert "application bad7" in failure.message


@pytest.mark.parametrize("kind", BAD_KEYS)
def test_applications_with_bad_keys_can_be_added_and_removed(kind: str) -> None:
    rm = with_app_policy(policy_of_apps(BAD_KEYS[kind], admission_classes=True))
    rm.node(vcore=5)
    for number in range(40):
        app_id = f"app{number}"
        rm.app(app_id, **({"bad": "yes"} if number % 3 else {}))
        rm.ask(app_id, count=2, vcore=1)
        rm.schedule(1)
        if number % 2:
            rm.remove_app(f"app{number - 1}")
    rm.schedule()
    for number in range(1, 40, 2):
        rm.remove_app(f"app{number}")
    assert rm.running == {}
    assert rm.find_queue().waiting == 0
    rm.app("last")
    rm.ask("last", vcore=1)
    assert rm.schedule() == [("last", "ask", "n1")]


def test_mutable_keys_lose_no_application() -> None:
    made: list[Shifty] = []

    def shifty(_: object) -> Shifty:
        made.append(Shifty())
        return made[-1]

    rm = with_app_policy(policy_of_apps(shifty))
    for number in range(100):
        rm.app(f"app{number}", bad="yes")
        rm.ask(f"app{number}", vcore=1)
    rm.node(vcore=10)
    rm.schedule()
    for place, key in enumerate(made):
        key.place = -place * 7 % 13
    for number in range(0, 100, 2):
        rm.remove_app(f"app{number}")
    rm.node("n2", vcore=100)
    rm.schedule()
    assert {one.application_id for one in rm.running.values()} == {f"app{n}" for n in range(1, 100, 2)}


@pytest.mark.parametrize("kind", BAD_KEYS)
def test_queues_with_bad_keys_sort_last_and_are_served(kind: str) -> None:
    class Sometimes(api.QueueSortPolicy):
        name = "sometimes"

        def key(self, queue: api.Queue) -> Any:
            return BAD_KEYS[kind](queue) if "bad" in queue.path else -ord(queue.path[-1])

    text = configuration(*[queue(name) for name in ("a", "bad", "c", "d")])
    config = json.loads(text)
    config["partitions"][0]["queues"][0]["properties"] = {"queue.sort.policy": "sometimes"}
    rm = RM(json.dumps(config), with_plugins(queue_sort_policies=[Sometimes]))
    for name in ("a", "bad", "c", "d"):
        rm.app(name, f"root.{name}")
        rm.ask(name, vcore=1)
    rm.node(vcore=10)
    served = [app_id for app_id, _, _ in rm.schedule()]
    if kind not in HARMLESS:
        assert served == ["d", "c", "a", "bad"]
        assert [failure.plugin for failure in rm.scheduler.failures] == [f"sometimes {ORIGIN}"]
    assert sorted(served) == ["a", "bad", "c", "d"]


def test_a_bad_key_is_tried_again_when_its_application_changes() -> None:
    class Young(api.AppSortPolicy):
        name = "young"

        def key(self, app: api.Application) -> int:
            if app.id == "late" and not app.allocated:
                raise RuntimeError("not yet")
            return 0 if app.id == "late" else 1

    rm = with_app_policy(Young)
    for app_id in ("late", "other"):
        rm.app(app_id)
        rm.ask(app_id, count=2, vcore=1)
    rm.node(vcore=3)
    assert [app_id for app_id, _, _ in rm.schedule()] == ["other", "other", "late"]
    rm.node("n2", vcore=1)
    rm.ask("other", "more", vcore=1)
    assert [app_id for app_id, _, _ in rm.schedule()] == ["late"]


# -- admission classes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [raising, lambda _: [], lambda _: Stubborn()])
def test_invalid_admission_class_is_reported_and_the_application_is_admitted(bad: Any) -> None:
    class AdmissionClasses(api.AppSortPolicy):
        name = "admission-classes"

        def key(self, app: api.Application) -> int:
            return 0

        def admission_class(self, app: api.Application) -> Any:
            return bad(app) if "bad" in app.tags else "good"

        def admission_limits(self, counts: Any) -> Any:
            return {"good": 1}

    rm = with_app_policy(AdmissionClasses)
    rm.node(vcore=9)
    for app_id in ("one", "two"):
        rm.app(app_id)
        rm.ask(app_id, vcore=1)
    rm.app("three", bad="yes")
    rm.ask("three", vcore=1)
    served = [app_id for app_id, _, _ in rm.schedule()]
    assert "three" in served
    assert "one" in served
    assert [failure.plugin for failure in rm.scheduler.failures] == [f"admission-classes {ORIGIN}"]


# -- nodes ------------------------------------------------------------------------------------------------

BAD_SCORES: dict[str, Callable[[Any], Any]] = {
    "raises": raising,
    "NaN": lambda _: float("nan"),
    "text": lambda _: "1",
    "None": lambda _: None,
    "a tuple": lambda _: (1, 2),
    "complex": lambda _: 1j,
    "stubborn": lambda _: Stubborn(),
    "fickle": lambda _: Fickle(),
}


@pytest.mark.parametrize("by_ask_class", [False, True], ids=["node", "node and ask class"])
@pytest.mark.parametrize("kind", BAD_SCORES)
def test_nodes_with_bad_scores_sort_last_and_are_used(kind: str, by_ask_class: bool) -> None:
    def score_of(node: api.Node) -> Any:
        return BAD_SCORES[kind](node) if node.id == "a" else len(node.id)

    class OfNode(api.NodeSortPolicy):
        name = "bad"

        def score(self, node: api.Node) -> Any:
            return score_of(node)

    class OfBoth(api.NodeSortPolicy):
        name = "bad"

        def score(self, node: api.Node, ask_class: api.AskClass) -> Any:
            return score_of(node)

    registry = with_plugins(node_sort_policies=[OfBoth if by_ask_class else OfNode])
    rm = RM(configuration(nodesortpolicy={"type": "bad"}), registry)
    for node_id in ("a", "bb", "c"):
        rm.node(node_id, vcore=1)
    rm.app()
    rm.ask(count=3, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["c", "bb", "a"]
    (failure,) = rm.scheduler.failures
    assert failure.plugin == f"bad {ORIGIN}"
    assert "node a" in failure.message


def test_infinite_scores_are_valid() -> None:
    class Infinite(api.NodeSortPolicy):
        name = "infinite"

        def score(self, node: api.Node) -> float:
            return {"a": float("inf"), "b": 0, "c": float("-inf")}[node.id]

    rm = RM(configuration(nodesortpolicy={"type": "infinite"}), with_plugins(node_sort_policies=[Infinite]))
    for node_id in ("a", "b", "c"):
        rm.node(node_id, vcore=1)
    rm.app()
    rm.ask(count=3, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["c", "b", "a"]
    assert rm.failures() == []


# -- predicates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("says", ["nothing", "the ask", "all"])
@pytest.mark.parametrize("bad", [raising, lambda _: 1, lambda _: True, lambda _: ["no"], lambda _: False])
def test_a_predicate_that_fails_refuses_that_node(bad: Any, says: str) -> None:
    class Nothing(api.Predicate):
        name = "bad"

        def check(self, ask: api.Ask, node: api.Node) -> Any:
            return bad(node) if node.id == "a" else None

    class TheAsk(Nothing):
        name = "bad"

        def ask_class(self, ask: api.Ask) -> Any:
            return ""

    class All(TheAsk):
        name = "bad"

        def node_class(self, node: api.Node) -> Any:
            return node.id

    cls = {"nothing": Nothing, "the ask": TheAsk, "all": All}[says]
    rm = RM(configuration(predicates=["bad"]), with_plugins(predicates=[cls]))
    for node_id in ("a", "b"):
        rm.node(node_id, vcore=2)
    rm.app()
    rm.ask(count=4, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["b", "b"]
    (failure,) = rm.scheduler.failures
    assert failure.plugin == f"bad {ORIGIN}"
    assert "ask ask of application app on node a" in failure.message


def test_an_exception_that_is_raised_for_every_request_does_not_grow() -> None:
    """Python adds a traceback with each raise of an exception, and that keeps all it has seen alive."""
    shared = ValueError("no such shelf")

    class Bad(api.Predicate):
        name = "bad"

        def check(self, ask: api.Ask, node: api.Node) -> Any:
            raise shared

    rm = RM(configuration(predicates=["bad"]), with_plugins(predicates=[Bad]))
    rm.node("a", vcore=100)
    for number in range(20):
        rm.app(f"app-{number}")
        rm.ask(f"app-{number}", vcore=1)
        assert rm.schedule() == []
    (failure,) = rm.scheduler.failures
    assert failure.count >= 20
    assert len(traceback.extract_tb(shared.__traceback__)) <= 1


@pytest.mark.parametrize("bad", [raising, lambda _: [], lambda _: Stubborn()])
@pytest.mark.parametrize("method", ["ask_class", "node_class"])
def test_invalid_ask_class_is_reported_and_the_predicate_is_called(method: str, bad: Any) -> None:
    class Classes(api.Predicate):
        name = "classes"

        def check(self, ask: api.Ask, node: api.Node) -> str | None:
            return None if node.attributes["for"] == ask.tags["to"] else "not there"

        def ask_class(self, ask: api.Ask) -> Any:
            return bad(ask) if method == "ask_class" else ask.tags["to"]

        def node_class(self, node: api.Node) -> Any:
            return bad(node) if method == "node_class" else node.attributes["for"]

    rm = RM(configuration(predicates=["classes"]), with_plugins(predicates=[Classes]))
    for name in ("x", "y"):
        rm.node(name, {"for": name}, vcore=2)
    rm.app()
    for name in ("y", "x", "z"):
        rm.ask(key=name, vcore=1, tags={"to": name})
    assert sorted(rm.schedule()) == [("app", "x", "x"), ("app", "y", "y")]
    rm.change_node("x", attributes={"for": "z"})
    assert rm.schedule() == [("app", "z", "x")]
    assert {failure.plugin for failure in rm.scheduler.failures} == {f"classes {ORIGIN}"}


# -- all others -------------------------------------------------------------------------------------------


def test_failing_sink_is_disabled_and_others_continue() -> None:
    received: list[str] = []

    class Bad(api.EventSink):
        name = "bad"

        def send(self, batch: Sequence[api.Event]) -> None:
            received.append("bad")
            raise RuntimeError("full")

    class Good(api.EventSink):
        name = "good"

        def send(self, batch: Sequence[api.Event]) -> None:
            received.append("good")

    text = json.loads(configuration())
    text["events"] = {"sinks": ["bad", "good"]}
    rm = RM(json.dumps(text), with_plugins(event_sinks=[Bad, Good]))
    rm.node(vcore=1)
    rm.app()
    rm.ask(vcore=1)
    assert len(rm.schedule()) == 1
    assert received.count("bad") == 1
    assert received.count("good") > 2
    (failure,) = rm.scheduler.failures
    assert failure.plugin == f"bad {ORIGIN}"
    assert "(the sink is switched off)" in failure.message


@pytest.mark.parametrize("bad", [raising, lambda _: 7, lambda _: ["root.a"]])
def test_a_placement_rule_that_fails_rejects_that_application(bad: Any) -> None:
    class Rule(api.PlacementRule):
        name = "rule"

        def place(self, app: api.Application) -> Any:
            return bad(app) if "bad" in app.tags else "root.a"

    rm = RM(configuration(placementrules=[{"name": "rule"}]), with_plugins(placement_rules=[Rule]))
    rm.app("broken", bad="yes")
    rm.app("fine")
    assert (rm.state("broken"), rm.state("fine")) == ("Rejected", "New")
    (refused,) = rm.entries("rejected_applications")
    assert "rule" in refused.reason
    assert [failure.plugin for failure in rm.scheduler.failures] == [f"rule {ORIGIN}"]


@pytest.mark.parametrize("bad", [raising, lambda _: 7, lambda _: [1]])
def test_a_resolver_that_fails_rejects_that_application(bad: Any) -> None:
    class Groups(api.UserGroupResolver):
        name = "groups"

        def groups(self, user: str) -> Any:
            return bad(user) if user == "broken" else ["staff"]

    config = configuration(usergroupresolver={"type": "groups"})
    rm = RM(config, with_plugins(user_group_resolvers=[Groups]))
    rm.app("one", user="broken", groups=())
    rm.app("two", user="fine", groups=())
    assert (rm.state("one"), rm.state("two")) == ("Rejected", "New")
    assert [failure.plugin for failure in rm.scheduler.failures] == [f"groups {ORIGIN}"]


def test_failures_are_reported_once_and_counted() -> None:
    rm = with_app_policy(policy_of_apps(raising))
    reported: list[PluginFailure] = []
    scheduler: Scheduler = rm.scheduler
    scheduler.failures.listen(reported.append)
    rm.node(vcore=9)
    for number in range(5):
        # A new application each time: a lone application is not compared, so its key is not requested again.
        rm.app(f"app{number}", bad="yes")
        rm.ask(f"app{number}", count=3, vcore=1)
    rm.schedule()
    assert len(reported) == 1
    assert reported[0].count >= 5


def test_failures_are_events_and_sinks_receive_those_of_others() -> None:
    reported: list[api.Event] = []

    class Good(api.EventSink):
        name = "good"

        def send(self, batch: Sequence[api.Event]) -> None:
            reported.extend(event for event in batch if event.type == "PLUGIN")

    class Bad(api.EventSink):
        name = "bad"

        def send(self, batch: Sequence[api.Event]) -> None:
            raise RuntimeError("full")

    policy = policy_of_apps(raising)
    text = json.loads(configuration(queue("a", properties={"application.sort.policy": policy.name})))
    text["events"] = {"sinks": ["bad", "good"]}
    rm = RM(json.dumps(text), with_plugins(event_sinks=[Bad, Good], app_sort_policies=[policy]))
    rm.node(vcore=9)
    for number in range(5):
        rm.app(f"app{number}", bad="yes")
        rm.ask(f"app{number}", vcore=1)
    rm.pass_time(7)
    rm.schedule()
    rm.app("last")
    assert [event.object_id for event in reported] == [f"bad {ORIGIN}", f"sometimes {ORIGIN}"]
    assert "computing the key of application app0: RuntimeError: broken" in reported[1].message
    assert reported[1].timestamp == rm.clock.now()


def test_failure_events_without_a_record_type_are_not_sent_to_the_rm() -> None:
    received: list[Any] = []

    class Listening(RM):
        def send_events(self, events: Sequence[Any]) -> None:
            received.extend(events)

    policy = policy_of_apps(raising)
    config = configuration(queue("a", properties={"application.sort.policy": policy.name}))
    rm = Listening(config, with_plugins(app_sort_policies=[policy]))
    rm.node(vcore=9)
    for number in range(2):
        rm.app(f"app{number}", bad="yes")
        rm.ask(f"app{number}", vcore=1)
    assert len(rm.schedule()) == 2
    rm.app("last")
    assert any(event.object_id == "last" for event in received)
    assert [failure.plugin for failure in rm.scheduler.failures] == [f"sometimes {ORIGIN}"]


def test_a_plugin_that_exits_is_contained() -> None:
    class Leaver(api.AppSortPolicy):
        """A policy that raises SystemExit."""

        name = "leaver"

        def key(self, app: api.Application) -> int:
            """Raise SystemExit."""
            sys.exit("enough")

    rm = RM(
        configuration(queue("a", properties={"application.sort.policy": "leaver"})),
        with_plugins(app_sort_policies=[Leaver]),
    )
    rm.node(vcore=1)
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == [("app", "ask", "n1")]
    (failure,) = rm.failures()
    assert "yunikorn-test 1.0" in failure
    assert "SystemExit: enough" in failure
