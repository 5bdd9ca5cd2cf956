"""A clock that stands still while the core works: one call, one moment."""

from __future__ import annotations

from yunikorn.clock import Clock


class StepClock:
    """Reads another clock when told to, and never goes back.

    The core asks for the time in many places. If it passed while a call is carried out, no recording could
    tell what the core saw; so whoever drives the core calls `step` before each call into it.
    """

    def __init__(self, source: Clock) -> None:
        self._source = source
        self._now = source.now()

    def now(self) -> int:
        """The moment of the last step, in nanoseconds."""
        return self._now

    def step(self) -> int:
        """Move to the present, or stay where the other clock has been set back; returns the moment (ns)."""
        self._now = max(self._now, self._source.now())
        return self._now
