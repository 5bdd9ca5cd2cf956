"""Interface of the reporter of scheduling states, which reads the changes of a partition's requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from yunikorn.accounting.state_reader import StateReader

if TYPE_CHECKING:
    from yunikorn.accounting.outbox import SchedulingState
    from yunikorn.model.ask import Ask


class StateReporter(StateReader, Protocol):
    """Reporter of the scheduling states of requests to the RM."""

    def has_failed(self, ask: Ask) -> bool:
        """Return True if the RM was told that no node fits the request."""
        ...

    def review(self) -> None:
        """Examine the pending requests, now or later; called when nothing can be placed."""
        ...

    def recount(self) -> None:
        """Handle a change of quotas and limits by a reload."""
        ...

    def stop(self) -> None:
        """Stop reporting."""
        ...

    def drain(self) -> list[SchedulingState]:
        """Return the new reports and clear them."""
        ...
