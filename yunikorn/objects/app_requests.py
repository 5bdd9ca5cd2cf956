"""The waiting requests of one application, in order, by pending class.

Requests of one pending class stand in one run, sorted by priority, then creation, then arrival (decision 16).
The runs stand in the order of their heads, so the next request among any set of pending classes is that of
the
first run that has one of them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from yunikorn.objects.ask import INT32_MIN, Ask, Order

Head = tuple[Any, ...]
"""Where a run stands: the order of its first request, and the run; flat, so that few objects are compared."""

_ORDER = attrgetter("order")
_TRIM = 256
"""Served requests at the head of a run that are kept before the run is cut."""


class Run:
    """The waiting requests of one pending class, sorted; those before `head` are gone."""

    __slots__ = ("asks", "bit", "head", "order")

    def __init__(self, bit: int, ask: Ask) -> None:
        self.bit = bit
        self.asks = [ask]
        self.head = 0
        self.order: Order = ask.order
        """Of its first request."""

    def add(self, ask: Ask) -> None:
        """Put `ask` in its place."""
        asks = self.asks
        if asks[-1].goes_before(ask):
            asks.append(ask)
        else:
            insort(asks, ask, lo=self.head, key=_ORDER)

    def remove(self, ask: Ask) -> Ask | None:
        """Take `ask` out; returns who is first then, if anybody is left."""
        asks, head = self.asks, self.head
        if asks[head] is ask:
            self.head = head = head + 1
            if head > _TRIM and head * 2 > len(asks):
                del asks[:head]
                self.head = head = 0
        else:
            del asks[bisect_left(asks, ask.order, lo=head, key=_ORDER)]
        return asks[head] if head < len(asks) else None


class Requests:
    """What one application waits for and may be given now."""

    __slots__ = ("_heads", "_only", "_parked", "_runs", "bits")

    def __init__(self) -> None:
        self._runs: dict[int, Run] = {}
        self._heads: list[Head] = []
        """The runs, in the order of their first requests."""
        self._only: Run | None = None
        """The run, if there is but one; what is noted of its first request may be of an earlier one then."""
        self.bits = 0
        """Bits of the pending classes that it waits for, less what is unschedulable."""
        self._parked: dict[int, int] = {}

    def __iter__(self) -> Iterator[Ask]:
        for run in self._runs.values():
            yield from run.asks[run.head :]

    def add(self, ask: Ask) -> None:
        """A request starts to wait."""
        bit = ask.pending_class.bit
        run = self._runs.get(bit)
        if run is None:
            self._open(Run(bit, ask))
            return
        run.add(ask)
        if run.asks[run.head] is ask:
            self._move(run, ask)

    def _open(self, run: Run) -> None:
        """There is one run more."""
        only, heads = self._only, self._heads
        if only is not None:
            only.order = only.asks[only.head].order
            heads[0] = (*only.order, only)
        self._runs[run.bit] = run
        self.bits |= run.bit
        insort(heads, (*run.order, run))
        self._only = run if len(heads) == 1 else None

    def _close(self, run: Run) -> None:
        """Nobody is left in a run."""
        heads = self._heads
        del self._runs[run.bit], heads[self._place_of(run)]
        self.bits &= ~run.bit
        self._only = heads[0][-1] if len(heads) == 1 else None

    def _place_of(self, run: Run) -> int:
        """Where a run stands: nearly always in front, as whoever is served does."""
        heads = self._heads
        return 0 if heads[0][-1] is run else bisect_left(heads, run.order)

    def add_all(self, asks: Iterable[Ask]) -> None:
        """Requests start to wait: like `add` for each, quickest for one pending class in order."""
        run: Run | None = None
        for ask in asks:
            bit = ask.pending_class.bit
            if run is None or run.bit != bit:
                run = self._runs.get(bit)
            if run is not None and run.asks[-1].goes_before(ask):
                run.asks.append(ask)
            else:
                self.add(ask)

    def _move(self, run: Run, first: Ask) -> None:
        """The first request of a run is another now."""
        heads, order = self._heads, first.order
        if len(heads) == 1:
            heads[0] = (*order, run)
        else:
            del heads[self._place_of(run)]
            insort(heads, (*order, run))
        run.order = order

    def remove(self, ask: Ask) -> Ask | None:
        """A request waits no more; returns the first of its pending class that still does."""
        only = self._only
        run = self._runs[ask.pending_class.bit] if only is None else only
        asks, head = run.asks, run.head
        foremost = asks[head] is ask
        if foremost and head < _TRIM and head + 1 < len(asks):
            # Nearly always: the first of several.
            run.head = head = head + 1
            first: Ask | None = asks[head]
        else:
            first = run.remove(ask)
        if first is None:
            self._close(run)
        elif foremost and only is None:
            self._move(run, first)
        return first

    def mark_unschedulable(self, ask: Ask) -> None:
        """A request waits on, but is not to be tried: only its priority still counts."""
        self.remove(ask)
        self.keep(ask)

    def keep(self, ask: Ask) -> None:
        """A request that is not in waits, but is not to be tried."""
        self._parked[ask.priority] = self._parked.get(ask.priority, 0) + 1

    def forget_unschedulable(self, ask: Ask) -> None:
        """An unschedulable request waits no more, or is to be tried again: then `add` it."""
        left = self._parked[ask.priority] - 1
        if left:
            self._parked[ask.priority] = left
        else:
            del self._parked[ask.priority]

    @property
    def unschedulable(self) -> int:
        """How many are unschedulable."""
        return sum(self._parked.values())

    @property
    def any_wait(self) -> bool:
        """Whether any request waits, unschedulable ones included."""
        return bool(self._runs or self._parked)

    def runs(self) -> list[list[Ask]]:
        """Its requests, unschedulable ones left out, those of one pending class together; the foremost
        first.
        """
        return [run.asks[run.head :] for *_, run in self._heads]

    def first(self, wanted: int) -> Ask | None:
        """The foremost request of any of the `wanted` pending classes."""
        only = self._only
        if only is not None:
            return only.asks[only.head] if only.bit & wanted else None
        for head in self._heads:
            run: Run = head[-1]
            if run.bit & wanted:
                return run.asks[run.head]
        return None

    @property
    def priority(self) -> int:
        """The highest priority that waits, unschedulable ones included; the least int32 when nothing does."""
        best = max(self._parked) if self._parked else INT32_MIN
        if self._heads:
            foremost: Run = self._heads[0][-1]
            best = max(best, foremost.asks[foremost.head].priority)
        return best
