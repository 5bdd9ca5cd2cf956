"""The waiting requests of one application, in order, by claim.

Requests of one claim stand in one run, sorted by priority, then creation, then arrival (decision 16).
The next request among any set of claims is then the least of a few heads.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from operator import attrgetter

from yunikorn.objects.ask import INT32_MIN, Ask

_ORDER = attrgetter("order")
_TRIM = 256
"""Served requests at the head of a run that are kept before the run is cut."""


class Run:
    """The waiting requests of one claim, sorted; those before `head` are gone."""

    __slots__ = ("asks", "head")

    def __init__(self) -> None:
        self.asks: list[Ask] = []
        self.head = 0

    def add(self, ask: Ask) -> None:
        """Put `ask` in its place."""
        asks = self.asks
        if not asks or asks[-1].order <= ask.order:
            asks.append(ask)
        else:
            insort(asks, ask, lo=self.head, key=_ORDER)

    def remove(self, ask: Ask) -> None:
        """Take `ask` out."""
        asks = self.asks
        if asks[self.head] is ask:
            self.head += 1
            if self.head > _TRIM and self.head * 2 > len(asks):
                del asks[: self.head]
                self.head = 0
        else:
            del asks[bisect_left(asks, ask.order, lo=self.head, key=_ORDER)]


class Requests:
    """What one application waits for and may be given now."""

    __slots__ = ("_parked", "_runs", "bits")

    def __init__(self) -> None:
        self._runs: dict[int, Run] = {}
        self.bits = 0
        """Bits of the claims that it waits for, less what is parked."""
        self._parked: dict[int, int] = {}

    def __iter__(self) -> Iterator[Ask]:
        for run in self._runs.values():
            yield from run.asks[run.head :]

    def add(self, ask: Ask) -> None:
        """A request starts to wait."""
        bit = ask.claim.bit
        run = self._runs.get(bit)
        if run is None:
            run = self._runs[bit] = Run()
            self.bits |= bit
        run.add(ask)

    def remove(self, ask: Ask) -> None:
        """A request waits no more."""
        bit = ask.claim.bit
        run = self._runs[bit]
        run.remove(ask)
        if run.head == len(run.asks):
            del self._runs[bit]
            self.bits &= ~bit

    def park(self, ask: Ask) -> None:
        """A request waits on, but is not to be tried: only its priority still counts."""
        self.remove(ask)
        self.keep(ask)

    def keep(self, ask: Ask) -> None:
        """A request that is not in waits, but is not to be tried."""
        self._parked[ask.priority] = self._parked.get(ask.priority, 0) + 1

    def forget_parked(self, ask: Ask) -> None:
        """A parked request waits no more, or is to be tried again: then `add` it."""
        left = self._parked[ask.priority] - 1
        if left:
            self._parked[ask.priority] = left
        else:
            del self._parked[ask.priority]

    @property
    def parked(self) -> int:
        """How many are parked."""
        return sum(self._parked.values())

    @property
    def any_wait(self) -> bool:
        """Whether any request waits, parked ones included."""
        return bool(self._runs or self._parked)

    def runs(self) -> list[list[Ask]]:
        """Its requests, parked ones left out, those of one claim together; the foremost first."""
        found = [run.asks[run.head :] for run in self._runs.values()]
        return sorted(found, key=lambda asks: asks[0].order)

    def first(self, wanted: int) -> Ask | None:
        """The foremost request of any of the `wanted` claims."""
        best: Ask | None = None
        for bit, run in self._runs.items():
            if bit & wanted:
                ask = run.asks[run.head]
                if best is None or ask.order < best.order:
                    best = ask
        return best

    @property
    def priority(self) -> int:
        """The highest priority that waits, parked ones included; the least int32 when nothing does."""
        best = max(self._parked) if self._parked else INT32_MIN
        for run in self._runs.values():
            priority = run.asks[run.head].priority
            if priority > best:
                best = priority
        return best
