"""Test kit: a resource manager that records its allocations, and can report them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.service.kit import PATIENCE
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    NewNodeInfo,
    SchedulerAction,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.resources import Resource


class Shim:
    """An RM with two nodes with room for two each, and one application with tasks of one vcore."""

    def __init__(self, tasks: int = 3) -> None:
        self.wanted = [f"task-{number}" for number in range(tasks)]
        self.running: dict[str, Allocation] = {}
        self.reports = 0
        self.responses: list[UpdateResponse] = []
        self._news = asyncio.Event()

    def recv_update_response(self, response: UpdateResponse) -> None:
        self.responses.append(response)
        for placed in response.new_allocations:
            self.running[placed.allocation_key] = placed
        self._news.set()

    def report(self) -> list[UpdateRequest]:
        """Return everything in one message."""
        self.reports += 1
        nodes = [NewNodeInfo(name, schedulable_resource=Resource(vcore=2)) for name in ("n1", "n2")]
        for node in nodes:
            node.existing_allocations = [
                each for each in self.running.values() if each.node_id == node.node_id
            ]
        return [
            UpdateRequest(
                "",
                new_applications=[AddApplicationRequest("app", "root.a", ugi=UserGroupInformation("ann"))],
                asks=[ask(key) for key in self.wanted if key not in self.running],
                new_schedulable_nodes=nodes,
            )
        ]

    @property
    def resyncs(self) -> int:
        """Number of RESYNC actions received."""
        return sum(response.action is SchedulerAction.RESYNC for response in self.responses)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until a condition holds after a response."""
        async with asyncio.timeout(PATIENCE):
            while not reached():
                self._news.clear()
                await self._news.wait()


def ask(key: str) -> AllocationAsk:
    """Return an ask of the application."""
    return AllocationAsk(key, "app", resource_ask=Resource(vcore=1))


async def holds(true: Callable[[], bool]) -> None:
    """Wait until a condition holds that no response announces."""
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0)
