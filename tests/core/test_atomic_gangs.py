"""Atomic gangs: one decision places all members or none; a waiting gang holds nothing and does not starve."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.core.event_collector import EventCollector
from tests.core.gangs import GangRM
from tests.core.kit import configuration, document, partition, queue, with_plugins
from yunikorn import api
from yunikorn.clock import SECOND
from yunikorn.explain.explanations import answers, why
from yunikorn.interface.messages import Allocation, AllocationAsk, NodeAction, PreemptionPolicy
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource

PATIENCE = 600


def cluster(*queues: Any, nodes: int = 2, timeouts: Timeouts | None = None, **keys: Any) -> GangRM:
    """Return an RM with nodes of 4 vcore."""
    rm = GangRM(configuration(*(queues or (queue("a"), queue("b"))), **keys), timeouts=timeouts)
    for number in range(nodes):
        rm.node(f"n{number + 1}", vcore=4)
    return rm


def gang(rm: GangRM, app_id: str, count: int, queue_name: str = "root.a", size: int = 1, **keys: Any) -> None:
    """Submit an Atomic gang of `count` members of `size` vcore, with all its asks."""
    rm.gang(app_id, "Atomic", queue_name, vcore=count * size, **keys)
    rm.task(app_id, f"{app_id}-m", "members", count, vcore=size)


def fill(rm: GangRM, count: int, queue_name: str = "root.b", app_id: str = "filler") -> None:
    """Run this many small tasks."""
    rm.app(app_id, queue_name)
    rm.ask(app_id, f"{app_id}-t", count, vcore=1)
    assert len(rm.schedule()) == count


def end(rm: GangRM, app_id: str, count: int = 1) -> None:
    """End this many tasks of an application."""
    for uuid in [uuid for uuid, one in rm.running.items() if one.application_id == app_id][:count]:
        rm.release(app_id, uuid)


@pytest.mark.parametrize("policy", ["fifo", "fair", "stateaware"])
def test_all_members_are_placed_in_one_decision_under_every_policy(policy: str) -> None:
    rm = cluster(queue("a", properties={"application.sort.policy": policy}))
    gang(rm, "app", 5)
    assert sorted(rm.schedule(1)) == [("app", "app-m", "n1")] * 3 + [("app", "app-m", "n2")] * 2
    assert rm.state() == "Running"
    assert rm.used() == {"vcore": 5}


def test_gang_that_does_not_fit_allocates_and_reserves_nothing() -> None:
    rm = cluster()
    fill(rm, 4)
    gang(rm, "app", 5)
    assert rm.schedule() == []
    assert rm.used() == {}
    assert rm.state() == "Accepted"
    assert [dict(rm.find_node(name).available) for name in ("n1", "n2")] == [{"vcore": 2}, {"vcore": 2}]
    # Other asks that fit are placed.
    rm.ask("filler", "more", vcore=4)
    rm.ask("filler", "small", vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["small"]
    end(rm, "filler", 2)
    assert len(rm.schedule()) == 5


def test_fragmented_free_resources_do_not_fit_a_gang() -> None:
    rm = cluster()
    fill(rm, 2)
    gang(rm, "app", 2, size=3)
    assert len(rm.schedule()) == 2
    gang(rm, "next", 2, size=1)
    assert rm.schedule() == []
    gang(rm, "pieces", 1, size=2)
    end(rm, "filler", 2)
    # One vcore is free on either node: two members of one vcore fit, one of two does not.
    assert [app for app, _, _ in rm.schedule()] == ["next", "next"]
    end(rm, "app")
    assert [app for app, _, _ in rm.schedule()] == ["pieces"]


def test_gang_waits_for_all_its_members() -> None:
    rm = cluster()
    rm.gang("app", "Atomic", vcore=4)
    rm.task("app", "one", "members", 2, vcore=1)
    rm.task("app", "two", "others", vcore=1)
    rm.ask("app", "driver", vcore=1)
    # An ask without a task group is no member.
    assert [key for _, key, _ in rm.schedule()] == ["driver"]
    rm.task("app", "three", "others", vcore=1)
    assert sorted(key for _, key, _ in rm.schedule(1)) == ["one", "one", "three", "two"]


def test_released_member_makes_the_gang_incomplete() -> None:
    rm = cluster()
    rm.gang("app", "Atomic", vcore=3)
    for key in ("one", "two", "three"):
        rm.task("app", key, "members", vcore=1)
    rm.release_ask("app", "two")
    assert rm.schedule() == []
    rm.task("app", "two", "members", 2, vcore=1)
    assert sorted(key for _, key, _ in rm.schedule(1)) == ["one", "three", "two"]
    assert [key for _, key, _ in rm.schedule()] == ["two"]


def test_surplus_members_are_scheduled_after_the_gang() -> None:
    rm = cluster()
    fill(rm, 5)
    rm.gang("app", "Atomic", vcore=3)
    rm.task("app", "m", "members", 4, vcore=1)
    assert [key for _, key, _ in rm.schedule(1)] == ["m"] * 3
    assert rm.schedule() == []
    end(rm, "filler")
    assert [key for _, key, _ in rm.schedule()] == ["m"]


def test_members_of_different_sizes_are_placed_in_their_order() -> None:
    rm = cluster()
    rm.gang("app", "Atomic", vcore=7)
    rm.task("app", "small", "s", 3, vcore=1)
    rm.task("app", "large", "l", vcore=4, priority=1)
    assert [key for _, key, _ in rm.schedule(1)] == ["large", "small", "small", "small"]


def test_gang_as_a_whole_stays_within_queue_quota_and_user_limit() -> None:
    limits = [{"limit": "all", "users": ["*"], "maxresources": {"vcore": "5m"}}]
    rm = cluster(
        queue("a", resources={"max": {"vcore": "6m"}}), queue("b", limits=limits), queue("c"), nodes=4
    )
    gang(rm, "g1", 4)
    gang(rm, "g2", 3)
    gang(rm, "g3", 3, "root.b")
    gang(rm, "g4", 3, "root.b")
    assert [app for app, _, _ in rm.schedule()] == ["g1"] * 4 + ["g3"] * 3
    end(rm, "g1")
    assert [app for app, _, _ in rm.schedule()] == ["g2"] * 3
    end(rm, "g3")
    assert [app for app, _, _ in rm.schedule()] == ["g4"] * 3


def test_a_gang_larger_than_its_queues_quota_is_refused() -> None:
    rm = cluster(queue("a", resources={"max": {"vcore": "6m"}}))
    gang(rm, "app", 7)
    assert [one.reason for one in rm.take_response().rejected_applications] == [
        "queue root.a cannot run application app: task group request vcore 7m larger than max queue "
        "allocation vcore 6m"
    ]


def test_atomic_gang_needs_a_size_and_accepts_no_placeholders() -> None:
    rm = cluster()
    rm.gang("app", "Atomic")
    assert [one.reason for one in rm.take_response().rejected_applications] == [
        "an Atomic gang needs a placeholderAsk: the total resources of its members"
    ]
    rm.gang("app", "Atomic", vcore=2)
    rm.task("app", "ph", "members", placeholder=True, vcore=1)
    assert [one.reason for one in rm.take_response().rejected_allocations] == [
        "application app is an atomic gang and accepts no placeholders"
    ]


@pytest.mark.parametrize("style", ["atomic", "ATOMIC"])
def test_gang_style_ignores_case(style: str) -> None:
    rm = cluster()
    rm.gang("app", style)
    assert len(rm.take_response().rejected_applications) == 1
    rm.gang("app", style, vcore=9)
    rm.task("app", "m", "members", 9, vcore=1)
    assert rm.schedule() == []
    assert rm.take_response().updated_applications[0].message == "ask added"
    rm.node("n3", vcore=1)
    assert len(rm.schedule(1)) == 9


def test_gang_counts_as_one_running_application() -> None:
    rm = cluster(queue("a", maxapplications=1), nodes=4)
    gang(rm, "g1", 2)
    gang(rm, "g2", 2)
    assert [app for app, _, _ in rm.schedule()] == ["g1"] * 2
    rm.remove_app("g1")
    assert [app for app, _, _ in rm.schedule()] == ["g2"] * 2


def test_lost_member_is_replaced_like_any_task() -> None:
    rm = cluster(nodes=3)
    gang(rm, "app", 6)
    assert len(rm.schedule()) == 6
    rm.change_node("n1", NodeAction.DECOMMISSION)
    rm.task("app", "again", "members", vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["again"]


def test_gang_with_running_members_is_not_gathered_again() -> None:
    rm = GangRM()
    rm.gang("app", "Atomic", vcore=4)
    existing = Allocation("m1", "app", "u1", "n1", Resource(vcore=1), task_group_name="members")
    rm.running["u1"] = existing
    rm.node("n1", existing=[existing], vcore=2)
    rm.task("app", "m", "members", 3, vcore=1)
    assert rm.schedule() == [("app", "m", "n1")]


class Zone(api.Predicate):
    """Places members in the zone of their tag."""

    name = "zone"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        wanted = ask.tags.get("zone", "")
        return None if wanted in ("", node.attributes.get("zone")) else f"not in zone {wanted}"


class ClassedZone(Zone):
    """The same, with declared inputs."""

    name = "classed"

    def ask_class(self, ask: api.Ask) -> str:
        return ask.tags.get("zone", "")

    def node_class(self, node: api.Node) -> str:
        return node.attributes.get("zone", "")


@pytest.mark.parametrize("name", ["zone", "classed"])
def test_predicates_are_called_for_every_member(name: str) -> None:
    text = document(partition(queue("a"), predicates=[{"name": name}]))
    rm = GangRM(text, with_plugins(predicates=[Zone, ClassedZone]))
    rm.node("x1", {"zone": "x"}, vcore=4)
    rm.node("y1", {"zone": "y"}, vcore=1)
    rm.gang("app", "Atomic", vcore=4)
    rm.task("app", "east", "e", 2, vcore=1, tags={"zone": "x"})
    rm.task("app", "west", "w", 2, vcore=1, tags={"zone": "y"})
    rm.gang("other", "Atomic", vcore=4)
    rm.task("other", "all", "e", 4, vcore=1, tags={"zone": "x"})
    # Equal amounts in equal pieces, but another gang: it is not skipped together with the first.
    assert rm.schedule() == [("other", "all", "x1")] * 4
    rm.node("x2", {"zone": "x"}, vcore=4)
    assert rm.schedule() == []
    rm.node("y2", {"zone": "y"}, vcore=1)
    assert sorted(rm.schedule()) == [
        ("app", "east", "x2"), ("app", "east", "x2"), ("app", "west", "y1"), ("app", "west", "y2")
    ]  # fmt: skip


def test_required_node_applies_to_its_member_only() -> None:
    rm = cluster()
    fill(rm, 4)
    rm.gang("app", "Atomic", vcore=4)
    rm.task("app", "pinned", "p", 3, vcore=1, tags={"yunikorn.apache.org/requiredNode": "n1"})
    rm.task("app", "free", "f", vcore=1)
    assert rm.schedule() == []
    for uuid in [uuid for uuid, one in rm.running.items() if one.node_id == "n1"]:
        rm.release("filler", uuid)
    assert sorted(node for _, _, node in rm.schedule()) == ["n1", "n1", "n1", "n2"]


# -- waiting ---------------------------------------------------------------------------------------------


def test_waiting_gang_is_not_retried_without_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    rm = cluster()
    fill(rm, 4)
    for number in range(50):
        gang(rm, f"g{number}", 3, size=2)
    rm.schedule()
    asked: list[str] = []
    monkeypatch.setattr(rm.at_work().cycle.atomic, "serve", lambda request, _: asked.append(request.key))
    assert rm.schedule() == []
    end(rm, "filler")
    assert rm.schedule() == []
    # 5 vcore are free, and no gang needs less than 6.
    assert asked == []
    end(rm, "filler")
    # Now the gangs might fit; gangs of equal members are evaluated together.
    monkeypatch.undo()
    attempts: list[str] = []
    atomic = rm.at_work().cycle.atomic
    serve = atomic.serve

    def count(request: Any, wanted: Any) -> Any:
        attempts.append(request.key)
        return serve(request, wanted)

    monkeypatch.setattr(atomic, "serve", count)
    # But 3 are free on either node: one attempt answers for all gangs.
    assert rm.schedule() == []
    assert attempts == ["gang of g0"]
    end(rm, "filler")
    assert [app for app, _, _ in rm.schedule()] == ["g0"] * 3


def starving(patience: int = PATIENCE) -> GangRM:
    """Return an RM where small tasks take all released capacity while a gang of the cluster's size waits."""
    rm = cluster(timeouts=Timeouts(gang_patience=patience * SECOND, reservation=None))
    fill(rm, 8)
    gang(rm, "app", 8)
    rm.schedule()
    rm.app("crowd", "root.a")
    rm.ask("crowd", "c", 100, vcore=1)
    return rm


