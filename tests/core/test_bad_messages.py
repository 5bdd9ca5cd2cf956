"""Invalid messages: each invalid entry is answered, and does not affect the others."""

from __future__ import annotations

import pytest

from tests.core.kit import RM, configuration, document, partition, queue
from yunikorn.errors import ConfigError, UsageError
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    NodeAction,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    UpdateNodeInfo,
    UserGroupInformation,
)
from yunikorn.resources import Resource

# -- registration --------------------------------------------------------------------------------------------


def test_an_rm_needs_an_id() -> None:
    rm = RM()
    with pytest.raises(UsageError, match="a resource manager needs an id"):
        rm.scheduler.register_resource_manager(RegisterResourceManagerRequest(""), rm)


def test_invalid_configuration_fails_the_registration_and_keeps_the_earlier_one() -> None:
    rm = RM()
    rm.node(vcore=1)
    request = RegisterResourceManagerRequest("rm", config="partitions: [")
    with pytest.raises(ConfigError):
        rm.scheduler.register_resource_manager(request, rm)
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == [("app", "ask", "n1")]


def test_default_configuration_applies_without_a_configuration() -> None:
    rm = RM()
    rm.scheduler.register_resource_manager(RegisterResourceManagerRequest("rm"), rm)
    rm.app_tagged("app", "", {"namespace": "lab"})
    assert rm.find_app().queue is rm.find_queue("root.lab")


# -- applications --------------------------------------------------------------------------------------------


def submission(app_id: str, queue_name: str, partition_name: str = "") -> AddApplicationRequest:
    return AddApplicationRequest(app_id, queue_name, partition_name, UserGroupInformation("user", ["group"]))


def test_duplicate_application_id_is_rejected_and_the_first_is_unchanged() -> None:
    rm = RM(configuration(queue("a"), queue("b")))
    rm.node(vcore=3)
    rm.app("app", "root.a")
    rm.ask(count=2, vcore=1)
    rm.schedule(1)
    rm.take_response()
    rm.app("app", "root.b")
    received = rm.take_response()
    (refused,) = received.rejected_applications
    assert refused.reason == "application app exists already in partition default"
    assert received.accepted_applications == []
    assert rm.find_app().queue is rm.find_queue("root.a")
    assert len(rm.schedule()) == 1
    rm.pass_time(4 * 24 * 3600)
    assert len(rm.running) == 2


def test_the_same_id_may_be_used_in_two_partitions() -> None:
    rm = RM(document(partition(queue("a")), partition(queue("a"), name="other")))
    rm.app()
    rm.app(partition_name="other")
    assert len(rm.entries("accepted_applications")) == 2


def test_invalid_applications_do_not_affect_valid_ones() -> None:
    rm = RM()
    rm.update(
        new_applications=[
            submission("nowhere", "root.nowhere"),
            submission("", "root.a"),
            submission("partition", "root.a", "gone"),
            submission("parent", "root"),
            AddApplicationRequest("nobody", "root.a"),
            submission("good", "root.a"),
        ]
    )
    received = rm.take_response()
    assert [one.application_id for one in received.accepted_applications] == ["good"]
    reasons = {one.application_id: one.reason for one in received.rejected_applications}
    assert set(reasons) == {"nowhere", "", "partition", "parent", "nobody"}
    assert reasons["partition"] == "failed to find partition gone"
    assert reasons[""] == "an application needs an id"


def test_removals_of_unknown_applications_have_no_effect() -> None:
    rm = RM()
    rm.app()
    rm.take_response()
    rm.update(
        remove_applications=[
            RemoveApplicationRequest("nobody"),
            RemoveApplicationRequest("app", "gone"),
            RemoveApplicationRequest(""),
        ]
    )
    assert rm.state() == "New"


# -- nodes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (
            NewNodeInfo("n1", schedulable_resource=Resource(vcore=1)),
            "partition default has an existing node n1, node name must be unique",
        ),
        (NewNodeInfo("", schedulable_resource=Resource(vcore=1)), "a node needs an id"),
        (NewNodeInfo("n2", schedulable_resource=Resource(vcore=-1)), "node has negative resources"),
        (NewNodeInfo("n2", occupied_resource=Resource(vcore=-1)), "node has negative resources"),
        (
            NewNodeInfo("n2", {"si/node-partition": "gone"}, Resource(vcore=1)),
            "failed to find partition gone",
        ),
    ],
)
def test_invalid_node_is_rejected_with_a_reason_and_others_are_accepted(
    node: NewNodeInfo, reason: str
) -> None:
    rm = RM()
    rm.node("n1", vcore=1)
    rm.take_response()
    rm.update(new_schedulable_nodes=[node, NewNodeInfo("good", schedulable_resource=Resource(vcore=5))])
    received = rm.take_response()
    assert [(one.node_id, one.reason) for one in received.rejected_nodes] == [(node.node_id, reason)]
    assert [one.node_id for one in received.accepted_nodes] == ["good"]
    assert rm.at_work().partition.cluster.total == {"vcore": 6}


