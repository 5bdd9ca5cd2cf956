"""Parking: requests that nodes with room refused, to be tried again when something has changed.

A refusal by a predicate that does not say what it depends on may be undone by any commit, release or
change of a node (decision 40). Trying after each of them would waste the time of all others, so the
distance doubles with every refusal; when there is nothing else to decide, whatever has not been tried
since the last change is tried all the same. Without a change nothing is tried: an idle cycle is free.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from yunikorn.objects.ask import Ask

if TYPE_CHECKING:
    from yunikorn.objects.claim import ClaimTable
    from yunikorn.objects.ledger import Ledger
    from yunikorn.objects.shape import Shape

LONGEST = 16
"""Changes that are waited for at the most."""
IDLE_TRIES = 64
"""Requests that are tried for one change because there is nothing else to do."""


class Parking:
    """Asks, and whole shapes, that wait for a change."""

    def __init__(self, ledger: Ledger, claims: ClaimTable) -> None:
        self._ledger = ledger
        self._claims = claims
        self._heap: list[tuple[int, int, int, Ask | Shape]] = []
        self._count = 0
        self._idle_at = -1
        self._idle_left = 0

    def park(self, item: Ask | Shape) -> None:
        """Wait for a change: an ask is taken out of the running, a shape has been closed already."""
        now = self._ledger.changes
        self._count += 1
        heapq.heappush(self._heap, (now + min(LONGEST, 2 ** min(item.tries, 8)), self._count, now, item))
        item.tries += 1

    def wake_due(self) -> None:
        """Bring back what has waited long enough."""
        heap, changes = self._heap, self._ledger.changes
        while heap and heap[0][0] <= changes:
            self._wake(heapq.heappop(heap)[3])

    def wake_idle(self) -> bool:
        """With nothing else to do: bring back the next that has not been tried since the last change."""
        heap, changes = self._heap, self._ledger.changes
        if not heap:
            return False
        if self._idle_at != changes:
            self._idle_at, self._idle_left = changes, IDLE_TRIES
        tried: list[tuple[int, int, int, Ask | Shape]] = []
        woken = False
        while heap and self._idle_left and not woken:
            entry = heapq.heappop(heap)
            if entry[2] == changes:
                tried.append(entry)
            else:
                self._idle_left -= 1
                woken = self._wake(entry[3])
        if not woken and not tried:
            return False
        for entry in tried:
            heapq.heappush(heap, entry)
        if not woken:
            self._idle_left = 0
        return woken

    def _wake(self, item: Ask | Shape) -> bool:
        if isinstance(item, Ask):
            if not item.parked:
                return False
            self._ledger.unpark(item)
            return True
        self._claims.reopen(item)
        return True
