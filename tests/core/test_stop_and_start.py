"""Stopped queues and partitions: allocations keep running, pending asks stay, no ask is placed."""

from __future__ import annotations

import pytest

from tests.core import reserving
from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue
from yunikorn.errors import UsageError
from yunikorn.interface.messages import NodeAction, RegisterResourceManagerRequest
from yunikorn.resources import Resource

TWO = configuration(queue("a"), queue("p", queue("b"), queue("c")))
STOPPED = {"queue.state": "stopped"}


def cluster(config: str = TWO) -> RM:
    """Return an RM with a node with room for ten, and an application in each queue."""
    rm = RM(config)
    rm.node(memory=10)
    for name in ("a", "p.b", "p.c"):
        rm.app(name, f"root.{name}")
    rm.take_response()
    return rm


def test_stopped_queue_keeps_allocations_and_accepts_applications_but_places_nothing() -> None:
    rm = cluster()
    rm.ask("a", "first", memory=1)
    assert rm.schedule() == [("a", "first", "n1")]

    assert rm.scheduler.stop_queue("rm", "default", "root.a")
    assert not rm.scheduler.stop_queue("rm", "default", "root.a")
    assert rm.find_queue("root.a").state == "Stopped"
    rm.ask("a", "second", memory=1)
    rm.app("late", "root.a")
    rm.ask("late", "third", memory=1)
    rm.ask("p.b", "elsewhere", memory=1)
    assert rm.schedule() == [("p.b", "elsewhere", "n1")]
    received = rm.take_response()
    assert [one.application_id for one in received.accepted_applications] == ["late"]
    assert not received.rejected_allocations
    assert not received.released_allocations
    assert rm.find_queue("root.a").allocated == {"memory": 1}
    assert rm.find_queue("root.a").pending == {"memory": 2}

    assert rm.scheduler.start_queue("rm", "default", "root.a")
    assert not rm.scheduler.start_queue("rm", "default", "root.a")
    assert rm.schedule() == [("a", "second", "n1"), ("late", "third", "n1")]


def test_allocations_of_a_stopped_queue_can_be_released() -> None:
    rm = cluster()
    rm.ask("a", "first", memory=1)
    rm.schedule()
    rm.scheduler.stop_queue("rm", "default", "root.a")
    rm.release("a")
    assert rm.find_queue("root.a").allocated == {"memory": 0}
    assert rm.running == {}


def test_a_stopped_parent_stops_all_below_it() -> None:
    rm = cluster()
    rm.scheduler.stop_queue("rm", "default", "root.p")
    for name in ("p.b", "p.c", "a"):
        rm.ask(name, "task", memory=1)
    assert rm.schedule() == [("a", "task", "n1")]
    rm.scheduler.start_queue("rm", "default", "root.p")
    assert rm.schedule() == [("p.b", "task", "n1"), ("p.c", "task", "n1")]


def test_a_stopped_root_stops_everything() -> None:
    rm = cluster()
    rm.scheduler.stop_queue("rm", "default", "root")
    for name in ("p.b", "p.c", "a"):
        rm.ask(name, "task", memory=1)
    assert rm.schedule() == []
    rm.change_node("n1", memory=20)
    assert rm.schedule() == []
    rm.scheduler.start_queue("rm", "default", "root")
    # More asks wait in root.p than in root.a; then root.a has used less.
    assert rm.schedule() == [("p.b", "task", "n1"), ("a", "task", "n1"), ("p.c", "task", "n1")]


def test_the_configuration_can_stop_root_too() -> None:
    tree = TWO.replace('"submitacl"', '"properties": {"queue.state": "stopped"}, "submitacl"')
    rm = cluster(tree)
    rm.ask("a", "task", memory=1)
    assert rm.schedule() == []
    rm.reload(TWO)
    assert rm.schedule() == [("a", "task", "n1")]


def test_reload_does_not_start_a_queue_stopped_by_a_call() -> None:
    rm = cluster()
    rm.scheduler.stop_queue("rm", "default", "root.a")
    rm.ask("a", "task", memory=1)
    assert rm.reload(configuration(queue("a"), queue("p", queue("b"), queue("c")), queue("d")))
    assert rm.find_queue("root.a").state == "Stopped"
    assert rm.schedule() == []
    rm.scheduler.start_queue("rm", "default", "root.a")
    assert rm.schedule() == [("a", "task", "n1")]


