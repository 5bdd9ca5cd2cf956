"""Test kit for replays: a listener that records everything a replay reports."""

from __future__ import annotations

from yunikorn.interface.messages import UpdateResponse
from yunikorn_service.recording.recorded_entry import RecordedEntry


class CollectingListener:
    """Listener that records all notifications of a replay."""

    def __init__(self) -> None:
        self.beginnings = 0
        self.responses: list[tuple[int, str, UpdateResponse]] = []
        """Time (ns since the beginning), RM id and response."""
        self.refusals: list[tuple[int, str]] = []
        """Number of the line and the reason."""
        self.remarks: list[tuple[int, str]] = []

    def of(self, rm_id: str) -> list[UpdateResponse]:
        """Return the responses to one RM."""
        return [response for _, to, response in self.responses if to == rm_id]

    def placed(self) -> list[tuple[str, str]]:
        """Return key and node of all placements, in order."""
        return [
            (one.allocation_key, one.node_id)
            for _, _, response in self.responses
            for one in response.new_allocations
        ]

    def on_begin(self, at: int, line: RecordedEntry | None) -> None:
        """Record the start of a core."""
        self.beginnings += 1

    def on_response(self, at: int, rm_id: str, response: UpdateResponse) -> None:
        """Record a response."""
        self.responses.append((at, rm_id, response))

    def on_refused(self, at: int, line: RecordedEntry, reason: str) -> None:
        """Record a refused call."""
        self.refusals.append((line.number, reason))

    def on_note(self, at: int, line: RecordedEntry, remark: str) -> None:
        """Record a note about an entry that cannot be replayed."""
        self.remarks.append((line.number, remark))
