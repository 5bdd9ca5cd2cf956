"""Clients that stock protoc generated from the published files, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yunikorn.interface.messages import (
    AcceptedNode,
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    NodeAction,
    PreemptionPolicy,
    RejectedAllocationAsk,
    RemoveApplicationRequest,
    SchedulerAction,
    TerminationType,
    UpdatedApplication,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.resources import Resource
from yunikorn_service.wire import current, v0_11

Client = Callable[..., Any]

THEIRS = """
import json, sys
from google.protobuf import json_format
import {layout}_pb2 as si
for line in sys.stdin:
    kind, form, content = json.loads(line)
    message = getattr(si, kind)()
    if form == "bytes":
        message.ParseFromString(bytes.fromhex(content))
        print(json.dumps(json_format.MessageToDict(message)))
    else:
        print(json_format.ParseDict(content, message).SerializeToString().hex())
"""


@pytest.fixture(scope="module")
def made_by(
    published: Path,
    tmp_path_factory: pytest.TempPathFactory,
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[[str], Path]:
    """Return a function that generates a client of a published layout with protoc, and returns its folder."""

    def make(layout: str) -> Path:
        folder = tmp_path_factory.mktemp(layout)
        made = run_python(
            "-m", "grpc_tools.protoc", f"-I{published}", f"--python_out={folder}", f"{layout}.proto"
        )
        assert made.returncode == 0, made.stderr
        (folder / "theirs.py").write_text(THEIRS.replace("{layout}", layout), "utf-8")
        return folder

    return make


def exchange(run_python: Client, folder: Path, *lines: tuple[str, str, object]) -> list[str]:
    """Return the client's output for each line."""
    text = "\n".join(json.dumps(line) for line in lines)
    script = f"import io, sys; sys.stdin = io.StringIO({text!r}); exec(open('theirs.py').read())"
    done = run_python("-c", script, installed=folder, cwd=folder)
    assert done.returncode == 0, done.stderr
    answers: list[str] = done.stdout.splitlines()
    return answers


SAID = {
    "rmID": "rm",
    "asks": [
        {
            "allocationKey": "k",
            "applicationID": "app",
            "partitionName": "default",
            "resourceAsk": {"resources": {"vcore": {"value": "500"}, "memory": {"value": "-1"}}},
            "maxAllocations": 3,
            "priority": {"priorityClassName": "high"},
            "executionTimeoutMilliSeconds": "-5",
            "tags": {"a": "b"},
            "taskGroupName": "workers",
            "placeholder": True,
        }
    ],
    "releases": {
        "allocationsToRelease": [{"UUID": "k#1", "terminationType": "PLACEHOLDER_REPLACED"}],
        "allocationAsksToRelease": [{"allocationkey": "k", "terminationType": "TIMEOUT"}],
    },
    "newSchedulableNodes": [
        {
            "nodeID": "n1",
            "attributes": {"si/hostname": "h"},
            "occupiedResource": {"resources": {"vcore": {"value": "1"}}},
            "existingAllocations": [{"allocationKey": "e", "priority": {"priorityValue": 4}}],
        }
    ],
    "updatedNodes": [{"nodeID": "n2", "action": "DRAIN_TO_SCHEDULABLE", "schedulableResource": {}}],
    "newApplications": [
        {
            "applicationID": "app",
            "ugi": {"user": "ann", "groups": ["a", "b"]},
            "gangSchedulingStyle": "Hard",
        }
    ],
    "removeApplications": [{"applicationID": "old", "partitionName": "p"}],
}
UNDERSTOOD = UpdateRequest(
    "rm",
    [
        AllocationAsk(
            "k",
            "app",
            "default",
            Resource(vcore=500, memory=-1),
            3,
            None,
            "high",
            -5,
            {"a": "b"},
            "workers",
            True,
        )
    ],
    AllocationReleasesRequest(
        [AllocationRelease("", "k#1", termination_type=TerminationType.PLACEHOLDER_REPLACED)],
        [AllocationAskRelease("", "k", termination_type=TerminationType.TIMEOUT)],
    ),
    [
        NewNodeInfo(
            "n1",
            {"si/hostname": "h"},
            occupied_resource=Resource(vcore=1),
            existing_allocations=[Allocation("e", "", priority=4)],
        )
    ],
    [UpdateNodeInfo("n2", NodeAction.DRAIN_TO_SCHEDULABLE, {}, Resource())],
    [AddApplicationRequest("app", ugi=UserGroupInformation("ann", ["a", "b"]), gang_scheduling_style="Hard")],
    [RemoveApplicationRequest("old", "p")],
)
"""The same message, as this project decodes it."""
RESPONSE = UpdateResponse(
    SchedulerAction.RESYNC,
    [
        Allocation(
            "k",
            "app",
            "k#1",
            "n1",
            Resource(vcore=500),
            "root.a",
            "default",
            7,
            {"a": "b"},
            preemption_policy=PreemptionPolicy(False, True),
        )
    ],
    [AllocationRelease("app", "k#1", "default", TerminationType.PREEMPTED_BY_SCHEDULER, "go", "k")],
    [AllocationAskRelease("app", "k", "default", TerminationType.TIMEOUT)],
    [RejectedAllocationAsk("x", "app", "no")],
    updated_applications=[UpdatedApplication("app", "Running", 10**18, "up")],
    accepted_nodes=[AcceptedNode("n1")],
)
READ = {
    "action": "RESYNC",
    "newAllocations": [
        {
            "allocationKey": "k",
            "allocationTags": {"a": "b"},
            "UUID": "k#1",
            "resourcePerAlloc": {"resources": {"vcore": {"value": "500"}}},
            "priority": {"priorityValue": 7},
            "queueName": "root.a",
            "nodeID": "n1",
            "applicationID": "app",
            "partitionName": "default",
        }
    ],
    "releasedAllocations": [
        {
            "partitionName": "default",
            "applicationID": "app",
            "UUID": "k#1",
            "terminationType": "PREEMPTED_BY_SCHEDULER",
            "message": "go",
        }
    ],
    "releasedAllocationAsks": [
        {
            "partitionName": "default",
            "applicationID": "app",
            "allocationkey": "k",
            "terminationType": "TIMEOUT",
        }
    ],
    "rejectedAllocations": [{"allocationKey": "x", "applicationID": "app", "reason": "no"}],
    "updatedApplications": [
        {
            "applicationID": "app",
            "state": "Running",
            "stateTransitionTimestamp": "1000000000000000000",
            "message": "up",
        }
    ],
    "acceptedNodes": [{"nodeID": "n1"}],
}
"""The same message, as the client decodes it."""