def test_removed_and_restored_queue_stays_stopped_by_a_call() -> None:
    rm = cluster()
    rm.scheduler.stop_queue("rm", "default", "root.a")
    rm.reload(configuration(queue("p", queue("b"), queue("c"))))
    assert rm.find_queue("root.a").state == "Draining"
    rm.reload(TWO)
    assert rm.find_queue("root.a").state == "Stopped"


def test_call_does_not_start_a_queue_stopped_by_the_configuration() -> None:
    rm = cluster(configuration(queue("a", properties=STOPPED), queue("p", queue("b"), queue("c"))))
    with pytest.raises(UsageError, match=r"root\.a is stopped by its property queue\.state"):
        rm.scheduler.start_queue("rm", "default", "root.a")
    rm.ask("a", "task", memory=1)
    assert rm.schedule() == []
    rm.reload(TWO)
    assert rm.schedule() == [("a", "task", "n1")]


def test_queue_stopped_by_call_and_configuration_needs_both_to_start() -> None:
    rm = cluster()
    rm.scheduler.stop_queue("rm", "default", "root.a")
    rm.reload(configuration(queue("a", properties=STOPPED), queue("p", queue("b"), queue("c"))))
    rm.reload(TWO)
    assert rm.find_queue("root.a").state == "Stopped"
    rm.scheduler.start_queue("rm", "default", "root.a")
    assert rm.find_queue("root.a").state == "Active"


def test_a_draining_queue_cannot_be_stopped() -> None:
    rm = cluster()
    rm.reload(configuration(queue("p", queue("b"), queue("c"))))
    with pytest.raises(UsageError, match=r"queue root\.a is Draining: event stop is not possible"):
        rm.scheduler.stop_queue("rm", "default", "root.a")


def test_unknown_queues_and_partitions_cannot_be_stopped() -> None:
    rm = cluster()
    with pytest.raises(UsageError, match=r"no queue 'root\.x'"):
        rm.scheduler.stop_queue("rm", "default", "root.x")
    with pytest.raises(UsageError, match="no partition 'gpu'; known: default"):
        rm.scheduler.stop_partition("rm", "gpu")
    with pytest.raises(UsageError, match="'other'"):
        rm.scheduler.stop_partition("other", "default")


def test_stopped_partition_accepts_no_applications_and_keeps_existing_ones() -> None:
    rm = cluster()
    rm.ask("a", "first", count=2, memory=1)
    assert rm.schedule(1) == [("a", "first", "n1")]
    assert rm.scheduler.stop_partition("rm", "default")
    assert not rm.scheduler.stop_partition("rm", "default")
    rm.take_response()

    rm.app("late", "root.a")
    rm.ask("a", "second", memory=1)
    rm.node("n2", memory=1)
    assert rm.schedule() == []
    received = rm.take_response()
    assert [one.reason for one in received.rejected_applications] == [
        "partition default is stopped: it accepts no new application late"
    ]
    assert [one.reason for one in received.rejected_allocations] == [
        "partition default is stopped: it accepts no new requests"
    ]
    assert [one.reason for one in received.rejected_nodes] == [
        "partition default is stopped: it accepts no new nodes"
    ]
    rm.change_node("n1", memory=5)
    assert rm.find_node().capacity == Resource(memory=5)
    rm.release("a", key="first")
    assert rm.find_node().allocated == {}

    assert rm.scheduler.start_partition("rm", "default")
    assert not rm.scheduler.start_partition("rm", "default")
    rm.ask("p.b", "task", memory=1)
    assert rm.schedule() == [("p.b", "task", "n1")]


def test_started_partition_continues() -> None:
    rm = cluster()
    rm.ask("a", "first", count=3, memory=1)
    rm.schedule(1)
    rm.scheduler.stop_partition("rm", "default")
    rm.reload(configuration(queue("a"), queue("p", queue("b"), queue("c")), queue("d")))
    assert rm.schedule() == []
    rm.scheduler.start_partition("rm", "default")
    assert rm.schedule() == [("a", "first", "n1"), ("a", "first", "n1")]


@pytest.mark.parametrize("by_call", [True, False])
def test_stopped_queue_has_no_reservations(by_call: bool) -> None:
    rm = cluster()
    rm.ask("p.b", "small", memory=6)
    rm.schedule()
    rm.ask("a", "big", memory=8)
    rm.pass_time(2)
    rm.schedule()
    assert [ask.key for ask in rm.find_node().reservations] == ["big"]

    stopped = configuration(queue("a", properties=STOPPED), queue("p", queue("b"), queue("c")))
    if by_call:
        rm.scheduler.stop_queue("rm", "default", "root.a")
    else:
        rm.reload(stopped)
    # Other queues get the room, and asks of the stopped queue are not placed.
    rm.ask("p.b", "more", memory=1)
    assert rm.schedule() == [("p.b", "more", "n1")]
    rm.release("p.b")
    assert rm.schedule() == []
    assert not rm.find_node().reservations

    if by_call:
        rm.scheduler.start_queue("rm", "default", "root.a")
    else:
        rm.reload(TWO)
    assert rm.schedule() == [("a", "big", "n1")]


