"""Regression tests of rare orders of events, each as short as possible."""

from __future__ import annotations

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from yunikorn.clock import SECOND
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    UserGroupInformation,
)
from yunikorn.model.application import ExecutionTimeout
from yunikorn.resources import Resource


def gang_of(rm: GangRM, app_id: str, count: int, memory: int) -> None:
    """Return an Atomic gang with its members."""
    rm.gang(app_id, "Atomic", memory=memory * count)
    for number in range(count):
        rm.task(app_id, f"m{number}", "t", memory=memory)


def test_inheritable_reservation_is_not_inherited_by_an_atomic_gang() -> None:
    rm = GangRM(configuration(queue("a")))
    rm.node("n1", memory=4)
    rm.node("n2", memory=1)
    rm.app("early")
    rm.ask("early", "x", memory=4)
    rm.schedule()
    gang_of(rm, "gang", 2, memory=2)
    rm.app("late")
    rm.ask("late", "y", memory=4)
    rm.schedule()
    rm.pass_time(3)
    rm.schedule()
    assert [ask.key for ask in rm.find_node("n1").reservations] == ["y"]
    rm.release("early", "x#1")
    assert rm.schedule() == [("late", "y", "n1")]


def test_priority_of_a_gang_follows_its_first_member() -> None:
    rm = GangRM(configuration(queue("a")))
    rm.gang("gang", "Atomic", memory=2)
    rm.task("gang", "m0", "t", priority=5, memory=1)
    rm.task("gang", "m1", "t", memory=1)
    assert rm.find_app("gang").priority == 5
    rm.task("gang", "m0", "t", priority=-1, memory=1)
    assert rm.find_app("gang").priority == 0
    assert rm.find_queue().priority == 0


def test_rm_cannot_place_allocations_of_a_failing_application() -> None:
    rm = GangRM(configuration(queue("a")))
    rm.node("n1", memory=4)
    info = UserGroupInformation("user", ["group"])
    rm.update(new_applications=[AddApplicationRequest("app", "root.a", "", info, {}, 10_000)])
    rm.ask("app", "x", memory=1)
    rm.schedule()
    rm.pass_time(10)
    assert rm.state() == "Failing"
    rm.take_response()
    rm.update(allocations=[Allocation("own", "app", "own#1", "n1", Resource(memory=1))])
    assert [one.reason for one in rm.take_response().rejected_allocations] == [
        "application app is failing and accepts no new allocations"
    ]
    rm.confirm()
    assert rm.state() == "Failed"


def test_resized_victims_count_with_their_current_size() -> None:
    rm = GangRM(configuration(queue("a", resources={"guaranteed": {"memory": "4"}}), queue("b")))
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", memory=2)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=3)
    rm.pass_time(31)
    rm.schedule()
    assert list(rm.evicted) == ["x#1"]
    rm.update(allocations=[Allocation("x", "big", "x#1", "n1", Resource(memory=1))])
    assert rm.find_queue("root.b").preempting == {"memory": 1}
    rm.confirm()
    assert not any(rm.find_queue("root").preempting.values())
    assert rm.schedule() == [("late", "y", "n1")]


def test_an_ask_of_another_class_drops_its_reservation() -> None:
    rm = GangRM(configuration(queue("a"), queue("b")))
    rm.node("n1", memory=4)
    rm.node("n2", memory=4)
    rm.app("work", "root.b")
    rm.ask("work", "x", 4, memory=2)
    rm.schedule()
    rm.app("app")
    rm.ask("app", "y", memory=3)
    rm.schedule()
    rm.pass_time(3)
    rm.schedule()
    kept = rm.find_app("app").asks["y"].reserved
    assert kept is not None
    rm.ask("app", "y", memory=1)
    assert not kept.reservations
    # Other asks of its former class can still reserve a node.
    rm.ask("app", "z", memory=3)
    rm.pass_time(3)
    rm.schedule()
    assert rm.find_app("app").asks["z"].reserved is not None


