"""Which new nodes and applications the scheduler has not answered yet, where streams have no common order."""

from __future__ import annotations

import asyncio

from yunikorn.interface.messages import UpdateRequest, UpdateResponse


class AwaitedAnswers:
    """What is awaited before an update about allocations may follow: its nodes and applications."""

    def __init__(self) -> None:
        self._awaited: dict[tuple[str, str], int] = {}
        """What was asked, in order, each with the number of the update that asked last."""
        self._updates = 0
        self._heard = asyncio.Event()

    def asked(self, request: UpdateRequest) -> int:
        """An update is about to be sent; returns its number."""
        self._updates += 1
        new = [("node", node.node_id) for node in request.new_schedulable_nodes]
        new += [("application", app.application_id) for app in request.new_applications]
        for one in new:
            self._awaited.pop(one, None)
            self._awaited[one] = self._updates
        return self._updates

    def heard(self, response: UpdateResponse) -> None:
        """The scheduler has answered."""
        answered = [("node", one.node_id) for one in response.accepted_nodes]
        answered += [("node", one.node_id) for one in response.rejected_nodes]
        answered += [("application", one.application_id) for one in response.accepted_applications]
        answered += [("application", one.application_id) for one in response.rejected_applications]
        for one in answered:
            self._awaited.pop(one, None)
        self._heard.set()

    async def all_until(self, number: int) -> None:
        """Wait until everything new in the updates up to this one was answered."""
        while self._awaited and next(iter(self._awaited.values())) <= number:
            self._heard.clear()
            await self._heard.wait()
