"""Parts of a long answer on their way from the core's thread to the event loop.

The event loop turns each part into JSON text while the reading continues. So there are only a few objects at
any time: a hundred thousand would keep Python's garbage collector busy for so long that decisions wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from typing import TypeVar

from yunikorn_rest.encoding import EncodedList
from yunikorn_rest.loop_turns import LoopTurns
from yunikorn_service.runtime.sliced_reads import STALLED, Stalled

T = TypeVar("T")

COMPLETE = object()
"""Part that completes a list."""
MOST = 100
"""Number of parts that wait for the event loop."""
HEAVIEST = 1000
"""Number of objects in these parts."""


class AnswerLists:
    """Lists of one answer, filled by a reading in the core's thread and encoded in the event loop."""

    def __init__(self, turns: LoopTurns) -> None:
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self._some = asyncio.Event()
        self._waiting: deque[tuple[str | EncodedList, object, int]] = deque()
        self._put = 0
        """Number of objects that the reading has passed on."""
        self._taken = 0
        """Number of those that the event loop has encoded."""
        self._lists: dict[str, EncodedList] = {}
        self._is_over = False

    def put(
        self, part: object, into: str | EncodedList = "", weight: int = 1
    ) -> Generator[Stalled | None, None, None]:
        """Add a part of `weight` objects to the list `into`; stalls while too many wait. Used by the reading.

        The list is one of the answer, by name, or a list inside of a later part, which `COMPLETE` completes.
        """
        self._put += weight
        self._waiting.append((into, part, weight))
        if len(self._waiting) == 1:
            self._loop.call_soon_threadsafe(self._some.set)
        while self._waiting and (len(self._waiting) >= MOST or self._put - self._taken >= HEAVIEST):
            yield STALLED
        yield None

    @property
    def waiting(self) -> int:
        """Number of parts that wait for the event loop."""
        return len(self._waiting)

    def list(self, name: str = "") -> EncodedList:
        """Return a list, which is complete after `encode`. Used by the event loop."""
        found = self._lists.get(name)
        if found is None:
            found = self._lists[name] = EncodedList()
            if self._is_over:
                found.end()
        return found

    async def encode(self, reading: asyncio.Future[T]) -> T:
        """Encode parts until the reading has ended, and return its result."""
        reading.add_done_callback(lambda _: self._some.set())
        until = self._turns.begin()
        while True:
            while self._waiting:
                into, part, weight = self._waiting.popleft()
                self._taken += weight
                target = into if isinstance(into, EncodedList) else self.list(into)
                if part is COMPLETE:
                    target.end()
                    continue
                for _ in target.add(part):
                    if self._turns.is_over(until):
                        until = await self._turns.next()
            if reading.done():
                break
            self._some.clear()
            if not (self._waiting or reading.done()):
                await self._some.wait()
        self._is_over = True
        for one in self._lists.values():
            one.end()
        return reading.result()
