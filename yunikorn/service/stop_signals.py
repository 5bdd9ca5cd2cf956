"""Signals that ask a service to end: the first asks, one that comes later insists."""

from __future__ import annotations

from collections.abc import Callable

ECHO = 1.0
"""Seconds in which a second signal is taken for the first one once more."""


class StopSignals:
    """Tells a user who has lost patience from one signal that arrives twice.

    Whoever signals a process often signals its group as well: so do `timeout`, and a terminal whose
    Ctrl-C a wrapper passes on.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` says the time in seconds, by a clock that only goes forward."""
        self._now = now
        self._first: float | None = None

    def asks(self) -> bool:
        """A signal came: True for the first one, with which the end begins."""
        if self._first is None:
            self._first = self._now()
            return True
        return False

    @property
    def insists(self) -> bool:
        """Whether one that comes now, after the first, means at once."""
        return self._first is not None and self._now() - self._first >= ECHO