def test_waiting_gang_is_skipped_before_its_patience_ends() -> None:
    rm = starving()
    for _ in range(20):
        rm.pass_time(29)
        end(rm, next(iter(rm.running.values())).application_id)
        assert [app for app, _, _ in rm.schedule()] == ["crowd"]
    assert rm.state("app") == "Accepted"


def test_overdue_gang_holds_back_later_requests() -> None:
    rm = starving()
    end(rm, "filler")
    assert [app for app, _, _ in rm.schedule()] == ["crowd"]
    rm.pass_time(PATIENCE)
    end(rm, "filler", 7)
    assert rm.schedule() == []
    crowd = rm.find_app("crowd").asks["c"]
    assert [reason.detail for reason in why(rm.at_work(), crowd)] == [
        "an overdue gang has precedence: the gang of application app"
    ]
    end(rm, "crowd")
    assert [app for app, _, _ in rm.schedule(1)] == ["app"] * 8
    # Afterwards the other applications are served.
    end(rm, "app", 2)
    assert [app for app, _, _ in rm.schedule()] == ["crowd"] * 2


@pytest.mark.parametrize(
    ("gangs", "more"), [(3, []), (4, ["1 more overdue gang"]), (6, ["3 more overdue gangs"])]
)
def test_a_few_overdue_gangs_are_named(gangs: int, more: list[str]) -> None:
    rm = cluster(timeouts=Timeouts(gang_patience=PATIENCE * SECOND, reservation=None))
    fill(rm, 8)
    for number in range(gangs):
        gang(rm, f"app{number}", 8)
    rm.schedule()
    rm.pass_time(PATIENCE)
    end(rm, "filler", 1)
    rm.app("late", "root.a")
    rm.ask("late", "c", 1, vcore=1)
    assert rm.schedule() == []
    fixes = answers(rm.at_work(), rm.find_app("late").asks["c"])[1]
    named = [f"the gang of application app{number} must be allocated or removed" for number in range(3)]
    assert list(fixes) == [
        *named,
        *(f"those of {count} that precede the request must be, too" for count in more),
    ]


