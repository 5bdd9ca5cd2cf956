"""What waits to be sent on one stream."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from yunikorn.interface.client.awaited_answers import AwaitedAnswers


class Outgoing:
    """One stream of a session, on its way to the scheduler. Used in one event loop."""

    def __init__(self, call: Any, awaited: AwaitedAnswers | None = None) -> None:
        self.call = call
        self._awaited = awaited
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._finished = False

    def put(self, data: bytes, number: int = 0) -> None:
        """Have bytes sent after all that waits; where answers are awaited, those up to this update's."""
        self._waiting.append((number, data))
        self._some.set()

    def finish(self) -> None:
        """Have the stream half-closed when all has been sent."""
        self._finished = True
        self._some.set()

    @property
    def waits(self) -> int:
        """How many messages wait."""
        return len(self._waiting)

    async def room(self, most: int) -> None:
        """Wait until fewer than `most` messages wait."""
        while len(self._waiting) >= most:
            self._room.clear()
            await self._room.wait()

    async def send(self) -> None:
        """Send, to the end."""
        while True:
            while self._waiting:
                number, data = self._waiting[0]
                if self._awaited is not None:
                    await self._awaited.all_until(number)
                await self.call.write(data)
                self._waiting.popleft()
                self._room.set()
            if self._finished:
                break
            self._some.clear()
            await self._some.wait()
        await self.call.done_writing()
