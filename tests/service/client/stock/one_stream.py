"""A client of v0.11.0 made by protoc: `one_stream.py ADDRESS` prints its responses."""

from __future__ import annotations

import importlib
import json
import queue
import sys
from typing import Any

import grpc

si: Any = importlib.import_module("si_v0_11_pb2")
rpc: Any = importlib.import_module("si_v0_11_pb2_grpc")
to_send: queue.Queue[Any] = queue.Queue()
with grpc.insecure_channel(sys.argv[1]) as channel:
    scheduler = rpc.SchedulerStub(channel)
    scheduler.RegisterResourceManager(si.RegisterResourceManagerRequest(rmID="stock", version="0.11.0"))
    responses = scheduler.Update(iter(to_send.get, None))

    one = si.Resource(resources={"vcore": si.Quantity(value=1)})
    two = si.Resource(resources={"vcore": si.Quantity(value=2)})
    to_send.put(
        si.UpdateRequest(
            rmID="stock",
            newSchedulableNodes=[si.NewNodeInfo(nodeID="n1", schedulableResource=two)],
            newApplications=[
                si.AddApplicationRequest(
                    applicationID="app",
                    queueName="root.a",
                    ugi=si.UserGroupInformation(user="ann", groups=["staff"]),
                ),
                si.AddApplicationRequest(applicationID="lost", queueName="root.nowhere"),
            ],
            asks=[
                si.AllocationAsk(allocationKey="x", applicationID="app", resourceAsk=one, maxAllocations=3)
            ],
        )
    )
    reported: dict[str, Any] = {"placed": [], "accepted": [], "refused": [], "nodes": [], "released": []}
    released = False
    for response in responses:
        reported["placed"] += [[each.allocationKey, each.nodeID] for each in response.newAllocations]
        reported["accepted"] += [each.applicationID for each in response.acceptedApplications]
        reported["refused"] += [each.applicationID for each in response.rejectedApplications]
        reported["nodes"] += [each.nodeID for each in response.acceptedNodes]
        reported["released"] += [
            [each.applicationID, si.TerminationType.Name(each.terminationType)]
            for each in response.releasedAllocations
        ]
        if len(reported["placed"]) == 2 and not released:
            uuids = [each.UUID for each in response.newAllocations]
            release = si.AllocationRelease(applicationID="app", UUID=uuids[0])
            releases = si.AllocationReleasesRequest(allocationsToRelease=[release])
            to_send.put(si.UpdateRequest(rmID="stock", releases=releases))
            released = True
        if len(reported["placed"]) == 3 and reported["released"]:
            to_send.put(None)  # the stream is half-closed, and the scheduler ends it
    reported["end"] = responses.code().name
    print(json.dumps(reported))