def test_requests_before_an_overdue_gang_are_served() -> None:
    rm = starving()
    rm.pass_time(PATIENCE)
    end(rm, "filler", 3)
    assert rm.schedule() == []
    rm.app("urgent", "root.a")
    rm.ask("urgent", "u", vcore=1, priority=9)
    assert [app for app, _, _ in rm.schedule()] == ["urgent"]
    rm.app("poor", "root.b")
    rm.ask("poor", "p", 2, vcore=1)
    # Queue a has used less than b: asks in b come after the gang.
    assert rm.schedule() == []


def test_removal_of_an_overdue_gang_ends_back_pressure() -> None:
    rm = starving()
    rm.pass_time(PATIENCE)
    end(rm, "filler", 3)
    assert rm.schedule() == []
    rm.remove_app("app")
    assert [app for app, _, _ in rm.schedule()] == ["crowd"] * 3


def test_an_overdue_gang_that_can_never_run_delays_no_asks() -> None:
    rm = cluster(timeouts=Timeouts(gang_patience=PATIENCE * SECOND, reservation=None))
    gang(rm, "app", 2, size=5)
    gang(rm, "other", 9)
    assert rm.schedule() == []
    rm.pass_time(PATIENCE)
    rm.app("small")
    rm.ask("small", "s", 6, vcore=1)
    assert len(rm.schedule()) == 6
    # With another node the gangs fit, and may delay other asks.
    rm.node("n3", vcore=5)
    rm.node("n4", vcore=5)
    assert [app for app, _, _ in rm.schedule()] == ["app"] * 2
    rm.ask("small", "more", vcore=1)
    assert rm.schedule() == []
    rm.change_node("n3", NodeAction.DRAIN_NODE)
    rm.change_node("n4", NodeAction.DRAIN_NODE)
    assert [key for _, key, _ in rm.schedule()] == ["more"]


