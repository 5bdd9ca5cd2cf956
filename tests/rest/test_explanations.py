"""Explanations of the REST interface: why the requests of an application wait."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from tests.core.manual_workers import core_with_workers, registry_of
from tests.core.reserving import big, cluster, reserved
from tests.plugins.permit_kit import clear, holding
from tests.rest.kit import Rest
from tests.whole_readings import read_at_once
from yunikorn.api import AdmissionPolicy, Application, AppSortPolicy, Ask, Predicate, SubmitPolicy, Wait
from yunikorn.clock import SECOND
from yunikorn_rest.commands.explain import explanation_lines
from yunikorn_service.grouped_explanations import KEYS, SCANNED, explain_in_groups, explained_in_slices

_ = pytest.fixture(autouse=True)(clear)
PATH = "partition/default/application/app/explain"


def explain(rm: RM, query: str = "") -> Any:
    return Rest(rm).json(PATH + query)


def full() -> RM:
    """Return a cluster without room, with a waiting application."""
    rm = RM(configuration(queue("a", resources={"max": {"vcore": "6"}}), queue("b")))
    rm.pass_time(1)
    rm.node("n1", vcore=4000)
    rm.app("first")
    rm.ask("first", "running", vcore=3000)
    rm.ask("first", "more", 3, vcore=4000)
    rm.schedule()
    rm.app("app")
    return rm


def test_shape() -> None:
    rm = full()
    for number in range(1000):
        rm.ask("app", f"ask-{number:04}", 2, vcore=2000, priority=1)
    rm.schedule()
    assert explain(rm) == {
        "applicationID": "app",
        "partition": "default",
        "queueName": "root.a",
        "applicationState": "Accepted",
        "time": SECOND,
        "pendingCount": 2000,
        "omittedCount": 0,
        "reasons": [],
        "requests": [
            {
                "allocationKeys": [f"ask-{number:04}" for number in range(KEYS)],
                "requestCount": 1000,
                "pendingCount": 2000,
                "resource": {"vcore": 2000},
                "priority": 1,
                "placed": False,
                "reasons": [
                    {
                        "check": "quota",
                        "summary": "the cluster is full",
                        "message": "the cluster is full (requested vcore 2, available vcore 1)",
                        "blockers": [{"kind": "queue", "name": "root"}],
                    },
                    {
                        "check": "nodes",
                        "summary": "no node has room",
                        "message": "no node has room (of 1 nodes: 1 lack vcore)",
                    },
                ],
                "suggestedFixes": ["free vcore 1 on node n1 (the nearest)"],
                "firstRank": 1,
                "lastRank": 2000,
            }
        ],
        "pendingInQueue": 2003,
        "queueRanks": [{"queueName": "root.a", "rank": 1, "of": 1, "parent": "root"}],
    }


def test_groups_agree_with_the_explanations_of_single_requests() -> None:
    rm = full()
    sizes = (1000, 2000, 7000, 2000, 1000)
    for number, size in enumerate(sizes):
        rm.ask("app", f"ask-{number}", number + 1, vcore=size, priority=number // 3)
        rm.app(f"other-{number}", "root.b")
        rm.ask(f"other-{number}", f"other-{number}", vcore=5000)
    rm.schedule()
    found = explain(rm)
    single = rm.scheduler.explain("rm", "default", "app")
    for group in found["requests"]:
        ones = [single[key] for key in group["allocationKeys"]]
        for one in ones:
            assert [each["message"] for each in group["reasons"]] == [each.detail for each in one.reasons]
            assert tuple(group["suggestedFixes"]) == one.suggested_fixes
            assert group["resource"] == one.resource
        assert group["firstRank"] == min(one.position.first for one in ones)
        assert group["lastRank"] == max(one.position.last for one in ones)
        assert group["pendingCount"] == sum(one.waiting for one in ones)
    first = next(iter(single.values())).position
    assert found["pendingInQueue"] == first.of
    ranks = [(each["queueName"], each["rank"], each["of"], each["parent"]) for each in found["queueRanks"]]
    assert ranks == [(each.queue, each.place, each.of, each.parent) for each in first.queues]
    assert sum(group["requestCount"] for group in found["requests"]) == len(single)


def test_ranks_in_a_queue_with_many_applications() -> None:
    rm = full()
    for number in range(50):
        rm.app(f"other-{number}")
        rm.ask(f"other-{number}", f"other-{number}", 2, vcore=5000)
    rm.ask("app", "ask", vcore=5000)
    rm.schedule()
    found = explain(rm)
    position = rm.scheduler.explain("rm", "default", "app")["ask"].position
    assert (found["requests"][0]["firstRank"], found["pendingInQueue"]) == (position.first, position.of)


def test_many_nodes_are_evaluated_in_slices_with_the_same_result() -> None:
    rm = full()
    for number in range(10 * SCANNED):
        rm.node(f"m{number}", vcore=1000 + number % 7 * 100, occupied={"vcore": number % 5 * 100})
    rm.ask("app", "ask", vcore=3000)
    rm.ask("app", "huge", vcore=9000)
    rm.schedule()
    single = rm.scheduler.explain("rm", "default", "app")
    slices = explain_in_groups(rm.at_work(), rm.find_app("app"), 10)
    pauses = 0
    while True:
        try:
            next(slices)
        except StopIteration as end:
            found = end.value
            break
        pauses += 1
    assert pauses > 20
    assert [(group.keys, group.reasons, group.fixes) for group in found.groups] == [
        ([key], one.reasons, one.suggested_fixes) for key, one in single.items()
    ]


def test_limit() -> None:
    rm = full()
    for number in range(5):
        rm.ask("app", f"ask-{number}", 2, vcore=2000 + number)
    found = explain(rm, "?limit=2")
    assert len(found["requests"]) == 2
    assert (found["pendingCount"], found["omittedCount"]) == (10, 6)
    assert Rest(rm).error(PATH + "?limit=0") == (400, 'limit: expected a whole number from 1 on, got "0"')


def test_requests_that_end_during_the_explanation_are_left_out() -> None:
    rm = full()
    rm.ask("app", "one", vcore=2000)
    rm.ask("app", "two", vcore=3000)
    at, app = rm.at_work(), rm.find_app("app")
    slices = explained_in_slices(rm.scheduler, explain_in_groups(at, app, 10))
    next(slices)
    rm.remove_app("app")
    assert read_at_once(rm.scheduler, lambda _: slices).groups == []


def test_form_with_a_queue_and_unknown_names() -> None:
    rm = full()
    rest = Rest(rm)
    assert rest.json("partition/default/queue/root.a/application/app/explain") == rest.json(PATH)
    for path in ("x/application/app", "default/application/x", "default/queue/root.b/application/app"):
        assert rest.error(f"partition/{path}/explain")[0] == 404


class Gate(AdmissionPolicy):
    """Holds every application."""

    name = "gate"

    def admit(self, app: Application) -> Wait:
        return Wait(10, "the licence server is full")


def test_application_that_an_admission_policy_holds() -> None:
    rm = RM(configuration(admission=["gate"]), with_plugins(admission_policies=[Gate]))
    rm.node(vcore=8)
    rm.app()
    reason = {
        "check": "admission",
        "summary": "held by admission policy gate",
        "message": "held by admission policy gate: the licence server is full; asked again in 10s",
        "policy": "gate",
    }
    assert explain(rm)["reasons"] == [reason]
    rm.ask(vcore=1)
    request = explain(rm)["requests"][0]
    assert request["reasons"] == [reason]
    assert request["suggestedFixes"] == ["admission policy gate must admit the application"]


def test_placements_that_a_permit_policy_holds() -> None:
    found = explain(holding())["requests"]
    assert [(one["placed"], one["requestCount"], one["pendingCount"]) for one in found] == [(True, 1, 1)]
    assert found[0]["reasons"] == [
        {
            "check": "permit",
            "summary": "placed, and held by permit policy gate",
            "message": "placed, held by permit policy gate: the quota server is busy; asked again in 10s",
            "policy": "gate",
        }
    ]


def test_application_that_waits_for_the_answer_of_a_policy() -> None:
    core: Any = core_with_workers(registry_of())
    rm = RM(configuration(submitpolicies=["site"]), scheduler=core)
    rm.app()
    rm.ask(vcore=1)
    found = explain(rm)
    assert found["awaited"] == "submit policy site"
    assert found["requests"] == []
    core.manual_workers.answer()
    assert "awaited" not in explain(rm)


def test_request_that_waits_for_the_answer_of_a_policy() -> None:
    class Check(SubmitPolicy):
        """Accepts everything after a while."""

        name = "check"

        def submit(self, app: Any) -> None:
            return None

        def submit_ask(self, ask: Any) -> None:
            return None

    core: Any = core_with_workers(registry_of(Check))
    rm = RM(configuration(submitpolicies=["check"]), scheduler=core)
    rm.app()
    core.manual_workers.answer()
    rm.ask(vcore=1)
    found = explain(rm)
    assert (found["awaited"], found["uncheckedCount"]) == ("submit policy check", 1)
    assert "1 request not accepted yet: the answer of submit policy check is awaited" in list(
        explanation_lines(found, None)
    )
    core.manual_workers.answer()
    found = explain(rm)
    assert "awaited" not in found
    assert "uncheckedCount" not in found


def test_reserved_node() -> None:
    rm = cluster(delay=5)
    big(rm, "x")
    rm.pass_time(5)
    rm.schedule()
    request = Rest(rm).json("partition/default/application/x/explain")["requests"][0]
    (node_id,) = reserved(rm)
    assert request["reservedNodeId"] == node_id
    assert "reservation" in [each["check"] for each in request["reasons"]]


def test_members_of_an_incomplete_gang() -> None:
    rm = GangRM(configuration())
    rm.node(vcore=8)
    rm.gang("app", "Atomic", vcore=4)
    for number in range(2):
        rm.task("app", f"task-{number}", "members", vcore=1)
    request = explain(rm)["requests"][0]
    assert [each["check"] for each in request["reasons"]] == ["gang"]
    assert request["requestCount"] == 2


class Caller(Predicate):
    """Calls the scheduler, as no plugin may."""

    name = "caller"
    rm: RM
    errors: list[str] = []  # noqa: RUF012

    def check(self, ask: Any, node: Any) -> str | None:
        try:
            self.rm.scheduler.schedule()
        except Exception as error:
            self.errors.append(str(error))
        return "no"


def test_plugins_may_not_call_the_scheduler_meanwhile() -> None:
    rm = Caller.rm = RM(configuration(predicates=["caller"]), with_plugins(predicates=[Caller]))
    rm.node(vcore=8)
    rm.app()
    rm.ask(vcore=1)
    explain(rm)
    assert "while the core is explaining pending requests" in Caller.errors[0]
    Caller.errors.clear()


class LargestFirst(AppSortPolicy):
    """Serves large requests first."""

    name = "largest-first"

    def key(self, app: Application) -> int:
        return app.submitted

    def ask_key(self, ask: Ask) -> float:
        return -ask.resource.get("vcore", 0)


def test_policy_that_orders_requests_is_named() -> None:
    leaf = queue("a", properties={"application.sort.policy": "largest-first"})
    rm = RM(configuration(leaf), with_plugins(app_sort_policies=[LargestFirst]))
    rm.app("app")
    for size in (1000, 3000, 2000):
        rm.ask("app", f"of-{size}", vcore=size)
    found = explain(rm)
    assert found["requestOrder"] == "largest-first"
    ranks = {group["allocationKeys"][0]: group["firstRank"] for group in found["requests"]}
    assert ranks == {"of-3000": 1, "of-2000": 2, "of-1000": 3}
    lines = list(explanation_lines(found, 100))
    assert "order:        largest-first orders the requests of an application" in lines


def test_workload_that_the_resource_manager_has_read_is_named() -> None:
    rm = RM(configuration(queue("a")))
    rm.app_tagged("app", "root.a", {"yunikorn.apache.org/workload": "gang of 3 pods of Job lab/train"})
    rm.ask("app", vcore=1)
    found = explain(rm)
    assert found["workload"] == "gang of 3 pods of Job lab/train"
    assert "workload:     gang of 3 pods of Job lab/train" in [*explanation_lines(found, 100)]
