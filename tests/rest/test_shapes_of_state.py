"""JSON objects of the REST interface, field by field, for a fixed small cluster."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, document, partition, queue
from tests.rest.kit import Rest
from yunikorn.clock import SECOND
from yunikorn.interface.constants import HOST_NAME, INSTANCE_TYPE, RACK_NAME
from yunikorn.interface.messages import (
    Allocation,
    NodeAction,
    RegisterResourceManagerRequest,
    TerminationType,
)
from yunikorn.resources import Resource

START = 1_700_000_000 * SECOND
NEVER = -(2**31)
CONFIG = document(
    partition(
        queue(
            "a",
            resources={"guaranteed": {"vcore": "2"}, "max": {"vcore": "8", "memory": "100"}},
            maxapplications=3,
            properties={"application.sort.policy": "fair", "preemption.policy": "fence"},
            limits=[
                {"limit": "ann", "users": ["ann"], "maxapplications": 2, "maxresources": {"vcore": "6"}},
                {"limit": "dev", "groups": ["dev"], "maxapplications": 3},
            ],
        ),
        queue("p", parent=True, childtemplate={"maxapplications": 5, "resources": {"max": {"vcore": "1"}}}),
        placementrules=[
            {
                "name": "tag",
                "value": "namespace",
                "create": True,
                "filter": {"type": "deny", "users": ["^bad-"], "groups": ["x", "y"]},
                "parent": {"name": "fixed", "value": "root.p"},
            },
            {"name": "provided"},
        ],
    )
)


@pytest.fixture
def rm() -> RM:
    """A cluster with two nodes, a running application with a pending request, and a rejected one."""
    rm = RM(CONFIG)
    rm.pass_time(START / SECOND)
    attributes = {HOST_NAME: "h1", RACK_NAME: "r1", INSTANCE_TYPE: "big"}
    rm.node("n1", attributes, vcore=4000, memory=100)
    rm.node("n2", vcore=4000, memory=100, occupied={"vcore": 1000})
    rm.app("app", user="ann", groups=["dev"])
    rm.ask("app", "small", 2, vcore=1000, memory=10, priority=3, tags={"k": "v"})
    assert len(rm.schedule()) == 2
    rm.ask("app", "large", vcore=3500)
    rm.schedule()
    rm.app("lost", "root.none", user="bob", groups=[])
    return rm


@pytest.fixture
def rest(rm: RM) -> Rest:
    """The REST interface of that cluster."""
    return Rest(rm)


def allocation(node_id: str, **more: Any) -> dict[str, Any]:
    """Return an allocation of the request `small`."""
    return {
        "allocationKey": "small",
        "allocationTags": {"k": "v"},
        "requestTime": START,
        "allocationTime": START,
        "resource": {"vcore": 1000, "memory": 10},
        "priority": "3",
        "nodeId": node_id,
        "applicationId": "app",
        **more,
    }


def test_clusters(rest: Rest) -> None:
    assert rest.json("clusters") == [
        {"partition": "default", "rmBuildInformation": [{"rmId": "rm"}], "clusterName": "kubernetes"}
    ]


def test_build_information_of_the_resource_manager(rm: RM) -> None:
    request = RegisterResourceManagerRequest("rm", config=CONFIG, build_info={"buildVersion": "7"})
    rm.scheduler.register_resource_manager(request, rm)
    (cluster,) = Rest(rm).json("clusters")
    assert cluster["rmBuildInformation"] == [{"buildVersion": "7", "rmId": "rm"}]


def test_partitions(rest: Rest) -> None:
    assert rest.json("partitions") == [
        {
            "clusterId": "rm",
            "name": "default",
            "capacity": {
                "capacity": {"memory": 200, "vcore": 8000},
                "usedCapacity": {"memory": 20, "vcore": 2000},
                "utilization": {"memory": 10, "vcore": 25},
            },
            "nodeSortingPolicy": {"type": "fair", "resourceWeights": {"memory": 1, "vcore": 1}},
            "preemptionEnabled": True,
            "quotaPreemptionEnabled": False,
            "totalNodes": 2,
            "totalContainers": 2,
            "applications": {"Running": 1, "Rejected": 1, "total": 2},
            "state": "Active",
        }
    ]


def test_time_of_the_latest_change_of_a_partition(rm: RM) -> None:
    rm.scheduler.stop_partition("rm", "default")
    (partition,) = Rest(rm).json("partitions")
    assert (partition["state"], partition["lastStateTransitionTime"]) == ("Stopped", START)


def test_partition_without_nodes_and_applications() -> None:
    (partition,) = Rest(RM()).json("partitions")
    assert (partition["totalNodes"], partition["totalContainers"]) == (0, 0)
    assert partition["applications"] == {"total": 0}
    assert partition["capacity"] == {}


def test_queues(rest: Rest) -> None:
    root = rest.json("partition/default/queues")
    first, second = root.pop("children")
    assert root == {
        "queuename": "root",
        "status": "Active",
        "partition": "default",
        "pendingResource": {"vcore": 3500},
        "maxResource": {"memory": 200, "vcore": 8000},
        "allocatedResource": {"memory": 20, "vcore": 2000},
        "headroom": {"memory": 180, "vcore": 6000},
        "absUsedCapacity": {"memory": 10, "vcore": 25},
        "isLeaf": False,
        "isManaged": True,
        "childNames": ["root.a", "root.p"],
        "runningApps": 1,
        "currentPriority": 0,
        "sortingPolicy": "fair",
        "prioritySorting": True,
        "preemptionEnabled": True,
        "isPreemptionFence": False,
        "preemptionDelay": "30s",
        "isPriorityFence": False,
        "quotaPreemptionDelay": "0s",
    }
    assert first == {
        "queuename": "root.a",
        "status": "Active",
        "partition": "",
        "pendingResource": {"vcore": 3500},
        "maxResource": {"memory": 100, "vcore": 8000},
        "guaranteedResource": {"vcore": 2000},
        "allocatedResource": {"memory": 20, "vcore": 2000},
        "headroom": {"memory": 80, "vcore": 6000},
        "absUsedCapacity": {"memory": 20, "vcore": 25},
        "isLeaf": True,
        "isManaged": True,
        "properties": {"application.sort.policy": "fair", "preemption.policy": "fence"},
        "parent": "root",
        "maxRunningApps": 3,
        "runningApps": 1,
        "currentPriority": 0,
        "sortingPolicy": "fair",
        "prioritySorting": True,
        "preemptionEnabled": True,
        "isPreemptionFence": True,
        "preemptionDelay": "30s",
        "isPriorityFence": False,
        "quotaPreemptionDelay": "0s",
    }
    assert second["template"] == {"maxApplications": 5, "maxResource": {"vcore": 1000}}
    assert second["currentPriority"] == NEVER


def test_whole_weights_are_written_without_a_fraction(rest: Rest) -> None:
    assert '"resourceWeights":{"memory":1,"vcore":1}' in rest.get("partitions").text


def test_a_dynamic_leaf_has_used_the_template_and_shows_none(rm: RM, rest: Rest) -> None:
    rm.app("tagged", "", user="ann", namespace="blue")
    leaf = rest.json("partition/default/queue/root.p.blue")
    assert (leaf["isLeaf"], leaf["isManaged"], leaf["maxRunningApps"]) == (True, False, 5)
    assert "template" not in leaf


def test_one_queue(rest: Rest) -> None:
    queue = rest.json("partition/default/queue/ROOT")
    assert (queue["queuename"], queue["partition"]) == ("root", "")
    assert queue["childNames"] == ["root.a", "root.p"]
    assert "children" not in queue
    with_children = rest.json("partition/default/queue/root?subtree")
    assert [child["queuename"] for child in with_children["children"]] == ["root.a", "root.p"]
    assert with_children["partition"] == ""


def test_application(rest: Rest) -> None:
    expected = {
        "applicationID": "app",
        "usedResource": {"memory": 20, "vcore": 2000},
        "maxUsedResource": {"memory": 20, "vcore": 2000},
        "pendingResource": {"vcore": 3500},
        "partition": "default",
        "queueName": "root.a",
        "submissionTime": START,
        "requests": [
            {
                "allocationKey": "large",
                "requestTime": START,
                "resource": {"vcore": 3500},
                "priority": "0",
                "applicationId": "app",
                "allocationLog": [{"message": "No node has room", "lastOccurrence": START, "count": 1}],
                "schedulingAttempted": True,
            }
        ],
        "allocations": [allocation("n1"), allocation("n2")],
        "applicationState": "Running",
        "user": "ann",
        "groups": ["dev"],
        "stateLog": [
            {"time": START, "applicationState": "Accepted"},
            {"time": START, "applicationState": "Running"},
        ],
        "designStateLog": [
            {"time": START, "applicationState": "Accepted"},
            {"time": START, "applicationState": "Starting"},
            {"time": START, "applicationState": "Running"},
        ],
        "startTime": START // 1_000_000,
        "resourceHistory": {},
    }
    assert rest.json("partition/default/application/app") == expected
    assert rest.json("partition/default/applications/active") == [expected]
    assert rest.json("partition/default/applications/ACTIVE?status=RUNNING") == [expected]
    assert rest.json("partition/default/applications/active?status=new") == []
    assert rest.json("partition/default/queue/root.a/applications") == [expected]
    assert rest.json("partition/default/queue/root.a/applications/active") == [expected]
    assert rest.json("partition/default/queue/root.a/application/app") == expected
    assert rest.json("partition/default/queue/root/applications") == []


def test_a_new_application_has_been_new_since_its_submission(rm: RM, rest: Rest) -> None:
    rm.app("fresh", user="ann")
    app = rest.json("partition/default/application/fresh")
    assert app["applicationState"] == "New"
    assert app["stateLog"] == [{"time": START, "applicationState": "New"}]


def states(app: dict[str, Any], log: str) -> list[tuple[str, int]]:
    """Return the states of a log, with the seconds since the start."""
    return [(one["applicationState"], (one["time"] - START) // SECOND) for one in app[log]]


@pytest.fixture
def started(rm: RM) -> RM:
    """An application with one task, which is Starting."""
    rm.pass_time(5)
    rm.app("single", user="ann")
    rm.ask("single", vcore=1)
    rm.schedule()
    assert rm.state("single") == "Starting"
    return rm


def test_an_application_with_one_task_is_running(started: RM, rest: Rest) -> None:
    app = rest.json("partition/default/application/single")
    assert (app["applicationState"], app["designState"]) == ("Running", "Starting")
    assert app["startTime"] == START // 1_000_000 + 5_000
    assert states(app, "stateLog") == [("Accepted", 5), ("Running", 5)]
    assert states(app, "designStateLog") == [("Accepted", 5), ("Starting", 5)]


def test_an_application_that_was_starting_is_running_once_in_its_log(started: RM, rest: Rest) -> None:
    started.pass_time(300)
    app = rest.json("partition/default/application/single")
    assert app["applicationState"] == "Running"
    assert "designState" not in app
    assert states(app, "stateLog") == [("Accepted", 5), ("Running", 5)]
    assert states(app, "designStateLog") == [("Accepted", 5), ("Starting", 5), ("Running", 305)]


def test_an_application_that_returns_from_completing_is_running_twice_in_its_log(
    started: RM, rest: Rest
) -> None:
    started.release("single", key="ask")
    started.ask("single", key="more", vcore=1)
    app = rest.json("partition/default/application/single")
    assert [state for state, _ in states(app, "stateLog")] == ["Accepted", "Running", "Completing", "Running"]


def test_starting_applications_are_among_the_running_ones(started: RM, rest: Rest) -> None:
    def found(query: str) -> list[str]:
        return [app["applicationID"] for app in rest.json(f"partition/default/applications/active?{query}")]

    assert found("status=running") == found("state=Running") == ["app", "single"]
    assert found("state=starting") == ["single"]
    assert rest.error("partition/default/applications/active?status=starting")[0] == 400
    counts = {"Running": 2, "Rejected": 1, "total": 3}
    (partition,) = (one for one in rest.json("partitions") if one["name"] == "default")
    assert partition["applications"] == counts
    assert partition["designApplications"] == {**counts, "Running": 1, "Starting": 1}
    dumped = {app["applicationID"]: app for app in rest.json("/debug/fullstatedump")["applications"]}
    assert dumped["single"]["applicationState"] == "Running"


def test_explanations_have_the_state_of_1_9(started: RM, rest: Rest) -> None:
    found = rest.json("partition/default/application/single/explain")
    assert (found["applicationState"], found["designState"]) == ("Running", "Starting")


def test_rejected_application(rest: Rest) -> None:
    (app,) = rest.json("partition/default/applications/rejected")
    assert app["applicationState"] == "Rejected"
    assert app["rejectedMessage"].startswith("failed to place application lost")
    assert (app["submissionTime"], app["finishedTime"]) == (START, START)
    assert [entry["applicationState"] for entry in app["stateLog"]] == ["Rejected"]
    assert "startTime" not in app
    assert app["maxRequestPriority"] == NEVER
    assert rest.json("partition/default/applications/completed") == []


def test_use_over_the_life_of_an_application(rm: RM, rest: Rest) -> None:
    rm.pass_time(10)
    for uuid in list(rm.running):
        rm.release("app", uuid)
    rm.release_ask("app")
    rm.pass_time(60)
    (app,) = rest.json("partition/default/applications/completed")
    assert app["applicationState"] == "Completed"
    assert app["maxUsedResource"] == {"memory": 20, "vcore": 2000}
    assert app["resourceHistory"] == {
        "resourceUsage": {
            "big": {"vcore": 10_000, "memory": 100},
            "UNKNOWN": {"vcore": 10_000, "memory": 100},
        }
    }
    assert app["finishedTime"] == START + 40 * SECOND
    assert "usedResource" not in app
    assert "requests" not in app
    assert rest.error("partition/default/application/app") == (404, "Application not found")


def test_nodes(rm: RM, rest: Rest) -> None:
    rm.update(
        allocations=[
            Allocation(
                "system",
                "",
                node_id="n2",
                resource_per_alloc=Resource(vcore=500),
                allocation_tags={"foreign": "default"},
            )
        ]
    )
    rm.change_node("n2", NodeAction.DRAIN_NODE)
    first, second = rest.json("partition/default/nodes")
    assert first == {
        "nodeID": "n1",
        "hostName": "h1",
        "rackName": "r1",
        "attributes": {HOST_NAME: "h1", RACK_NAME: "r1", INSTANCE_TYPE: "big"},
        "capacity": {"memory": 100, "vcore": 4000},
        "allocated": {"memory": 10, "vcore": 1000},
        "available": {"memory": 90, "vcore": 3000},
        "utilized": {"memory": 10, "vcore": 25},
        "allocations": [allocation("n1")],
        "schedulable": True,
        "isReserved": False,
    }
    assert second["occupied"] == {"vcore": 1500}
    assert (second["schedulable"], second["attributes"]) == (False, {})
    assert second["foreignAllocations"] == [
        {
            "allocationKey": "system",
            "allocationTags": {"foreign": "default"},
            "allocationTime": START,
            "resource": {"vcore": 500},
            "priority": "0",
            "nodeId": "n2",
            "preemptable": True,
        }
    ]
    assert rest.json("partition/default/node/n1") == first
    assert rest.json("partition/default/nodes?state=draining") == [second]


def test_use_of_nodes(rest: Rest) -> None:
    (found,) = rest.json("scheduler/node-utilizations")
    assert (found["clusterId"], found["partition"]) == ("rm", "default")
    memory, vcore = found["utilizations"]
    assert memory["type"] == "memory"
    assert memory["utilization"][0] == {
        "bucketName": "0-10%",
        "numOfNodes": 2,
        "nodeNames": ["n1", "n2"],
    }
    assert len(memory["utilization"]) == 10
    assert [bucket.get("numOfNodes", 0) for bucket in vcore["utilization"]] == [0, 0, 2, *[0] * 7]


def test_use_of_no_nodes_is_an_empty_list() -> None:
    assert Rest(RM()).json("scheduler/node-utilizations")[0]["utilizations"] == []


def test_use_above_the_capacity_is_in_the_last_range(rm: RM, rest: Rest) -> None:
    rm.change_node("n1", vcore=100, memory=100)
    (found,) = rest.json("scheduler/node-utilizations")
    assert found["utilizations"][1]["utilization"][9]["nodeNames"] == ["n1"]


def test_users_and_groups(rest: Rest) -> None:
    usage = {"resourceUsage": {"memory": 20, "vcore": 2000}, "runningApplications": ["app"]}
    user = {
        "userName": "ann",
        "groups": {"app": "dev"},
        "queues": {
            "queuePath": "root",
            **usage,
            "children": [
                {
                    "queuePath": "root.a",
                    **usage,
                    "maxResources": {"vcore": 6000},
                    "maxApplications": 2,
                }
            ],
        },
    }
    assert rest.json("partition/default/usage/users") == [user]
    assert rest.json("partition/default/usage/user/ann") == user
    group = {
        "groupName": "dev",
        "applications": ["app"],
        "queues": {
            "queuePath": "root",
            **usage,
            "children": [{"queuePath": "root.a", **usage, "maxApplications": 3}],
        },
    }
    assert rest.json("partition/default/usage/groups") == [group]
    assert rest.json("partition/default/usage/group/dev") == group


def test_placement_rules(rest: Rest) -> None:
    assert rest.json("partition/default/placementrules") == [
        {
            "name": "tag",
            "parameters": {"create": "true", "tagName": "namespace"},
            "filter": {"type": "deny", "userExp": "^bad-", "groupList": ["x", "y"]},
            "parentRule": {
                "name": "fixed",
                "parameters": {"create": "false", "queue": "root.p", "qualified": "true"},
            },
        },
        {"name": "provided", "parameters": {"create": "false"}},
        {"name": "recovery", "parameters": {"queue": "root.@recovery@"}},
    ]


def test_placeholders() -> None:
    rm = GangRM()
    rm.pass_time(START / SECOND)
    rm.node(vcore=10)
    rm.gang("gang", vcore=2)
    rm.task("gang", "ph", "tg", 2, placeholder=True, vcore=1)
    assert len(rm.schedule()) == 2
    rm.pass_time(5)
    rm.take_response()
    rm.task("gang", "real", "tg", vcore=1)
    rm.scheduler.schedule()
    (release,) = rm.take_response().released_allocations
    rm.pass_time(5)
    rm.release("gang", release.uuid, termination=TerminationType.PLACEHOLDER_REPLACED)
    app = Rest(rm).json("partition/default/application/gang")
    assert app["placeholderData"] == [
        {"taskGroupName": "tg", "count": 2, "minResource": {"vcore": 1}, "replaced": 1}
    ]
    assert app["usedResource"] == {"vcore": 1}
    assert app["resourceHistory"] == {"placeholderResource": {"UNKNOWN": {"vcore": 10}}}
    (real,) = [one for one in app["allocations"] if one["allocationKey"] == "real"]
    assert real["placeholderUsed"] is True
    assert (real["requestTime"], real["allocationDelay"]) == (START, 10 * SECOND)
    (holder,) = [one for one in app["allocations"] if one["allocationKey"] != "real"]
    assert holder["placeholder"] is True


def test_delay_of_a_request_that_the_rm_created_in_our_future_is_zero() -> None:
    rm = RM(configuration(queue("a")))
    rm.node("n1", vcore=4)
    rm.app()
    rm.ask(vcore=1, tags={"creationTime": "50"})
    rm.schedule()
    (found,) = Rest(rm).json("partition/default/application/app")["allocations"]
    assert found["requestTime"] == 50 * SECOND
    assert "allocationDelay" not in found
