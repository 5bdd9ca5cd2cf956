"""Full looks: whose turn it is to have every node looked at, so that no round looks at all of them twice.

Where a handful of nodes does not do, the one to keep for a request is chosen among all. That takes as long
as there are nodes, and many kinds of requests may need it in one moment. So there is one such look at a
time, with a pause after it that grows with the number of nodes; who comes meanwhile stands in line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND

if TYPE_CHECKING:
    from yunikorn.objects.ask_class import AskClass
    from yunikorn.objects.partition import Partition

PAUSE = SECOND // 100_000
"""Nanoseconds of pause for every node that was looked at: several times what the look itself takes."""


class FullScanLimiter:
    """The line of the ask classes of one partition that wait for a look at all nodes."""

    def __init__(self, partition: Partition, retry: Callable[[AskClass], None]) -> None:
        self._partition = partition
        self._retry = retry
        """Has the requests of an ask class tried again, if any wait."""
        self._waiting: dict[AskClass, None] = {}
        """In the order in which they came; while there are any, a timer calls the next."""
        self._next: AskClass | None = None
        """The one whose turn it is, until it has looked or the next is called."""
        self._pause_until = 0

    def try_acquire(self, ask_class: AskClass) -> bool:
        """Whether a request of `ask_class` may have all nodes looked at now; if not, it is tried again."""
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
            # Counted from now: were it late, several would have their turn in one round.
            self._partition.timers.after(PAUSE * len(self._partition.nodes), self._advance)
        if self._next is not None:
            self._retry(self._next)
