"""Layouts of the scheduler interface as gRPC streams (`docs/decisions/0033`).

Small messages are decoded in the event loop, large messages in threads. Large responses are split into
messages by their number of entries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import attrs

from yunikorn.interface.messages import SchedulerAction, UpdateRequest, UpdateResponse
from yunikorn_service.wire import current, v0_11
from yunikorn_service.wire.protocol import UPDATE, UPDATE_ALLOCATION, UPDATE_APPLICATION, UPDATE_NODE

Parts = Iterator[tuple[str, UpdateResponse]]


@attrs.frozen(eq=False)
class ServerLayout:
    """Layout: its streams, and their codecs."""

    name: str
    decode: Mapping[str, Callable[[bytes], list[UpdateRequest]]]
    """Decoders by kind of stream; each returns the updates of a message in order."""
    encode: Mapping[str, Callable[[UpdateResponse], bytes]]
    """Encoders of responses by kind of stream."""
    parts: Callable[[UpdateResponse], Parts]
    """Splitter of a response into parts, with the kind of stream for each part."""
    sends_resync: bool
    """True if responses have a field for RESYNC; otherwise the streams end with a status for RESYNC."""


def _whole(response: UpdateResponse) -> Parts:
    yield UPDATE, response


def _by_subject(response: UpdateResponse) -> Parts:
    if response.accepted_nodes or response.rejected_nodes:
        yield (
            UPDATE_NODE,
            UpdateResponse(accepted_nodes=response.accepted_nodes, rejected_nodes=response.rejected_nodes),
        )
    if response.accepted_applications or response.rejected_applications or response.updated_applications:
        yield (
            UPDATE_APPLICATION,
            UpdateResponse(
                accepted_applications=response.accepted_applications,
                rejected_applications=response.rejected_applications,
                updated_applications=response.updated_applications,
            ),
        )
    if (
        response.new_allocations
        or response.released_allocations
        or response.released_allocation_asks
        or response.rejected_allocations
    ):
        yield (
            UPDATE_ALLOCATION,
            UpdateResponse(
                new_allocations=response.new_allocations,
                released_allocations=response.released_allocations,
                released_allocation_asks=response.released_allocation_asks,
                rejected_allocations=response.rejected_allocations,
            ),
        )


def _one(data: bytes) -> list[UpdateRequest]:
    return [v0_11.UPDATE_REQUEST.decode(data)]


ONE_STREAM = ServerLayout(
    "the Update stream",
    {UPDATE: _one},
    {UPDATE: v0_11.UPDATE_RESPONSE.encode},
    _whole,
    sends_resync=True,
)
"""Layout of the scheduler interface v0.11.0."""

BY_SUBJECT = ServerLayout(
    "a stream per subject (UpdateAllocation, UpdateApplication, UpdateNode)",
    {
        UPDATE_ALLOCATION: current.ALLOCATION_REQUEST.decode,
        UPDATE_APPLICATION: current.APPLICATION_REQUEST.decode,
        UPDATE_NODE: current.NODE_REQUEST.decode,
    },
    {
        UPDATE_ALLOCATION: current.ALLOCATION_RESPONSE.encode,
        UPDATE_APPLICATION: current.APPLICATION_RESPONSE.encode,
        UPDATE_NODE: current.NODE_RESPONSE.encode,
    },
    _by_subject,
    sends_resync=False,
)
"""Layout of later versions of the scheduler interface."""

SERVER_LAYOUTS = (ONE_STREAM, BY_SUBJECT)


T = TypeVar("T")

LARGE = 64 << 10
"""Size in bytes from which a message is decoded in a thread; its decoding takes about 5 ms."""
THREADS = 2
"""Maximum number of large messages decoded concurrently; they share one processor, and take memory."""


class Decoding:
    """Decoder of messages that does not block the event loop for long."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="yunikorn-decoding")

    async def decode(self, decode: Callable[[bytes], T], data: bytes) -> T:
        """Decode `data` with `decode`; raises what `decode` raises."""
        if len(data) < LARGE:
            return decode(data)
        return await asyncio.get_running_loop().run_in_executor(self._threads, decode, data)

    def close(self) -> None:
        """Stop decoding, without waiting for messages that are being decoded."""
        self._threads.shutdown(wait=False, cancel_futures=True)


LISTS = (
    "new_allocations",
    "released_allocations",
    "released_allocation_asks",
    "rejected_allocations",
    "rejected_applications",
    "accepted_applications",
    "updated_applications",
    "rejected_nodes",
    "accepted_nodes",
    "failed_node_updates",
)
"""Lists of a response, in the order of the interface."""


def entries_of(response: UpdateResponse) -> int:
    """Return the number of entries of a response."""
    return sum([len(getattr(response, name)) for name in LISTS])


def pieces(response: UpdateResponse, most: int) -> Iterator[UpdateResponse]:
    """Yield the response in messages of at most `most` entries, in order; the first carries the action."""
    if entries_of(response) <= most:
        yield response
        return
    piece, room = UpdateResponse(response.action), most
    for name in LISTS:
        entries = getattr(response, name)
        taken = 0
        while taken < len(entries):
            if not room:
                yield piece
                piece, room = UpdateResponse(SchedulerAction.NOACTION), most
            some = entries[taken : taken + room]
            setattr(piece, name, some)
            taken += len(some)
            room -= len(some)
    yield piece
