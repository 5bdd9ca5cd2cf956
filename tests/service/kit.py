"""What the tests of the service share: a callback that hears, and work for one node."""

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
"""Seconds after which a test hangs; none of them takes that long."""
CONFIG = configuration({"name": "a"})


class Ears:
    """A callback that hands everything on to the thread of the test."""

    def __init__(self) -> None:
        self.heard: queue.Queue[UpdateResponse] = queue.Queue()

    def recv_update_response(self, response: UpdateResponse) -> None:
        self.heard.put(response)

    def allocations(self, number: int) -> list[str]:
        """The next so many allocation keys, however many responses they come in."""
        keys: list[str] = []
        while len(keys) < number:
            keys += [one.allocation_key for one in self.heard.get(timeout=PATIENCE).new_allocations]
        return keys


def work(number: int, rm_id: str = "rm", app: str = "app") -> UpdateRequest:
    """A node, an application, and as many asks as fit."""
    return UpdateRequest(
        rm_id,
        new_schedulable_nodes=[NewNodeInfo(f"node-{app}", schedulable_resource=Resource(vcore=number))],
        new_applications=[AddApplicationRequest(app, "root.a", ugi=UserGroupInformation("ann"))],
        asks=[AllocationAsk(f"{app}-{i}", app, resource_ask=Resource(vcore=1)) for i in range(number)],
    )
