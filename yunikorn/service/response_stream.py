"""One stream of a resource manager: what waits to be sent on it, and how it comes to its end."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from yunikorn.interface.messages import UpdateResponse

if TYPE_CHECKING:
    from yunikorn.service.call_refusals import CallRefusal
    from yunikorn.service.peers import Peer
    from yunikorn.service.remote import RemoteRM


class ResponseStream:
    """A stream that belongs to a resource manager. Used in the event loop only."""

    def __init__(self, kind: str, remote: RemoteRM, peer: Peer) -> None:
        self.kind = kind
        """The method that was called."""
        self.remote = remote
        """The registration it belongs to."""
        self.peer = peer
        """The client that opened it."""
        self.is_stale = False
        """Whether the RM was told RESYNC: what comes is of no use until it has registered anew."""
        self.half_closed = False
        """Whether the RM has nothing more to say."""
        self.ended: asyncio.Future[CallRefusal | None] = asyncio.get_running_loop().create_future()
        """Set once the service wants it to end: with a refusal, or in peace."""
        self._waiting: deque[UpdateResponse] = deque()
        self._some = asyncio.Event()
        self._finished = False
        self.last: CallRefusal | None = None
        """The status with which it ends when all has been said."""
        self._confirmed: dict[int, asyncio.Future[None]] = {}

    def put(self, response: UpdateResponse) -> None:
        """Have a response sent, after those that wait already."""
        self._waiting.append(response)
        self._some.set()

    def clear(self) -> list[UpdateResponse]:
        """Forget what waits, and return it."""
        dropped = list(self._waiting)
        self._waiting.clear()
        return dropped

    async def confirm(self) -> None:
        """Wait until all that waits has been sent, and a response that says nothing after it.

        An RM that has nothing more to say and one that is gone look alike, until something is sent to it.
        """
        last = UpdateResponse()
        self._confirmed[id(last)] = arrived = asyncio.get_running_loop().create_future()
        self.put(last)
        await arrived

    def sent(self, response: UpdateResponse) -> None:
        """This response has left."""
        arrived = self._confirmed.pop(id(response), None)
        if arrived is not None and not arrived.done():
            arrived.set_result(None)

    def finish(self, refusal: CallRefusal | None = None) -> None:
        """Have it end when everything that waits has been sent: in peace, or with a status."""
        self._finished = True
        self.last = refusal
        self._some.set()

    async def take(self) -> UpdateResponse | None:
        """The next response; None when all has been said."""
        while not self._waiting:
            if self._finished:
                return None
            self._some.clear()
            await self._some.wait()
        return self._waiting.popleft()

    def end(self, refusal: CallRefusal | None) -> None:
        """Have it end now; the first reason counts."""
        if not self.ended.done():
            self.ended.set_result(refusal)
