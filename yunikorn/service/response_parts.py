"""Sizes of responses in entries, and the splitting of responses into messages."""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.interface.messages import SchedulerAction, UpdateResponse

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
