"""Pending requests of one application, in order, grouped by pending class.

Requests of one pending class form a run, sorted by priority, then by the key of the sort policy if it orders
requests, then creation time, then arrival (docs/decisions/0016, 0203). Runs are sorted by their first
requests. The next request among any set of pending classes is therefore the first request of the first run
whose class is in the set.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from yunikorn.model.ask import BY_ARRIVAL
from yunikorn.resources import INT32_MIN

if TYPE_CHECKING:
    from yunikorn.model.ask import Ask, Order

Head = tuple[Any, ...]
"""Order of a run's first request, followed by the run; a flat tuple, so that few objects are compared."""

_ORDER = attrgetter("order")
_TRIM = 256
"""Number of allocated requests kept at the head of a run before the list is trimmed."""


class Run:
    """Pending requests of one pending class, sorted; the entries before `head` no longer wait."""

    __slots__ = ("asks", "bit", "head", "order")

    def __init__(self, bit: int, ask: Ask) -> None:
        self.bit = bit
        self.asks = [ask]
        self.head = 0
        self.order: Order = (-ask.priority, ask.sort_key, ask.created, ask.arrival)
        """Order of the first request; may be outdated while this is the only run (see `Requests._only`)."""

    def add(self, ask: Ask) -> None:
        """Insert `ask` at its position."""
        asks = self.asks
        if asks[-1].precedes(ask):
            asks.append(ask)
        else:
            insort(asks, ask, lo=self.head, key=_ORDER)

    def remove(self, ask: Ask) -> Ask | None:
        """Remove `ask` and return the new first request, or None if the run is empty."""
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
    """Pending requests of one application, and the pending classes that are schedulable."""

    __slots__ = ("_heads", "_only", "_runs", "_unschedulable", "bits")

    def __init__(self) -> None:
        self._runs: dict[int, Run] = {}
        self._heads: list[Head] = []
        """Runs sorted by their first requests."""
        self._only: Run | None = None
        """The run if there is only one; its entry in `_heads` and its `order` may then be outdated."""
        self.bits = 0
        """Bits of the pending classes with waiting requests, except unschedulable requests."""
        self._unschedulable: dict[int, int] = {}

    def __iter__(self) -> Iterator[Ask]:
        for run in self._runs.values():
            yield from run.asks[run.head :]

    def add(self, ask: Ask) -> None:
        """Add a request that starts to wait."""
        bit = ask.pending_class.bit
        run = self._runs.get(bit)
        if run is None:
            self._open(Run(bit, ask))
            return
        run.add(ask)
        if run.asks[run.head] is ask:
            self._move(run, ask)

    def _open(self, run: Run) -> None:
        """Add a run."""
        only, heads = self._only, self._heads
        if only is not None:
            only.order = only.asks[only.head].order
            heads[0] = (*only.order, only)
        self._runs[run.bit] = run
        self.bits |= run.bit
        insort(heads, (*run.order, run))
        self._only = run if len(heads) == 1 else None

    def _close(self, run: Run) -> None:
        """Remove an empty run."""
        heads = self._heads
        del self._runs[run.bit], heads[self._place_of(run)]
        self.bits &= ~run.bit
        self._only = heads[0][-1] if len(heads) == 1 else None

    def _place_of(self, run: Run) -> int:
        """Return the index of a run; nearly always 0, because the first run is served first."""
        heads = self._heads
        return 0 if heads[0][-1] is run else bisect_left(heads, run.order)

    def add_all(self, asks: Sequence[Ask]) -> None:
        """Add requests that start to wait; fastest for requests of one pending class in order."""
        if asks and asks[0].sort_key is not BY_ARRIVAL:
            for ask in asks:
                self.add(ask)
            return
        run: Run | None = None
        for ask in asks:
            bit = ask.pending_class.bit
            if run is None or run.bit != bit:
                run = self._runs.get(bit)
            if run is None:
                run = Run(bit, ask)
                self._open(run)
                continue
            last = run.asks[-1]
            if last.priority == ask.priority and last.created == ask.created and last.arrival < ask.arrival:
                # As `add` would do, for the most frequent case.
                run.asks.append(ask)
            else:
                self.add(ask)

    def sort_again(self) -> None:
        """Sort the requests by their present orders, all of which may have changed."""
        waiting = sorted(self, key=_ORDER)
        self._runs.clear()
        self._heads.clear()
        self._only, self.bits = None, 0
        self.add_all(waiting)

    def _move(self, run: Run, first: Ask) -> None:
        """Move a run after its first request changed."""
        heads, order = self._heads, first.order
        if len(heads) == 1:
            heads[0] = (*order, run)
        else:
            del heads[self._place_of(run)]
            insort(heads, (*order, run))
        run.order = order

    def remove(self, ask: Ask) -> Ask | None:
        """Remove a request that no longer waits; return the next request of its pending class, or None."""
        only = self._only
        run = self._runs[ask.pending_class.bit] if only is None else only
        asks, head = run.asks, run.head
        foremost = asks[head] is ask
        if foremost and head < _TRIM:
            # Fast path: the request is nearly always the first one.
            run.head = head = head + 1
            first = asks[head] if head < len(asks) else None
        else:
            first = run.remove(ask)
        if first is not None:
            if foremost and only is None:
                self._move(run, first)
        elif only is not None:
            # The application has no other run.
            self._runs.clear()
            self._heads.clear()
            self._only, self.bits = None, 0
        else:
            self._close(run)
        return first

    def mark_unschedulable(self, ask: Ask) -> None:
        """Keep a waiting request out of scheduling; only its priority still counts."""
        self.remove(ask)
        self.keep(ask)

    def keep(self, ask: Ask) -> None:
        """Add a waiting request that is not to be scheduled yet."""
        self._unschedulable[ask.priority] = self._unschedulable.get(ask.priority, 0) + 1

    def forget_unschedulable(self, ask: Ask) -> None:
        """Remove an unschedulable request that no longer waits or is about to be added again with `add`."""
        left = self._unschedulable[ask.priority] - 1
        if left:
            self._unschedulable[ask.priority] = left
        else:
            del self._unschedulable[ask.priority]

    @property
    def unschedulable(self) -> int:
        """Number of unschedulable requests."""
        return sum(self._unschedulable.values())

    @property
    def any_wait(self) -> bool:
        """True if any request waits, including unschedulable requests."""
        return bool(self._runs or self._unschedulable)

    def runs(self) -> list[list[Ask]]:
        """Return the schedulable requests grouped by pending class; groups and requests are in order."""
        return [run.asks[run.head :] for *_, run in self._heads]

    def first(self, wanted: int) -> Ask | None:
        """Return the first request of any of the `wanted` pending classes."""
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
        """Highest priority of the waiting requests, unschedulable ones included; -2^31 if there are none."""
        best = max(self._unschedulable) if self._unschedulable else INT32_MIN
        if self._heads:
            foremost: Run = self._heads[0][-1]
            best = max(best, foremost.asks[foremost.head].priority)
        return best
