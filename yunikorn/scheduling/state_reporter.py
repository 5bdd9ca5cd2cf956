"""Interface of the reporter of scheduling states, which observes the requests of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from yunikorn.accounting.outbox import SchedulingState
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node


class StateReporter(Protocol):
    """Reporter of the scheduling states of requests to the RM; observes pending requests and reservations."""

    def pending_added(self, ask: Ask) -> None:
        """Handle a request that starts to wait."""
        ...

    def pending_removed(self, ask: Ask) -> None:
        """Handle a request that no longer waits."""
        ...

    def reserved(self, ask: Ask, node: Node) -> None:
        """Handle a new reservation."""
        ...

    def unreserved(self, ask: Ask) -> None:
        """Handle the loss of a reservation."""
        ...

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
