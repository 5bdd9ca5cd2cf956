"""Suggested fixes of waiting asks and their positions in the order, with numbers that hold when applied."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.errors import UsageError
from yunikorn.explain.request_position import ordinal
from yunikorn.interface.messages import NodeAction


def suggested_fixes(rm: RM, app_id: str = "app", key: str = "ask") -> tuple[str, ...]:
    """Return the suggested fixes of an ask."""
    return rm.scheduler.explain("rm", "default", app_id, key)[key].suggested_fixes


def place(rm: RM, app_id: str = "app", key: str = "ask") -> str:
    """Return the position of an ask."""
    return str(rm.scheduler.explain("rm", "default", app_id, key)[key].position)


def with_quota(memory: str, **keys: Any) -> str:
    """Return a configuration with one queue that has a max."""
    return configuration(queue("a", resources={"max": {"memory": memory}}, **keys))


# -- the smallest change ------------------------------------------------------------------------------------


def test_raising_a_max_by_the_missing_amount_is_suggested() -> None:
    rm = RM(with_quota("3Gi"))
    rm.node(memory=20 << 30)
    rm.app()
    rm.ask(key="first", memory=2 << 30)
    rm.ask(memory=3 << 30)
    assert rm.schedule() == [("app", "first", "n1")]
    assert suggested_fixes(rm) == (
        "raise the max of queue root.a by memory 2Gi, or release the same amount there",
    )
    rm.reload(with_quota("5Gi"))
    assert rm.schedule() == [("app", "ask", "n1")]


def test_ending_allocations_is_not_suggested_if_the_ask_exceeds_the_max() -> None:
    rm = RM(with_quota("3"))
    rm.node(memory=20)
    rm.app()
    rm.ask(memory=4)
    rm.schedule()
    assert suggested_fixes(rm) == ("raise the max of queue root.a by memory 1",)


def test_every_exceeded_max_of_the_ancestors_is_suggested() -> None:
    tree = queue("p", queue("c", resources={"max": {"vcore": "1"}}), resources={"max": {"vcore": "1500m"}})
    rm = RM(configuration(tree))
    rm.node(vcore=9000)
    rm.app(queue_name="root.p.c")
    rm.ask(key="first", vcore=1000)
    rm.ask(vcore=1000)
    rm.schedule()
    assert suggested_fixes(rm) == (
        "raise the max of queue root.p.c by vcore 1, or release the same amount there",
        "raise the max of queue root.p by vcore 500m, or release the same amount there",
    )


def test_raising_a_user_limit_or_ending_allocations_is_suggested() -> None:
    limits = [{"limit": "one user", "users": ["*"], "maxresources": {"memory": "3"}}]
    rm = RM(configuration(queue("a", limits=limits)))
    rm.node(memory=20)
    rm.app(user="ann")
    rm.ask(key="first", memory=2)
    rm.ask(memory=2)
    rm.schedule()
    assert suggested_fixes(rm) == (
        "raise the limit of user ann in queue root.a by memory 1"
        ", or release the same amount of user ann there",
    )
    rm.release(key="first")
    assert rm.schedule() == [("app", "ask", "n1")]


def test_number_of_applications_to_end_is_suggested() -> None:
    limits = [{"limit": "three each", "users": ["*"], "maxapplications": 3}]
    rm = RM(configuration(queue("a", limits=limits)))
    rm.node(memory=20)
    for number in range(4):
        rm.app(f"app{number}", user="ann")
        rm.ask(f"app{number}", memory=1)
    assert len(rm.schedule()) == 3
    assert suggested_fixes(rm, "app3") == (
        "1 of the 3 running applications of user ann in queue root.a must end",
    )
    rm.release("app1")
    assert rm.schedule() == [("app3", "ask", "n1")]


def test_ending_two_applications_is_suggested_after_a_lowered_maxapplications() -> None:
    rm = RM(configuration(queue("a", maxapplications=3)))
    rm.node(memory=20)
    for number in range(4):
        rm.app(f"app{number}")
        rm.ask(f"app{number}", memory=1)
    assert len(rm.schedule()) == 3
    rm.reload(configuration(queue("a", maxapplications=2)))
    assert suggested_fixes(rm, "app3") == ("2 of the 3 running applications of queue root.a must end",)


def test_node_with_least_to_end_is_suggested() -> None:
    rm = RM()
    rm.app()
    for number, free in enumerate([1000, 3500, 2000], start=1):
        rm.node(f"n{number}", vcore=8000, memory=8)
        used = {"vcore": 8000 - free}
        where = {"yunikorn.apache.org/requiredNode": f"n{number}"}
        rm.ask(key=f"filler{number}", tags=where, resource=used)
    rm.node("small", vcore=3900, memory=8)
    rm.ask(vcore=4000, memory=2)
    rm.schedule()
    assert suggested_fixes(rm) == ("free vcore 500m on node n2 (the nearest)",)
    rm.release(key="filler2")
    assert rm.schedule() == [("app", "ask", "n2")]


def test_drained_node_with_free_resources_is_preferred_to_ending_allocations() -> None:
    rm = RM()
    rm.app()
    rm.node("n1", memory=4)
    rm.ask(key="first", memory=3)
    rm.schedule()
    rm.node("n2", memory=4)
    rm.change_node("n2", NodeAction.DRAIN_NODE)
    rm.ask(memory=2)
    assert rm.schedule() == []
    # Both nodes are one change away; n1 is named because it accepts allocations already.
    assert suggested_fixes(rm) == ("free memory 1 on node n1 (the nearest)",)
    rm.ask(key="large", memory=5)
    rm.schedule()
    assert suggested_fixes(rm, key="large") == (
        "a node with room for memory 5: the nearest, n1, is too small by memory 1",
    )
    rm.change_node("n1", NodeAction.DECOMMISSION)
    assert suggested_fixes(rm) == ("make node n2 (the nearest) schedulable again: it is drained",)
    rm.change_node("n2", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert rm.schedule() == [("app", "ask", "n2")]


def test_fixes_without_nodes_and_without_the_required_node() -> None:
    rm = RM()
    rm.app()
    rm.ask(memory=5)
    rm.ask(key="bound", memory=5, priority=1, tags={"yunikorn.apache.org/requiredNode": "n9"})
    rm.schedule()
    assert suggested_fixes(rm) == ("a node with room for memory 5",)
    assert suggested_fixes(rm, key="bound") == ("add node n9",)
    rm.node("n9", memory=4)
    rm.schedule()
    assert suggested_fixes(rm, key="bound") == ("enlarge node n9 by memory 1",)
    rm.change_node("n9", memory=5)
    assert rm.schedule() == [("app", "bound", "n9")]
    assert suggested_fixes(rm) == ("free memory 5 on node n9 (the nearest)",)


class Zone(api.Predicate):
    """Places asks in the zone of their tag; explains the requirement."""

    name = "zone"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        wanted = ask.tags.get("zone", "")
        return None if wanted in ("", node.attributes.get("zone")) else f"not in zone {wanted}"

    def wanted(self, ask: api.Ask) -> str | None:
        return f"attribute zone={ask.tags['zone']}"


class Mute(Zone):
    """The same without an explanation."""

    name = "mute"

    def wanted(self, ask: api.Ask) -> str | None:
        raise RuntimeError("I cannot say")


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("zone", "a node with attribute zone=b and room for memory 2"),
        (
            "mute",
            "a node with room for memory 2 that predicate mute allows"
            " (its wanted() failed: RuntimeError: I cannot say)",
        ),
    ],
)
def test_predicate_requirements_are_suggested(predicate: str, expected: str) -> None:
    rm = RM(configuration(predicates=[predicate]), with_plugins(predicates=[Zone, Mute]))
    rm.app()
    rm.node("n1", {"zone": "a"}, memory=4)
    rm.ask(memory=2, tags={"zone": "b"})
    rm.schedule()
    assert suggested_fixes(rm) == (expected,)
    assert list(rm.scheduler.failures) == []
    rm.change_node("n1", attributes={"zone": "b"})
    assert rm.schedule() == [("app", "ask", "n1")]


SELECTOR = "yunikorn.apache.org/node-selector"
TOLERATIONS = "yunikorn.apache.org/tolerations"


@pytest.mark.parametrize(
    ("app_tags", "tags", "expected"),
    [
        ({}, {SELECTOR: "zone=b"}, "a node with attribute zone=b and room for memory 2"),
        (
            {SELECTOR: "zone=b"},
            {SELECTOR: "disk in (ssd, nvme), !spot"},
            "a node with attributes zone=b, disk in (ssd, nvme), !spot and room for memory 2",
        ),
        ({}, {SELECTOR: "zone=(b"}, "a node with room for memory 2 that predicate node-selector allows"),
        ({}, {}, "a node with no taints and room for memory 2"),
        ({}, {TOLERATIONS: "old"}, "a node with no taints except old and room for memory 2"),
        ({}, {TOLERATIONS: "=,="}, "a node with room for memory 2 that predicate taints allows"),
    ],
)
def test_requirements_of_default_predicates_are_suggested(
    app_tags: dict[str, str], tags: dict[str, str], expected: str
) -> None:
    rm = RM(configuration(predicates=["node-selector", "taints"]))
    rm.app_tagged("app", "root.a", app_tags)
    rm.node("n1", {"zone": "a", "taints": "team=red"}, memory=4)
    rm.ask(memory=2, tags=tags)
    rm.schedule()
    assert suggested_fixes(rm) == (expected,)


def test_fixes_of_a_node_reserved_for_another_ask() -> None:
    rm = RM()
    rm.app()
    rm.node("n1", memory=4)
    rm.ask(key="filler", memory=2)
    rm.schedule()
    rm.ask(key="big", memory=4, priority=5)
    rm.schedule()
    rm.pass_time(3)
    rm.schedule()
    rm.ask(key="small", memory=2)
    assert rm.schedule() == []
    big = rm.scheduler.explain("rm", "default", "app", "big")["big"]
    assert [reason.check for reason in big.reasons] == ["quota", "reservation"]
    assert suggested_fixes(rm, key="small") == (
        "ask big of application app, which node n1 (the nearest) "
        "is reserved for, must be allocated or released",
    )
    rm.release_ask("app", "big")
    assert rm.schedule() == [("app", "small", "n1")]


def test_ask_with_victims_waits_for_their_end() -> None:
    guarantee = {"guaranteed": {"memory": "4"}}
    rm = RM(configuration(queue("a", resources=guarantee), queue("b")))
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    rm.app()
    rm.ask(memory=2)
    rm.schedule()
    rm.pass_time(12)
    waits = rm.scheduler.explain("rm", "default", "app")["ask"]
    assert [reason.detail for reason in waits.reasons if reason.check == "preemption"] == [
        "may preempt only after the preemption delay: in 18s"
    ]
    rm.pass_time(18)
    rm.schedule()
    found = rm.scheduler.explain("rm", "default", "app")["ask"]
    assert (
        found.reasons[0].detail == "waits for the release of its preemption victims: 2 allocations, memory 2"
    )
    assert found.reasons[0].check == "preemption"
    assert found.suggested_fixes == ("the resource manager must confirm the release of 2 allocations",)
    rm.confirm()
    assert rm.schedule() == [("app", "ask", "n1")]


def test_preemption_without_victims_is_explained() -> None:
    guarantee = {"guaranteed": {"memory": "4"}}
    rm = RM(configuration(queue("a", resources=guarantee), queue("b", resources=guarantee)))
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    rm.app()
    rm.ask(memory=2)
    rm.pass_time(30)
    rm.schedule()
    found = rm.scheduler.explain("rm", "default", "app")["ask"]
    assert found.reasons[-1].detail == "preemption found no suitable victims"
    assert found.suggested_fixes == ("free memory 2 on node n1 (the nearest)",)


def test_fixes_of_stopped_queues_and_partitions() -> None:
    rm = RM(configuration(queue("a", properties={"queue.state": "stopped"})))
    rm.app()
    rm.node(memory=1)
    rm.ask(memory=1)
    rm.scheduler.stop_queue("rm", "default", "root")
    rm.scheduler.stop_partition("rm", "default")
    assert suggested_fixes(rm) == (
        "start partition default",
        "remove queue.state: stopped from the configuration of queue root.a",
        "start queue root",
    )
    assert place(rm) == (
        "the only pending request in queue root.a; "
        "queue root.a is the only one with pending requests under root"
    )


def test_fixes_of_an_application_in_backoff() -> None:
    rm = RM(configuration(queue("a", properties={"application.unschedasks.backoff": "1"})))
    rm.app()
    rm.node("n1", memory=2)
    rm.node("n2", memory=2)
    rm.ask(memory=3)
    rm.schedule()
    rm.pass_time(10)
    assert suggested_fixes(rm)[0] == "wait 20s until the back-off of the application ends"


def test_fixes_of_both_kinds_of_gangs() -> None:
    rm = GangRM()
    rm.gang("whole", "Atomic", memory=6)
    rm.task("whole", "t", "g", 4, memory=1)
    assert suggested_fixes(rm, "whole", "t") == (
        "submit further requests of the gang, for memory 2 in total",
    )
    rm.task("whole", "t", "g", 6, memory=1)
    rm.node("n1", memory=4)
    rm.schedule()
    found = rm.scheduler.explain("rm", "default", "whole")["t"]
    assert [reason.detail for reason in found.reasons] == [
        "larger than the whole cluster (requested memory 6, available memory 4)",
        "no room for its whole gang at once (requested memory 6; room for 4 of 6 members)",
    ]
    assert found.suggested_fixes == ("free room on nodes for 2 more of its 6 members (memory 1 each)",)
    rm.node("n2", memory=2)
    assert len(rm.schedule(1)) == 6


# -- the order ----------------------------------------------------------------------------------------------


def test_request_positions_follow_the_policies() -> None:
    rm = RM(configuration(queue("a"), queue("b"), queue("c")))
    for name in "abc":
        rm.app(f"app-{name}", f"root.{name}")
    rm.app("later", "root.a")
    rm.ask("app-a", "low", 3, memory=1)
    rm.ask("app-a", "high", priority=5, memory=1)
    rm.ask("later", "x", memory=1)
    rm.ask("app-b", "x", priority=9, memory=1)
    assert place(rm, "app-a", "high") == (
        "1st of 5 pending requests in queue root.a; queue root.a is 2nd of 2 with pending requests under root"
    )
    assert place(rm, "app-a", "low").startswith("2nd to 4th of 5 pending requests in queue root.a; ")
    assert place(rm, "later", "x").startswith("5th of 5 pending requests")
    # The asks are served in these positions.
    rm.node(memory=6)
    served = [(app, key) for app, key, _ in rm.schedule()]
    low = [("app-a", "low")] * 3
    assert served == [("app-b", "x"), ("app-a", "high"), *low, ("later", "x")]


def test_request_positions_are_current_and_do_not_change_the_scheduler() -> None:
    rm = RM(configuration(queue("a", properties={"application.sort.policy": "fair"})))
    rm.node("n1", memory=3)
    for app_id in ("one", "two"):
        rm.app(app_id)
        rm.ask(app_id, count=3, memory=1)
    assert place(rm, "two", "ask").startswith("4th to 6th of 6")
    assert rm.schedule(1) == [("one", "ask", "n1")]
    # Now the other queue has used less.
    assert place(rm, "two", "ask").startswith("1st to 3rd of 5")
    assert rm.schedule(1) == [("two", "ask", "n1")]
    assert place(rm, "two", "ask").startswith("3rd to 4th of 4")


def test_queue_positions_of_all_ancestors_are_reported() -> None:
    tree = [queue("p", queue("x"), queue("y")), queue("q")]
    rm = RM(configuration(*tree))
    for app_id, path in (("one", "root.q"), ("two", "root.p.y"), ("three", "root.p.x")):
        rm.app(app_id, path)
        rm.ask(app_id, memory=1)
    assert place(rm, "two") == (
        "the only pending request in queue root.p.y; "
        "queue root.p.y is 2nd of 2 with pending requests under root.p; "
        "queue root.p is 1st of 2 with pending requests under root"
    )


def test_incomparable_keys_sort_last_without_a_failure() -> None:
    class Torn(api.AppSortPolicy):
        """A policy with numbers as keys of some applications, and texts as keys of others."""

        name = "torn"

        def key(self, app: api.Application) -> Any:
            if app.id == "fails":
                raise RuntimeError("no key")
            return app.id if app.id == "text" else 1

    properties = {"application.sort.policy": "torn"}
    rm = RM(configuration(queue("a", properties=properties)), with_plugins(app_sort_policies=[Torn]))
    for app_id in ("fails", "number", "text"):
        rm.app(app_id)
        rm.ask(app_id, memory=1)
    places = [place(rm, app_id, "ask")[:3] for app_id in ("number", "fails", "text")]
    assert places == ["1st", "2nd", "3rd"]
    assert list(rm.scheduler.failures) == []


@pytest.mark.parametrize(
    ("number", "word"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"),
                         (13, "13th"), (21, "21st"), (102, "102nd"), (111, "111th"), (1003, "1003rd")]
)  # fmt: skip
def test_ordinal_numbers(number: int, word: str) -> None:
    assert ordinal(number) == word


def test_unknown_application_is_reported_with_a_suggestion() -> None:
    rm = RM()
    rm.app("nightly-1")
    with pytest.raises(UsageError, match="did you mean 'nightly-1'"):
        rm.scheduler.explain("rm", "default", "nighly-1")
