"""The states of queues, partitions, nodes and sessions."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.core.kit import RM, configuration, document, partition, queue
from yunikorn.errors import StateError, UsageError
from yunikorn.interface.messages import NodeAction, UpdateRequest
from yunikorn.states import ALLOCATION, ASK, LIFECYCLES, NODE, PARTITION, QUEUE, SESSION, Lifecycle
from yunikorn_lab.commands.states import mermaid

OBJECT_ROWS = {
    ("Active", "remove"): "Draining",
    ("Stopped", "remove"): "Draining",
    ("Draining", "remove"): "Draining",
    ("Active", "start"): "Active",
    ("Stopped", "start"): "Active",
    ("Active", "stop"): "Stopped",
    ("Stopped", "stop"): "Stopped",
}


def test_partition_has_the_documented_transitions() -> None:
    assert PARTITION.moves == OBJECT_ROWS


def test_draining_queue_may_become_active_again() -> None:
    assert QUEUE.moves == OBJECT_ROWS | {(state, "return"): "Active" for state in QUEUE.states}


def test_other_state_machines_have_their_transitions() -> None:
    assert NODE.moves == {
        ("Schedulable", "drain"): "Draining",
        ("Draining", "drain"): "Draining",
        ("Draining", "schedule"): "Schedulable",
        ("Schedulable", "decommission"): "Removed",
        ("Draining", "decommission"): "Removed",
    }
    assert ASK.moves == {
        ("Initial", "ask"): "Pending",
        ("Pending", "ask"): "Pending",
        ("Allocated", "ask"): "Pending",
        ("Pending", "allocate"): "Allocated",
        ("Initial", "reject"): "Rejected",
        ("Pending", "reject"): "Rejected",
    }
    assert ALLOCATION.moves == {
        ("Allocated", "stop"): "Completed",
        ("Allocated", "preempt"): "Preempted",
        ("Allocated", "timeout"): "Expired",
    }
    assert SESSION.moves == {
        ("Init", "register"): "Running",
        ("Running", "lose"): "Paused",
        ("Paused", "lose"): "Paused",
        ("Running", "resync"): "Paused",
        ("Paused", "resync"): "Paused",
        ("Paused", "timeout"): "Stopped",
        ("Running", "shutdown"): "Stopped",
        ("Paused", "shutdown"): "Stopped",
    }


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.name)
def test_every_state_machine_can_be_drawn(lifecycle: Lifecycle[Any]) -> None:
    lines = mermaid(lifecycle).splitlines()
    for (state, event), target in lifecycle.moves.items():
        arrow = f"{state} --> {target}: "
        assert any(line.strip().startswith(arrow) and event in line for line in lines), arrow + event


# -- queues -----------------------------------------------------------------------------------------------


def busy_queue() -> RM:
    """Return an RM with a queue that runs and waits, and that the next configuration does not contain."""
    rm = RM(configuration(queue("a"), queue("b")))
    rm.node(vcore=2)
    rm.app()
    rm.ask(vcore=1, count=3)
    rm.schedule()
    return rm


def test_a_queue_starts_active() -> None:
    assert busy_queue().find_queue().state == "Active"


def test_a_queue_that_the_configuration_drops_drains() -> None:
    rm = busy_queue()
    rm.reload(configuration(queue("b")))
    assert rm.find_queue().state == "Draining"


def test_a_draining_queue_is_still_scheduled() -> None:
    rm = busy_queue()
    rm.reload(configuration(queue("b")))
    rm.node("n2", vcore=1)
    assert rm.schedule() == [("app", "ask", "n2")]


def test_a_draining_queue_takes_no_applications() -> None:
    rm = busy_queue()
    rm.reload(configuration(queue("b")))
    rm.app("late")
    (refused,) = rm.entries("rejected_applications")
    assert "root.a is being removed" in refused.reason


def test_draining_queue_is_removed_when_empty() -> None:
    rm = busy_queue()
    rm.reload(configuration(queue("b")))
    rm.remove_app("app")
    rm.pass_time(10)
    assert rm.at_work().partition.queue("root.a") is None


def test_empty_dropped_queue_is_removed_with_its_parent() -> None:
    rm = RM(configuration(queue("p", queue("q", queue("r"))), queue("b")))
    rm.reload(configuration(queue("b")))
    rm.pass_time(60)
    assert [each.path for each in rm.at_work().partition.queues] == ["root", "root.b"]


def test_a_draining_queue_is_active_again_when_it_returns() -> None:
    rm = busy_queue()
    rm.reload(configuration(queue("b")))
    rm.reload(configuration(queue("a"), queue("b")))
    assert rm.find_queue().state == "Active"
    rm.app("later")
    assert rm.state("later") == "New"
    rm.remove_app("app")
    rm.remove_app("later")
    rm.pass_time(60)
    assert rm.find_queue().state == "Active"


STOPPED = configuration(queue("a", properties={"queue.state": "stopped"}), queue("b"))


def test_a_stopped_queue_is_not_scheduled_until_it_is_started() -> None:
    rm = busy_queue()
    rm.reload(STOPPED)
    assert rm.find_queue().state == "Stopped"
    rm.node("n2", vcore=1)
    assert rm.schedule() == []
    rm.reload(configuration(queue("a"), queue("b")))
    assert rm.find_queue().state == "Active"
    assert rm.schedule() == [("app", "ask", "n2")]


def test_allocations_of_a_stopped_queue_continue() -> None:
    rm = busy_queue()
    rm.reload(STOPPED)
    assert len(rm.running) == 2


def test_a_queue_may_return_stopped() -> None:
    rm = busy_queue()
    rm.reload(configuration(queue("b")))
    rm.reload(STOPPED)
    assert rm.find_queue().state == "Stopped"


def test_a_start_does_not_revive_a_draining_queue() -> None:
    rm = busy_queue()
    rm.reload(configuration(queue("b")))
    with pytest.raises(StateError, match=r"queue root\.a is Draining: event start is not possible"):
        QUEUE.fire(rm.find_queue(), "start")


# -- partitions -------------------------------------------------------------------------------------------


def test_a_partition_that_is_removed_drains_and_is_gone() -> None:
    rm = RM(document(partition(queue("a")), partition(queue("a"), name="other")))
    rm.node(vcore=2)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    gone = rm.at_work().partition
    rm.reload(document(partition(queue("a"), name="other")))
    assert gone.state == "Draining"
    assert rm.scheduler.partition("rm", "default") is None
    assert not gone.nodes
    assert not gone.applications
    assert rm.running == {}
    rm.take_response()
    rm.app("late", partition_name="default")
    (refused,) = rm.take_response().rejected_applications
    assert refused.reason == "failed to find partition default"


def test_timers_of_a_removed_partition_have_no_effect() -> None:
    rm = RM(document(partition(queue("a")), partition(queue("a"), name="other")))
    rm.node(vcore=2)
    rm.app("starting")
    rm.ask("starting", vcore=1)
    rm.app("completing")
    rm.ask("completing", vcore=1)
    rm.schedule()
    rm.release("completing", key="ask")
    rm.reload(document(partition(queue("a"), name="other")))
    rm.take_response()
    rm.pass_time(10 * 24 * 3600)
    assert rm.responses == []


# -- nodes ------------------------------------------------------------------------------------------------


def busy_node() -> RM:
    rm = RM()
    rm.node(vcore=4)
    rm.app()
    rm.ask(vcore=1, count=2)
    rm.schedule()
    return rm


def test_draining_node_keeps_allocations_and_gets_no_new_ones() -> None:
    rm = busy_node()
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    assert rm.find_node().state == "Draining"
    rm.ask(key="more", vcore=1)
    assert rm.schedule() == []
    assert len(rm.running) == 2


def test_a_drained_node_may_be_scheduled_again() -> None:
    rm = busy_node()
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.ask(key="more", vcore=1)
    assert rm.schedule() == []
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert rm.schedule() == [("app", "more", "n1")]


def test_scheduling_a_node_that_is_not_draining_fails_with_the_reason() -> None:
    rm = busy_node()
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    (failed,) = rm.entries("failed_node_updates")
    assert (failed.node_id, failed.reason) == (
        "n1",
        "node n1 is Schedulable: DRAIN_TO_SCHEDULABLE is not possible",
    )


def test_draining_twice_has_no_effect() -> None:
    rm = busy_node()
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    assert rm.entries("failed_node_updates") == []


@pytest.mark.parametrize("drained", [False, True])
def test_decommissioning_ends_allocations_and_reports_them(drained: bool) -> None:
    rm = busy_node()
    if drained:
        rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.take_response()
    rm.change_node("n1", NodeAction.DECOMMISSION)
    released = rm.take_response().released_allocations
    assert [(one.termination_type.name, one.message) for one in released] == [
        ("STOPPED_BY_RM", "Node n1 Removed")
    ] * 2
    assert rm.running == {}
    assert rm.at_work().partition.cluster.total == {}
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    assert [one.reason for one in rm.entries("failed_node_updates")] == ["failed to find node n1"]


def test_a_node_may_be_registered_drained() -> None:
    rm = RM()
    rm.node(vcore=4, schedulable=False)
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == []
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert rm.schedule() == [("app", "ask", "n1")]


# -- sessions ---------------------------------------------------------------------------------------------


def test_a_registered_rm_is_running_and_a_stopped_one_is_gone() -> None:
    rm = busy_node()
    rm.take_response()
    rm.scheduler.stop("rm")
    assert rm.responses == [], "an RM that shuts down is not asked to end its allocations"
    with pytest.raises(UsageError, match="no resource manager 'rm' is registered; registered: none"):
        rm.update()


def test_registering_again_removes_the_previous_state() -> None:
    rm = busy_node()
    again = RM(scheduler=rm.scheduler)
    assert len(rm.running) == 2, "what it runs is not ended: it is about to report it"
    assert not again.at_work().partition.nodes
    assert not again.at_work().partition.applications
    again.node(vcore=1)
    again.app()
    again.ask(vcore=1)
    assert again.schedule() == [("app", "ask", "n1")]


def test_resource_managers_are_isolated() -> None:
    one = RM(rm_id="one")
    two = RM(rm_id="two", scheduler=one.scheduler)
    for rm in (one, two):
        rm.node(vcore=1)
        rm.app()
        rm.ask(vcore=1)
    assert one.scheduler.schedule() == 2
    assert [uuid.partition("#")[0] for rm in (one, two) for uuid in rm.running] == ["ask", "ask"]
    one.scheduler.stop("one")
    assert [status.rm_id for status in one.scheduler.sessions()] == ["two"]
    assert len(two.running) == 1


def test_update_of_an_unknown_rm_raises_with_the_known_ones() -> None:
    rm = RM(rm_id="known")
    with pytest.raises(UsageError, match="no resource manager 'other' is registered; registered: known"):
        rm.scheduler.update(UpdateRequest("other"))


def test_changes_of_states_are_not_logged_by_the_library(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        rm = RM()
        rm.node(vcore=1)
        rm.change_node("n1", NodeAction.DRAIN_NODE)
    assert [one for one in caplog.records if one.name.startswith("transitions")] == []
