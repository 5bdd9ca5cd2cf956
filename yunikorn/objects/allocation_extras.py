"""Rarely needed termination state of an allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yunikorn.clock import Timer
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.eviction import Eviction
    from yunikorn.objects.termination import TerminationType


class AllocationExtras:
    """Termination state of an allocation that has not ended; created on first use."""

    __slots__ = ("eviction", "releasing", "replacement", "replaces", "timer")

    def __init__(self) -> None:
        self.eviction: Eviction | None = None
        """The eviction that this allocation is a victim of, if any."""
        self.releasing: TerminationType | None = None
        """Termination type of the release sent to the RM, until the RM confirms that release."""
        self.replacement: Allocation | None = None
        """The real allocation that replaces this placeholder once the RM confirms the release."""
        self.replaces: Allocation | None = None
        """The placeholder that this allocation will replace; until then only another node's usage includes
        the allocation."""
        self.timer: Timer | None = None
        """Timer that ends the allocation when its execution timeout expires, if the allocation has one."""
