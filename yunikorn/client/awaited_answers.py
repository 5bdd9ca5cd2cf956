"""Pending answers to new nodes and applications, for a layout whose streams have no common order."""

from __future__ import annotations

import asyncio

from yunikorn.interface.messages import UpdateRequest, UpdateResponse


class AwaitedAnswers:
    """New nodes and applications whose answer must precede updates about their allocations."""

    def __init__(self) -> None:
        self._awaited: dict[tuple[str, str], int] = {}
        """Nodes and applications in their order, each with the number of the latest update that has it."""
        self._updates = 0
        self._heard = asyncio.Event()

    def asked(self, request: UpdateRequest) -> int:
        """Add the new nodes and applications of an update about to be sent; return the update's number."""
        self._updates += 1
        new = [("node", node.node_id) for node in request.new_schedulable_nodes]
        new += [("application", app.application_id) for app in request.new_applications]
        for one in new:
            self._awaited.pop(one, None)
            self._awaited[one] = self._updates
        return self._updates

    def heard(self, response: UpdateResponse) -> None:
        """Remove the nodes and applications that a response answers."""
        answered = [("node", one.node_id) for one in response.accepted_nodes]
        answered += [("node", one.node_id) for one in response.rejected_nodes]
        answered += [("application", one.application_id) for one in response.accepted_applications]
        answered += [("application", one.application_id) for one in response.rejected_applications]
        for one in answered:
            self._awaited.pop(one, None)
        self._heard.set()

    async def all_until(self, number: int) -> None:
        """Wait until all nodes and applications of the updates up to this number are answered."""
        while self._awaited and next(iter(self._awaited.values())) <= number:
            self._heard.clear()
            await self._heard.wait()
