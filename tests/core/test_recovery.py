"""An RM that comes back: nodes with allocations that exist already (facts §10.8, decision 30)."""

from __future__ import annotations

from tests.core.kit import RM, configuration, queue
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


def test_one_existing_allocation_means_starting() -> None:
    rm = RM()
    rm.app()
    rm.node(vcore=10, existing=[existing("u1", vcore=3)])
    assert [entry.state for entry in rm.find_app().state_log] == ["Accepted", "Starting"]


def test_it_may_be_released_like_any_other() -> None:
    rm = RM()
    rm.app()
    rm.node(vcore=10, existing=[existing("u1", vcore=3)])
    rm.release(uuid="u1")
    assert rm.find_node().available == {"vcore": 10}
    assert rm.state() == "Completing"


def test_quotas_are_not_asked() -> None:
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


def test_in_one_message_applications_come_before_nodes_and_allocations_last() -> None:
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
    assert rm.said("rejected_allocations") == []
    assert len(rm.schedule()) == 1


def test_what_cannot_be_booked_is_refused_with_the_reason_and_stops_no_other() -> None:
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
    reasons = [refused.reason for refused in rm.said("rejected_allocations")]
    assert len(reasons) == 4
    assert "exists already" in reasons[0]
    assert reasons[1] == "failed to find application nobody"
    assert rm.find_node().available == {"vcore": 8}


def test_new_allocations_get_other_uuids_than_those_that_exist() -> None:
    rm = RM()
    rm.app()
    rm.node(vcore=10, existing=[existing(f"ask#{number}", vcore=1) for number in range(1, 4)])
    rm.running.update({f"ask#{number}": existing(f"ask#{number}") for number in range(1, 4)})
    rm.ask(count=3, vcore=1)
    assert len(rm.schedule()) == 3
    assert len(rm.running) == len(rm.find_app().allocations) == 6


def test_the_creation_time_keeps_the_order_of_what_was_there_before() -> None:
    rm = RM()
    rm.pass_time(1000)
    rm.app("young")
    rm.app("old")
    rm.ask("young", vcore=1, tags={"creationTime": "900"})
    rm.ask("old", vcore=1, tags={"creationTime": "100"})
    rm.node(vcore=1)
    assert rm.schedule() == [("old", "ask", "n1")]


def test_a_forced_application_is_taken_where_no_rule_places_it() -> None:
    rm = RM()
    rm.app_tagged("app", "root.nowhere", {"application.create.force": "true"})
    rm.node(vcore=10, existing=[existing("u1", vcore=3)])
    assert rm.find_app().queue is rm.find_queue("root.@recovery@")
    assert rm.find_queue("root.@recovery@").allocated == {"vcore": 3}


def test_a_whole_recovery() -> None:
    """Another scheduler is told what the first one had, and goes on where that one stopped."""
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
