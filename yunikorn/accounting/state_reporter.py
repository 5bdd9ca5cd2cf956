"""Interfaces of what follows the pending requests of a partition, and reports their scheduling states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from yunikorn.accounting.outbox import SchedulingState
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node


class StateReader(Protocol):
    """Reader of the changes of pending requests and their reservations."""

    def pending_added(self, ask: Ask) -> None:
        """Handle a request that starts to wait."""
        ...

    def pending_removed(self, ask: Ask) -> None:
        """Handle a request that no longer waits, because it was allocated or dropped."""
        ...

    def reserved(self, ask: Ask, node: Node) -> None:
        """Handle a new reservation."""
        ...

    def reservation_lost(self, ask: Ask) -> None:
        """Handle the loss of the reservation of a request that still waits."""
        ...


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
