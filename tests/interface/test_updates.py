"""Every kind of entry of an update, as the scheduler interface specifies.

See docs/decisions/archive/0027 to 0030.
"""

from __future__ import annotations

import attrs
import pytest

from tests.core.kit import RM, document, partition, queue
from yunikorn.clock import ManualClock
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    NodeAction,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource

STOPPED = TerminationType.STOPPED_BY_RM


def one_node(room: int = 10) -> RM:
    """Return an RM with a node with room, and an application."""
    rm = RM()
    rm.node(vcore=room)
    rm.app()
    rm.take_response()
    return rm


def ask(key: str = "ask", app_id: str = "app", count: int = 1, **keys: object) -> AllocationAsk:
    """Return an ask of one vcore per replica."""
    return AllocationAsk(key, app_id, "", Resource(vcore=1), count, **keys)  # type: ignore[arg-type]


# -- asks -----------------------------------------------------------------------------------------------


def test_an_ask_whose_key_exists_replaces_the_ask() -> None:
    rm = one_node(room=1)
    rm.update(asks=[ask(count=3)])
    changed = AllocationAsk("ask", "app", "", Resource(vcore=2), 2, priority=7, tags={"a": "b"})
    rm.update(asks=[changed])
    (known,) = rm.find_app().asks.values()
    assert (known.resource, known.pending, known.priority, known.tags) == ({"vcore": 2}, 2, 7, {"a": "b"})


def test_last_of_two_asks_with_one_key_in_one_update_is_used() -> None:
    rm = one_node()
    rm.update(asks=[ask(count=3), ask(count=1)])
    assert rm.schedule() == [("app", "ask", "n1")]


def test_max_allocations_is_the_number_of_replicas_with_distinct_uuids() -> None:
    rm = one_node()
    rm.update(asks=[ask(count=3)])
    rm.schedule()
    allocations = rm.entries("new_allocations")
    assert [one.allocation_key for one in allocations] == ["ask"] * 3
    assert len({one.uuid for one in allocations}) == 3
    assert rm.schedule() == []


def test_same_key_in_two_applications_is_two_asks() -> None:
    rm = one_node()
    rm.app("other")
    rm.update(asks=[ask(), ask(app_id="other")])
    assert sorted(rm.schedule()) == [("app", "ask", "n1"), ("other", "ask", "n1")]


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        ({}, {"task_group_name": "g"}, "in no task group"),
        ({"task_group_name": "g"}, {}, "a real task of task group 'g'"),
        ({"task_group_name": "g"}, {"task_group_name": "h"}, "a real task of task group 'g'"),
        (
            {"task_group_name": "g", "placeholder": True},
            {"task_group_name": "g"},
            "a placeholder of task group 'g'",
        ),
    ],
)
def test_gang_properties_of_an_ask_cannot_be_changed(
    before: dict[str, object], after: dict[str, object], part: str
) -> None:
    rm = one_node()
    rm.update(asks=[ask(**before)])  # type: ignore[arg-type]
    rm.update(asks=[ask(count=5, **after)])  # type: ignore[arg-type]
    (refused,) = rm.entries("rejected_allocations")
    assert (
        refused.reason == f"ask ask is {part}, which cannot be changed: release the ask and submit a new one"
    )
    assert len(rm.schedule()) == 1


def test_a_placeholder_flag_without_a_task_group_is_ignored_also_in_a_replacement() -> None:
    rm = one_node()
    rm.update(asks=[ask(placeholder=True)])
    rm.update(asks=[ask(count=2)])
    assert rm.entries("rejected_allocations") == []
    assert len(rm.schedule()) == 2


# -- releases -------------------------------------------------------------------------------------------


def busy() -> RM:
    """Return an RM with two allocations of one ask, and one of another."""
    rm = one_node()
    rm.update(asks=[ask("x", count=2), ask("y")])
    rm.schedule()
    rm.take_response()
    return rm


def released(rm: RM) -> list[tuple[str, TerminationType]]:
    """Return uuid and termination of the releases since the last call."""
    return [(one.uuid, one.termination_type) for one in rm.take_response().released_allocations]


def test_a_release_by_uuid_ends_that_allocation() -> None:
    rm = busy()
    rm.release(uuid="x#1")
    assert released(rm) == [("x#1", STOPPED)]
    assert sorted(rm.running) == ["x#2", "y#3"]


