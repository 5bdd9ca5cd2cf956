"""Policies of one partition that are asked again because a plugin has said so.

See docs/decisions/archive/0200.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.clock import Clock, Timers

SPACING = SECOND
"""Shortest time (ns) between two wake-ups of one kind: those in between are one, at its end."""


class WakeUps:
    """Wake-ups by kind of policy, so many per time that the core still decides."""

    def __init__(self, clock: Clock, timers: Timers, ask_again: Callable[[str], None]) -> None:
        """Create without wake-ups; `ask_again` is called with the kind whose policies are due."""
        self._clock, self._timers, self._ask_again = clock, timers, ask_again
        self._next: dict[str, int] = {}
        """Time (ns) from which the policies of a kind may be asked again, by kind."""
        self._waiting: set[str] = set()
        """Kinds with a timer."""

    def wake(self, kind: str) -> None:
        """Ask the policies of a kind again, at once or after `SPACING` since the last time."""
        if kind in self._waiting:
            return
        due = self._next.get(kind, 0)
        if due <= self._clock.now():
            self._go(kind)
        else:
            self._waiting.add(kind)
            self._timers.at(due, partial(self._go, kind))

    def _go(self, kind: str) -> None:
        self._waiting.discard(kind)
        self._next[kind] = self._clock.now() + SPACING
        self._ask_again(kind)
