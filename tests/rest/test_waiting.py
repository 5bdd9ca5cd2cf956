"""Routes about requests and applications that wait: for nodes, for quotas, and for policies."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from tests.core.manual_workers import core_with_workers, registry_of
from tests.core.test_scheduling_states import cluster
from tests.plugins.permit_kit import Gate, clear
from tests.rest.kit import Rest
from tests.whole_readings import read_at_once
from yunikorn.api import Ask, Node, Predicate
from yunikorn.clock import SECOND
from yunikorn.model.attempt_log import MOST
from yunikorn_rest.metrics.core_figures import read_figures

_ = pytest.fixture(autouse=True)(clear)
PATH = "partition/default/application/app"


def test_request_for_which_the_rm_was_told_that_no_node_fits() -> None:
    rm = cluster()
    rm.ask(key="waits", memory=5)
    assert "triggeredScaleUp" not in Rest(rm).json(PATH)["requests"][0]
    assert rm.settle() == [("waits", "FAILED")]
    assert Rest(rm).json(PATH)["requests"][0]["triggeredScaleUp"] is True


class Refusing(Predicate):
    """Refuses all nodes."""

    name = "refusing"
    by_ask = True

    def check(self, ask: Ask, node: Node) -> str | None:
        return "it is Sunday"


class RefusingClasses(Refusing):
    """Refuses all nodes, for all equal requests together."""

    name = "refusing-classes"

    def ask_class(self, ask: Ask) -> str:
        return ""


@pytest.mark.parametrize("predicate", [Refusing, RefusingClasses])
def test_refusals_have_the_time_of_the_latest_attempt(predicate: type[Predicate]) -> None:
    rm = RM(configuration(predicates=[predicate.name]), with_plugins(predicates=[predicate]))
    rm.pass_time(3)
    rm.node("n1", vcore=4)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    log = Rest(rm).json(PATH)["requests"][0]["allocationLog"]
    assert log == [{"message": "it is Sunday", "lastOccurrence": 3 * SECOND, "count": 1}]
    rm.pass_time(100)
    rm.node("n2", vcore=4)
    rm.schedule()
    later = Rest(rm).json(PATH)["requests"][0]["allocationLog"][0]["lastOccurrence"]
    assert later == 103 * SECOND


class Zones(Predicate):
    """Refuses nodes of other zones, for all equal requests and nodes together."""

    name = "zones"

    def ask_class(self, ask: Ask) -> str:
        return ask.tags["zone"]

    def node_class(self, node: Node) -> str:
        return node.attributes["zone"]

    def check(self, ask: Ask, node: Node) -> str | None:
        return None if ask.tags["zone"] == node.attributes["zone"] else "another zone"


def log_of(rm: RM, key: str = "ask", path: str = PATH) -> list[tuple[str, int, float]]:
    """Return messages, counts and times (s) of the log of a request."""
    (request,) = [one for one in Rest(rm).json(path)["requests"] if one["allocationKey"] == key]
    log = request.get("allocationLog", [])
    return [(one["message"], one["count"], one["lastOccurrence"] / SECOND) for one in log]


def test_refusals_stay_in_the_log_when_a_later_attempt_does_not_repeat_them() -> None:
    rm = RM(configuration(predicates=["zones"]), with_plugins(predicates=[Zones]))
    rm.node("n1", {"zone": "a"}, vcore=4)
    rm.node("n2", {"zone": "b"}, vcore=4)
    rm.app()
    rm.ask(key="first", tags={"zone": "b"}, vcore=4)
    rm.ask(tags={"zone": "b"}, vcore=3)
    rm.pass_time(1)
    rm.schedule()
    assert log_of(rm) == [("another zone", 1, 1)]
    # More urgent work takes the room that becomes free; the refusal of n1 is known meanwhile.
    for number, second in (2, 1.25), (3, 1.5):
        rm.pass_time(0.25)
        rm.release(uuid=next(iter(rm.running)))
        rm.running.clear()
        rm.ask(key=f"urgent{number}", priority=9, tags={"zone": "b"}, vcore=4)
        assert log_of(rm) == [("another zone", number - 1, second - 0.25)]
        assert len(rm.schedule()) == 1
        assert log_of(rm) == [("another zone", number, second)]


def test_requests_over_a_quota_say_so_together_and_count_the_attempts() -> None:
    rm = RM(configuration(queue("a", resources={"max": {"vcore": "2"}}), queue("b")))
    rm.node("n1", vcore=8_000)
    rm.app()
    rm.pass_time(1)
    rm.ask(key="runs", count=2, vcore=1_000)
    rm.ask(key="first", vcore=2_000)
    rm.ask(key="second", vcore=2_000)
    rm.schedule()
    expected = [("Not enough queue quota", 1, 1)]
    assert log_of(rm, "first") == log_of(rm, "second") == expected
    rm.pass_time(1)
    rm.ask(key="later", vcore=2_000)
    rm.schedule()
    assert log_of(rm, "later") == expected
    # The other queue has none.
    rm.app("other", "root.b")
    rm.ask("other", vcore=9_000)
    assert log_of(rm, path="partition/default/application/other") == []
    for uuid in list(rm.running):
        rm.release(uuid=uuid)
    assert [key for _, key, _ in rm.schedule()] == ["first"]
    assert log_of(rm, "second") == [("Not enough queue quota", 2, 2)]


class Regrouping(Predicate):
    """Changes the classes of all requests when told."""

    name = "regrouping"
    version: ClassVar[int] = 0

    @property
    def classes_version(self) -> int:
        return self.version

    def check(self, ask: Ask, node: Node) -> str | None:
        return f"not in version {self.version}" if ask.key == "refused" else None

    def ask_class(self, ask: Ask) -> Hashable:
        return self.version, ask.key == "refused"


def test_attempts_in_a_hundred_classes_are_bounded() -> None:
    rm = RM(configuration(queue("a"), predicates=["regrouping"]), with_plugins(predicates=[Regrouping]))
    rm.node("n1", vcore=8_000)
    rm.app()
    rm.ask(key="refused", vcore=1_000)
    for _ in range(100):
        Regrouping.version += 1
        rm.pass_time(1)
        rm.schedule()
    log = log_of(rm, "refused")
    assert log[-1][0] == f"not in version {Regrouping.version}"
    assert len(log) <= 2 * MOST


def test_attempts_count_on_when_a_predicate_changes_the_class_of_a_request() -> None:
    rm = RM(
        configuration(queue("a", resources={"max": {"vcore": "2"}}), predicates=["regrouping"]),
        with_plugins(predicates=[Regrouping]),
    )
    rm.node("n1", vcore=8_000)
    rm.app()
    rm.ask(key="runs", vcore=1_000)
    rm.ask(key="waits", vcore=2_000)
    for count in (1, 2, 3):
        Regrouping.version += 1
        rm.pass_time(1)
        rm.schedule()
        assert log_of(rm, "waits") == [("Not enough queue quota", count, count)]


class Alternating(Regrouping):
    """Changes the classes of all requests between two, and refuses all."""

    name = "alternating"

    def check(self, ask: Ask, node: Node) -> str | None:
        return "refused"

    def ask_class(self, ask: Ask) -> int:
        return self.version % 2


def test_attempts_count_once_when_a_request_returns_to_an_earlier_class() -> None:
    rm = RM(configuration(queue("a"), predicates=["alternating"]), with_plugins(predicates=[Alternating]))
    rm.node("n1", vcore=8_000)
    rm.app()
    rm.ask(vcore=1_000)
    for _ in range(9):
        Alternating.version += 1
        rm.pass_time(1)
        rm.schedule()
    [(_, number, latest)] = log_of(rm)
    assert number == latest


def test_request_over_a_limit_says_so() -> None:
    limits = [{"limit": "", "users": ["user"], "maxresources": {"vcore": "2"}}]
    rm = RM(configuration(queue("a", limits=limits)))
    rm.node("n1", vcore=8_000)
    rm.app()
    rm.pass_time(1)
    rm.ask(count=3, vcore=1_000)
    rm.schedule()
    assert log_of(rm) == [("Not enough user quota", 1, 1)]


def test_request_without_a_node_says_so_and_a_new_one_says_nothing_of_earlier_ones() -> None:
    rm = RM(configuration(queue("a")))
    rm.node("n1", vcore=4)
    rm.node("n2", vcore=4)
    rm.app()
    rm.ask(key="early", vcore=5)
    assert log_of(rm, "early") == []
    rm.pass_time(1)
    rm.schedule()
    assert log_of(rm, "early") == [("No node has room", 1, 1)]
    rm.node("n3", vcore=5)
    rm.schedule()
    rm.pass_time(1)
    rm.ask(vcore=5)
    assert log_of(rm) == []


def test_members_of_a_gang_say_why_it_waits() -> None:
    rm = GangRM(configuration(queue("a")))
    rm.node("n1", vcore=4)
    rm.node("n2", vcore=4)
    rm.node("n3", vcore=1)
    rm.pass_time(1)
    rm.gang("app", "Atomic", vcore=9)
    rm.task("app", "member", "workers", 3, vcore=3)
    rm.schedule()
    assert [message for message, _, _ in log_of(rm, "member")] == ["No node has room"]


def test_equivalent_requests_share_one_log_of_bounded_size() -> None:
    class Refuses(RefusingClasses):
        name = "changing"

        def check(self, ask: Ask, node: Node) -> str | None:
            return f"{node.id} is no good"

    rm = RM(configuration(predicates=["changing"]), with_plugins(predicates=[Refuses]))
    rm.app()
    for number in range(50):
        rm.ask(key=f"r{number}", vcore=1)
    for number in range(18):
        rm.pass_time(1)
        rm.node(f"n{number}", vcore=4)
        rm.schedule()
    asks = rm.find_app().asks.values()
    assert len({id(ask.ask_class.log) for ask in asks}) == 1
    assert sum(ask.extras is not None for ask in asks) <= 1
    assert 1 < len(log_of(rm, "r7")) <= 16
    assert log_of(rm, "r7") == log_of(rm, "r49")


def test_placement_that_a_permit_policy_refused() -> None:
    rm = RM(configuration(permits=["gate"]), with_plugins(permit_policies=[Gate]))
    Gate.answers["ask"] = "no licence"
    rm.pass_time(2)
    rm.node("n1", vcore=4)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    (entry,) = Rest(rm).json(PATH)["requests"][0]["allocationLog"]
    assert "no licence" in entry["message"]
    assert entry["lastOccurrence"] == 2 * SECOND


def waiting() -> tuple[RM, Rest]:
    """Return an RM with an application that waits for a submit policy, and one that does not."""
    core: Any = core_with_workers(registry_of())
    rm = RM(configuration(submitpolicies=["site"]), scheduler=core)
    rm.pass_time(1)
    rm.app("known")
    core.manual_workers.answer_all()
    rm.ask("known", vcore=1)
    rm.app("waits", user="ann")
    rm.ask("waits", vcore=1)
    return rm, Rest(rm)


def test_application_that_waits_for_the_answer_of_a_policy_is_listed() -> None:
    rm, rest = waiting()
    listed = rest.json("partition/default/applications/active")
    assert [(one["applicationID"], one["applicationState"], one.get("awaited")) for one in listed] == [
        ("known", "Accepted", None),
        ("waits", "New", "submit policy site"),
    ]
    assert rest.json("partition/default/application/waits") == listed[1]
    assert [one["user"] for one in rest.json("partition/default/applications/active?status=new")] == ["ann"]
    assert rest.json("partition/default/applications/active?limit=1&continue=a25vd24=") == [listed[1]]
    assert rest.json("partitions")[0]["applications"] == {"Accepted": 1, "New": 1, "total": 2}
    assert len(rest.json("/debug/fullstatedump")["applications"]) == 2
    assert rest.json("partition/default/queue/root.a/applications") == listed[:1]
    assert read_at_once(rm.scheduler, read_figures).waiting == {"submit policy site": 1}
    core: Any = rm.scheduler
    core.manual_workers.answer_all()
    assert "awaited" not in rest.json("partition/default/application/waits")
    assert read_at_once(rm.scheduler, read_figures).waiting == {}


def test_queue_whose_quota_a_policy_sets() -> None:
    config = configuration(
        queue(
            "a",
            resources={"max": {"vcore": "2"}},
            properties={
                "quota.policy": "time-of-day",
                "quota.policy.windows": "00:00-00:00=vcore:5",
            },
        )
    )
    rm = RM(config)
    found = Rest(rm).json("partition/default/queue/root.a")
    assert found["maxResource"] == {"vcore": 5000}
    assert found["configuredMaxResource"] == {"vcore": 2000}
    assert found["quotaPolicy"] == "time-of-day"
    assert found["quotaReason"]


def test_queue_with_back_off() -> None:
    properties = {"application.unschedasks.backoff": "3", "application.unschedasks.backoff.delay": "10s"}
    rm = RM(configuration(queue("a", properties=properties), queue("b")))
    found = Rest(rm).json("partition/default/queue/root.a")
    assert (found["unschedAskBackoff"], found["askBackoffDelay"]) == (3, "10s")
    other = Rest(rm).json("partition/default/queue/root.b")
    assert not {"unschedAskBackoff", "askBackoffDelay", "quotaPolicy", "configuredMaxResource"} & set(other)
