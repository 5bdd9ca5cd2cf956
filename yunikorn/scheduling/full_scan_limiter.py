"""Limits full node scans to one ask class at a time, with a pause proportional to the number of nodes.

A reservation needs a full scan if none of the sampled nodes fits. Its time is proportional to the number of
nodes, and many ask classes may need a scan at the same moment. The others wait in order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.ask_class import AskClass

PAUSE = SECOND // 100_000
"""Pause (ns) per scanned node: several times the duration of the scan itself."""


class FullScanLimiter:
    """Queue of the ask classes of one partition that wait for a full node scan."""

    def __init__(self, partition: Partition, retry: Callable[[AskClass], None]) -> None:
        self._partition = partition
        self._retry = retry
        """Retries the pending requests of an ask class."""
        self._waiting: dict[AskClass, None] = {}
        """Waiting ask classes in order of arrival; while there are any, a timer admits the next."""
        self._next: AskClass | None = None
        """Ask class that may scan next, until it has done so or the next ask class is admitted."""
        self._pause_until = 0

    def try_acquire(self, ask_class: AskClass) -> bool:
        """Return True if a request of `ask_class` may scan all nodes now; otherwise it is retried later."""
        now = self._partition.clock.now()
        if ask_class is self._next or (now >= self._pause_until and not self._waiting):
            self._next = None
            self._pause_until = now + PAUSE * len(self._partition.nodes)
            return True
        if not self._waiting:
            self._partition.timers.at(self._pause_until, self._advance)
        self._waiting[ask_class] = None
        return False

    def _advance(self) -> None:
        self._next = None
        while self._waiting:
            ask_class = next(iter(self._waiting))
            del self._waiting[ask_class]
            if ask_class.waiting and ask_class.reserving_ask is None:
                self._next = ask_class
                break
        if self._waiting:
            # The pause starts now: after a late timer, several ask classes would otherwise scan in one round.
            self._partition.timers.after(PAUSE * len(self._partition.nodes), self._advance)
        if self._next is not None:
            self._retry(self._next)
