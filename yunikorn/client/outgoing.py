"""Queue of the messages to send on one stream."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from yunikorn.client.awaited_answers import AwaitedAnswers


class Outgoing:
    """Outgoing messages of one stream of a session; used in one event loop."""

    def __init__(self, call: Any, awaited: AwaitedAnswers | None = None) -> None:
        self.call = call
        self._awaited = awaited
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._finished = False

    def put(self, data: bytes, number: int = 0) -> None:
        """Queue bytes for sending.

        Where answers are awaited, the bytes wait until all updates up to `number` are answered.
        """
        self._waiting.append((number, data))
        self._some.set()

    def finish(self) -> None:
        """Half-close the stream after all queued messages."""
        self._finished = True
        self._some.set()

    @property
    def waits(self) -> int:
        """Number of queued messages."""
        return len(self._waiting)

    async def room(self, most: int) -> None:
        """Wait until fewer than `most` messages are queued."""
        while len(self._waiting) >= most:
            self._room.clear()
            await self._room.wait()

    async def send(self) -> None:
        """Send messages until the stream is finished."""
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
