"""A resource manager that is out of step with the core: why, what it is owed, and what is kept for it."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from yunikorn.clock import Timer
from yunikorn.objects.outbox import Outbox

KEPT = 10_000
"""How many entries of a response are kept for an RM that does not listen. What it missed it learns by
reporting anew in any case, so more than that is not worth the memory."""


@attrs.define
class PausedState:
    """From the moment on at which an RM was lost, or out of step, until it registers again (decision 31)."""

    reason: str
    reachable: bool
    """Whether there is anybody at the other end of its callback."""
    owes_resync: bool = True
    """Whether it has still to be told that it must register again."""
    telling: bool = False
    """Whether it is being told right now: what it says from within that call is no reason to tell again."""
    overflowed: bool = False
    """Whether more was to be said than is kept; then nothing is kept."""
    timer: Timer | None = None
    """When it is given up."""

    def keep(self, outboxes: Iterable[Outbox]) -> None:
        """Hold back what there is to say to it, as long as that is not too much."""
        waiting = list(outboxes)
        self.overflowed = self.overflowed or sum(outbox.size for outbox in waiting) > KEPT
        if self.overflowed:
            for outbox in waiting:
                outbox.drain()

    def end(self) -> None:
        """It registered again, or is gone for good."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
