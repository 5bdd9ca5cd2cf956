"""Reasons why an ask waits: the first failing check comes first, with its numbers at that moment."""

from __future__ import annotations

import pytest

from tests.core.event_collector import EventCollector
from tests.core.kit import RM, configuration, partition, queue, with_plugins
from yunikorn import api
from yunikorn.errors import UsageError
from yunikorn.interface.messages import NodeAction


def reasons(rm: RM, app_id: str = "app", key: str = "ask") -> list[str]:
    """Return the reasons that stop an ask, in full."""
    return [reason.detail for reason in rm.scheduler.explain("rm", "default", app_id, key)[key].reasons]


def waiting(config: str = "") -> RM:
    """Return an RM with one application and no nodes."""
    rm = RM(config)
    rm.app()
    return rm


def test_schedulable_ask_has_no_reason() -> None:
    rm = waiting()
    rm.node(memory=1)
    rm.ask(memory=1)
    assert reasons(rm) == []
    rm.schedule()
    assert rm.scheduler.explain("rm", "default", "app") == {}


def test_ask_without_nodes_is_explained() -> None:
    rm = waiting()
    rm.ask(memory=1)
    rm.schedule()
    assert reasons(rm) == ["there are no nodes"]


def test_nodes_are_counted_by_missing_resource() -> None:
    rm = waiting()
    rm.node("small", memory=4, vcore=1000)
    rm.node("busy", memory=8, vcore=1000)
    rm.node("away", memory=8, vcore=4000)
    rm.node("slow", memory=8, vcore=100)
    rm.ask(key="first", memory=6, vcore=100, tags={"yunikorn.apache.org/requiredNode": "busy"})
    rm.schedule()
    rm.change_node("away", NodeAction.DRAIN_NODE)
    rm.ask(memory=6, vcore=500)
    rm.schedule()
    assert reasons(rm) == [
        "no node has room (of 4 nodes: 2 lack memory, 1 lack vcore, 1 drained, 2 too small even when empty)"
    ]


def test_ask_larger_than_any_node_is_explained() -> None:
    rm = waiting()
    rm.node("n1", memory=4)
    rm.node("n2", memory=4)
    rm.ask(memory=5)
    rm.schedule()
    assert reasons(rm) == ["larger than any node (of 2 nodes: 2 lack memory, 2 too small even when empty)"]


class Rack(api.Predicate):
    """Places asks in the rack of their tag."""

    name = "rack"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        wanted = ask.tags.get("rack", "")
        return None if wanted in ("", node.attributes.get("rack")) else f"not in rack {wanted}"


def test_predicate_refusals_are_counted_by_reason() -> None:
    rm = RM(configuration(predicates=["rack"]), with_plugins(predicates=[Rack]))
    rm.app()
    for number in range(3):
        rm.node(f"n{number}", {"rack": "r1"}, memory=4)
    rm.ask(memory=1, tags={"rack": "r2"})
    rm.schedule()
    reported = "no node is allowed: not in rack r2 (of 3 nodes: 3 refused by rack: not in rack r2)"
    assert reasons(rm) == [reported]


def test_missing_or_full_required_node_is_explained() -> None:
    rm = waiting()
    rm.node(memory=4)
    rm.ask(memory=4, tags={"yunikorn.apache.org/requiredNode": "n9"})
    rm.ask(key="full", memory=5, tags={"yunikorn.apache.org/requiredNode": "n1"})
    rm.schedule()
    assert reasons(rm) == ["its required node does not exist: n9"]
    assert reasons(rm, key="full")[-1].startswith("its required node does not accept it: n1: ")


def test_quotas_are_reported_with_their_amounts() -> None:
    rm = waiting(configuration(queue("a", resources={"max": {"memory": "3"}})))
    rm.node(memory=10)
    rm.ask(key="first", memory=2)
    rm.schedule()
    rm.ask(memory=2)
    rm.ask(key="big", memory=4)
    rm.schedule()
    assert reasons(rm) == ["over the quota of queue root.a (requested memory 2, available memory 1)"]
    assert reasons(rm, key="big") == [
        "larger than the quota of queue root.a (requested memory 4, available memory 1)"
    ]


