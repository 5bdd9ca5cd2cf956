"""What is known of the end of an allocation that still runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yunikorn.clock import Timer
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.eviction import Eviction
    from yunikorn.objects.termination import TerminationType


class AllocationExtras:
    """How an allocation is to end; few have one before they do."""

    __slots__ = ("eviction", "releasing", "replacement", "replaces", "timer")

    def __init__(self) -> None:
        self.eviction: Eviction | None = None
        """With what it has been told to go, if it has."""
        self.releasing: TerminationType | None = None
        """Why the RM was told to end it, while that is not confirmed."""
        self.replacement: Allocation | None = None
        """The real allocation that takes this placeholder's place once the RM confirms its end."""
        self.replaces: Allocation | None = None
        """The placeholder that it waits for: until then it is in no books but those of another node."""
        self.timer: Timer | None = None
        """Ends it when its time is up, if its time is limited."""
