"""One stream of a resource manager: its queue of responses, and its end."""

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
    """Stream of responses to a resource manager. Used in the event loop only."""

    def __init__(self, kind: str, remote: RemoteRM, peer: Peer) -> None:
        self.kind = kind
        """Name of the gRPC method that was called."""
        self.remote = remote
        """Registration that the stream belongs to."""
        self.peer = peer
        """Client that opened the stream."""
        self.is_stale = False
        """True after RESYNC was sent: updates are ignored until the RM registers again."""
        self.half_closed = False
        """True if the RM sends nothing more."""
        self.ended: asyncio.Future[CallRefusal | None] = asyncio.get_running_loop().create_future()
        """Set when the service ends the stream: to a refusal, or to None for status OK."""
        self._waiting: deque[UpdateResponse] = deque()
        self._some = asyncio.Event()
        self._finished = False
        self.last: CallRefusal | None = None
        """Status with which the stream ends after all responses have been sent."""
        self._confirmed: dict[int, asyncio.Future[None]] = {}

    def put(self, response: UpdateResponse) -> None:
        """Append a response to the queue."""
        self._waiting.append(response)
        self._some.set()

    def clear(self) -> list[UpdateResponse]:
        """Empty the queue, and return its responses."""
        dropped = list(self._waiting)
        self._waiting.clear()
        return dropped

    async def confirm(self) -> None:
        """Wait until all waiting responses, and an empty response after them, have been sent.

        An RM that half-closes its stream and an RM that has vanished look alike until something is sent.
        """
        last = UpdateResponse()
        self._confirmed[id(last)] = arrived = asyncio.get_running_loop().create_future()
        self.put(last)
        await arrived

    def sent(self, response: UpdateResponse) -> None:
        """Note that a response has been sent."""
        arrived = self._confirmed.pop(id(response), None)
        if arrived is not None and not arrived.done():
            arrived.set_result(None)

    def finish(self, refusal: CallRefusal | None = None) -> None:
        """End the stream after all waiting responses have been sent, with a refusal or with status OK."""
        self._finished = True
        self.last = refusal
        self._some.set()

    async def take(self) -> UpdateResponse | None:
        """Return the next response; None when the stream is finished."""
        while not self._waiting:
            if self._finished:
                return None
            self._some.clear()
            await self._some.wait()
        return self._waiting.popleft()

    def end(self, refusal: CallRefusal | None) -> None:
        """End the stream now; only the first refusal counts."""
        if not self.ended.done():
            self.ended.set_result(refusal)