def test_full_cluster_is_not_reported_as_a_quota() -> None:
    rm = waiting()
    rm.node(memory=2)
    rm.ask(key="first", memory=2)
    rm.ask(memory=1)
    rm.schedule()
    assert reasons(rm) == [
        "the cluster is full (requested memory 1, available memory 0)",
        "no node has room (of 1 nodes: 1 lack memory)",
    ]


def test_user_limits_are_reported_with_their_amounts() -> None:
    limits = [{"limit": "one user", "users": ["user"], "maxresources": {"memory": "3"}}]
    rm = waiting(configuration(queue("a", limits=limits)))
    rm.node(memory=10)
    rm.ask(key="first", memory=2)
    rm.ask(memory=2)
    rm.schedule()
    assert reasons(rm) == [
        "over the limit of user user in queue root.a (requested memory 2, available memory 1)"
    ]


def test_application_blocked_by_maxapplications_is_explained() -> None:
    rm = waiting(configuration(queue("a", maxapplications=1)))
    rm.node(memory=10)
    rm.ask(memory=1)
    rm.schedule()
    rm.app("second")
    rm.ask("second", memory=1)
    assert rm.schedule() == []
    assert reasons(rm, "second") == ["queue root.a runs 1 of at most 1 applications"]
    assert rm.find_app("second").max_apps_reason == "queue root.a runs 1 of at most 1 applications"
    assert rm.find_app("app").max_apps_reason == ""


def test_user_at_maxapplications_is_explained() -> None:
    limits = [{"limit": "one each", "users": ["*"], "maxapplications": 1}]
    rm = waiting(configuration(queue("a", limits=limits)))
    rm.node(memory=10)
    rm.ask(memory=1)
    rm.schedule()
    rm.app("second")
    rm.ask("second", memory=1)
    assert rm.schedule() == []
    assert reasons(rm, "second") == ["user user in queue root.a runs 1 of at most 1 applications"]


def test_stopped_queues_and_partitions_are_explained() -> None:
    rm = waiting()
    rm.node(memory=1)
    rm.ask(memory=1)
    rm.scheduler.stop_queue("rm", "default", "root.a")
    rm.schedule()
    assert reasons(rm) == ["queue root.a is stopped"]
    rm.scheduler.stop_partition("rm", "default")
    assert reasons(rm) == ["partition default is stopped", "queue root.a is stopped"]


def test_application_excluded_by_the_policy_is_explained() -> None:
    rm = waiting(configuration(queue("a", properties={"application.sort.policy": "stateaware"})))
    rm.node(memory=10)
    rm.ask(memory=1)
    rm.schedule()
    rm.app("second")
    rm.ask("second", memory=1)
    assert rm.schedule() == []
    assert reasons(rm, "second") == [
        "other applications of queue root.a have precedence: application second is Accepted, "
        "and the sort policy of the queue does not admit it yet"
    ]


def test_an_application_in_backoff_is_explained() -> None:
    properties = {"application.unschedasks.backoff": "1"}
    rm = waiting(configuration(queue("a", properties=properties)))
    rm.node("n1", memory=2)
    rm.node("n2", memory=2)
    rm.ask(memory=3)
    rm.schedule()
    rm.pass_time(10)
    assert reasons(rm)[0] == (
        "the application is in back-off: its requests found no node; next attempt in 20s"
    )


def test_multiple_reasons_are_in_the_order_of_the_checks() -> None:
    limits = [{"limit": "one user", "users": ["user"], "maxresources": {"memory": "3"}}]
    tree = configuration(queue("a", limits=limits, resources={"max": {"memory": "4"}}))
    rm = waiting(tree)
    rm.node(memory=10)
    rm.ask(memory=20)
    rm.scheduler.stop_queue("rm", "default", "root.a")
    found = [reason.summary for reason in rm.scheduler.explain("rm", "default", "app")["ask"].reasons]
    assert found == [
        "queue root.a is stopped",
        "larger than the quota of queue root.a",
        "larger than the whole cluster",
        "over the limit of user user in queue root.a",
        "larger than any node",
    ]