def test_node_without_resources_is_accepted() -> None:
    rm = RM()
    rm.node("empty")
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == []
    rm.change_node("empty", vcore=1)
    assert rm.schedule() == [("app", "ask", "empty")]


@pytest.mark.parametrize("action", list(NodeAction))
def test_updates_of_unknown_nodes_are_answered(action: NodeAction) -> None:
    rm = RM()
    rm.update(updated_nodes=[UpdateNodeInfo("gone", action)])
    assert [(one.node_id, one.reason) for one in rm.take_response().failed_node_updates] == [
        ("gone", "failed to find node gone")
    ]


def test_node_is_found_in_any_partition() -> None:
    rm = RM(document(partition(queue("a")), partition(queue("a"), name="other")))
    rm.node("n1", {"si/node-partition": "other"}, vcore=1)
    rm.change_node("n1", vcore=5)
    assert rm.at_work("other").partition.cluster.total == {"vcore": 5}


@pytest.mark.parametrize(
    "update",
    [
        UpdateNodeInfo("n1", schedulable_resource=Resource(vcore=-1)),
        UpdateNodeInfo("n1", occupied_resource=Resource(vcore=-1)),
        UpdateNodeInfo("n1", attributes={"a": "b"}, schedulable_resource=Resource(vcore=-1)),
    ],
)
def test_invalid_node_update_changes_nothing(update: UpdateNodeInfo) -> None:
    rm = RM()
    rm.node("n1", {"zone": "x"}, vcore=3)
    rm.update(updated_nodes=[update])
    assert [one.reason for one in rm.entries("failed_node_updates")] == ["node has negative resources"]
    assert rm.find_node().capacity == {"vcore": 3}
    assert rm.find_node().attributes == {"zone": "x"}


# -- everything at once --------------------------------------------------------------------------------------


def test_empty_update_has_no_response() -> None:
    rm = RM()
    rm.update()
    assert rm.responses == []


def test_one_update_is_answered_in_one_response() -> None:
    rm = RM()
    rm.update(
        new_applications=[submission("app", "root.a"), submission("no", "root.no")],
        asks=[
            AllocationAsk("ask", "app", resource_ask=Resource(vcore=1)),
            AllocationAsk("ask", "no", resource_ask=Resource(vcore=1)),
        ],
        releases=AllocationReleasesRequest(
            [AllocationRelease("nobody", "nothing")], [AllocationAskRelease("nobody", "nothing")]
        ),
        new_schedulable_nodes=[NewNodeInfo("n1", schedulable_resource=Resource(vcore=1))],
        updated_nodes=[UpdateNodeInfo("n2")],
    )
    (response,) = rm.responses
    assert [one.application_id for one in response.accepted_applications] == ["app"]
    assert [one.application_id for one in response.rejected_applications] == ["no"]
    assert [one.application_id for one in response.rejected_allocations] == ["no"]
    assert [one.node_id for one in response.accepted_nodes] == ["n1"]
    assert [one.node_id for one in response.failed_node_updates] == ["n2"]
    assert rm.schedule() == [("app", "ask", "n1")]


def test_an_rm_may_answer_from_within_its_callback() -> None:
    """The callback sends the next update at once, as a simple RM would."""

    class Eager(RM):
        def recv_update_response(self, response: object) -> None:
            super().recv_update_response(response)  # type: ignore[arg-type]
            for allocation in response.new_allocations:  # type: ignore[attr-defined]
                if allocation.allocation_key == "first":
                    self.ask("app", f"next-{allocation.uuid}", vcore=1)
                    self.release("app", uuid=allocation.uuid)

    rm = Eager()
    rm.node(vcore=1)
    rm.app()
    rm.ask(key="first", count=3, vcore=1)
    while rm.scheduler.schedule(1):
        pass
    assert len(rm.running) == 1
    assert (rm.find_queue().waiting, rm.find_app().pending) == (1, {"vcore": 2})
    assert rm.find_node().available == {"vcore": 0}
