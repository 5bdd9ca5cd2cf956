"""Test kit of the service: a callback that passes responses to the test, and a ready-made update."""

from __future__ import annotations

import queue

from tests.core.kit import configuration
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    NewNodeInfo,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.resources import Resource

PATIENCE = 30
"""Seconds after which a test counts as hanging; no test takes that long."""
CONFIG = configuration({"name": "a"})


class CollectingCallback:
    """A callback that passes all responses to the thread of the test."""

    def __init__(self) -> None:
        self.received: queue.Queue[UpdateResponse] = queue.Queue()

    def recv_update_response(self, response: UpdateResponse) -> None:
        self.received.put(response)

    def allocations(self, number: int) -> list[str]:
        """Return this many allocation keys, from as many responses as needed."""
        keys: list[str] = []
        while len(keys) < number:
            keys += [one.allocation_key for one in self.received.get(timeout=PATIENCE).new_allocations]
        return keys


def work(number: int, rm_id: str = "rm", app: str = "app") -> UpdateRequest:
    """Return an update with a node, an application, and as many asks as fit."""
    return UpdateRequest(
        rm_id,
        new_schedulable_nodes=[NewNodeInfo(f"node-{app}", schedulable_resource=Resource(vcore=number))],
        new_applications=[AddApplicationRequest(app, "root.a", ugi=UserGroupInformation("ann"))],
        asks=[AllocationAsk(f"{app}-{i}", app, resource_ask=Resource(vcore=1)) for i in range(number)],
    )
