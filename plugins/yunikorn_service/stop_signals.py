"""Signals that stop a service: the first requests an orderly stop, a later one an immediate exit."""

from __future__ import annotations

from collections.abc import Callable

ECHO = 1.0
"""Seconds after the first signal in which another signal counts as its duplicate."""


class StopSignals:
    """Filter that distinguishes a repeated request of a user from a signal that is delivered twice.

    A signal is often sent to a process and to its group: `timeout` does so, and so does a terminal whose
    Ctrl-C a wrapper passes on.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """Use `now` as the clock: seconds, monotonic."""
        self._now = now
        self._first: float | None = None

    def asks(self) -> bool:
        """Process a signal; returns True for the first one, which begins the orderly stop."""
        if self._first is None:
            self._first = self._now()
            return True
        return False

    @property
    def is_repeated(self) -> bool:
        """True if a signal that arrives now, after the first, requests an immediate exit."""
        return self._first is not None and self._now() - self._first >= ECHO
