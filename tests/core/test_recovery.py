"""Recovery of an RM: nodes register with existing allocations (docs/decisions/0030)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.core.kit import RM, configuration, document, partition, queue
from yunikorn.clock import SECOND
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    NewNodeInfo,
    UserGroupInformation,
)
from yunikorn.resources import Resource


def existing(uuid: str, app_id: str = "app", key: str = "ask", **amounts: int) -> Allocation:
    return Allocation(key, app_id, uuid, "n1", Resource(amounts))


def test_existing_allocations_are_booked_everywhere() -> None:
    rm = RM(configuration(queue("p", queue("a"))))
    rm.app(queue_name="root.p.a")
    rm.node(vcore=10, existing=[existing("u1", vcore=3), existing("u2", vcore=2)])
    assert rm.find_node().available == {"vcore": 5}
    assert rm.find_app().allocated == {"vcore": 5}
    for path in ("root.p.a", "root.p", "root"):
        assert rm.find_queue(path).allocated == {"vcore": 5}
        assert rm.find_queue(path).running == 1
    assert rm.state() == "Running"
    assert sorted(rm.find_app().allocations) == ["u1", "u2"]


def test_application_with_one_existing_allocation_is_starting() -> None:
    rm = RM()
    rm.app()
    rm.node(vcore=10, existing=[existing("u1", vcore=3)])
    assert [entry.state for entry in rm.find_app().state_log] == ["Accepted", "Starting"]


def test_existing_allocation_can_be_released() -> None:
    rm = RM()
    rm.app()
    rm.node(vcore=10, existing=[existing("u1", vcore=3)])
    rm.release(uuid="u1")
    assert rm.find_node().available == {"vcore": 10}
    assert rm.state() == "Completing"


def test_existing_allocations_ignore_quotas() -> None:
    rm = RM(configuration(queue("a", resources={"max": {"vcore": "2m"}})))
    rm.app()
    rm.node(vcore=3, existing=[existing("u1", vcore=3), existing("u2", vcore=3)])
    assert rm.find_queue().allocated == {"vcore": 6}
    assert rm.find_node().available == {"vcore": -3}
    rm.ask(key="more", vcore=1)
    assert rm.schedule() == []
    rm.release(uuid="u1")
    rm.release(uuid="u2")
    assert rm.schedule() == [("app", "more", "n1")]


def test_applications_nodes_and_allocations_of_one_update_are_processed_in_this_order() -> None:
    rm = RM()
    rm.update(
        new_schedulable_nodes=[
            NewNodeInfo(
                "n1", schedulable_resource=Resource(vcore=4), existing_allocations=[existing("u1", vcore=3)]
            )
        ],
        asks=[AllocationAsk("ask", "app", resource_ask=Resource(vcore=1), max_allocations=2)],
        new_applications=[AddApplicationRequest("app", "root.a", ugi=UserGroupInformation("user"))],
    )
    assert rm.entries("rejected_allocations") == []
    assert len(rm.schedule()) == 1


def test_unbookable_allocation_is_rejected_with_a_reason_and_others_are_booked() -> None:
    rm = RM()
    rm.app()
    rm.node(
        vcore=10,
        existing=[
            existing("u1", vcore=1),
            existing("u1", vcore=1),
            existing("u2", "nobody", vcore=1),
            existing("u3"),
            existing("u4", vcore=-1),
            existing("u5", vcore=1),
        ],
    )
    assert sorted(rm.find_app().allocations) == ["u1", "u5"]
    reasons = [refused.reason for refused in rm.entries("rejected_allocations")]
    assert len(reasons) == 4
    assert "exists already" in reasons[0]
    assert reasons[1] == "failed to find application nobody"
    assert rm.find_node().available == {"vcore": 8}


def test_new_allocations_have_uuids_distinct_from_existing_ones() -> None:
    rm = RM()
    rm.app()
    rm.node(vcore=10, existing=[existing(f"ask#{number}", vcore=1) for number in range(1, 4)])
    rm.running.update({f"ask#{number}": existing(f"ask#{number}") for number in range(1, 4)})
    rm.ask(count=3, vcore=1)
    assert len(rm.schedule()) == 3
    assert len(rm.running) == len(rm.find_app().allocations) == 6


def test_creation_time_restores_the_order_of_applications() -> None:
    rm = RM()
    rm.pass_time(1000)
    rm.app("young")
    rm.app("old")
    rm.ask("young", vcore=1, tags={"creationTime": "900"})
    rm.ask("old", vcore=1, tags={"creationTime": "100"})
    rm.node(vcore=1)
    assert rm.schedule() == [("old", "ask", "n1")]


CREATED = "creationTime"


def restarted(policy: str, *, forced: bool = False) -> RM:
    """Return an RM with two running applications: `old` was submitted first and is reported last."""
    rm = RM(configuration(queue("a", properties={"application.sort.policy": policy})))
    rm.pass_time(1000)
    found = [
        Allocation("t", "young", "u1", "n1", Resource(vcore=1), allocation_tags={CREATED: "900"}),
        Allocation("t", "old", "u2", "n1", Resource(vcore=1), allocation_tags={CREATED: "100"}),
        Allocation("t", "old", "u3", "n1", Resource(vcore=1), allocation_tags={CREATED: "300"}),
    ]
    if forced:
        for one in found:
            one.allocation_tags["application.create.force"] = "true"
        rm.node(vcore=3, existing=found)
    rm.app("young")
    rm.app("old")
    if not forced:
        rm.node(vcore=3, existing=found)
    rm.running = {one.uuid: one for one in found}
    return rm


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("policy", ["fifo", "stateaware"])
def test_recovered_allocations_restore_the_order_of_applications(policy: str, forced: bool) -> None:
    rm = restarted(policy, forced=forced)
    assert rm.find_app("old").submitted == 100 * SECOND
    assert rm.find_app("young").submitted == 900 * SECOND
    rm.ask("young", "more", vcore=1)
    rm.ask("old", "more", vcore=1)
    rm.node("n2", vcore=1)
    assert rm.schedule() == [("old", "more", "n2")]


def test_old_allocation_placed_by_the_rm_restores_the_order_of_applications() -> None:
    rm = RM()
    rm.pass_time(1000)
    rm.node(vcore=1)
    rm.app("young")
    rm.app("old")
    tags = {CREATED: "100"}
    rm.update(allocations=[Allocation("t", "old", "u1", "n1", Resource(vcore=1), allocation_tags=tags)])
    rm.ask("young", "more", vcore=1)
    rm.ask("old", "more", vcore=1)
    rm.node("n2", vcore=1)
    assert rm.schedule() == [("old", "more", "n2")]


def test_stateaware_lets_the_oldest_application_start_after_a_restart() -> None:
    rm = RM(configuration(queue("a", properties={"application.sort.policy": "stateaware"})))
    rm.pass_time(1000)
    for app_id in ("young", "old", "oldest"):
        rm.app(app_id)
    # One allocation of each runs: all three are Starting, and one of these is admitted.
    existing_ones = [
        Allocation("t", app_id, app_id, "n1", Resource(vcore=1), allocation_tags={CREATED: created})
        for app_id, created in (("young", "900"), ("old", "500"), ("oldest", "100"))
    ]
    rm.running = {one.uuid: one for one in existing_ones}
    rm.node(vcore=3, existing=existing_ones)
    for app_id in ("young", "old", "oldest"):
        rm.ask(app_id, "more", vcore=1)
    rm.node("n2", vcore=3)
    assert [app for app, _, _ in rm.schedule(1)] == ["oldest"]


def test_a_creation_time_after_the_submission_changes_nothing() -> None:
    rm = RM()
    rm.app("first")
    rm.pass_time(10)
    tags = {CREATED: "9"}
    found = Allocation("t", "first", "u1", "n1", Resource(vcore=1), allocation_tags=tags)
    rm.node(vcore=1, existing=[found])
    assert rm.find_app("first").submitted == 0


def test_forced_application_is_accepted_if_no_rule_matches() -> None:
    rm = RM()
    rm.app_tagged("app", "root.nowhere", {"application.create.force": "true"})
    rm.node(vcore=10, existing=[existing("u1", vcore=3)])
    assert rm.find_app().queue is rm.find_queue("root.@recovery@")
    assert rm.find_queue("root.@recovery@").allocated == {"vcore": 3}


def test_complete_recovery() -> None:
    """A second scheduler receives the allocations of the first, and continues its work."""
    first = RM(configuration(queue("a"), queue("b")))
    for node_id in ("n1", "n2"):
        first.node(node_id, vcore=4)
    for app_id, path in (("one", "root.a"), ("two", "root.b")):
        first.app(app_id, path)
        first.ask(app_id, count=6, vcore=1)
    first.schedule(6)

    second = RM(configuration(queue("a"), queue("b")))
    for app_id, path in (("one", "root.a"), ("two", "root.b")):
        second.app(app_id, path)
    for node_id in ("n1", "n2"):
        mine = [one for one in first.running.values() if one.node_id == node_id]
        second.node(node_id, vcore=4, existing=mine)
    second.running.update(first.running)
    for app_id in ("one", "two"):
        running = sum(one.application_id == app_id for one in first.running.values())
        second.ask(app_id, count=6 - running, vcore=1)
    assert second.schedule() == first.schedule()
    for path in ("root.a", "root.b", "root"):
        assert second.find_queue(path).allocated == first.find_queue(path).allocated
        assert second.find_queue(path).pending == first.find_queue(path).pending


# -- contradictory allocations -----------------------------------------------------------------------------


def recovered(rm: RM, **fields: Any) -> list[str]:
    """Report an allocation with these fields on a new node n1; return the reason of the refusal."""
    rm.take_response()
    reported = Allocation("ask", "app", "u1", resource_per_alloc=Resource(vcore=1))
    rm.node(vcore=10, existing=[attrs.evolve(reported, **fields)])
    return [refused.reason for refused in rm.take_response().rejected_allocations]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"node_id": "n2"}, "allocation u1 was reported on node n1 and names node n2"),
        (
            {"partition_name": "other"},
            "allocation u1 was reported on node n1 of partition default and names partition other",
        ),
        ({"partition_name": "gone"}, "failed to find partition gone"),
        (
            {"queue_name": "root.b"},
            "application app is in queue root.a, but its allocation u1 names queue root.b",
        ),
        (
            {"queue_name": "root"},
            "application app is in queue root.a, but its allocation u1 names queue root",
        ),
    ],
)
def test_an_allocation_that_contradicts_its_report_is_rejected(fields: dict[str, str], reason: str) -> None:
    rm = RM(document(partition(queue("a"), queue("b")), partition(queue("a"), name="other")))
    rm.node("n2", vcore=10)
    rm.app()
    assert recovered(rm, **fields) == [reason]
    assert rm.find_app().allocations == {}
    assert rm.find_node().available == rm.find_node("n2").available == {"vcore": 10}


@pytest.mark.parametrize(
    "fields",
    [
        {"node_id": "n1", "partition_name": "default", "queue_name": "root.a"},
        {"partition_name": "[rm]default", "queue_name": "ROOT.A"},
        {"queue_name": "a"},
        {},
    ],
)
def test_allocation_with_the_right_or_no_queue_and_node_is_booked(fields: dict[str, str]) -> None:
    rm = RM()
    rm.app()
    assert recovered(rm, **fields) == []
    assert list(rm.find_app().allocations) == ["u1"]


def test_an_allocation_may_name_the_queue_that_its_application_was_submitted_to() -> None:
    rules = [{"name": "fixed", "value": "root.a"}]
    rm = RM(configuration(queue("a"), queue("b"), placementrules=rules))
    rm.app(queue_name="root.wish")
    assert recovered(rm, queue_name="root.wish") == []
    assert rm.find_queue().allocated == {"vcore": 1}


def test_allocation_in_the_recovery_queue_may_name_a_removed_queue() -> None:
    rm = RM()
    rm.app_tagged("app", "", {"application.create.force": "true"})
    assert recovered(rm, queue_name="root.users.bob") == []
    assert rm.find_queue("root.@recovery@").allocated == {"vcore": 1}


def test_early_allocation_is_checked_against_the_queue_of_its_later_application() -> None:
    rm = RM(configuration(queue("a"), queue("b")))
    forced = {"application.create.force": "true"}
    assert recovered(rm, queue_name="root.b", allocation_tags=forced) == []
    assert rm.find_node().available == {"vcore": 9}
    rm.app()
    (refused,) = rm.take_response().rejected_allocations
    assert refused.reason == "application app is in queue root.a, but its allocation u1 names queue root.b"
    assert rm.find_node().available == {"vcore": 10}


def test_a_foreign_allocation_that_names_another_node_is_rejected() -> None:
    rm = RM()
    reason = "allocation u1 was reported on node n1 and names node n2"
    assert recovered(rm, node_id="n2", allocation_tags={"foreign": "default"}) == [reason]
    assert rm.find_node().available == {"vcore": 10}


def test_allocation_placed_by_the_rm_is_checked_against_the_queue_of_its_application() -> None:
    rm = RM(configuration(queue("a"), queue("b")))
    rm.node(vcore=10)
    rm.app()
    rm.take_response()
    placed = Allocation("ask", "app", "u1", "n1", Resource(vcore=1), "root.b")
    rm.update(allocations=[placed])
    (refused,) = rm.take_response().rejected_allocations
    assert refused.reason == "application app is in queue root.a, but its allocation u1 names queue root.b"
    rm.update(allocations=[attrs.evolve(placed, queue_name="root.a")])
    assert rm.find_queue().allocated == {"vcore": 1}
    rm.update(allocations=[attrs.evolve(placed, resource_per_alloc=Resource(vcore=2))])
    assert len(rm.take_response().rejected_allocations) == 1
    assert rm.find_queue().allocated == {"vcore": 1}
