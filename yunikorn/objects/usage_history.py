"""What a queue used lately, for a policy that shares over time: half of it is forgotten every half-life.

Usage is an amount times the seconds for which it was held. It is worked out when somebody asks, from what
was kept at the last change and what is held since: exact at any moment, however seldom anybody looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from yunikorn.clock import SECOND

LN2 = math.log(2)


class UsageHistory:
    """The usage of one queue, of which `note` has to be told before every change."""

    __slots__ = ("_at", "_held", "_kept", "_now", "half_life")

    def __init__(self, half_life: float, now: Callable[[], int], held: Mapping[str, int]) -> None:
        """`half_life` in seconds; `held` is what is held at the moment, kept up to date by its owner."""
        self.half_life = half_life
        self._now = now
        self._held = held
        self._kept: dict[str, float] = {}
        self._at = now()

    def note(self) -> None:
        """What is held is about to change."""
        if self._now() != self._at:
            self._kept = self.recent()
            self._at = self._now()

    def recent(self) -> dict[str, float]:
        """What is left of the usage so far, by type: amounts times seconds."""
        kept = 2.0 ** (-(self._now() - self._at) / SECOND / self.half_life)
        whole = self.half_life / LN2 * (1.0 - kept)
        found = {name: usage * kept for name, usage in self._kept.items()}
        for name, amount in self._held.items():
            if amount:
                found[name] = found.get(name, 0.0) + amount * whole
        return found