def test_published_client_of_v0_11_0_is_compatible(
    made_by: Callable[[str], Path], run_python: Client
) -> None:
    folder = made_by("si_v0_11")
    received, read = exchange(
        run_python,
        folder,
        ("UpdateRequest", "json", SAID),
        ("UpdateResponse", "bytes", v0_11.UPDATE_RESPONSE.encode(RESPONSE).hex()),
    )
    assert v0_11.UPDATE_REQUEST.decode(bytes.fromhex(received)) == UNDERSTOOD
    assert json.loads(read) == READ


def test_published_client_of_the_newer_layout_is_compatible(
    made_by: Callable[[str], Path], run_python: Client
) -> None:
    asked = {
        "rmID": "rm",
        "allocations": [
            {
                "allocationKey": "k",
                "applicationID": "app",
                "resourcePerAlloc": {"resources": {"vcore": {"value": "500"}}},
                "priority": -3,
                "allocationTags": {"a": "b"},
                "originator": True,
                "preemptionPolicy": {"allowPreemptOther": True},
            }
        ],
    }
    nodes = {"rmID": "rm", "nodes": [{"nodeID": "n1", "action": "CREATE_DRAIN"}]}
    response = current.ALLOCATION_RESPONSE.to_wire(
        UpdateResponse(
            new_allocations=[Allocation("k", "app", "k#1", "n1", Resource(vcore=500), priority=-3)],
            released_allocations=[
                AllocationRelease("app", "k#1", "default", TerminationType.TIMEOUT, "late", "k")
            ],
        )
    )
    received, heard_nodes, read = exchange(
        run_python,
        made_by("si_current"),
        ("AllocationRequest", "json", asked),
        ("NodeRequest", "json", nodes),
        ("AllocationResponse", "bytes", response.SerializeToString().hex()),
    )
    assert current.ALLOCATION_REQUEST.decode(bytes.fromhex(received)) == [
        UpdateRequest(
            "rm",
            allocations=[
                Allocation(
                    "k",
                    "app",
                    resource_per_alloc=Resource(vcore=500),
                    priority=-3,
                    allocation_tags={"a": "b"},
                    originator=True,
                    preemption_policy=PreemptionPolicy(False, True),
                )
            ],
        )
    ]
    assert current.NODE_REQUEST.decode(bytes.fromhex(heard_nodes)) == [
        UpdateRequest("rm", new_schedulable_nodes=[NewNodeInfo("n1", schedulable=False)])
    ]
    assert json.loads(read) == {
        "new": [
            {
                "allocationKey": "k",
                "resourcePerAlloc": {"resources": {"vcore": {"value": "500"}}},
                "priority": -3,
                "nodeID": "n1",
                "applicationID": "app",
            }
        ],
        "released": [
            {
                "partitionName": "default",
                "applicationID": "app",
                "terminationType": "TIMEOUT",
                "message": "late",
                "allocationKey": "k",
            }
        ],
    }
