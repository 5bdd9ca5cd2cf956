"""Node actions of an RM, and allocations on nodes that the scheduler did not place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from tests.core.event_collector import EventCollector
from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, document, partition, queue
from yunikorn.interface.constants import NODE_PARTITION
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    NewNodeInfo,
    NodeAction,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UserGroupInformation,
)
from yunikorn.resources import Resource


def cluster(*, nodes: int = 1, memory: int = 4) -> RM:
    """Return an RM with equal nodes and an application."""
    rm = RM()
    for number in range(nodes):
        rm.node(f"n{number + 1}", memory=memory)
    rm.app()
    rm.take_response()
    return rm


def foreign(key: str, node_id: str, kind: str = "default", **amounts: int) -> Allocation:
    """Return a foreign allocation."""
    return Allocation(
        key, "", node_id=node_id, resource_per_alloc=Resource(amounts), allocation_tags={"foreign": kind}
    )


def placed(key: str, node_id: str, uuid: str = "", app_id: str = "app", **amounts: int) -> Allocation:
    """Return an allocation that the RM placed itself."""
    return Allocation(key, app_id, uuid, node_id, Resource(amounts))


def refusals(rm: RM) -> list[tuple[str, str]]:
    """Return key and reason of each allocation or ask rejected since the last call."""
    return [(one.allocation_key, one.reason) for one in rm.take_response().rejected_allocations]


def room(rm: RM, node_id: str = "n1") -> Mapping[str, Any]:
    """Return the available amounts of a node."""
    return rm.find_node(node_id).available


# -- actions ----------------------------------------------------------------------------------------------


def test_drained_node_keeps_its_allocations_and_gets_no_more_until_schedulable() -> None:
    rm = cluster()
    rm.ask(key="first", memory=1)
    assert rm.schedule() == [("app", "first", "n1")]
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.ask(key="second", memory=1)
    assert rm.schedule() == []
    assert rm.find_node().allocated == {"memory": 1}
    assert rm.take_response().failed_node_updates == []

    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert rm.schedule() == [("app", "second", "n1")]
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert [one.reason for one in rm.take_response().failed_node_updates] == [
        "node n1 is Schedulable: DRAIN_TO_SCHEDULABLE is not possible"
    ]


@pytest.mark.parametrize("action", [NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE])
def test_attributes_and_resources_of_a_drain_action_are_applied(action: NodeAction) -> None:
    rm = cluster()
    rm.node("n2", {"zone": "a"}, schedulable=action == NodeAction.DRAIN_NODE, memory=4)
    rm.change_node("n2", action, {"zone": "b"}, occupied={"memory": 1}, memory=8)
    node = rm.find_node("n2")
    assert node.attributes == {"zone": "b"}
    assert (node.capacity, node.occupied, node.available) == ({"memory": 8}, {"memory": 1}, {"memory": 7})
    assert rm.at_work().partition.cluster.total == {"memory": 12}
    assert node.schedulable == (action == NodeAction.DRAIN_TO_SCHEDULABLE)
    assert rm.take_response().failed_node_updates == []


@pytest.mark.parametrize("action", [NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE])
def test_drain_action_without_attributes_keeps_them(action: NodeAction) -> None:
    """Kubernetes shims send empty resources with every drain."""
    rm = cluster()
    rm.node(
        "n2", {"zone": "a"}, schedulable=action == NodeAction.DRAIN_NODE, memory=4, occupied={"memory": 1}
    )
    rm.change_node("n2", action, {NODE_PARTITION: "default"}, capacity={}, occupied={})
    node = rm.find_node("n2")
    assert node.attributes == {"zone": "a"}
    assert (node.capacity, node.available) == ({"memory": 4}, {"memory": 3})
    assert node.schedulable == (action == NodeAction.DRAIN_TO_SCHEDULABLE)


def test_failed_drain_action_applies_nothing() -> None:
    rm = cluster()
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE, {"zone": "b"}, memory=8)
    rm.change_node("n1", NodeAction.DRAIN_NODE, {"zone": "b"}, memory=-1)
    assert [one.reason for one in rm.take_response().failed_node_updates] == [
        "node n1 is Schedulable: DRAIN_TO_SCHEDULABLE is not possible",
        "node has negative resources",
    ]
    node = rm.find_node()
    assert (node.attributes, node.capacity, node.schedulable) == ({}, {"memory": 4}, True)


def test_capacity_of_a_node_made_schedulable_is_used_immediately() -> None:
    rm = cluster()
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.ask(memory=6)
    assert rm.schedule() == []
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE, memory=8)
    assert rm.schedule() == [("app", "ask", "n1")]


def test_partition_attribute_alone_keeps_the_attributes() -> None:
    rm = cluster()
    rm.node("n2", {"zone": "a"}, memory=4)
    rm.change_node("n2", NodeAction.UPDATE, {NODE_PARTITION: "default"}, memory=5)
    assert rm.find_node("n2").attributes == {"zone": "a"}


# -- removal and registration in one update -----------------------------------------------------------


def registered(node_id: str = "n1", **amounts: int) -> NewNodeInfo:
    return NewNodeInfo(node_id, schedulable_resource=Resource(amounts))


def test_a_node_is_removed_and_registered_again_in_one_update() -> None:
    rm = cluster()
    rm.ask(memory=1)
    rm.schedule()
    rm.take_response()
    rm.update(
        new_schedulable_nodes=[registered(memory=8)],
        updated_nodes=[
            UpdateNodeInfo("n1", NodeAction.DRAIN_NODE),
            UpdateNodeInfo("n1", NodeAction.DECOMMISSION),
            UpdateNodeInfo("n1", schedulable_resource=Resource(memory=9)),
        ],
    )
    received = rm.take_response()
    assert [one.node_id for one in received.accepted_nodes] == ["n1"]
    assert not received.rejected_nodes
    assert not received.failed_node_updates
    assert [one.message for one in received.released_allocations] == ["Node n1 Removed"]
    assert (rm.find_node().capacity, rm.find_node().schedulable) == ({"memory": 9}, True)
    assert rm.at_work().partition.cluster.total == {"memory": 9}


def test_a_node_moves_to_another_partition_in_one_update() -> None:
    rm = RM(document(partition(queue("a")), partition(queue("a"), name="other")))
    rm.node(memory=4)
    rm.update(
        new_schedulable_nodes=[NewNodeInfo("n1", {NODE_PARTITION: "other"}, Resource(memory=4))],
        updated_nodes=[UpdateNodeInfo("n1", NodeAction.DECOMMISSION)],
    )
    assert list(rm.at_work().partition.nodes) == []
    assert list(rm.at_work("other").partition.nodes) == ["n1"]


def test_node_registered_and_removed_between_updates_is_gone() -> None:
    rm = cluster()
    rm.update(
        new_schedulable_nodes=[registered("n2", memory=8)],
        updated_nodes=[UpdateNodeInfo("n2", NodeAction.DECOMMISSION)],
    )
    assert list(rm.at_work().partition.nodes) == ["n1"]
    assert rm.take_response().failed_node_updates == []


def test_an_application_is_removed_and_submitted_again_in_one_update() -> None:
    rm = cluster()
    rm.ask(key="old", memory=1)
    rm.schedule()
    rm.take_response()
    rm.update(
        new_applications=[AddApplicationRequest("app", "root.a", ugi=UserGroupInformation("user"))],
        remove_applications=[RemoveApplicationRequest("app")],
        asks=[AllocationAsk("new", "app", resource_ask=Resource(memory=4))],
    )
    received = rm.take_response()
    assert [one.application_id for one in received.accepted_applications] == ["app"]
    assert not received.rejected_applications
    assert not received.rejected_allocations
    assert [one.message for one in received.released_allocations] == ["Application app Removed"]
    assert rm.schedule() == [("app", "new", "n1")]


def test_an_application_that_has_ended_is_removed_and_submitted_again_in_one_update() -> None:
    rm = cluster()
    rm.ask(memory=1)
    rm.schedule()
    rm.release()
    rm.pass_time(30)
    assert rm.state() == "Completed"
    rm.update(
        new_applications=[AddApplicationRequest("app", "root.a", ugi=UserGroupInformation("user"))],
        remove_applications=[RemoveApplicationRequest("app")],
    )
    assert rm.state() == "New"


def test_a_decommissioned_node_ends_its_allocations_and_says_why() -> None:
    rm = cluster(nodes=2, memory=2)
    rm.ask(count=4, memory=1)
    assert len(rm.schedule()) == 4
    rm.take_response()
    rm.change_node("n1", NodeAction.DECOMMISSION)
    ended = rm.take_response().released_allocations
    assert [(one.termination_type, one.message) for one in ended] == [
        (TerminationType.STOPPED_BY_RM, "Node n1 Removed")
    ] * 2
    assert {one.node_id for one in rm.running.values()} == {"n2"}
    assert rm.find_queue("root").allocated == {"memory": 2}
    assert rm.find_queue("root").max == {"memory": 2}
    rm.node("n1", memory=2)
    rm.ask(key="again", memory=2)
    assert rm.schedule() == [("app", "again", "n1")]


def test_increased_capacity_places_pending_asks() -> None:
    rm = cluster(memory=1)
    rm.ask(memory=3)
    assert rm.schedule() == []
    rm.change_node("n1", memory=3)
    assert rm.schedule() == [("app", "ask", "n1")]


def test_unknown_action_is_rejected_without_effect() -> None:
    rm = cluster(memory=4)
    rm.change_node("n1", NodeAction.UNKNOWN, memory=1)
    assert [(one.node_id, one.reason) for one in rm.entries("failed_node_updates")] == [
        ("n1", "unknown action: nothing was changed")
    ]
    assert room(rm) == {"memory": 4}


def test_capacity_below_usage_ends_nothing_and_places_nothing() -> None:
    rm = cluster(memory=4)
    rm.ask(key="runs", count=3, memory=1)
    rm.schedule()
    rm.take_response()
    rm.change_node("n1", memory=2)
    assert room(rm) == {"memory": -1}
    rm.ask(key="waits", memory=1)
    assert rm.schedule() == []
    assert len(rm.running) == 3

    uuids = list(rm.running)
    rm.release(uuid=uuids[0])
    assert rm.schedule() == []
    rm.release(uuid=uuids[1])
    assert rm.schedule() == [("app", "waits", "n1")]


def test_occupied_resources_are_not_allocated_until_freed() -> None:
    rm = cluster(memory=4)
    rm.change_node("n1", occupied={"memory": 3})
    rm.ask(memory=2)
    assert rm.schedule() == []
    rm.change_node("n1", occupied={"memory": 2})
    assert rm.schedule() == [("app", "ask", "n1")]


def test_new_attributes_replace_old_ones_and_missing_ones_keep_them() -> None:
    rm = cluster()
    rm.change_node("n1", attributes={"zone": "x"})
    rm.change_node("n1", memory=8)
    assert rm.find_node().attributes == {"zone": "x"}
    rm.change_node("n1", attributes={"disk": "ssd"})
    assert rm.find_node().attributes == {"disk": "ssd"}


def test_update_of_an_unknown_node_or_with_an_invalid_amount_is_rejected() -> None:
    rm = cluster()
    rm.change_node("n9", NodeAction.DRAIN_NODE)
    rm.change_node("n1", memory=-1)
    assert [(one.node_id, one.reason) for one in rm.take_response().failed_node_updates] == [
        ("n9", "failed to find node n9"),
        ("n1", "node has negative resources"),
    ]
    assert room(rm) == {"memory": 4}


# -- foreign allocations ------------------------------------------------------------------------------------


def test_a_foreign_allocation_occupies_its_node_only() -> None:
    rm = cluster()
    rm.update(allocations=[foreign("pod", "n1", memory=3)])
    assert refusals(rm) == []
    assert rm.find_node().occupied == {"memory": 3}
    assert rm.find_queue("root").allocated == {}
    rm.ask(memory=2)
    assert rm.schedule() == []
    rm.release(app_id="", key="pod")
    assert rm.find_node().occupied == {}
    assert rm.schedule() == [("app", "ask", "n1")]


def test_foreign_allocations_change_the_node_order() -> None:
    rm = cluster(nodes=2)
    rm.update(allocations=[foreign("pod", "n1", memory=2)])
    rm.ask(count=2, memory=1)
    # n1 would have been first by its name; fair takes the emptier one.
    assert rm.schedule() == [("app", "ask", "n2"), ("app", "ask", "n2")]


def test_a_foreign_allocation_may_change_its_size_and_its_node() -> None:
    rm = cluster(nodes=2)
    rm.update(allocations=[foreign("pod", "n1", memory=3)])
    rm.update(allocations=[foreign("pod", "n1", memory=1)])
    assert (room(rm, "n1"), room(rm, "n2")) == ({"memory": 3}, {"memory": 4})
    rm.update(allocations=[foreign("pod", "n2", memory=2)])
    assert (room(rm, "n1"), room(rm, "n2")) == ({"memory": 4}, {"memory": 2})
    assert len(rm.at_work().partition.foreign) == 1


def test_foreign_allocations_add_to_what_the_node_reports_as_occupied() -> None:
    rm = cluster()
    rm.change_node("n1", occupied={"memory": 1})
    rm.update(allocations=[foreign("pod", "n1", "static", memory=2)])
    assert room(rm) == {"memory": 1}
    rm.change_node("n1", occupied={"memory": 0})
    assert room(rm) == {"memory": 2}
    rm.release(app_id="", key="pod")
    assert room(rm) == {"memory": 4}


def test_foreign_allocations_are_registered_and_removed_with_their_node() -> None:
    rm = RM()
    rm.node("n1", existing=[foreign("pod", "n1", memory=3)], memory=4)
    assert room(rm) == {"memory": 1}
    rm.take_response()
    rm.change_node("n1", NodeAction.DECOMMISSION)
    assert rm.take_response().released_allocations == []
    assert len(rm.at_work().partition.foreign) == 0
    rm.node("n1", memory=4)
    assert room(rm) == {"memory": 4}


def test_foreign_allocation_that_cannot_be_booked_is_rejected() -> None:
    rm = cluster()
    rm.update(
        allocations=[
            foreign("a", "", memory=1),
            foreign("b", "n9", memory=1),
            foreign("c", "n1", memory=-1),
            foreign("", "n1", memory=1),
        ]
    )
    assert refusals(rm) == [
        ("a", "node ID is empty for foreign allocation a"),
        ("b", "failed to find node n9"),
        ("c", "allocation contains negative resources"),
        ("", "a foreign allocation needs a key"),
    ]


# -- allocations of the RM itself ----------------------------------------------------------------------------


def test_an_allocation_that_the_rm_made_is_booked_and_acknowledged() -> None:
    rm = cluster()
    rm.update(allocations=[placed("own", "n1", "own-1", memory=6)])
    (made,) = rm.take_response().new_allocations
    assert (made.allocation_key, made.uuid, made.node_id) == ("own", "own-1", "n1")
    assert room(rm) == {"memory": -2}
    assert rm.state() == "Starting"
    rm.release(uuid="own-1")
    assert room(rm) == {"memory": 4}


def test_rm_may_place_a_pending_ask_itself() -> None:
    rm = cluster(nodes=2)
    rm.ask(key="task", count=2, memory=1)
    rm.update(allocations=[placed("task", "n2", "task-a", memory=1)])
    (made,) = rm.take_response().new_allocations
    assert (made.uuid, made.node_id) == ("task-a", "n2")
    assert rm.find_app().pending == {"memory": 1}
    assert rm.schedule() == [("app", "task", "n1")]
    assert rm.schedule() == []
    assert rm.find_queue().pending == {"memory": 0}


LIMITS = [{"limit": "one user", "users": ["user"], "maxresources": {"memory": "50"}}]


@pytest.mark.parametrize("limits", [[], LIMITS])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_pending_ask_placed_by_the_rm_is_booked_with_the_reported_size(
    size: int, limits: list[dict[str, Any]]
) -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a", limits=limits)))
    for node_id in ("n1", "n2"):
        rm.node(node_id, memory=8)
    rm.app()
    rm.ask(key="task", count=2, memory=3)
    rm.update(allocations=[placed("task", "n2", "task-a", memory=size)])
    (made,) = rm.take_response().new_allocations
    assert made.resource_per_alloc == {"memory": size}
    check_sums(rm, {"task-a": size}, pending=3)
    assert [dict(one.resource or {}) for one in collector.events if one.detail == "APP_ALLOC"] == [
        {"memory": size}
    ]
    assert len(rm.schedule()) == 1
    (other,) = {*rm.running} - {"task-a"}
    check_sums(rm, {"task-a": size, other: 3}, pending=0)
    rm.release(uuid="task-a")
    rm.release(uuid=other)
    check_sums(rm, {}, pending=0)
    assert rm.find_app().asks == {}


def check_sums(rm: RM, sizes: Mapping[str, int], *, pending: int) -> None:
    """Assert that the accounting contains these allocations and nothing else."""
    at, total = rm.at_work().partition, sum(sizes.values())
    app = rm.find_app()
    assert {uuid: one.resource["memory"] for uuid, one in app.allocations.items()} == sizes
    on_nodes = [one for node in at.nodes.values() for one in node.allocations.values()]
    assert {one.uuid: one.resource["memory"] for one in on_nodes} == sizes
    assert sum(node.available["memory"] for node in at.nodes.values()) == 16 - total
    for holder in (app, rm.find_queue("root.a"), rm.find_queue("root")):
        assert (holder.allocated["memory"], holder.pending["memory"]) == (total, pending), holder
    for path in ("root.a", "root"):
        usage = at.usage.of("user", "user", path)
        at.usage.flush()
        assert usage is not None
        assert usage.usage["memory"] == total


def test_gang_completeness_counts_the_placeholder_sizes_reported_by_the_rm() -> None:
    rm = GangRM()
    rm.node(vcore=10)
    rm.gang("app", vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    for uuid, size, state in (("a", 2, "Accepted"), ("b", 1, "Accepted")):
        one = Allocation("ph", "app", uuid, "n1", Resource(vcore=size), task_group_name="workers")
        rm.update(allocations=[attrs.evolve(one, placeholder=True)])
        assert rm.state("app") == state


def test_allocation_may_be_resized_in_place() -> None:
    rm = RM(configuration(queue("a", resources={"max": {"memory": "4"}})))
    rm.node(memory=8)
    rm.app()
    rm.ask(key="task", memory=4)
    rm.schedule()
    rm.ask(key="next", memory=1)
    assert rm.schedule() == []
    rm.take_response()
    rm.update(allocations=[placed("task", "n1", memory=3)])
    assert rm.find_app().allocated == {"memory": 3}
    assert rm.find_queue("root").allocated == {"memory": 3}
    assert room(rm) == {"memory": 5}
    # Its release makes room in its queue.
    assert rm.schedule() == [("app", "next", "n1")]

    # No quota is checked when it grows.
    (uuid,) = [uuid for uuid, one in rm.running.items() if one.allocation_key == "task"]
    rm.update(allocations=[placed("task", "n1", uuid, memory=7)])
    assert refusals(rm) == []
    assert rm.find_queue("root.a").allocated == {"memory": 8}
    assert room(rm) == {"memory": 0}
    rm.release(uuid=uuid)
    assert rm.find_queue("root.a").allocated == {"memory": 1}
    assert room(rm) == {"memory": 7}


def test_shrinking_an_allocation_lowers_the_usage_of_its_user() -> None:
    limits = [{"limit": "one user", "users": ["user"], "maxresources": {"memory": "4"}}]
    rm = RM(configuration(queue("a", limits=limits)))
    rm.node(memory=8)
    rm.app()
    rm.ask(key="task", memory=4)
    rm.schedule()
    rm.ask(key="next", memory=1)
    assert rm.schedule() == []
    rm.update(allocations=[placed("task", "n1", memory=2)])
    assert rm.schedule() == [("app", "next", "n1")]


def test_contradictory_reports_are_rejected() -> None:
    rm = cluster(nodes=2)
    rm.app("other")
    rm.ask(key="task", count=2, memory=1)
    rm.schedule()
    uuid = next(iter(rm.running))
    node_id = rm.running[uuid].node_id
    elsewhere = "n1" if node_id == "n2" else "n2"
    rm.take_response()
    rm.update(
        allocations=[
            placed("task", elsewhere, uuid, memory=1),
            placed("task", node_id, uuid, "other", memory=1),
            placed("task", node_id, memory=2),
            placed("lost", "n1", app_id="nobody", memory=1),
            placed("lost", "n9", memory=1),
            placed("nothing", "n1"),
            placed("less", "n1", memory=-1),
        ]
    )
    assert refusals(rm) == [
        ("task", f"allocation {uuid} is on node {node_id} and cannot move to {elsewhere}"),
        ("task", f"allocation {uuid} belongs to application app"),
        ("task", "ask task has 2 allocations: identify one by its uuid"),
        ("lost", "failed to find application nobody"),
        ("lost", "failed to find node n9"),
        ("nothing", "allocation contains no resources or negative resources"),
        ("less", "allocation contains no resources or negative resources"),
    ]
    assert rm.find_app().allocated == {"memory": 2}


# -- late messages -----------------------------------------------------------------------------------------


def test_unknown_releases_are_answered_and_counted_without_effect() -> None:
    rm = cluster()
    rm.ask(memory=1)
    rm.schedule()
    (uuid,) = rm.running
    rm.release(uuid=uuid)
    rm.take_response()

    rm.release(uuid=uuid)
    rm.release(uuid="never")
    rm.release("nobody", uuid=uuid)
    rm.release(key="neither")
    rm.release(app_id="", key="foreign")
    answers = rm.take_response().released_allocations
    assert [one.uuid or one.allocation_key for one in answers] == [uuid, "never", uuid, "neither", "foreign"]
    assert {one.termination_type for one in answers} == {TerminationType.STOPPED_BY_RM}
    assert answers[0].message == f"allocation '{uuid}' is unknown or no longer exists: nothing was released"
    unknown_releases = rm.at_work().partition.unknown_releases
    assert (unknown_releases.releases, unknown_releases.confirmations) == (5, 0)
    assert room(rm) == {"memory": 4}


def test_confirmations_of_ended_allocations_are_answered_and_counted_without_effect() -> None:
    rm = cluster()
    rm.ask(memory=1)
    rm.schedule()
    (uuid,) = rm.running
    rm.change_node("n1", NodeAction.DECOMMISSION)
    rm.take_response()
    for kind in (TerminationType.TIMEOUT, TerminationType.PREEMPTED_BY_SCHEDULER):
        rm.release(uuid=uuid, termination=kind)
    answers = rm.take_response().released_allocations
    # Never with the termination that was confirmed, which would require another confirmation.
    assert [one.termination_type for one in answers] == [TerminationType.STOPPED_BY_RM] * 2
    unknown_releases = rm.at_work().partition.unknown_releases
    assert (unknown_releases.releases, unknown_releases.confirmations) == (0, 2)


def test_release_of_an_application_without_allocations_is_no_unknown_release() -> None:
    rm = cluster()
    rm.ask(memory=1)
    rm.release()
    assert rm.take_response().released_allocations == []
    assert rm.at_work().partition.unknown_releases.releases == 0
