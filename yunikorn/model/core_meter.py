"""Contract of what counts and measures a core, for metrics; the core has no implementation.

No decision depends on a meter. A core without one calls none of these methods. A meter may
derive classes from the node orders and the cycle of a partition, which measure searches and sorts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application

    Decide = Callable[[], Allocation | None]
    """Placement of the next request; None when nothing can be placed now."""


class MeasuredTurns(Protocol):
    """Decisions of one partition, some of which are measured."""

    def decide(self) -> Allocation | None:
        """Place the next request; None when nothing can be placed now."""

    def decide_up_to(self, most: int | None) -> int:
        """Place up to `most` requests, or all that can be placed now; returns the number of allocations."""


class CoreMeter(Protocol):
    """Counts of changes, and durations in the core's thread (ns); called in the core's thread only."""

    def stopwatch(self) -> int:
        """Return a time that never goes back."""

    def count_response(self, outbox: Any) -> None:
        """Count the entries of an `Outbox`."""

    def count_recovery(self, allocation: Allocation) -> None:
        """Count an allocation that a resource manager reported."""

    def count_release(self, allocation: Allocation) -> None:
        """Count the end of an allocation."""

    def count_state(self, app: Application, path: str) -> None:
        """Count a state that an application has entered; `path` names its queue, empty if there is none."""

    def count_removed_node(self) -> None:
        """Count a node that its resource manager has removed."""

    def note_preemption(self, duration: int) -> None:
        """Add a search for victims."""

    def note_round(self, duration: int, decisions: int) -> None:
        """Add a round of decisions of all partitions."""

    def note_step(self, duration: int) -> None:
        """Add a step of the core's thread."""

    def make_orders(self, *arguments: Any) -> Any:
        """Return `NodeOrders` of a partition."""

    def make_cycle(self, *arguments: Any) -> Any:
        """Return the `Cycle` of a partition."""

    def measure(self, decide: Decide, then: Decide) -> MeasuredTurns:
        """Return the decisions by `decide`, and by `then`, which is called when nothing can be placed."""