def test_release_by_key_ends_all_allocations_of_the_key() -> None:
    rm = busy()
    rm.release(key="x")
    assert released(rm) == [("x#1", STOPPED), ("x#2", STOPPED)]


def test_release_without_uuid_ends_all_allocations_of_the_application() -> None:
    rm = busy()
    rm.release()
    assert [uuid for uuid, _ in released(rm)] == ["x#1", "x#2", "y#3"]


def test_second_release_of_an_allocation_is_answered_as_unknown() -> None:
    rm = busy()
    gone = AllocationRelease("app", "x#1")
    rm.update(releases=AllocationReleasesRequest([gone, gone]))
    first, second = rm.take_response().released_allocations
    assert first.uuid == second.uuid == "x#1"
    assert "is unknown or no longer exists" in second.message
    assert rm.find_app().allocated == {"vcore": 2}


def evicted_allocation() -> tuple[RM, AllocationRelease]:
    """Return an RM whose allocation has timed out while an ask is pending, and the requested release."""
    rm = one_node(room=1)
    rm.update(asks=[ask("short", execution_timeout_ms=1000), ask("next")])
    rm.schedule()
    rm.pass_time(1)
    (order,) = rm.take_response().released_allocations
    assert order.termination_type == TerminationType.TIMEOUT
    assert rm.schedule() == [], "it is used until the RM says that it is not"
    return rm, order


def test_confirmation_repeats_message_and_type_and_is_not_confirmed() -> None:
    rm, order = evicted_allocation()
    rm.update(releases=AllocationReleasesRequest([order]))
    assert rm.take_response().released_allocations == []
    rm.running.clear()
    assert rm.schedule() == [("app", "next", "n1")]


@pytest.mark.parametrize("own", [STOPPED, TerminationType.UNKNOWN])
def test_release_by_the_rm_serves_as_a_confirmation_and_is_confirmed(own: TerminationType) -> None:
    """The allocation may have ended by itself at the same moment."""
    rm, order = evicted_allocation()
    rm.update(releases=AllocationReleasesRequest([AllocationRelease("app", order.uuid, "", own)]))
    assert released(rm) == [("short#1", STOPPED)]
    assert rm.schedule() == [("app", "next", "n1")]


def test_release_in_an_unknown_partition_is_rejected_without_effect() -> None:
    """A released allocation as answer would make the RM believe that the allocation has ended."""
    rm = busy()
    rm.update(
        releases=AllocationReleasesRequest(
            [AllocationRelease("app", "x#1", "gone", allocation_key="x")],
            [AllocationAskRelease("app", "y", "gone")],
        )
    )
    received = rm.take_response()
    assert received.released_allocations == []
    assert [(one.allocation_key, one.reason) for one in received.rejected_allocations] == [
        ("y", "failed to find partition gone: nothing was released"),
        ("x", "failed to find partition gone: nothing was released"),
    ]
    assert rm.find_app().allocated == {"vcore": 3}


# -- applications ---------------------------------------------------------------------------------------


def test_rejected_application_has_a_reason() -> None:
    rm = RM()
    rm.app("lost", "root.nowhere")
    (refused,) = rm.entries("rejected_applications")
    assert refused.application_id == "lost"
    assert "root.nowhere" in refused.reason


def test_removed_application_loses_all_asks_and_allocations() -> None:
    rm = busy()
    rm.update(asks=[ask("waits", count=100)])
    rm.take_response()
    rm.remove_app("app")
    assert [uuid for uuid, _ in released(rm)] == ["x#1", "x#2", "y#3"]
    assert rm.find_queue().allocated == {"vcore": 0}
    assert rm.find_queue().waiting == 0
    assert rm.schedule() == []


def test_removal_from_an_unknown_partition_is_rejected() -> None:
    rm = busy()
    rm.update(remove_applications=[RemoveApplicationRequest("app", "gone")])
    (refused,) = rm.take_response().rejected_applications
    assert refused.reason == "failed to find partition gone: nothing was removed"
    assert rm.find_app().allocated == {"vcore": 3}