def test_replacing_asks_of_a_failed_application_are_reported_as_ended() -> None:
    for hard in (True, False):
        rm = GangRM(configuration(queue("a")))
        rm.node("n1", memory=4)
        rm.gang("gang", "Hard" if hard else "Soft", seconds=20, memory=4 if hard else 2)
        if not hard:
            rm.find_app("gang").execution_timeout = ExecutionTimeout(20 * SECOND)
        rm.task("gang", "p", "t", 2, placeholder=True, memory=1)
        rm.schedule()
        rm.task("gang", "x", "t", memory=1)
        rm.schedule()
        assert rm.reported() == [("p", "PLACEHOLDER_REPLACED")]
        rm.pass_time(20)
        assert rm.state("gang") == "Failing"
        assert [one.allocation_key for one in rm.take_response().released_allocation_asks] == ["x"]
        rm.confirm()
        assert rm.state("gang") == "Failed"
        assert rm.running == {}


def test_recovered_placeholder_of_an_atomic_gang_is_a_running_member() -> None:
    rm = GangRM(configuration(queue("a")))
    gang_of(rm, "gang", 2, memory=1)
    found = Allocation("p", "gang", "p#1", "n1", Resource(memory=1), task_group_name="t2", placeholder=True)
    rm.running["p#1"] = found
    rm.node("n1", existing=[found], memory=4)
    rm.task("gang", "late", "t3", memory=1)
    assert len(rm.schedule()) == 3


def test_ask_with_a_required_node_inherits_no_other_reservation() -> None:
    daemon = {"yunikorn.apache.org/requiredNode": "n1"}
    for other in ("n0", "n2"):
        rm = GangRM(configuration(queue("a")))
        rm.node("n1", memory=4)
        rm.app("early")
        rm.ask("early", "x", memory=4, originator=True)
        rm.schedule()
        rm.app("app")
        rm.ask("app", "y", memory=4)
        rm.pass_time(3)
        assert rm.schedule() == []
        assert rm.find_app("app").asks["y"].reserved is not None
        rm.ask("app", "daemon", memory=4, priority=5, tags=daemon)
        rm.node(other, memory=4)
        rm.release("early", "x#1")
        assert ("app", "daemon", "n1") in rm.schedule()


def test_recovered_real_allocation_starts_a_resuming_application() -> None:
    rm = GangRM(configuration(queue("a")))
    rm.node("n1", memory=1)
    rm.gang("gang", "Soft", seconds=20, memory=2)
    rm.task("gang", "p", "t", 2, placeholder=True, memory=1)
    rm.task("gang", "x", "t", memory=1)
    rm.schedule()
    rm.pass_time(20)
    assert rm.state("gang") == "Resuming"
    found = Allocation("y", "gang", "y#1", "n2", Resource(memory=1))
    rm.running["y#1"] = found
    rm.node("n2", existing=[found], memory=1)
    assert rm.state("gang") == "Running"
    rm.confirm()
    rm.release("gang", "y#1")
    assert rm.find_queue().running == 1


def test_node_freed_by_preemption_is_used_immediately() -> None:
    rm = GangRM(configuration(queue("a", resources={"guaranteed": {"memory": "6"}}), queue("b")))
    rm.node("n1", memory=4)
    rm.node("n2", memory=3)
    rm.app("work", "root.b")
    rm.ask("work", "fixed", memory=3, originator=True)
    rm.ask("work", "x", 3, memory=1)
    rm.schedule()
    assert {one.node_id for one in rm.running.values() if one.allocation_key == "fixed"} == {"n1"}
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=3)
    rm.pass_time(3)
    rm.schedule()
    assert list(rm.find_node("n1").reservations) == list(rm.find_app("late").asks.values())
    rm.pass_time(31)
    rm.ask("work", "z", memory=1)
    assert rm.schedule() == [("work", "z", "n1")]
    assert len(rm.evicted) == 3
    assert list(rm.find_node("n2").reservations) == list(rm.find_app("late").asks.values())
