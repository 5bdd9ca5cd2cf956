"""Logs of failed attempts to place requests: each reason once, with a count and the latest time.

Equivalent requests are tried together, so they share a log: an ask class has the reasons of nodes, a pending
class those of limits, and a queue those of its quota. Only reasons that concern a single request are its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

MOST = 16
"""Number of different reasons that a log keeps, the latest ones."""
OVER_QUOTA = "Not enough queue quota"
OVER_LIMIT = "Not enough user quota"
NO_ROOM = "No node has room"


class FailedAttempts(NamedTuple):
    """All failed attempts for one reason."""

    reason: str
    number: int
    """Number of attempts; a reason of nodes counts once for each node of an attempt."""
    latest: int
    """Time of the latest attempt (ns)."""


class AttemptLog:
    """Failed attempts by reason."""

    __slots__ = ("_entries", "latest")

    def __init__(self) -> None:
        self._entries: dict[str, FailedAttempts] = {}
        """By reason, the latest attempt last."""
        self.latest = 0
        """Time of the latest attempt (ns)."""

    def note(self, reasons: Mapping[str, int], now: int) -> None:
        """Count an attempt that failed for these reasons."""
        entries, self.latest = self._entries, now
        for reason, count in reasons.items():
            known = entries.pop(reason, None)
            entries[reason] = FailedAttempts(reason, count + (known.number if known else 0), now)
        while len(entries) > MOST:
            del entries[next(iter(entries))]

    def repeat(self, now: int) -> None:
        """Count an attempt that failed for the same reasons as the latest one, as far as is known."""
        latest = self.latest
        self.note({one.reason: 1 for one in self._entries.values() if one.latest == latest}, now)

    def since(self, time: int, *, is_stopped: bool) -> Iterator[FailedAttempts]:
        """Yield the attempts that concern a request of this age, earlier ones only if they still stop it."""
        for one in self._entries.values():
            if one.latest >= time or (is_stopped and one.latest == self.latest):
                yield one


def merged(attempts: Iterable[FailedAttempts]) -> list[FailedAttempts]:
    """Return attempts with each reason once, the latest last."""
    found: dict[str, FailedAttempts] = {}
    for one in attempts:
        reason, number, latest = one
        known = found.get(reason, FailedAttempts(reason, 0, latest))
        found[reason] = FailedAttempts(reason, number + known.number, max(latest, known.latest))
    return sorted(found.values(), key=lambda one: one.latest)