def test_an_application_may_be_added_used_and_removed_in_one_message() -> None:
    rm = RM()
    rm.node(vcore=1)
    rm.update(
        new_applications=[AddApplicationRequest("app", "root.a", ugi=UserGroupInformation("user"))],
        remove_applications=[RemoveApplicationRequest("app")],
        asks=[ask()],
    )
    received = rm.take_response()
    assert [one.application_id for one in received.accepted_applications] == ["app"]
    assert [one.reason for one in received.rejected_allocations] == ["failed to find application app"]


def test_the_rm_may_fail_an_application() -> None:
    rm = busy()
    rm.scheduler.fail_application("rm", "default", "app", "its driver is gone")
    received = rm.take_response()
    assert [(one.state, one.message) for one in received.updated_applications] == [
        ("Failing", "its driver is gone"),
        ("Failed", "its driver is gone"),
    ]
    assert len(received.released_allocations) == 3
    with pytest.raises(
        UsageError, match="there is no application 'app' in partition default, or it has ended"
    ):
        rm.scheduler.fail_application("rm", "default", "app", "again")


@pytest.mark.parametrize(("partition_name", "message"), [("gone", "has no partition 'gone'; known: default")])
def test_failing_an_unknown_application_raises(partition_name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RM().scheduler.fail_application("rm", partition_name, "app", "why")


def test_an_application_without_work_fails_as_well() -> None:
    rm = one_node()
    rm.update(asks=[ask()])
    rm.schedule()
    rm.release()
    assert rm.state() == "Completing"
    rm.scheduler.fail_application("rm", "default", "app", "why")
    assert rm.state() == "Failed"
    rm.pass_time(60)
    assert [entry.state for entry in rm.find_app().state_log][-3:] == ["Completing", "Failing", "Failed"]


def test_an_application_that_has_ended_cannot_fail() -> None:
    rm = one_node()
    rm.update(asks=[ask()])
    rm.schedule()
    rm.release()
    rm.pass_time(30)
    assert rm.state() == "Completed"
    with pytest.raises(UsageError, match="there is no application 'app' in partition default, or it has"):
        rm.scheduler.fail_application("rm", "default", "app", "why")


# -- nodes ----------------------------------------------------------------------------------------------


def test_duplicate_node_is_rejected_also_within_one_update() -> None:
    rm = RM()
    twice = NewNodeInfo("n1", schedulable_resource=Resource(vcore=1))
    rm.update(new_schedulable_nodes=[twice, twice])
    received = rm.take_response()
    assert len(received.accepted_nodes) == len(received.rejected_nodes) == 1
    assert rm.at_work().partition.cluster.total == {"vcore": 1}


def test_a_node_may_join_and_be_drained_in_one_message() -> None:
    rm = RM()
    rm.app()
    rm.ask(vcore=1)
    rm.update(
        new_schedulable_nodes=[NewNodeInfo("n1", schedulable_resource=Resource(vcore=1))],
        updated_nodes=[UpdateNodeInfo("n1", NodeAction.DRAIN_NODE)],
    )
    assert rm.schedule() == []
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert rm.schedule() == [("app", "ask", "n1")]
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    (failed,) = rm.entries("failed_node_updates")
    assert failed.reason == "node n1 is Schedulable: DRAIN_TO_SCHEDULABLE is not possible"


# -- recovery -------------------------------------------------------------------------------------------

FORCED = {"application.create.force": "true"}


def existing(uuid: str, app_id: str = "late", key: str = "ask", **tags: str) -> Allocation:
    """Return an allocation from before a restart, marked for recovery."""
    return Allocation(key, app_id, uuid, "n1", Resource(vcore=1), allocation_tags=FORCED | tags)


def recovering() -> RM:
    """Return a node with two allocations of an unreported application, and one of another."""
    rm = RM()
    rm.app()
    rm.node(vcore=3, existing=[existing("ask#1"), existing("ask#2", key="other")])
    rm.take_response()
    return rm


def test_allocation_marked_for_recovery_may_precede_its_application() -> None:
    rm = recovering()
    assert rm.find_node().available == {"vcore": 1}, "its room is not given away"
    rm.ask(count=3, vcore=1)
    assert len(rm.schedule()) == 1
    rm.app("late")
    assert rm.entries("rejected_allocations") == []
    assert sorted(rm.find_app("late").allocations) == ["ask#1", "ask#2"]
    assert rm.find_app("late").allocated == {"vcore": 2}
    assert rm.state("late") == "Running"
    assert rm.find_queue().allocated == {"vcore": 3}
    assert rm.find_node().available == {"vcore": 0}
    rm.release("late", uuid="ask#2")
    assert len(rm.schedule()) == 1


def test_uuid_of_an_early_allocation_is_not_reused() -> None:
    rm = recovering()
    rm.ask(vcore=1)
    rm.schedule()
    assert list(rm.running) == ["ask#3"]


def test_unmarked_allocation_of_an_unknown_application_is_rejected() -> None:
    rm = RM()
    rm.node(vcore=3, existing=[Allocation("ask", "late", "u", "n1", Resource(vcore=1))])
    assert [one.reason for one in rm.entries("rejected_allocations")] == ["failed to find application late"]


@pytest.mark.parametrize(
    ("release", "ended"),
    [
        (AllocationRelease("late", "ask#1"), ["ask#1"]),
        (AllocationRelease("late", allocation_key="other"), ["ask#2"]),
        (AllocationRelease("late"), ["ask#1", "ask#2"]),
    ],
)
def test_early_allocation_may_end_before_its_application_is_added(
    release: AllocationRelease, ended: list[str]
) -> None:
    rm = recovering()
    rm.update(releases=AllocationReleasesRequest([release]))
    answers = rm.take_response().released_allocations
    assert [one.uuid for one in answers] == ended
    assert {one.message for one in answers} == {"allocation remove as per RM request"}
    assert rm.find_node().available == {"vcore": 1 + len(ended)}
    rm.app("late")
    assert len(rm.find_app("late").allocations) == 2 - len(ended)


def test_early_allocation_may_be_removed_with_its_unknown_application() -> None:
    rm = recovering()
    rm.remove_app("late")
    assert len(rm.take_response().released_allocations) == 2
    assert rm.find_node().available == {"vcore": 3}


def test_recovered_allocations_end_with_their_node() -> None:
    rm = recovering()
    rm.change_node("n1", NodeAction.DECOMMISSION)
    assert [one.message for one in rm.take_response().released_allocations] == ["Node n1 Removed"] * 2
    rm.node(vcore=3, existing=[existing("ask#1")])
    rm.app("late")
    assert sorted(rm.find_app("late").allocations) == ["ask#1"]
    assert rm.entries("rejected_allocations") == []


def test_duplicate_early_allocation_is_rejected() -> None:
    rm = recovering()
    rm.node("n2", vcore=3, existing=[attrs.evolve(existing("ask#1"), node_id="n2")])
    assert [one.reason for one in rm.take_response().rejected_allocations] == [
        "allocation ask#1 exists already"
    ]
    assert rm.find_node("n2").available == {"vcore": 3}


def test_rejected_application_keeps_its_early_allocations() -> None:
    rm = recovering()
    rm.app("late", "root.nowhere")
    assert rm.find_node().available == {"vcore": 1}
    rm.app("late")
    assert len(rm.find_app("late").allocations) == 2


def test_restarted_core_numbers_allocations_from_the_clock(registry: Registry) -> None:
    """An RM recovers node by node: uuids not yet reported are not assigned again."""
    names: list[str] = []
    for start in (1_000_000_000, 2_000_000_000):
        rm = RM(scheduler=Scheduler(registry, ManualClock(start)))
        rm.node(vcore=2)
        rm.app()
        rm.ask(count=2, vcore=1)
        rm.schedule()
        names += rm.running
    assert names == ["ask#1000001", "ask#1000002", "ask#2000001", "ask#2000002"]


# -- partitions -----------------------------------------------------------------------------------------


def test_each_entry_is_applied_to_its_partition() -> None:
    rm = RM(document(partition(queue("a")), partition(queue("a"), name="other")))
    rm.node("n1", {"si/node-partition": "other"}, vcore=1)
    rm.app(partition_name="other")
    rm.app()
    rm.update(asks=[AllocationAsk("ask", "app", "other", Resource(vcore=1))])
    rm.schedule()
    (allocation,) = rm.entries("new_allocations")
    assert allocation.partition_name == "other"
    rm.update(releases=AllocationReleasesRequest([AllocationRelease("app", allocation.uuid, "[rm]other")]))
    (release,) = rm.entries("released_allocations")
    assert (release.partition_name, release.message) == ("other", "allocation remove as per RM request")