def test_gang_over_quota_holds_back_its_queue_only() -> None:
    rm = cluster(
        queue("a", resources={"max": {"vcore": "4m"}}), queue("b"), nodes=3,
        timeouts=Timeouts(gang_patience=PATIENCE * SECOND, reservation=None),
    )  # fmt: skip
    fill(rm, 3, "root.a")
    gang(rm, "app", 4)
    rm.schedule()
    rm.app("crowd", "root.a")
    rm.ask("crowd", "c", 9, vcore=1)
    assert [app for app, _, _ in rm.schedule()] == ["crowd"]
    rm.pass_time(PATIENCE)
    rm.app("else", "root.b")
    rm.ask("else", "e", 2, vcore=1)
    end(rm, "filler", 2)
    assert [app for app, _, _ in rm.schedule()] == ["else"] * 2
    end(rm, "filler")
    end(rm, "crowd")
    assert [app for app, _, _ in rm.schedule()] == ["app"] * 4
    rm.remove_app("app")
    assert [app for app, _, _ in rm.schedule()] == ["crowd"] * 4


def test_gang_over_a_user_limit_holds_back_its_user_only() -> None:
    limits = [{"limit": "all", "users": ["*"], "maxresources": {"vcore": "4m"}}]
    rm = cluster(
        queue("a", limits=limits), nodes=3,
        timeouts=Timeouts(gang_patience=PATIENCE * SECOND, reservation=None),
    )  # fmt: skip
    fill(rm, 3, "root.a")
    gang(rm, "app", 4)
    rm.schedule()
    rm.app("same", "root.a")
    rm.ask("same", "s", 9, vcore=1)
    rm.app("else", "root.a", user="somebody")
    rm.ask("else", "e", 9, vcore=1)
    rm.pass_time(PATIENCE)
    assert [app for app, _, _ in rm.schedule()] == ["else"] * 4
    end(rm, "filler", 3)
    assert [app for app, _, _ in rm.schedule()] == ["app"] * 4