def test_explaining_changes_nothing() -> None:
    rm = waiting()
    rm.node("n1", memory=2)
    rm.node("n2", memory=2)
    rm.ask(key="first", count=2, memory=1)
    rm.ask(memory=3)
    rm.scheduler.explain("rm", "default", "app")
    assert rm.schedule() == [("app", "first", "n1"), ("app", "first", "n2")]
    rm.scheduler.explain("rm", "default", "app")
    rm.change_node("n1", memory=4)
    assert rm.schedule() == [("app", "ask", "n1")]


def test_first_reasons_cover_all_pending_asks() -> None:
    rm = waiting(configuration(queue("a", resources={"max": {"memory": "3"}}), queue("b")))
    rm.node(memory=10)
    rm.ask(count=5, memory=1)
    rm.app("other", "root.b")
    rm.ask("other", "big", count=2, memory=11)
    rm.schedule()
    found = [(app, count, reason.summary) for app, count, reason in rm.scheduler.first_reasons("rm")]
    assert found == [
        ("app", 2, "over the quota of queue root.a"),
        ("other", 2, "larger than the whole cluster"),
    ]


def test_unknown_applications_and_asks_are_rejected() -> None:
    rm = waiting()
    with pytest.raises(UsageError, match="no application 'nobody'"):
        rm.scheduler.explain("rm", "default", "nobody")


# -- events ------------------------------------------------------------------------------------------------

HOLDS = ("APP_CANNOTRUN_QUEUE", "APP_RUNNABLE_QUEUE", "APP_CANNOTRUN_QUOTA", "APP_RUNNABLE_QUOTA")


def test_blocked_application_has_one_event_and_one_when_it_may_start() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a", maxapplications=1)))
    rm.node(memory=10)
    for app_id in ("first", "second", "third"):
        rm.app(app_id)
        rm.ask(app_id, memory=1)
    assert rm.schedule() == [("first", "ask", "n1")]
    rm.schedule()
    assert collector.of(*HOLDS) == [
        ("second", "", "NONE", "APP_CANNOTRUN_QUEUE"),
        ("third", "", "NONE", "APP_CANNOTRUN_QUEUE"),
    ]
    assert collector.messages("second")[-1] == "queue root.a runs 1 of at most 1 applications"

    collector.events.clear()
    rm.release("first")
    assert rm.schedule() == [("second", "ask", "n1")]
    # The third application was never runnable: the second started in the same round in which the first ended.
    assert collector.of(*HOLDS) == []
    rm.release("second")
    rm.remove_app("third")
    rm.schedule()
    assert collector.of(*HOLDS) == []


def test_user_limits_that_block_applications_are_events() -> None:
    collector = EventCollector()
    limits = [{"limit": "one each", "users": ["*"], "maxapplications": 1}]
    rm = collector.rm(partition(queue("a", limits=limits)))
    rm.node("n1", memory=2)
    rm.node("n2", memory=2)
    rm.app("first")
    rm.ask("first", memory=1)
    rm.schedule()
    rm.app("second")
    rm.ask("second", memory=3)
    rm.schedule()
    assert collector.of(*HOLDS) == [("second", "", "NONE", "APP_CANNOTRUN_QUOTA")]
    rm.release("first")
    rm.schedule()
    assert collector.of(*HOLDS) == [
        ("second", "", "NONE", "APP_CANNOTRUN_QUOTA"),
        ("second", "", "NONE", "APP_RUNNABLE_QUOTA"),
    ]


def test_application_that_waited_for_a_node_has_an_event_when_its_queue_becomes_full() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a", maxapplications=1)))
    rm.node("n1", memory=2)
    rm.node("n2", memory=2)
    rm.app("big")
    rm.ask("big", memory=3)
    assert rm.schedule() == []
    assert collector.of(*HOLDS) == []
    rm.app("small")
    rm.ask("small", memory=1)
    assert rm.schedule() == [("small", "ask", "n1")]
    assert collector.of(*HOLDS) == [("big", "", "NONE", "APP_CANNOTRUN_QUEUE")]
