"""Responses as text; entries without an id or key are marked as such."""

from yunikorn.interface.messages import (
    RejectedAllocationAsk,
    RejectedApplication,
    RejectedNode,
    UpdateResponse,
)
from yunikorn_service.recording.replay_comparison import response_lines


def test_unnamed_entries_are_printed_as_unnamed() -> None:
    response = UpdateResponse(
        rejected_nodes=[RejectedNode("", "a node needs an id")],
        rejected_applications=[RejectedApplication("", "an application needs an id")],
        rejected_allocations=[RejectedAllocationAsk("", "", "it needs either")],
    )
    assert list(response_lines(response)) == [
        "node (no id) rejected: a node needs an id",
        "application (no id) rejected: an application needs an id",
        "ask (no key) of (no application) rejected: it needs either",
    ]
