"""Whoever listens to a replay in a test."""

from __future__ import annotations

from yunikorn.interface.messages import UpdateResponse
from yunikorn.recording.recorded_entry import RecordedEntry


class Ear:
    """Remembers everything."""

    def __init__(self) -> None:
        self.beginnings = 0
        self.responses: list[tuple[int, str, UpdateResponse]] = []
        """Time (ns since the beginning), RM, response."""
        self.refusals: list[tuple[int, str]] = []
        """Number of the line, and the reason."""
        self.remarks: list[tuple[int, str]] = []

    def of(self, rm_id: str) -> list[UpdateResponse]:
        """The responses to one RM."""
        return [response for _, to, response in self.responses if to == rm_id]

    def placed(self) -> list[tuple[str, str]]:
        """Key and node of all that was placed, in order."""
        return [
            (one.allocation_key, one.node_id)
            for _, _, response in self.responses
            for one in response.new_allocations
        ]

    def on_begin(self, at: int, line: RecordedEntry | None) -> None:
        """A core begins."""
        self.beginnings += 1

    def on_response(self, at: int, rm_id: str, response: UpdateResponse) -> None:
        """A response."""
        self.responses.append((at, rm_id, response))

    def on_refused(self, at: int, line: RecordedEntry, reason: str) -> None:
        """A call was refused."""
        self.refusals.append((line.number, reason))

    def on_note(self, at: int, line: RecordedEntry, remark: str) -> None:
        """Something cannot be played."""
        self.remarks.append((line.number, remark))
