"""What a partition had, what of it was used, and what of the rest was of no use, over time."""

from __future__ import annotations

from collections import Counter

import attrs

from yunikorn.reporting.free_room import Look, Rooms, look
from yunikorn.reporting.intervals import Series, Timeline
from yunikorn.resources import Resource, Tally, grow
from yunikorn.simulation.statistics import DIGITS

SAVINGS = 2_000_000
"""Comparisons that looking for fragmentation may cost at once; small simulations never reach that."""
EARNED = 100
"""Comparisons more for each change, so that looking costs no more than scheduling does."""


@attrs.frozen
class Fragmentation:
    """Room that was free and of no use, of one resource type."""

    of_free: float | None
    """The part of what was free while tasks waited for this type; None if none ever did."""
    of_capacity: float
    """The part of the capacity, over all time; 0 while nothing waited."""
    at_end: float | None
    """The part of what was free when the simulation ended; None if nothing waited then."""
    at_end_of_capacity: float | None
    """The part of the capacity when the simulation ended; None if nothing waited then."""


class PartitionObservation:
    """One partition: its nodes, and the sizes that wait in it."""

    def __init__(self, timeline: Timeline) -> None:
        self.rooms = Rooms()
        self.sizes: Counter[Resource] = Counter()
        """How many tasks of each size wait."""
        self.capacity: Tally = {}
        self.held: Tally = {}
        self.waiting = 0
        self.running = 0
        self.touched = False
        self.had: dict[str, Series] = {}
        self.used: dict[str, Series] = {}
        self.unusable: dict[str, Series] = {}
        self.waits = timeline.series()
        self.runs = timeline.series()
        self._timeline = timeline
        self._contested: dict[str, Series] = {}
        """What was free while something waited for it."""
        self._credit = SAVINGS
        self._last = Look({}, {}, 0)

    def lack(self, size: Resource, tasks: int) -> None:
        """So many more tasks of this size wait."""
        self.sizes[size] += tasks
        if not self.sizes[size]:
            del self.sizes[size]
        self.touched = True

    def wait(self, tasks: int) -> None:
        """So many more tasks wait."""
        self.waiting += tasks
        self.touched = True

    def hold(self, amount: Resource, sign: int) -> None:
        """`amount` more is allocated (`sign` 1), or less (-1)."""
        grow(self.held, amount, sign)
        self.touched = True

    def settle(self, moment: int) -> None:
        """All changes of `moment` are in: enter where it stands."""
        if not self.touched:
            return
        self.touched = False
        self._credit = min(self._credit + EARNED, SAVINGS)
        self.waits.set(moment, self.waiting)
        self.runs.set(moment, self.running)
        self._enter(self.had, self.capacity, moment)
        self._enter(self.used, self.held, moment)
        if not self.sizes:
            self._see(Look({}, {}, 0), moment)
        elif self._credit > 0:
            self._see(look(self.rooms, self.sizes), moment)

    def close(self, moment: int) -> None:
        """The simulation ended: enter what is open, and look a last time."""
        self.touched, self._credit = True, SAVINGS
        self.settle(moment)
        for books in (self.had, self.used, self.unusable, self._contested):
            for series in books.values():
                series.wind(moment)
        self.waits.wind(moment)
        self.runs.wind(moment)

    def fragmentation(self) -> dict[str, Fragmentation]:
        """By resource type that nodes have. After `close`."""
        return {name: self._fragmentation(name) for name in sorted(self.had)}

    def _fragmentation(self, name: str) -> Fragmentation:
        unusable = self.unusable[name].total() if name in self.unusable else 0
        contested = self._contested[name].total() if name in self._contested else 0
        had, free = self.had[name].total(), self._last.free.get(name, 0)
        lost, capacity = self._last.unusable.get(name, 0), self.capacity.get(name, 0)
        return Fragmentation(
            of_free=round(unusable / contested, DIGITS) if contested else None,
            of_capacity=round(unusable / had, DIGITS) if had else 0.0,
            at_end=round(lost / free, DIGITS) if free else None,
            at_end_of_capacity=round(lost / capacity, DIGITS) if free and capacity else None,
        )

    def _see(self, found: Look, moment: int) -> None:
        self._last = found
        self._credit -= found.cost
        self._enter(self.unusable, found.unusable, moment)
        self._enter(self._contested, found.free, moment)

    def _enter(self, books: dict[str, Series], values: dict[str, int], moment: int) -> None:
        for name in {**books, **values}:
            series = books.get(name)
            if series is None:
                series = books[name] = self._timeline.series()
            series.set(moment, values.get(name, 0))
