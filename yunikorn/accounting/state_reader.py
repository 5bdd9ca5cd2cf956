"""Interface of a reader that follows the pending requests of a partition, and their reservations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
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