def test_stopped_parent_has_no_reservations_below_it() -> None:
    rm = cluster()
    rm.ask("a", "small", memory=6)
    rm.schedule()
    rm.ask("p.b", "big", memory=8)
    rm.pass_time(2)
    rm.schedule()
    assert [ask.key for ask in rm.find_node().reservations] == ["big"]
    rm.scheduler.stop_queue("rm", "default", "root.p")
    rm.ask("a", "more", memory=1)
    assert rm.schedule() == [("a", "more", "n1")]
    rm.release("a")
    assert rm.schedule() == []
    rm.scheduler.start_queue("rm", "default", "root.p")
    assert rm.schedule() == [("p.b", "big", "n1")]


def test_pending_asks_reserve_nodes_again_after_their_queue_is_started() -> None:
    rm = cluster()
    rm.ask("p.b", "small", memory=6)
    rm.schedule()
    rm.ask("a", "big", memory=8)
    rm.pass_time(2)
    rm.schedule()
    rm.scheduler.stop_queue("rm", "default", "root.a")
    rm.schedule()
    rm.scheduler.start_queue("rm", "default", "root.a")
    rm.schedule()
    assert [ask.key for ask in rm.find_node().reservations] == ["big"]


def test_resources_preempted_for_a_stopped_queue_serve_others() -> None:
    guaranteed = queue("a", resources={"guaranteed": {"memory": "10"}})
    rm = cluster(configuration(guaranteed, queue("p", queue("b"), queue("c"))))
    rm.ask("p.b", "work", 10, memory=1)
    rm.schedule()
    rm.ask("a", "entitled", memory=2)
    rm.pass_time(30)
    rm.schedule()
    assert len(rm.evicted) == 2
    rm.scheduler.stop_queue("rm", "default", "root.a")
    rm.confirm()
    assert rm.schedule() == []
    rm.ask("p.c", "other", memory=1)
    assert rm.schedule() == [("p.c", "other", "n1")]


def test_stopped_queue_replaces_no_placeholder_until_started() -> None:
    rm = GangRM(configuration(queue("a")))
    rm.node(memory=10)
    rm.gang("gang", "Soft", memory=4)
    rm.task("gang", "p", "workers", 2, placeholder=True, memory=2)
    assert len(rm.schedule()) == 2
    rm.scheduler.stop_queue("rm", "default", "root.a")
    rm.task("gang", "task", "workers", 2, memory=2)
    rm.schedule()
    assert not rm.evicted
    rm.scheduler.start_queue("rm", "default", "root.a")
    rm.schedule()
    assert len(rm.evicted) == 2
    # Decisions taken before a queue is stopped are applied.
    rm.scheduler.stop_queue("rm", "default", "root.a")
    rm.confirm()
    assert [one.allocation_key for one in rm.running.values()] == ["task", "task"]


# -- draining of nodes by an operator ------------------------------------------------------------------------


def two_nodes() -> RM:
    """Return an RM with two nodes, of which the operator drains the first, and an application."""
    rm = RM(TWO)
    rm.node("n1", memory=4)
    rm.node("n2", memory=4)
    rm.app("app", "root.a")
    assert rm.scheduler.drain_node("rm", "default", "n1")
    assert not rm.scheduler.drain_node("rm", "default", "n1")
    return rm


def register(rm: RM) -> None:
    """Register the resource manager again."""
    rm.scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config=TWO), rm)


def test_nothing_new_is_placed_on_a_node_that_an_operator_drains() -> None:
    rm = two_nodes()
    rm.ask("app", "first", memory=3)
    rm.ask("app", "second", memory=3)
    assert rm.schedule() == [("app", "first", "n2")]
    assert rm.scheduler.undrain_node("rm", "default", "n1")
    assert not rm.scheduler.undrain_node("rm", "default", "n1")
    assert rm.schedule() == [("app", "second", "n1")]


def test_neither_the_rm_nor_the_operator_undoes_the_drain_of_the_other() -> None:
    rm = two_nodes()
    node = rm.find_node()
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert not node.schedulable
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    assert rm.scheduler.undrain_node("rm", "default", "n1")
    assert not node.schedulable
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert node.schedulable