def test_waiting_gang_is_explained() -> None:
    collector = EventCollector()
    text = collector.text(partition(queue("a"), queue("b")))
    rm = GangRM(scheduler=collector.rm(partition(queue("a"))).scheduler, config=text, rm_id="gangs")
    rm.node("n1", vcore=4)
    gang(rm, "app", 5)
    gang(rm, "pieces", 2, size=3)
    rm.node("n2", vcore=4)
    rm.schedule()
    assert collector.messages("app")[:1] == [
        "the gang needs vcore 5m, and all nodes together have vcore 4m: it cannot run until nodes are added"
    ]
    assert collector.messages("gang of pieces") == [
        "Gang of application 'pieces' (2 members, vcore 6m) has no room: vcore 3m left in queue root"
    ]
    gang(rm, "never", 1, size=5)
    end(rm, "app", 5)
    rm.schedule()
    assert collector.messages("gang of never") == [
        "Gang of application 'never' (1 members, vcore 5m) has no room: vcore 2m left in queue root; "
        "with the current quotas and nodes (vcore 8m in total) it cannot run at all"
    ]


def test_gang_that_can_never_run_is_reported_with_the_usable_capacity() -> None:
    collector = EventCollector()
    text = collector.text(partition(queue("a")))
    rm = GangRM(scheduler=collector.rm(partition(queue("a"))).scheduler, config=text, rm_id="gangs")
    for name in ("n1", "n2", "n3"):
        rm.node(name, vcore=4)
    rm.change_node("n2", NodeAction.DRAIN_NODE)
    rm.change_node("n3", NodeAction.UPDATE, occupied={"vcore": 1})
    rm.gang("never", "Atomic", vcore=8)
    rm.task("never", "members", "members", 2, vcore=4)
    assert rm.schedule() == []
    (message,) = collector.messages("gang of never")
    assert message.endswith("; with the current quotas and nodes (vcore 7m in total) it cannot run at all")


