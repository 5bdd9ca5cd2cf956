"""Layouts of the interface from a client's point of view: the streams, and the messages on each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from yunikorn.interface.messages import UpdateRequest, UpdateResponse
from yunikorn.wire import current, v0_11
from yunikorn.wire.generated import si_current_pb2 as wire
from yunikorn.wire.protocol import UPDATE, UPDATE_ALLOCATION, UPDATE_APPLICATION, UPDATE_NODE


@attrs.frozen(eq=False)
class Layout:
    """A layout: its streams, and the encoding of messages on them."""

    name: str
    decode: Mapping[str, Callable[[bytes], UpdateResponse]]
    """Decoder of responses, by stream."""
    encode: Callable[[UpdateRequest], list[tuple[str, bytes]]]
    """Encoder of updates, as bytes with their stream; raises `MalformedMessage`."""
    greet: Mapping[str, Callable[[str], bytes]]
    """Encoder of the first message of a stream, which has the RM's id only, by stream."""
    after_answers: str = ""
    """Stream whose messages wait for the answers to new nodes and applications on the other streams."""


def _whole(request: UpdateRequest) -> list[tuple[str, bytes]]:
    return [(UPDATE, v0_11.UPDATE_REQUEST.encode(request))]


def _by_subject(request: UpdateRequest) -> list[tuple[str, bytes]]:
    parts = (
        (UPDATE_NODE, current.to_node_request(request)),
        (UPDATE_APPLICATION, current.to_application_request(request)),
        (UPDATE_ALLOCATION, current.to_allocation_request(request)),
    )
    return [(kind, message.SerializeToString()) for kind, message in parts if message is not None]


ONE_STREAM = Layout(
    "Update",
    {UPDATE: v0_11.UPDATE_RESPONSE.decode},
    _whole,
    {UPDATE: lambda rm_id: v0_11.UPDATE_REQUEST.encode(UpdateRequest(rm_id))},
)
"""Release v0.11.0: everything in one stream."""

BY_SUBJECT = Layout(
    "UpdateAllocation, UpdateApplication, UpdateNode",
    {
        UPDATE_ALLOCATION: current.ALLOCATION_RESPONSE.decode,
        UPDATE_APPLICATION: current.APPLICATION_RESPONSE.decode,
        UPDATE_NODE: current.NODE_RESPONSE.decode,
    },
    _by_subject,
    {
        UPDATE_ALLOCATION: lambda rm_id: wire.AllocationRequest(rmID=rm_id).SerializeToString(),
        UPDATE_APPLICATION: lambda rm_id: wire.ApplicationRequest(rmID=rm_id).SerializeToString(),
        UPDATE_NODE: lambda rm_id: wire.NodeRequest(rmID=rm_id).SerializeToString(),
    },
    after_answers=UPDATE_ALLOCATION,
)
"""The newer layout: a stream per subject. Has no UUIDs, and each ask is for one allocation."""