def test_the_rm_is_told_that_an_operator_drains_a_node() -> None:
    rm = two_nodes()
    rm.take_response()
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    (refusal,) = rm.take_response().failed_node_updates
    assert refusal.reason == "node n1 is drained by an operator only: DRAIN_TO_SCHEDULABLE is not possible"


def test_a_drained_node_that_is_added_again_is_still_drained() -> None:
    rm = two_nodes()
    rm.change_node("n1", NodeAction.DECOMMISSION)
    rm.node("n1", memory=4)
    assert not rm.find_node().schedulable
    rm.change_node("n1", NodeAction.DECOMMISSION)
    assert rm.scheduler.undrain_node("rm", "default", "n1")
    rm.node("n1", memory=4)
    assert rm.find_node().schedulable


def test_drains_outlive_a_registration() -> None:
    rm = two_nodes()
    register(rm)
    rm.node("n1", memory=4)
    assert not rm.find_node().schedulable
    rm.scheduler.stop("rm")
    register(rm)
    assert rm.scheduler.undrain_node("rm", "default", "n1")
    rm.scheduler.stop("rm")
    register(rm)
    rm.node("n1", memory=4)
    assert rm.find_node().schedulable


def test_lasting_stops_outlive_a_registration_and_the_removal_of_the_queue() -> None:
    config = configuration(
        queue("a"), queue("p", parent=True), placementrules=[{"name": "provided", "create": True}]
    )
    rm = RM(config)

    def again() -> None:
        request = RegisterResourceManagerRequest("rm", config=config)
        rm.scheduler.register_resource_manager(request, rm)

    rm.app("dynamic", "root.p.new")
    for path in ("root.a", "root.p.NEW"):
        assert rm.scheduler.stop_queue("rm", "default", path, lasting=True)
    rm.scheduler.stop_queue("rm", "default", "root.p")
    again()
    assert [rm.find_queue(path).state for path in ("root.a", "root.p")] == ["Stopped", "Active"]
    rm.app("dynamic", "root.p.new")
    assert rm.find_queue("root.p.new").state == "Stopped"
    rm.remove_app("dynamic")
    rm.pass_time(60)
    assert rm.at_work().partition.queue("root.p.new") is None
    assert rm.scheduler.start_queue("rm", "default", "root.p.NEW")
    assert rm.scheduler.start_queue("rm", "default", "root.a")
    again()
    rm.app("dynamic", "root.p.new")
    assert [rm.find_queue(path).state for path in ("root.a", "root.p.new")] == ["Active", "Active"]


def test_a_reservation_on_a_node_that_an_operator_drains_ends() -> None:
    rm = reserving.cluster(total=1)
    reserving.big(rm, "x")
    rm.pass_time(2)
    ((first, _),) = reserving.reserved(rm).items()
    rm.scheduler.drain_node("rm", "default", first)
    ((second, _),) = reserving.reserved(rm).items()
    assert second != first


def test_an_unknown_node_cannot_be_drained() -> None:
    rm = two_nodes()
    for call in (rm.scheduler.drain_node, rm.scheduler.undrain_node):
        with pytest.raises(UsageError, match="there is no node 'n3' in partition"):
            call("rm", "default", "n3")


def test_explanation_says_who_drains_a_node() -> None:
    rm = two_nodes()
    rm.scheduler.drain_node("rm", "default", "n2")
    rm.ask("app", "first", memory=3)
    rm.schedule()
    fixes = rm.scheduler.explain("rm", "default", "app")["first"].suggested_fixes
    assert fixes == ("undrain node n1 (the nearest): it is drained by an operator",)


def test_a_reload_undoes_nothing_that_an_operator_did() -> None:
    rm = two_nodes()
    rm.scheduler.stop_queue("rm", "default", "root.p.b")
    rm.scheduler.stop_partition("rm", "default")
    assert rm.reload(configuration(queue("a", maxapplications=7), queue("p", queue("b"), queue("d"))))
    assert rm.at_work().partition.state == "Stopped"
    assert rm.find_queue("root.p.b").state == "Stopped"
    assert not rm.find_node().schedulable
    assert rm.reload(TWO)
    assert rm.at_work().partition.state == "Stopped"
    assert rm.scheduler.start_partition("rm", "default")
    assert rm.scheduler.start_queue("rm", "default", "root.p.b")
    assert rm.scheduler.undrain_node("rm", "default", "n1")