def test_reload_keeps_a_waiting_gang() -> None:
    rm = cluster()
    fill(rm, 4)
    gang(rm, "app", 5)
    rm.schedule()
    rm.reload(configuration(queue("a", resources={"max": {"vcore": "4m"}}), queue("b")))
    end(rm, "filler", 4)
    assert rm.schedule() == []
    rm.reload(configuration(queue("a", properties={"application.sort.policy": "fair"}), queue("b")))
    assert len(rm.schedule(1)) == 5


def test_a_failed_gang_attempt_leaves_no_trace() -> None:
    rm = GangRM()
    rm.node("n1", vcore=3)
    rm.node("n2", vcore=1)
    gang(rm, "app", 2, size=2)
    assert rm.schedule() == []
    # The attempt tried the only place for a task of 2, and has released that place again.
    rm.app("other")
    rm.ask("other", "o", vcore=2)
    assert rm.schedule() == [("other", "o", "n1")]


def test_gang_preempts_for_all_its_members_at_once() -> None:
    quick = {"properties": {"preemption.delay": "1s"}}
    rm = cluster(queue("a", resources={"guaranteed": {"vcore": "8m"}}, **quick), queue("b"), nodes=1)
    fill(rm, 4)
    gang(rm, "app", 2)
    rm.pass_time(30)
    rm.schedule()
    assert len(rm.evicted) == 2
    rm.confirm()
    assert len(rm.schedule()) == 2


def test_gang_with_a_member_that_must_not_preempt_waits() -> None:
    quick = {"properties": {"preemption.delay": "1s"}}
    rm = cluster(queue("a", resources={"guaranteed": {"vcore": "8m"}}, **quick), queue("b"), nodes=1)
    fill(rm, 4)
    rm.gang("app", "Atomic", vcore=2)
    rm.task("app", "one", "workers", vcore=1)
    ask = AllocationAsk("two", "app", "", Resource({"vcore": 1}), task_group_name="workers")
    rm.update(asks=[attrs.evolve(ask, preemption_policy=PreemptionPolicy(allow_preempt_other=False))])
    for _ in range(5):
        rm.pass_time(30)
        assert rm.schedule() == []
    assert rm.evicted == {}
