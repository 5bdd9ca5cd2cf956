"""Usage history of a queue or application, for policies that share over time: usage decays with a half-life.

Usage is an amount multiplied by the seconds for which it was allocated. The present value is computed on
demand from the value at the latest change and the amount allocated since. It is exact at any time, however
rarely it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from yunikorn.clock import SECOND

LN2 = math.log(2)


class UsageHistory:
    """Decayed usage of a queue or application; call `note` before every change of the allocated amount."""

    __slots__ = ("_allocated", "_at", "_kept", "_now", "half_life")

    def __init__(self, half_life: float, now: Callable[[], int], allocated: Mapping[str, int]) -> None:
        """Start with no usage; `half_life` is in seconds, and `allocated` is the live allocated amount."""
        self.half_life = half_life
        self._now = now
        self._allocated = allocated
        self._kept: dict[str, float] = {}
        self._at = now()

    def note(self, app: object = None) -> None:
        """Record the usage so far; the allocated amount is about to change."""
        if self._now() != self._at:
            self._kept = self.recent()
            self._at = self._now()

    def credit(self, amounts: Mapping[str, float], since: int) -> None:
        """Add the usage of amounts that were allocated at an earlier time, which was unknown until now."""
        self.note()
        whole = self.half_life / LN2 * (1.0 - self._kept_since(since))
        for name, amount in amounts.items():
            self._kept[name] = self._kept.get(name, 0.0) + amount * whole

    def recent(self) -> dict[str, float]:
        """Return the decayed usage by type, in amounts times seconds."""
        kept = self._kept_since(self._at)
        whole = self.half_life / LN2 * (1.0 - kept)
        found = {name: usage * kept for name, usage in self._kept.items()}
        for name, amount in self._allocated.items():
            if amount:
                found[name] = found.get(name, 0.0) + amount * whole
        return found

    def _kept_since(self, since: int) -> float:
        """Return the part of usage at an earlier time that counts now; a system clock may have gone back."""
        kept: float = 2.0 ** (-max(self._now() - since, 0) / SECOND / self.half_life)
        return kept
